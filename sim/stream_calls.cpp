#include "sim/api.h"
#include "sim/state.h"
#include "sim/work.h"

#include <algorithm>

namespace capturesan::sim {
namespace {

constexpr int greatest_priority = -5;

CUresult check_attribute(CUstreamAttrID id) {
  switch (id) {
  case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
  case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
  case CU_LAUNCH_ATTRIBUTE_PRIORITY:
  case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
  case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

} // namespace

namespace api {

CUresult cuStreamCreateWithPriority(CUstream* result, unsigned flags, int priority) {
  if (!result || flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) return CUDA_ERROR_INVALID_VALUE;
  CUstream stream = create<CUstream_st>();
  stream->context = current_context();
  stream->flags = flags;
  stream->priority = std::clamp(priority, greatest_priority, 0);
  stream->id = state().next_id++;
  *result = stream;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* result, unsigned flags) { return api::cuStreamCreateWithPriority(result, flags, 0); }

CUresult cuStreamDestroy_v2(CUstream stream) {
  if (stream->which != CUstream_st::kind::created) return CUDA_ERROR_INVALID_HANDLE;
  leave_capture(stream);
  destroy(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) { return settle(stream->context); }
CUresult cuStreamQuery(CUstream stream) { return settle(stream->context); }

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) { return wait_event(stream, event, flags); }

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  if (!priority) return CUDA_ERROR_INVALID_VALUE;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  *id = stream->id;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* ordinal) {
  if (!ordinal) return CUDA_ERROR_INVALID_VALUE;
  *ordinal = stream->context->device->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = stream->context;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (green) *green = nullptr;
  return api::cuStreamGetCtx(stream, context);
}

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID id, CUstreamAttrValue* value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult r = check_attribute(id)) return r;
  *value = {};
  auto found = stream->attributes.find(static_cast<int>(id));
  if (found != stream->attributes.end())
    *value = found->second;
  else if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
    value->priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID id, const CUstreamAttrValue* value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult r = check_attribute(id)) return r;
  stream->attributes[static_cast<int>(id)] = *value;
  return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  to->attributes = from->attributes;
  return CUDA_SUCCESS;
}

// Done at once, as all work is; on the caller's thread, which a real driver never does.
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* user_data, unsigned flags) {
  if (!callback || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = stream->context->pending_fault;
  CUstream handle = stream->which == CUstream_st::kind::created ? stream : nullptr;
  unlocked([&] { callback(handle, status, user_data); });
  return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream, CUdeviceptr address, size_t, unsigned) {
  const allocation* a = state().memory.find(address);
  return a && a->kind == memory_kind::managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

} // namespace api
} // namespace capturesan::sim
