#include "sim/api.h"
#include "sim/state.h"
#include "sim/work.h"

namespace capturesan::sim::api {

CUresult cuEventCreate(CUevent* result, unsigned flags) {
  constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!result || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_VALUE;
  CUevent event = create<CUevent_st>();
  event->context = current_context();
  event->flags = flags;
  *result = event;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  destroy(event);
  return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return record_event(event, stream, flags);
}
CUresult cuEventRecord(CUevent event, CUstream stream) { return record_event(event, stream, CU_EVENT_RECORD_DEFAULT); }

// One that was never recorded has nothing to wait for.
CUresult cuEventQuery(CUevent event) { return event->recorded ? settle(event->context) : CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent event) { return event->recorded ? settle(event->context) : CUDA_SUCCESS; }

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
  if (!start->recorded || !end->recorded) return CUDA_ERROR_INVALID_HANDLE;
  if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return CUDA_SUCCESS;
}

} // namespace capturesan::sim::api
