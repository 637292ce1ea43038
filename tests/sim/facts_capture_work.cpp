// Copies, sets and launches in captures that the capture tables leave out.
#include "facts_both.h"

namespace facts {
namespace {

CUDA_MEMCPY2D plane(const kit& k, void* host) {
  CUDA_MEMCPY2D shape{};
  shape.srcMemoryType = CU_MEMORYTYPE_DEVICE, shape.srcDevice = k.buffer, shape.srcPitch = 512;
  shape.dstMemoryType = CU_MEMORYTYPE_HOST, shape.dstHost = host, shape.dstPitch = 64;
  shape.WidthInBytes = 64, shape.Height = 4;
  return shape;
}

CUDA_MEMCPY3D box(const kit& k) {
  CUDA_MEMCPY3D shape{};
  shape.srcMemoryType = shape.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  shape.srcDevice = k.buffer, shape.dstDevice = k.buffer + 65536;
  shape.srcPitch = shape.dstPitch = 512, shape.srcHeight = shape.dstHeight = 4;
  shape.WidthInBytes = 64, shape.Height = 2, shape.Depth = 2;
  return shape;
}

CUresult cluster_launch(const kit& k, bool overlapping) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = overlapping;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = k.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUdeviceptr target = k.buffer;
  void* values[] = {&target};
  return cuLaunchKernelEx(&config, k.store, values, nullptr);
}

CUgraphExec exec_of_kernel(const kit& k) {
  CUgraph graph = k.make_graph();
  k.add_kernel(graph, k.buffer);
  return k.instantiate(graph);
}

} // namespace

const std::vector<fact> capture_work_facts = {
    {"in capture: cuMemcpy2DAsync",
     [](kit& k) {
       static char host[4096];
       tell_both(k, [&] {
         const auto shape = plane(k, host);
         return cuMemcpy2DAsync(&shape, k.stream);
       });
     }},
    {"in capture: cuMemcpy3DAsync",
     [](kit& k) {
       tell_both(k, [&] {
         const auto shape = box(k);
         return cuMemcpy3DAsync(&shape, k.stream);
       });
     }},
    {"in capture: cuMemcpyPeerAsync on one device",
     [](kit& k) {
       tell_both(k, [&] { return cuMemcpyPeerAsync(k.buffer, k.context, k.buffer + 4096, k.context, 64, k.stream); });
     }},
    {"in capture: copy of zero bytes",
     [](kit& k) { tell_both(k, [&] { return cuMemcpyDtoDAsync(k.buffer, k.buffer + 64, 0, k.stream); }); }},
    {"in capture: set of zero bytes",
     [](kit& k) { tell_both(k, [&] { return cuMemsetD8Async(k.buffer, 0, 0, k.stream); }); }},
    {"in capture: set in two dimensions",
     [](kit& k) { tell_both(k, [&] { return cuMemsetD2D32Async(k.buffer, 512, 7, 4, 4, k.stream); }); }},
    {"in capture: wait for a value",
     [](kit& k) { tell_both(k, [&] { return cuStreamWaitValue32(k.stream, k.buffer, 0, 0); }); }},
    {"in capture: launch with overlap allowed", [](kit& k) { tell_both(k, [&] { return cluster_launch(k, true); }); }},
    {"in capture: launch, invalid value (no grid)",
     [](kit& k) {
       tell_both(k, [&] { return cuLaunchKernel(k.store, 0, 1, 1, 1, 1, 1, 0, k.stream, nullptr, nullptr); });
     }},
    {"in capture: launch of an exec with a kernel",
     [](kit& k) {
       tell_both(
           k, [&] { return exec_of_kernel(k); }, [&](CUgraphExec e) { return cuGraphLaunch(e, k.stream); });
     }},
    {"in capture: upload of an exec to the capturing stream",
     [](kit& k) {
       tell_both(
           k, [&] { return exec_of_kernel(k); }, [&](CUgraphExec e) { return cuGraphUpload(e, k.stream); });
     }},
    {"in capture: cuStreamAddCallback on another stream",
     [](kit& k) {
       tell_both(k, [&] {
         return cuStreamAddCallback(
             k.second, [](CUstream, CUresult, void*) {}, nullptr, 0);
       });
     }},
    {"in capture: cuLaunchHostFunc on another stream",
     [](kit& k) {
       tell_both(k, [&] {
         return cuLaunchHostFunc(
             k.second, [](void*) {}, nullptr);
       });
     }},
    {"in capture: cuMemcpyDtoHAsync from freed memory",
     [](kit& k) {
       static char host[64];
       tell_both(
           k,
           [&] {
             CUdeviceptr a = k.allocate(kib);
             k.allocate(kib);
             REQUIRE(cuMemFree(a));
             return a;
           },
           [&](CUdeviceptr a) { return cuMemcpyDtoHAsync(host, a, 64, k.stream); });
     }},
    {"in capture: cuMemsetD8Async of freed memory",
     [](kit& k) {
       tell_both(
           k,
           [&] {
             CUdeviceptr a = k.allocate(kib);
             k.allocate(kib);
             REQUIRE(cuMemFree(a));
             return a;
           },
           [&](CUdeviceptr a) { return cuMemsetD8Async(a, 0, 64, k.stream); });
     }},
    {"in capture: launch with too many threads",
     [](kit& k) {
       tell_both(k, [&] {
         void* values[] = {&k.buffer};
         return cuLaunchKernel(k.store, 1, 1, 1, 2048, 1, 1, 0, k.stream, values, nullptr);
       });
     }},
    {"in capture: launch without values",
     [](kit& k) {
       tell_both(k, [&] { return cuLaunchKernel(k.store, 1, 1, 1, 1, 1, 1, 0, k.stream, nullptr, nullptr); });
     }},
    {"in capture: launch of no function",
     [](kit& k) {
       tell_both(k, [&] { return cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, k.stream, nullptr, nullptr); });
     }},
    {"in capture: copy beyond the end",
     [](kit& k) { tell_both(k, [&] { return cuMemcpyDtoDAsync(k.buffer + mib - 32, k.buffer, 64, k.stream); }); }},
    {"in capture: allocation of zero bytes",
     [](kit& k) {
       tell_both(k, [&] {
         CUdeviceptr a = 9;
         return cuMemAllocAsync(&a, 0, k.stream);
       });
     }},
    {"in capture: host function null",
     [](kit& k) { tell_both(k, [&] { return cuLaunchHostFunc(k.stream, nullptr, nullptr); }); }},
    {"in capture: misaligned set",
     [](kit& k) { tell_both(k, [&] { return cuMemsetD32Async(k.buffer + 1, 0, 4, k.stream); }); }},
    {"in capture: cuMemcpyBatchAsync on another stream",
     [](kit& k) {
       tell_both(k, [&] {
         CUdeviceptr to[] = {k.buffer}, from[] = {k.buffer + 4096};
         std::size_t bytes[] = {64}, index[] = {0};
         CUmemcpyAttributes attributes{};
         attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
         return cuMemcpyBatchAsync(to, from, bytes, 1, &attributes, index, 1, k.second);
       });
     }},
    {"in capture: cuMemcpy3DBatchAsync",
     [](kit& k) {
       tell_both(k, [&] {
         CUDA_MEMCPY3D_BATCH_OP op{};
         op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
         op.src.op.ptr.ptr = k.buffer, op.dst.op.ptr.ptr = k.buffer + 65536;
         op.extent = {64, 1, 1};
         op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
         return cuMemcpy3DBatchAsync(1, &op, 0, k.stream);
       });
     }},
};

} // namespace facts
