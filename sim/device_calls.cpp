#include "sim/api.h"
#include "sim/state.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace capturesan::sim {
namespace {

int attribute_of(const device& d, CUdevice_attribute which) {
  if (which == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) return d.ordinal + 1;
  switch (which) {
#define DEVICE_ATTRIBUTE(name, value)                                                                                  \
  case CU_DEVICE_ATTRIBUTE_##name:                                                                                     \
    return value;
#include "sim/device_attributes.def"
  default:
    return 0;
  }
}

bool known(CUdevice ordinal) { return device_of(ordinal) != nullptr; }

} // namespace

namespace api {

CUresult cuDeviceGetCount(int* count) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(state().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* result, int ordinal) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *result = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice ordinal) {
  if (!name || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<std::size_t>(length), "CaptureSan simulated device");
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice ordinal) {
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = device_of(ordinal)->uuid;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice ordinal) {
  if (!value || which <= 0 || which >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute_of(*device_of(ordinal), which);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice ordinal) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = device_of(ordinal)->heap.total();
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
  if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *major = attribute_of(*device_of(ordinal), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  *minor = attribute_of(*device_of(ordinal), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice ordinal) {
  if (!text || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", static_cast<unsigned>(ordinal + 1));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* result, const char* text) {
  if (!result || !text) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& d : state().devices) {
    char own[16];
    api::cuDeviceGetPCIBusId(own, sizeof own, d->ordinal);
    if (std::strcmp(own, text) != 0) continue;
    *result = d->ordinal;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice from, CUdevice to) {
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  if (!known(from) || !known(to)) return CUDA_ERROR_INVALID_DEVICE;
  *can = from != to;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute which, CUdevice from, CUdevice to) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (!known(from) || !known(to) || from == to) return CUDA_ERROR_INVALID_DEVICE;
  *value = which == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = device_of(ordinal)->default_pool;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = device_of(ordinal)->pool;
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool) {
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  if (!pool || pool->device->ordinal != ordinal) return CUDA_ERROR_INVALID_VALUE;
  device_of(ordinal)->pool = pool;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* result, CUdevice ordinal) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  device* d = device_of(ordinal);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  if (d->fault) return d->fault;
  if (!d->primary) d->primary = new_context(*d, d->primary_flags, true);
  ++d->primary_references;
  *result = d->primary;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  device* d = device_of(ordinal);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  if (d->primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--d->primary_references == 0) end_context(d->primary);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  device* d = device_of(ordinal);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  if (d->primary) end_context(d->primary);
  d->primary_references = 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* active) {
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  device* d = device_of(ordinal);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  *flags = d->primary_flags;
  *active = d->primary != nullptr;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags) {
  device* d = device_of(ordinal);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  d->primary_flags = flags;
  if (d->primary) d->primary->flags = flags;
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace capturesan::sim
