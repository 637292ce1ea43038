// Everything else: objects, modules, functions, attributes.
#include "probe.h"

namespace probe {
namespace {

CUresult load(CUmodule* module) { return cuModuleLoadData(module, kernel_text); }

CUresult create_event(CUevent* event) { return cuEventCreate(event, 0); }

} // namespace

const std::vector<call> object_calls = {
    {"cuEventCreate",
     [](bench&) {
       CUevent event = nullptr;
       return create_event(&event);
     }},
    {"cuEventCreate+Destroy",
     [](bench&) {
       CUevent event = nullptr;
       return in_turn([&] { return create_event(&event); }, [&] { return cuEventDestroy(event); });
     }},
    {"cuEventDestroy(captured)",
     [](bench& b) {
       CUevent event = nullptr;
       return in_turn([&] { return create_event(&event); }, [&] { return cuEventRecord(event, b.capturing); },
                      [&] { return cuEventDestroy(event); });
     }},
    {"cuStreamCreate",
     [](bench&) {
       CUstream stream = nullptr;
       return cuStreamCreate(&stream, 0);
     }},
    {"cuStreamSetAttribute",
     [](bench& b) {
       CUstreamAttrValue value{};
       return cuStreamSetAttribute(b.capturing, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
     }},
    {"cuStreamGetPriority(capturing)",
     [](bench& b) {
       int priority = 0;
       return cuStreamGetPriority(b.capturing, &priority);
     }},
    {"cuModuleLoadData",
     [](bench&) {
       CUmodule module = nullptr;
       return load(&module);
     }},
    {"cuModuleLoadData+GetFunction",
     [](bench&) {
       CUmodule module = nullptr;
       CUfunction kernel = nullptr;
       return in_turn([&] { return load(&module); }, [&] { return cuModuleGetFunction(&kernel, module, "k"); });
     }},
    // The name is that of the measured row; the handle is none.
    {"cuModuleUnload", [](bench&) { return cuModuleUnload(nullptr); }},
    {"cuModuleUnload(loaded)",
     [](bench&) {
       CUmodule module = nullptr;
       return in_turn([&] { return load(&module); }, [&] { return cuModuleUnload(module); });
     }},
    {"cuFuncSetAttribute",
     [](bench& b) {
       return cuFuncSetAttribute(b.home.kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536);
     }},
    {"cuFuncGetAttribute",
     [](bench& b) {
       int value = 0;
       return cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, b.home.kernel);
     }},
    {"cuFuncGetParamInfo",
     [](bench& b) {
       std::size_t offset = 0, size = 0;
       return cuFuncGetParamInfo(b.home.kernel, 0, &offset, &size);
     }},
    {"cuOccupancyMaxActiveBlocks",
     [](bench& b) {
       int blocks = 0;
       return cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, b.home.kernel, 64, 0);
     }},
    // The name is that of the measured row; the limit is that of printf.
    {"cuCtxSetLimit(malloc heap)", [](bench&) { return cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, granule); }},
    {"cuCtxGetLimit",
     [](bench&) {
       std::size_t value = 0;
       return cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE);
     }},
    {"cuCtxGetCurrent",
     [](bench&) {
       CUcontext context = nullptr;
       return cuCtxGetCurrent(&context);
     }},
    // The measured row makes no call at all.
    {"cuCtxCreate", [](bench&) { return CUDA_SUCCESS; }},
    {"cuDevicePrimaryCtxRetain",
     [](bench& b) {
       CUcontext context = nullptr;
       return cuDevicePrimaryCtxRetain(&context, b.home.device);
     }},
    {"cuDeviceGetAttribute",
     [](bench& b) {
       int value = 0;
       return cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, b.home.device);
     }},
    {"cuGraphCreate",
     [](bench&) {
       CUgraph graph = nullptr;
       return cuGraphCreate(&graph, 0);
     }},
    {"cuGraphInstantiate(empty)",
     [](bench&) {
       CUgraph graph = nullptr;
       CUgraphExec exec = nullptr;
       return in_turn([&] { return cuGraphCreate(&graph, 0); }, [&] { return cuGraphInstantiate(&exec, graph, 0); });
     }},
    {"cuGraphExecDestroy(other graph)",
     [](bench& b) {
       const CUresult result = cuGraphExecDestroy(b.empty_exec);
       if (result == CUDA_SUCCESS) b.empty_exec = nullptr;
       return result;
     }},
};

} // namespace probe
