// Start, entry points, modules, launches, events: outside any capture.
#include "facts.h"

#include <cstring>

namespace facts {
namespace {

void tell_entry(kit& k, const char* name, int version, cuuint64_t flags = 0) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  k << cuGetProcAddress(name, &found, version, flags, &status) << status << (found != nullptr);
}

void load(kit& k, const char* text) {
  CUmodule module = nullptr;
  k << cuModuleLoadData(&module, text);
}

CUresult launch_shape(const kit& k, unsigned grid, unsigned block, unsigned shared) {
  CUdeviceptr target = k.buffer;
  void* values[] = {&target};
  return cuLaunchKernel(k.store, grid, 1, 1, block, 1, 1, shared, k.stream, values, nullptr);
}

} // namespace

const std::vector<fact> driver_facts = {
    {"before cuInit: count; context; version",
     [](kit& k) {
       int n = 0;
       CUcontext context = nullptr;
       k << cuDeviceGetCount(&n) << cuCtxGetCurrent(&context) << cuDriverGetVersion(&n);
     }},
    {"cuInit(1)", [](kit& k) { k << cuInit(1); }},
    {"no context: alloc; sync; stream; launch; event query",
     [](kit& k) {
       k.start();
       CUevent event = k.make_event();
       cuCtxSetCurrent(nullptr);
       CUdeviceptr address = 0;
       CUstream stream = nullptr;
       k << cuMemAlloc(&address, 1) << cuCtxSynchronize() << cuStreamCreate(&stream, 0) << k.launch(nullptr)
         << cuEventQuery(event);
     }},
    {"no context: created stream: sync; query; launch; record; is capturing; legacy is capturing",
     [](kit& k) {
       k.start();
       CUevent event = k.make_event();
       cuCtxSetCurrent(nullptr);
       CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
       k << cuStreamSynchronize(k.stream) << cuStreamQuery(k.stream) << k.launch(k.stream)
         << cuEventRecord(event, k.stream) << cuStreamIsCapturing(k.stream, &status)
         << cuStreamIsCapturing(nullptr, &status);
     }},
    {"no context: free; copy; set; begin capture; end capture",
     [](kit& k) {
       k.start();
       CUdeviceptr address = k.allocate(64);
       cuCtxSetCurrent(nullptr);
       unsigned value = 0;
       CUgraph graph = nullptr;
       k << cuMemFree(address) << cuMemcpyHtoD(k.buffer, &value, 4) << cuMemsetD8(k.buffer, 0, 4)
         << cuStreamBeginCapture(k.stream, CU_STREAM_CAPTURE_MODE_GLOBAL) << cuStreamEndCapture(k.stream, &graph);
     }},
    {"entry: cuMemAlloc 3020", [](kit& k) { tell_entry(k, "cuMemAlloc", 3020); }},
    {"entry: cuMemAlloc_v2 by its ABI name", [](kit& k) { tell_entry(k, "cuMemAlloc_v2", 13000); }},
    {"entry: cuLaunchKernel_ptsz by its ABI name", [](kit& k) { tell_entry(k, "cuLaunchKernel_ptsz", 13000); }},
    {"entry: unknown name", [](kit& k) { tell_entry(k, "cuNoSuchCall", 13000); }},
    {"entry: known later", [](kit& k) { tell_entry(k, "cuGraphAddNode", 11000); }},
    {"entry: version above the driver's", [](kit& k) { tell_entry(k, "cuMemAlloc", 99000); }},
    {"entry: both stream flags", [](kit& k) { tell_entry(k, "cuLaunchKernel", 13000, 3); }},
    {"entry: unknown flag", [](kit& k) { tell_entry(k, "cuLaunchKernel", 13000, 4); }},
    {"entry: empty name", [](kit& k) { tell_entry(k, "", 13000); }},
    {"entry: itself", [](kit& k) { tell_entry(k, "cuGetProcAddress", 12000); }},
    {"module: not an image", [](kit& k) { k.start(), load(k, "nothing of the kind"); }},
    {"module: missing function",
     [](kit& k) {
       k.start();
       CUfunction f = nullptr;
       k << cuModuleGetFunction(&f, k.module, "absent");
     }},
    {"module: global: size; missing",
     [](kit& k) {
       k.start();
       CUdeviceptr address = 0;
       std::size_t bytes = 0;
       k << cuModuleGetGlobal(&address, &bytes, k.module, "counter") << static_cast<long long>(bytes)
         << cuModuleGetGlobal(&address, &bytes, k.module, "absent");
     }},
    {"module: counts of functions",
     [](kit& k) {
       k.start();
       unsigned n = 0;
       k << cuModuleGetFunctionCount(&n, k.module) << n;
     }},
    {"parameters of other",
     [](kit& k) {
       k.start();
       for (std::size_t i = 0; i < 3; ++i) {
         std::size_t offset = 99, size = 99;
         k << cuFuncGetParamInfo(k.other, i, &offset, &size) << static_cast<long long>(offset)
           << static_cast<long long>(size);
       }
     }},
    {"launch: no grid", [](kit& k) { k.start(), k << launch_shape(k, 0, 1, 0); }},
    {"launch: too many threads", [](kit& k) { k.start(), k << launch_shape(k, 1, 2048, 0); }},
    {"launch: too much shared memory", [](kit& k) { k.start(), k << launch_shape(k, 1, 1, 60000); }},
    {"launch: more shared memory after opt-in",
     [](kit& k) {
       k.start();
       k << cuFuncSetAttribute(k.store, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000)
         << launch_shape(k, 1, 1, 60000)
         << cuFuncSetAttribute(k.store, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300000);
     }},
    {"launch: null function",
     [](kit& k) {
       k.start();
       k << cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, k.stream, nullptr, nullptr);
     }},
    {"launch: values as one buffer",
     [](kit& k) {
       k.start();
       std::size_t bytes = sizeof k.buffer;
       void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &k.buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                        CU_LAUNCH_PARAM_END};
       k.write(k.buffer, 5);
       k << cuLaunchKernel(k.store, 1, 1, 1, 1, 1, 1, 0, k.stream, nullptr, extra) << cuStreamSynchronize(k.stream)
         << k.read(k.buffer);
     }},
    {"event: flags 8; interprocess with timing",
     [](kit& k) {
       k.start();
       CUevent e = nullptr;
       k << cuEventCreate(&e, 8) << cuEventCreate(&e, CU_EVENT_INTERPROCESS);
     }},
    {"event: elapsed: never recorded; without timing",
     [](kit& k) {
       k.start();
       float ms = 0;
       CUevent a = k.make_event(0), b = k.make_event();
       k << cuEventElapsedTime(&ms, a, a);
       REQUIRE(cuEventRecord(b, k.stream));
       REQUIRE(cuEventSynchronize(b));
       k << cuEventElapsedTime(&ms, b, b);
     }},
    {"event: query and sync of one never recorded",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       k << cuEventQuery(e) << cuEventSynchronize(e);
     }},
    {"event: external flags outside a capture",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       k << cuEventRecordWithFlags(e, k.stream, CU_EVENT_RECORD_EXTERNAL) << cuEventRecord(e, k.stream)
         << cuStreamWaitEvent(k.stream, e, CU_EVENT_WAIT_EXTERNAL);
     }},
    {"stream: flags 2; destroy legacy; destroy null",
     [](kit& k) {
       k.start();
       CUstream s = nullptr;
       k << cuStreamCreate(&s, 2) << cuStreamDestroy(CU_STREAM_LEGACY) << cuStreamDestroy(nullptr);
     }},
    {"stream: flags of legacy; of non-blocking; priority range",
     [](kit& k) {
       k.start();
       unsigned flags = 9;
       int least = 9, greatest = 9;
       k << cuStreamGetFlags(CU_STREAM_LEGACY, &flags) << flags << cuStreamGetFlags(k.stream, &flags) << flags
         << cuCtxGetStreamPriorityRange(&least, &greatest) << least << greatest;
     }},
    {"context: pop until empty",
     [](kit& k) {
       k.start();
       CUcontext c = nullptr;
       k << cuCtxPopCurrent(&c) << (c == k.context) << cuCtxPopCurrent(&c) << cuCtxGetCurrent(&c) << (c == nullptr);
     }},
    {"mode: bad value",
     [](kit& k) {
       k.start();
       const int raw = 7;
       CUstreamCaptureMode mode;
       std::memcpy(&mode, &raw, sizeof mode);
       k << cuThreadExchangeStreamCaptureMode(&mode) << cuStreamBeginCapture(k.stream, mode);
     }},
};

} // namespace facts
