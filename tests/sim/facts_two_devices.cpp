// What needs two devices: peer access, copies between devices, contexts.
#include "facts.h"

namespace facts {
namespace {

struct pair {
  CUcontext there = nullptr;
  CUdeviceptr far = 0;
  CUstream far_stream = nullptr;
};

// The first device is current afterwards.
pair start_two(kit& k) {
  k.start();
  pair p;
  CUdevice second = 0;
  REQUIRE(cuDeviceGet(&second, 1));
  REQUIRE(cuDevicePrimaryCtxRetain(&p.there, second));
  REQUIRE(cuCtxSetCurrent(p.there));
  p.far = k.allocate(mib);
  p.far_stream = k.make_stream();
  REQUIRE(cuCtxSetCurrent(k.context));
  return p;
}

template <class F>
void tell_captured(kit& k, F&& call) {
  const pair p = start_two(k);
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    k.begin(k.stream, mode);
    REQUIRE(k.launch(k.stream));
    k << call(p);
    k.tell_end(k.stream);
  }
}

} // namespace

const std::vector<fact> two_device_facts = {
    {"peer: can access; enable; twice; own; disable; twice",
     [](kit& k) {
       const pair p = start_two(k);
       int can = 9;
       k << cuDeviceCanAccessPeer(&can, 0, 1) << can << cuDeviceCanAccessPeer(&can, 0, 0) << can
         << cuCtxEnablePeerAccess(p.there, 0) << cuCtxEnablePeerAccess(p.there, 0)
         << cuCtxEnablePeerAccess(k.context, 0) << cuCtxDisablePeerAccess(p.there) << cuCtxDisablePeerAccess(p.there);
     }},
    {"peer: eager copies without access: general; peer; async",
     [](kit& k) {
       const pair p = start_two(k);
       k << cuMemcpy(p.far, k.buffer, 64) << cuMemcpyPeer(p.far, p.there, k.buffer, k.context, 64)
         << cuMemcpyPeerAsync(p.far, p.there, k.buffer, k.context, 64, k.stream) << cuMemcpyDtoD(p.far, k.buffer, 64)
         << cuStreamSynchronize(k.stream);
     }},
    {"peer: ordinal and type of the other device's memory",
     [](kit& k) {
       const pair p = start_two(k);
       int ordinal = 9;
       CUcontext c = nullptr;
       k << cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p.far) << ordinal
         << cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p.far) << (c == p.there);
     }},
    {"two devices: launch on the other's stream; record an event of the other; wait for one; set of the other's memory",
     [](kit& k) {
       const pair p = start_two(k);
       CUevent e = k.make_event();
       REQUIRE(cuEventRecord(e, k.stream));
       k << k.launch(p.far_stream) << cuEventRecord(e, p.far_stream) << cuStreamWaitEvent(p.far_stream, e, 0)
         << cuMemsetD8(p.far, 0, 64) << cuMemFree(p.far);
     }},
    {"in capture: general copy to the other device",
     [](kit& k) { tell_captured(k, [&](const pair& p) { return cuMemcpyAsync(p.far, k.buffer, 64, k.stream); }); }},
    {"in capture: DtoD copy from the other device",
     [](kit& k) { tell_captured(k, [&](const pair& p) { return cuMemcpyDtoDAsync(k.buffer, p.far, 64, k.stream); }); }},
    {"in capture: copy to the other device after peer access was enabled",
     [](kit& k) {
       tell_captured(k, [&](const pair& p) {
         cuCtxEnablePeerAccess(p.there, 0);
         return cuMemcpyAsync(p.far, k.buffer, 64, k.stream);
       });
     }},
    {"in capture: peer copy within the other device",
     [](kit& k) {
       tell_captured(k, [&](const pair& p) { return cuMemcpyDtoDAsync(p.far, p.far + 4096, 64, k.stream); });
     }},
    {"in capture: set of the other device's memory",
     [](kit& k) { tell_captured(k, [&](const pair& p) { return cuMemsetD8Async(p.far, 0, 64, k.stream); }); }},
    {"in capture: enable peer access",
     [](kit& k) { tell_captured(k, [&](const pair& p) { return cuCtxEnablePeerAccess(p.there, 0); }); }},
    {"in capture: synchronise the other context by handle",
     [](kit& k) { tell_captured(k, [&](const pair& p) { return cuCtxSynchronize_v2(p.there); }); }},
    {"in capture: free of the other device's memory",
     [](kit& k) {
       const pair p = start_two(k);
       k.begin(k.stream);
       k << cuMemFree(p.far);
       k.tell_end(k.stream);
     }},
    {"in capture: wait on the other device's stream for an eager event",
     [](kit& k) {
       tell_captured(k, [&](const pair& p) {
         CUevent e = k.make_event();
         cuEventRecord(e, k.second);
         return cuStreamWaitEvent(p.far_stream, e, 0);
       });
     }},
};

} // namespace facts
