// Memory whose addresses and physical pages are managed apart, for the examples about mapping.
#pragma once

#include "examples/example.h"

namespace example {

// One granule of device 0, reserved (at `wanted` if that is free) and mapped.
struct mapped {
  CUdeviceptr address = 0;
  std::size_t size = 0;

  explicit mapped(CUdeviceptr wanted = 0) {
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    CHECK(cuMemGetAllocationGranularity(&size, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(cuMemAddressReserve(&address, size, 0, wanted, 0));
    map();
  }
  mapped(const mapped&) = delete;
  mapped& operator=(const mapped&) = delete;

  void map() {
    CUmemAccessDesc access{};
    access.location = properties_.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK(cuMemCreate(&pages_, size, &properties_, 0));
    CHECK(cuMemMap(address, size, 0, pages_, 0));
    CHECK(cuMemSetAccess(address, size, &access, 1));
  }
  void unmap() {
    CHECK(cuMemUnmap(address, size));
    CHECK(cuMemRelease(pages_));
  }
  void give_up_addresses() { CHECK(cuMemAddressFree(address, size)); }

 private:
  CUmemAllocationProp properties_{};
  CUmemGenericAllocationHandle pages_{};
};

} // namespace example
