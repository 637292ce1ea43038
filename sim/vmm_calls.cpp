#include "sim/api.h"
#include "sim/memory.h"
#include "sim/vmm.h"

#include <sys/mman.h>
#include <unistd.h>

namespace capturesan::sim {
namespace {

constexpr std::size_t granularity = slab_bytes;

struct mapping {
  CUmemGenericAllocationHandle handle = 0;
  std::size_t bytes = 0;
  unsigned long long access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
};

struct vmm_state {
  std::unordered_map<CUmemGenericAllocationHandle, physical_memory> physical;
  std::map<CUdeviceptr, mapping> mappings;
  std::map<CUdeviceptr, std::pair<std::size_t, int>> reserved; // bytes, device whose region it is
  CUmemGenericAllocationHandle next = 1;
};

vmm_state& vmm() {
  static auto* const only = new vmm_state;
  return *only;
}

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

void drop_if_unused(CUmemGenericAllocationHandle handle) {
  auto found = vmm().physical.find(handle);
  if (found == vmm().physical.end() || found->second.references || found->second.mappings) return;
  close(found->second.file);
  vmm().physical.erase(found);
}

bool is_multiple(std::size_t bytes) { return bytes != 0 && bytes % granularity == 0; }

bool inside_reservation(CUdeviceptr address, std::size_t bytes) {
  auto next = vmm().reserved.upper_bound(address);
  if (next == vmm().reserved.begin()) return false;
  const auto& [base, range] = *std::prev(next);
  return address + bytes <= base + range.first;
}

} // namespace

namespace api {

CUresult cuMemAddressReserve(CUdeviceptr* result, size_t bytes, size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
  if (!result || flags != 0 || !is_multiple(bytes) || (alignment & (alignment - 1)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const CUcontext context = current_context();
  device& owner = context ? *context->device : *state().devices.front();
  *result = owner.heap.reserve(bytes, alignment);
  if (!*result) return CUDA_ERROR_OUT_OF_MEMORY;
  vmm().reserved[*result] = {bytes, owner.ordinal};
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  auto found = vmm().reserved.find(address);
  if (found == vmm().reserved.end() || found->second.first != bytes) return CUDA_ERROR_INVALID_VALUE;
  device_of(found->second.second)->heap.release(address);
  vmm().reserved.erase(found);
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* result, size_t bytes, const CUmemAllocationProp* properties,
                     unsigned long long flags) {
  if (!result || !properties || flags != 0 || !is_multiple(bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE && !device_of(properties->location.id))
    return CUDA_ERROR_INVALID_DEVICE;
  physical_memory fresh;
  fresh.file = memfd_create("capturesan-sim", MFD_CLOEXEC);
  if (fresh.file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (ftruncate(fresh.file, static_cast<off_t>(bytes)) != 0) {
    close(fresh.file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  fresh.bytes = bytes;
  fresh.properties = *properties;
  *result = vmm().next++;
  vmm().physical[*result] = fresh;
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  auto found = vmm().physical.find(handle);
  if (found == vmm().physical.end() || found->second.references == 0) return CUDA_ERROR_INVALID_VALUE;
  --found->second.references;
  drop_if_unused(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  auto found = vmm().physical.find(handle);
  if (flags != 0 || found == vmm().physical.end() || !is_multiple(bytes) || offset + bytes > found->second.bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (!inside_reservation(address, bytes) || state().memory.find(address)) return CUDA_ERROR_INVALID_VALUE;
  void* at = mmap(pointer(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, found->second.file,
                  static_cast<off_t>(offset));
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  ++found->second.mappings;
  vmm().mappings[address] = {handle, bytes, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  allocation a;
  a.base = address;
  a.bytes = bytes;
  a.kind = memory_kind::mapped;
  a.device = found->second.properties.location.id;
  a.mapped = false; // until cuMemSetAccess
  state().memory.add(a);
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  const CUdeviceptr end = address + bytes;
  for (auto at = vmm().mappings.find(address); at != vmm().mappings.end() && at->first < end;) {
    mmap(pointer(at->first), at->second.bytes, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    state().memory.remove(at->first);
    const auto handle = at->second.handle;
    --vmm().physical[handle].mappings;
    at = vmm().mappings.erase(at);
    drop_if_unused(handle);
    address = 0; // at least one
  }
  return address == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* list, size_t count) {
  if (!list || count == 0) return CUDA_ERROR_INVALID_VALUE;
  auto at = vmm().mappings.find(address);
  if (at == vmm().mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  for (; at != vmm().mappings.end() && at->first < address + bytes; ++at) {
    at->second.access = list[count - 1].flags;
    state().memory.at(at->first)->mapped = list[count - 1].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  auto found = vmm().mappings.find(address);
  if (!flags || !location || found == vmm().mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  *flags = found->second.access;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* result, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  if (!result || !properties) return CUDA_ERROR_INVALID_VALUE;
  *result = granularity;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  auto found = vmm().physical.find(handle);
  if (!properties || found == vmm().physical.end()) return CUDA_ERROR_INVALID_VALUE;
  *properties = found->second.properties;
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* p) {
  const auto address = reinterpret_cast<CUdeviceptr>(p);
  auto next = vmm().mappings.upper_bound(address);
  if (!handle || next == vmm().mappings.begin()) return CUDA_ERROR_INVALID_VALUE;
  const auto& [base, found] = *std::prev(next);
  if (address >= base + found.bytes) return CUDA_ERROR_INVALID_VALUE;
  *handle = found.handle;
  ++vmm().physical[found.handle].references;
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace capturesan::sim
