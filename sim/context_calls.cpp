#include "sim/api.h"
#include "sim/state.h"
#include "sim/work.h"

#include <algorithm>

namespace capturesan::sim {
namespace {

CUcontext or_current(CUcontext context) { return context ? context : current_context(); }

void push(CUcontext context) { this_thread().contexts.push_back(context); }

} // namespace

namespace api {

CUresult cuCtxCreate_v2(CUcontext* result, unsigned flags, CUdevice ordinal) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  device* owner = device_of(ordinal);
  if (!owner) return CUDA_ERROR_INVALID_DEVICE;
  if (owner->fault) return owner->fault;
  *result = new_context(*owner, flags, false);
  push(*result);
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v3(CUcontext* result, CUexecAffinityParam*, int, unsigned flags, CUdevice ordinal) {
  return api::cuCtxCreate_v2(result, flags, ordinal);
}

CUresult cuCtxCreate_v4(CUcontext* result, CUctxCreateParams*, unsigned flags, CUdevice ordinal) {
  return api::cuCtxCreate_v2(result, flags, ordinal);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  if (!context || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  auto& stack = this_thread().contexts;
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  end_context(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  push(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* result) {
  auto& stack = this_thread().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (result) *result = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

// Replaces the top of the stack; null takes it away.
CUresult cuCtxSetCurrent(CUcontext context) {
  auto& stack = this_thread().contexts;
  if (!stack.empty()) stack.pop_back();
  if (context) push(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* result) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  *result = current_context();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* result) { return api::cuCtxGetDevice_v2(result, nullptr); }

CUresult cuCtxGetDevice_v2(CUdevice* result, CUcontext context) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  context = or_current(context);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *result = context->device->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned* flags) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;
  *flags = current_context()->flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags) {
  current_context()->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  context = or_current(context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  context = or_current(context);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *version = context->api_version;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (static_cast<std::size_t>(limit) >= limit_count) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = current_context()->limits[static_cast<std::size_t>(limit)];
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  if (static_cast<std::size_t>(limit) >= limit_count) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  current_context()->limits[static_cast<std::size_t>(limit)] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  *config = current_context()->cache_config;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  current_context()->cache_config = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  *config = current_context()->shared_config;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  current_context()->shared_config = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache() { return CUDA_SUCCESS; }

CUresult cuCtxSynchronize() { return settle(current_context()); }
CUresult cuCtxSynchronize_v2(CUcontext context) { return settle(or_current(context)); }

CUresult cuCtxRecordEvent(CUcontext context, CUevent event) {
  if (event->context != or_current(context)) return CUDA_ERROR_INVALID_HANDLE;
  note_recorded(event);
  return CUDA_SUCCESS;
}

CUresult cuCtxWaitEvent(CUcontext, CUevent) { return CUDA_SUCCESS; }

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  CUcontext own = current_context();
  if (!peer) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (peer->device == own->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  if (std::find(own->peers.begin(), own->peers.end(), peer) != own->peers.end())
    return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  own->peers.push_back(peer);
  return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  return std::erase(current_context()->peers, peer) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

} // namespace api
} // namespace capturesan::sim
