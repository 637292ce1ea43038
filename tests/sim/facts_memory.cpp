// Memory outside any capture: what addresses come back, what is refused.
#include "facts.h"

#include <cstdlib>

namespace facts {
namespace {

constexpr std::size_t granule = 2 * mib;

CUmemAllocationProp pinned() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return properties;
}

void allow(const kit& k, CUdeviceptr address, std::size_t bytes) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, k.device};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  REQUIRE(cuMemSetAccess(address, bytes, &access, 1));
}

} // namespace

const std::vector<fact> memory_facts = {
    {"alloc: zero bytes; free of 0; free twice; free inside",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0;
       k << cuMemAlloc(&a, 0) << cuMemFree(0);
       a = k.allocate(kib);
       k << cuMemFree(a + 256) << cuMemFree(a) << cuMemFree(a);
     }},
    {"alloc: a freed 1 KiB block comes back; alignment is 512",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(kib), b = k.allocate(kib), c = k.allocate(kib);
       REQUIRE(cuMemFree(b));
       k << (k.allocate(kib) == b) << static_cast<long long>(a % 512) << static_cast<long long>(c % 512);
     }},
    {"alloc: distance of two blocks of 1 byte; of 513 bytes",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(1), b = k.allocate(1), c = k.allocate(513), d = k.allocate(513);
       k << static_cast<long long>(b - a) << static_cast<long long>(d - c);
     }},
    {"alloc: a freed 4 KiB block is used for 1 KiB first",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(4 * kib);
       k.allocate(kib);
       REQUIRE(cuMemFree(a));
       k << (k.allocate(kib) == a);
     }},
    {"alloc: 64 MiB: its alignment in 2 MiB; comes back after free",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(64 * mib);
       k << static_cast<long long>(a % granule);
       REQUIRE(cuMemFree(a));
       k << (k.allocate(64 * mib) == a);
     }},
    {"alloc: two of 1 MiB + 1 begin at a slab",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(mib + 1), b = k.allocate(mib + 1);
       k << static_cast<long long>(a % granule) << static_cast<long long>(b % granule);
     }},
    {"copy: to freed; from freed; beyond the end; to null",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(kib);
       k.allocate(kib);
       REQUIRE(cuMemFree(a));
       char host[64] = {};
       k << cuMemcpyHtoD(a, host, 64) << cuMemcpyDtoH(host, a, 64) << cuMemcpyHtoD(k.buffer + mib - 32, host, 64)
         << cuMemcpyHtoD(0, host, 64) << cuMemcpyHtoD(k.buffer, nullptr, 64);
     }},
    {"copy: async to freed; set of freed; async set of freed",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(kib);
       k.allocate(kib);
       REQUIRE(cuMemFree(a));
       char host[64] = {};
       k << cuMemcpyHtoDAsync(a, host, 64, k.stream) << cuMemsetD8(a, 0, 64) << cuMemsetD8Async(a, 0, 64, k.stream)
         << cuStreamSynchronize(k.stream);
     }},
    {"copy: general form, host to host; zero bytes",
     [](kit& k) {
       k.start();
       char a[8] = "1234567", b[8] = {};
       k << cuMemcpy(reinterpret_cast<CUdeviceptr>(b), reinterpret_cast<CUdeviceptr>(a), 8) << (b[0] == '1')
         << cuMemcpyHtoD(k.buffer, a, 0) << cuMemsetD8(k.buffer, 0, 0);
     }},
    {"copy: two-dimensional with too small a pitch",
     [](kit& k) {
       k.start();
       CUDA_MEMCPY2D shape{};
       shape.srcMemoryType = shape.dstMemoryType = CU_MEMORYTYPE_DEVICE;
       shape.srcDevice = k.buffer, shape.dstDevice = k.buffer + 65536;
       shape.srcPitch = 32, shape.dstPitch = 64, shape.WidthInBytes = 64, shape.Height = 2;
       k << cuMemcpy2D(&shape);
       shape.srcPitch = 64;
       k << cuMemcpy2D(&shape);
     }},
    {"set: misaligned for its element",
     [](kit& k) {
       k.start();
       k << cuMemsetD32(k.buffer + 2, 0, 4) << cuMemsetD16(k.buffer + 1, 0, 4);
     }},
    {"host: zero bytes; free of none; free of a device pointer; unknown flag",
     [](kit& k) {
       k.start();
       void* p = &p;
       k << cuMemHostAlloc(&p, 0, 0) << cuMemFreeHost(nullptr) << cuMemFreeHost(reinterpret_cast<void*>(k.buffer))
         << cuMemHostAlloc(&p, 64, 0x80);
     }},
    {"register: twice; unregister unknown; twice",
     [](kit& k) {
       k.start();
       void* p = std::aligned_alloc(4096, 4096);
       k << cuMemHostRegister(p, 4096, 0) << cuMemHostRegister(p, 4096, 0) << cuMemHostUnregister(&p)
         << cuMemHostUnregister(p) << cuMemHostUnregister(p);
     }},
    {"managed: bad flags; host can write; range",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0, base = 0;
       std::size_t bytes = 0;
       k << cuMemAllocManaged(&a, 4096, 0) << cuMemAllocManaged(&a, 4096, CU_MEM_ATTACH_GLOBAL);
       *reinterpret_cast<unsigned*>(a) = 11;
       k << k.read(a) << cuMemGetAddressRange(&base, &bytes, a + 8) << (base == a) << static_cast<long long>(bytes);
     }},
    {"pointer attributes: of host memory unknown; range of unknown; of freed",
     [](kit& k) {
       k.start();
       unsigned type = 9;
       CUdeviceptr base = 0, a = k.allocate(kib);
       std::size_t bytes = 0;
       k.allocate(kib);
       REQUIRE(cuMemFree(a));
       k << cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&type))
         << cuMemGetAddressRange(&base, &bytes, reinterpret_cast<CUdeviceptr>(&type))
         << cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a) << cuMemGetAddressRange(&base, &bytes, a);
     }},
    {"pointer attributes: type of device; pinned; managed",
     [](kit& k) {
       k.start();
       unsigned type = 9;
       void* p = nullptr;
       CUdeviceptr m = 0;
       REQUIRE(cuMemHostAlloc(&p, 64, 0));
       REQUIRE(cuMemAllocManaged(&m, 64, CU_MEM_ATTACH_GLOBAL));
       for (CUdeviceptr a : {k.buffer, reinterpret_cast<CUdeviceptr>(p), m})
         k << cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a) << type;
     }},
    {"address range of the middle of a block",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(1000), base = 0;
       std::size_t bytes = 0;
       k << cuMemGetAddressRange(&base, &bytes, a + 10) << (base == a) << static_cast<long long>(bytes);
     }},
    {"virtual: odd sizes",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0;
       CUmemGenericAllocationHandle h = 0;
       const auto properties = pinned();
       k << cuMemAddressReserve(&a, 4096, 0, 0, 0) << cuMemCreate(&h, 4096, &properties, 0)
         << cuMemAddressReserve(&a, granule, 0, 0, 0) << cuMemAddressFree(a, 4096) << cuMemAddressFree(a, granule);
     }},
    {"virtual: copy before access; after; map twice; unmap; release",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0;
       CUmemGenericAllocationHandle h = 0;
       const auto properties = pinned();
       unsigned value = 3;
       REQUIRE(cuMemAddressReserve(&a, granule, 0, 0, 0));
       REQUIRE(cuMemCreate(&h, granule, &properties, 0));
       k << cuMemMap(a, granule, 0, h, 0) << cuMemcpyHtoD(a, &value, 4);
       allow(k, a, granule);
       k << cuMemcpyHtoD(a, &value, 4) << cuMemMap(a, granule, 0, h, 0) << cuMemRelease(h) << k.read(a)
         << cuMemUnmap(a, granule) << cuMemAddressFree(a, granule);
     }},
    {"virtual: one handle at two addresses",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0;
       CUmemGenericAllocationHandle h = 0;
       const auto properties = pinned();
       REQUIRE(cuMemAddressReserve(&a, 2 * granule, 0, 0, 0));
       REQUIRE(cuMemCreate(&h, granule, &properties, 0));
       k << cuMemMap(a, granule, 0, h, 0) << cuMemMap(a + granule, granule, 0, h, 0);
       allow(k, a, 2 * granule);
       k.write(a, 21);
       k << k.read(a + granule);
     }},
    {"pool: alloc, use, free in order; free again; freed with cuMemFree",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0, b = 0;
       k << cuMemAllocAsync(&a, kib, k.stream) << cuMemsetD8Async(a, 1, kib, k.stream) << cuMemFreeAsync(a, k.stream)
         << cuStreamSynchronize(k.stream) << cuMemFreeAsync(a, k.stream);
       REQUIRE(cuMemAllocAsync(&b, kib, k.stream));
       k << cuMemFree(b);
     }},
    {"pool: freeing cuMemAlloc memory in stream order; zero bytes",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(kib), b = 0;
       k << cuMemFreeAsync(a, k.stream) << cuMemAllocAsync(&b, 0, k.stream) << cuMemFreeAsync(0, k.stream);
     }},
    {"pool: attributes of the default pool",
     [](kit& k) {
       k.start();
       CUmemoryPool pool = nullptr;
       REQUIRE(cuDeviceGetDefaultMemPool(&pool, k.device));
       int follow = 9;
       cuuint64_t used = 9, threshold = 9;
       k << cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &follow) << follow
         << cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) << static_cast<long long>(used)
         << cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold)
         << static_cast<long long>(threshold) << cuMemPoolDestroy(pool);
     }},
};

} // namespace facts
