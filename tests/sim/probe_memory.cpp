// Allocations, frees, pools, virtual memory.
#include "probe.h"

namespace probe {
namespace {

CUmemAllocationProp on_device(const bench& b) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = b.home.device;
  return properties;
}

CUresult allocate(bench&) {
  CUdeviceptr address = 0;
  return cuMemAlloc(&address, 1024);
}

CUresult allocate_on(CUstream stream) {
  CUdeviceptr address = 0;
  return cuMemAllocAsync(&address, 1024, stream);
}

CUresult create_physical(bench& b, CUmemGenericAllocationHandle* handle) {
  const auto properties = on_device(b);
  return cuMemCreate(handle, granule, &properties, 0);
}

CUresult take(CUresult result, void*& freed) {
  if (result == CUDA_SUCCESS) freed = nullptr;
  return result;
}

} // namespace

const std::vector<call> memory_calls = {
    {"cuMemAlloc", allocate},
    {"cuMemFree",
     [](bench& b) {
       const CUresult result = cuMemFree(b.victim);
       if (result == CUDA_SUCCESS) b.victim = 0;
       return result;
     }},
    {"cuMemAllocHost",
     [](bench&) {
       void* p = nullptr;
       return cuMemAllocHost(&p, 1024);
     }},
    {"cuMemHostAlloc",
     [](bench&) {
       void* p = nullptr;
       return cuMemHostAlloc(&p, 1024, 0);
     }},
    {"cuMemFreeHost", [](bench& b) { return take(cuMemFreeHost(b.pinned), b.pinned); }},
    {"cuMemHostRegister", [](bench& b) { return cuMemHostRegister(b.unregistered, page, 0); }},
    {"cuMemHostUnregister", [](bench& b) { return take(cuMemHostUnregister(b.registered), b.registered); }},
    {"cuMemAllocManaged",
     [](bench&) {
       CUdeviceptr address = 0;
       return cuMemAllocManaged(&address, 1024, CU_MEM_ATTACH_GLOBAL);
     }},
    {"cuMemAllocAsync(capturing)", [](bench& b) { return allocate_on(b.capturing); }},
    {"cuMemAllocAsync(other)", [](bench& b) { return allocate_on(b.other); }},
    {"cuMemAllocAsync+cuMemFreeAsync(capturing)",
     [](bench& b) {
       CUdeviceptr address = 0;
       return in_turn([&] { return cuMemAllocAsync(&address, 1024, b.capturing); },
                      [&] { return cuMemFreeAsync(address, b.capturing); });
     }},
    {"cuMemFreeAsync(eager pointer; capturing)", [](bench& b) { return cuMemFreeAsync(b.memory, b.capturing); }},
    {"exchange RELAXED; cuMemAlloc; restore",
     [](bench& b) { return with_mode(CU_STREAM_CAPTURE_MODE_RELAXED, [&] { return allocate(b); }); }},
    {"exchange THREAD_LOCAL; cuMemAlloc; restore",
     [](bench& b) { return with_mode(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, [&] { return allocate(b); }); }},
    {"cuMemCreate",
     [](bench& b) {
       CUmemGenericAllocationHandle handle = 0;
       return create_physical(b, &handle);
     }},
    {"cuMemAddressReserve",
     [](bench&) {
       CUdeviceptr address = 0;
       return cuMemAddressReserve(&address, granule, 0, 0, 0);
     }},
    {"cuMemMap",
     [](bench& b) {
       CUmemGenericAllocationHandle handle = 0;
       CUdeviceptr address = 0;
       return in_turn([&] { return create_physical(b, &handle); },
                      [&] { return cuMemAddressReserve(&address, granule, 0, 0, 0); },
                      [&] { return cuMemMap(address, granule, 0, handle, 0); });
     }},
    {"cuMemPoolTrimTo", [](bench& b) { return cuMemPoolTrimTo(b.home.pool, 0); }},
    {"cuMemPoolGetAttribute",
     [](bench& b) {
       cuuint64_t value = 0;
       return cuMemPoolGetAttribute(b.home.pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
     }},
    {"cuMemPoolSetAttribute",
     [](bench& b) {
       cuuint64_t value = large;
       return cuMemPoolSetAttribute(b.home.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
     }},
    {"cuMemPoolCreate",
     [](bench& b) {
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = on_device(b).location;
       CUmemoryPool pool = nullptr;
       return cuMemPoolCreate(&pool, &properties);
     }},
    {"cuMemGetInfo",
     [](bench&) {
       std::size_t free = 0, total = 0;
       return cuMemGetInfo(&free, &total);
     }},
    {"cuPointerGetAttribute",
     [](bench& b) {
       unsigned type = 0;
       return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b.memory);
     }},
    {"cuMemGetAddressRange",
     [](bench& b) {
       CUdeviceptr base = 0;
       std::size_t bytes = 0;
       return cuMemGetAddressRange(&base, &bytes, b.memory);
     }},
    {"cuIpcGetMemHandle",
     [](bench& b) {
       CUipcMemHandle handle;
       return cuIpcGetMemHandle(&handle, b.memory);
     }},
    {"cuStreamAttachMemAsync",
     [](bench& b) { return cuStreamAttachMemAsync(b.capturing, b.memory, 0, CU_MEM_ATTACH_GLOBAL); }},
    {"cuMemPrefetchAsync",
     [](bench& b) {
       CUmemLocation where{};
       where.type = CU_MEM_LOCATION_TYPE_DEVICE;
       where.id = b.home.device;
       return cuMemPrefetchAsync(b.memory, small, where, 0, b.capturing);
     }},
};

} // namespace probe
