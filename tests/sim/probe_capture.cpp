// Calls that shape captures: forks, joins, begin, end, information.
#include "probe.h"

namespace probe {
namespace {

CUresult end(CUstream stream) {
  CUgraph graph = nullptr;
  const CUresult result = cuStreamEndCapture(stream, &graph);
  if (graph) cuGraphDestroy(graph);
  return result;
}

CUresult merge(bench& b) {
  const CUresult result = in_turn([&] { return cuStreamBeginCapture(b.third, CU_STREAM_CAPTURE_MODE_RELAXED); },
                                  [&] { return cuEventRecord(b.second, b.third); },
                                  [&] { return cuStreamWaitEvent(b.capturing, b.second, 0); });
  end(b.third);
  return result;
}

CUresult destroy(CUstream& stream) {
  const CUresult result = cuStreamDestroy(stream);
  if (result == CUDA_SUCCESS) stream = nullptr;
  return result;
}

CUresult status_of(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return cuStreamIsCapturing(stream, &status);
}

} // namespace

const std::vector<call> capture_calls = {
    {"fork-nojoin", [](bench& b) { return b.fork(); }},
    {"fork+launch-nojoin",
     [](bench& b) { return in_turn([&] { return b.fork(); }, [&] { return b.launch(b.nonblocking); }); }},
    {"fork+launch+join",
     [](bench& b) {
       return in_turn([&] { return b.fork(); }, [&] { return b.launch(b.nonblocking); },
                      [&] { return cuEventRecord(b.second, b.nonblocking); },
                      [&] { return cuStreamWaitEvent(b.capturing, b.second, 0); });
     }},
    {"fork+cuStreamEndCapture(forked stream)",
     [](bench& b) { return in_turn([&] { return b.fork(); }, [&] { return end(b.nonblocking); }); }},
    {"two captures; wait captured event of the other (merge)", merge},
    {"cuStreamBeginCapture(again same)",
     [](bench& b) { return cuStreamBeginCapture(b.capturing, CU_STREAM_CAPTURE_MODE_RELAXED); }},
    {"cuStreamBeginCapture(legacy)",
     [](bench&) { return cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED); }},
    {"cuStreamEndCapture(not capturing other)", [](bench& b) { return end(b.other); }},
    {"cuStreamEndCapture(origin; from the calling thread)", [](bench& b) { return end(b.capturing); }},
    // The name is that of the measured row; what it asks is cuStreamIsCapturing.
    {"cuStreamGetCaptureInfo(legacy)", [](bench&) { return status_of(CU_STREAM_LEGACY); }},
    {"cuStreamIsCapturing(capturing)", [](bench& b) { return status_of(b.capturing); }},
    {"cuStreamUpdateCaptureDependencies(none)",
     [](bench& b) {
       return cuStreamUpdateCaptureDependencies(b.capturing, nullptr, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
     }},
    // The name is that of the measured row; what is destroyed is the stream of a second, thread-local capture.
    {"cuStreamDestroy(capturing)",
     [](bench& b) {
       return in_turn([&] { return cuStreamBeginCapture(b.third, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); },
                      [&] { return destroy(b.third); });
     }},
    {"cuStreamDestroy(the capturing stream's forked child)",
     [](bench& b) {
       return in_turn([&] { return b.mark(); }, [&] { return cuStreamWaitEvent(b.third, b.captured, 0); },
                      [&] { return destroy(b.third); });
     }},
    {"none", [](bench&) { return CUDA_SUCCESS; }},
};

} // namespace probe
