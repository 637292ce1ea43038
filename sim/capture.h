// Stream capture: what is refused, what becomes a node, when a capture is invalidated. The whole state machine.
#pragma once

#include "sim/answer.h"
#include "sim/objects.h"

#include <memory>
#include <vector>

namespace capturesan::sim {

struct capture {
  std::uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  thread_id thread = 0; // that began it
  CUstream origin = nullptr;
  CUcontext context = nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  bool over = false;
  CUgraph graph = nullptr;
  bool owns_graph = true;        // false: cuStreamBeginCaptureToGraph
  std::vector<CUstream> streams; // that are part of it

  void invalidate() { status = CU_STREAM_CAPTURE_STATUS_INVALIDATED; }
  bool active() const { return status == CU_STREAM_CAPTURE_STATUS_ACTIVE; }
};

// What a call is about to touch.
struct call_operands {
  CUstream stream = nullptr;
  std::array<CUevent, 2> events{};
  CUcontext context = nullptr; // the one a `wait` waits for
};

// Whether open captures let the call through. Anything but CUDA_SUCCESS is its result, and invalidation has been done.
CUresult admit(const answer& call, const call_operands& operands);

// The same for what a call does only in some of its forms: something unsafe.
CUresult admit_unsafe();

// Puts work on a stream: a node if it captures, else done at once. `added` receives the node, if any.
CUresult submit(CUstream stream, operation&& work, CUgraphNode* added = nullptr);

CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode, CUgraph into, std::vector<dependency> tail);
CUresult end_capture(CUstream stream, CUgraph* result);
CUresult record_event(CUevent event, CUstream stream, unsigned flags);
CUresult wait_event(CUstream stream, CUevent event, unsigned flags);
// The stream leaves its capture, as when it is destroyed; without its origin the capture is over.
void leave_capture(CUstream stream);
// The stream waits for these from now on.
void set_tail(CUstream stream, std::vector<dependency> tail);
void add_to_tail(CUstream stream, const std::vector<dependency>& more);

} // namespace capturesan::sim
