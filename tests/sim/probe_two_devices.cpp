// The table of two devices: the first one captures, the calls are made with the second one's context current.
#include "probe.h"

namespace probe {
namespace {

// With the context of the second device current.
template <class F>
CUresult at_peer(bench& b, F&& body) {
  cuCtxPushCurrent(b.peer->context);
  const CUresult result = body();
  CUcontext popped = nullptr;
  cuCtxPopCurrent(&popped);
  return result;
}

CUresult fork_over(bench& b) {
  return in_turn([&] { return b.mark(); }, [&] { return cuStreamWaitEvent(b.peer_stream, b.captured, 0); },
                 [&] { return b.peer->launch(b.peer_stream); },
                 [&] { return cuEventRecord(b.peer_event, b.peer_stream); },
                 [&] { return cuStreamWaitEvent(b.capturing, b.peer_event, 0); });
}

} // namespace

const std::vector<call> two_device_calls = {
    {"dev1 cuStreamSynchronize",
     [](bench& b) { return at_peer(b, [&] { return cuStreamSynchronize(b.peer_stream); }); }},
    {"dev1 cuStreamQuery", [](bench& b) { return at_peer(b, [&] { return cuStreamQuery(b.peer_stream); }); }},
    {"dev1 cuCtxSynchronize", [](bench& b) { return at_peer(b, [] { return cuCtxSynchronize(); }); }},
    {"dev1 cuEventQuery", [](bench& b) { return at_peer(b, [&] { return cuEventQuery(b.peer_eager); }); }},
    {"dev1 cuEventSynchronize", [](bench& b) { return at_peer(b, [&] { return cuEventSynchronize(b.peer_eager); }); }},
    {"dev1 cuMemAlloc",
     [](bench& b) {
       CUdeviceptr address = 0;
       return at_peer(b, [&] { return cuMemAlloc(&address, 1024); });
     }},
    {"dev1 cuLaunchKernel(legacy)",
     [](bench& b) { return at_peer(b, [&] { return b.peer->launch(CU_STREAM_LEGACY); }); }},
    {"dev1 cuLaunchKernel(t1)", [](bench& b) { return at_peer(b, [&] { return b.peer->launch(b.peer_stream); }); }},
    {"dev1 cuMemcpyHtoD(sync)",
     [](bench& b) { return at_peer(b, [&] { return cuMemcpyHtoD(b.peer->buffer, b.pageable, small); }); }},
    {"dev1 cuMemsetD8(sync)",
     [](bench& b) { return at_peer(b, [&] { return cuMemsetD8(b.peer->buffer, 0, small); }); }},
    {"dev1 cuStreamSynchronize(legacy)",
     [](bench& b) { return at_peer(b, [] { return cuStreamSynchronize(CU_STREAM_LEGACY); }); }},
    {"dev1 fork from capture+launch+join", [](bench& b) { return at_peer(b, [&] { return fork_over(b); }); }},
    {"dev1 kernel on dev0 capturing stream",
     [](bench& b) { return at_peer(b, [&] { return b.peer->launch(b.capturing); }); }},
    // The name is that of the measured row; the call is cuMemcpyPeerAsync. A plain cuMemcpyAsync between devices is
    // captured.
    {"dev1 current; cuMemcpyAsync peer on capturing stream",
     [](bench& b) {
       return at_peer(b, [&] {
         return cuMemcpyPeerAsync(b.peer->buffer, b.peer->context, b.memory, b.home.context, small, b.capturing);
       });
     }},
    {"none", [](bench&) { return CUDA_SUCCESS; }},
};

} // namespace probe
