// Copies, sets, launches: work for the capturing stream and for others.
#include "probe.h"

namespace probe {
namespace {

// The empty graph is made, instantiated and launched inside the capture: it is the instantiation that is tested first.
CUresult instantiate_and_launch(CUstream stream) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  return in_turn([&] { return cuGraphCreate(&graph, 0); }, [&] { return cuGraphInstantiate(&exec, graph, 0); },
                 [&] { return cuGraphLaunch(exec, stream); });
}

CUresult copy_batch(bench& b) {
  CUdeviceptr to[] = {b.memory}, from[] = {b.memory + page};
  std::size_t bytes[] = {small}, index[] = {0};
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return cuMemcpyBatchAsync(to, from, bytes, 1, &attributes, index, 1, b.capturing);
}

CUresult load_and_launch(bench& b) {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUdeviceptr target = b.memory;
  void* values[] = {&target};
  return in_turn([&] { return cuModuleLoadData(&module, kernel_text); },
                 [&] { return cuModuleGetFunction(&kernel, module, "k"); },
                 [&] { return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, b.capturing, values, nullptr); });
}

CUresult launch_cooperative(bench& b) {
  CUdeviceptr target = b.memory;
  void* values[] = {&target};
  return cuLaunchCooperativeKernel(b.home.kernel, 1, 1, 1, 1, 1, 1, 0, b.capturing, values);
}

} // namespace

const std::vector<call> work_calls = {
    {"cuMemcpyHtoD(sync)", [](bench& b) { return cuMemcpyHtoD(b.memory, b.pageable, small); }},
    {"cuMemcpyDtoH(sync)", [](bench& b) { return cuMemcpyDtoH(b.pageable, b.memory, small); }},
    {"cuMemcpyDtoD(sync)", [](bench& b) { return cuMemcpyDtoD(b.memory, b.memory + page, small); }},
    {"cuMemcpy(sync,UVA)", [](bench& b) { return cuMemcpy(b.memory, b.memory + page, small); }},
    {"cuMemsetD8(sync)", [](bench& b) { return cuMemsetD8(b.memory, 0, small); }},
    {"cuMemcpyHtoDAsync(pageable,capturing)",
     [](bench& b) { return cuMemcpyHtoDAsync(b.memory, b.pageable, small, b.capturing); }},
    {"cuMemcpyDtoHAsync(pageable,capturing)",
     [](bench& b) { return cuMemcpyDtoHAsync(b.pageable, b.memory, small, b.capturing); }},
    {"cuMemcpyDtoHAsync(pinned,capturing)",
     [](bench& b) { return cuMemcpyDtoHAsync(b.pinned, b.memory, small, b.capturing); }},
    {"cuMemcpyDtoHAsync(pageable,other)",
     [](bench& b) { return cuMemcpyDtoHAsync(b.pageable, b.memory, small, b.other); }},
    {"cuMemcpyHtoDAsync(pageable;nonblocking)",
     [](bench& b) { return cuMemcpyHtoDAsync(b.memory, b.pageable, small, b.nonblocking); }},
    {"cuMemcpyDtoDAsync(other)", [](bench& b) { return cuMemcpyDtoDAsync(b.memory, b.memory + page, small, b.other); }},
    {"cuMemcpyDtoDAsync(legacy)",
     [](bench& b) { return cuMemcpyDtoDAsync(b.memory, b.memory + page, small, CU_STREAM_LEGACY); }},
    {"cuMemcpyDtoDAsync(nonblocking)",
     [](bench& b) { return cuMemcpyDtoDAsync(b.memory, b.memory + page, small, b.nonblocking); }},
    {"cuMemcpyBatchAsync(capturing)", copy_batch},
    {"cuMemsetD8Async(capturing)", [](bench& b) { return cuMemsetD8Async(b.memory, 0, small, b.capturing); }},
    {"cuMemsetD8Async(legacy)", [](bench& b) { return cuMemsetD8Async(b.memory, 0, small, CU_STREAM_LEGACY); }},
    {"cuStreamWriteValue32(capturing)", [](bench& b) { return cuStreamWriteValue32(b.capturing, b.memory, 1, 0); }},
    {"cuLaunchKernel(legacy)", [](bench& b) { return b.launch(CU_STREAM_LEGACY); }},
    {"cuLaunchKernel(null)", [](bench& b) { return b.launch(nullptr); }},
    {"cuLaunchKernel(per-thread)", [](bench& b) { return b.launch(CU_STREAM_PER_THREAD); }},
    {"cuLaunchKernel(other blocking)", [](bench& b) { return b.launch(b.other); }},
    {"cuLaunchKernel(nonblocking)", [](bench& b) { return b.launch(b.nonblocking); }},
    {"cuLaunchCooperativeKernel(capturing)", launch_cooperative},
    {"cuModuleLoadData+launch(capturing)", load_and_launch},
    {"cuLaunchHostFunc(capturing)",
     [](bench& b) {
       return cuLaunchHostFunc(
           b.capturing, [](void*) {}, nullptr);
     }},
    {"cuStreamAddCallback(capturing)",
     [](bench& b) {
       return cuStreamAddCallback(
           b.capturing, [](CUstream, CUresult, void*) {}, nullptr, 0);
     }},
    {"cuGraphInstantiate+Launch(other)", [](bench& b) { return instantiate_and_launch(b.other); }},
    {"cuGraphInstantiate+Launch(capturing)", [](bench& b) { return instantiate_and_launch(b.capturing); }},
    {"cuGraphLaunch(prebuilt exec; capturing)", [](bench& b) { return cuGraphLaunch(b.empty_exec, b.capturing); }},
    {"cuGraphLaunch(prebuilt exec; other)", [](bench& b) { return cuGraphLaunch(b.empty_exec, b.other); }},
    {"cuGraphUpload(prebuilt exec; other)", [](bench& b) { return cuGraphUpload(b.empty_exec, b.other); }},
    {"cuEventRecord(ev,legacy)", [](bench& b) { return cuEventRecord(b.second, CU_STREAM_LEGACY); }},
};

} // namespace probe
