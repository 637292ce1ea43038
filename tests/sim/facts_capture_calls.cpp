// Calls that the capture tables leave out: made in a global capture on a non-blocking stream, then in a relaxed one.
// Of each: result, status after it, EndCapture, nodes.
#include "facts.h"

#include <cstdlib>

namespace facts {
namespace {

template <class Setup, class Call>
void tell_both(kit& k, Setup&& set_up, Call&& call) {
  k.start();
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    auto prepared = set_up();
    k.begin(k.stream, mode);
    REQUIRE(k.launch(k.stream));
    k << call(prepared);
    k.tell_end(k.stream);
  }
}

template <class Call>
void tell_both(kit& k, Call&& call) {
  tell_both(
      k, [] { return 0; }, [&](int) { return call(); });
}

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

struct range {
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
};

range mapped(const kit& k, bool map) {
  range r;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, k.device};
  REQUIRE(cuMemAddressReserve(&r.address, 2 * mib, 0, 0, 0));
  REQUIRE(cuMemCreate(&r.handle, 2 * mib, &properties, 0));
  if (map) REQUIRE(cuMemMap(r.address, 2 * mib, 0, r.handle, 0));
  return r;
}

CUmemoryPool make_pool(const kit& k) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, k.device};
  CUmemoryPool pool = nullptr;
  REQUIRE(cuMemPoolCreate(&pool, &properties));
  return pool;
}

CUresult set_access(const kit& k, CUdeviceptr address) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, k.device};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cuMemSetAccess(address, 2 * mib, &access, 1);
}

CUgraphExec exec_of_kernel(const kit& k) {
  CUgraph graph = k.make_graph();
  k.add_kernel(graph, k.buffer);
  return k.instantiate(graph);
}

CUlibrary load_library() {
  static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry empty() { ret; }\n";
  CUlibrary library = nullptr;
  REQUIRE(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
  return library;
}

} // namespace

const std::vector<fact> capture_call_facts = {
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
    {"in capture: cuGraphExecUpdate",
     [](kit& k) {
       CUgraph graph = nullptr;
       tell_both(
           k,
           [&] {
             graph = k.make_graph();
             k.add_kernel(graph, k.buffer);
             return k.instantiate(graph);
           },
           [&](CUgraphExec e) {
             CUgraphExecUpdateResultInfo info{};
             return cuGraphExecUpdate(e, graph, &info);
           });
     }},
    {"in capture: cuGraphDestroy of another graph",
     [](kit& k) {
       tell_both(
           k, [&] { return k.make_graph(); }, [](CUgraph g) { return cuGraphDestroy(g); });
     }},
    {"in capture: cuGraphClone",
     [](kit& k) {
       tell_both(
           k, [&] { return k.make_graph(); },
           [](CUgraph g) {
             CUgraph copy = nullptr;
             return cuGraphClone(&copy, g);
           });
     }},
    {"in capture: cuCtxCreate",
     [](kit& k) {
       tell_both(k, [&] {
         CUcontext c = nullptr;
         const CUresult r = cuCtxCreate(&c, nullptr, 0, k.device);
         cuCtxSetCurrent(k.context);
         return r;
       });
     }},
    {"in capture: cuMemAllocPitch",
     [](kit& k) {
       tell_both(k, [] {
         CUdeviceptr a = 0;
         std::size_t pitch = 0;
         return cuMemAllocPitch(&a, &pitch, 64, 4, 4);
       });
     }},
    {"in capture: cuLibraryLoadData",
     [](kit& k) {
       tell_both(k, [] {
         load_library();
         return CUDA_SUCCESS;
       });
     }},
    {"in capture: cuLibraryUnload",
     [](kit& k) { tell_both(k, load_library, [](CUlibrary l) { return cuLibraryUnload(l); }); }},
    {"in capture: cuLibraryGetModule",
     [](kit& k) {
       tell_both(k, load_library, [](CUlibrary l) {
         CUmodule m = nullptr;
         return cuLibraryGetModule(&m, l);
       });
     }},
    {"in capture: cuModuleGetGlobal",
     [](kit& k) {
       tell_both(k, [&] {
         CUdeviceptr a = 0;
         std::size_t n = 0;
         return cuModuleGetGlobal(&a, &n, k.module, "counter");
       });
     }},
    {"in capture: cuFuncLoad", [](kit& k) { tell_both(k, [&] { return cuFuncLoad(k.store); }); }},
    {"in capture: cuMemSetAccess",
     [](kit& k) {
       tell_both(
           k, [&] { return mapped(k, true); }, [&](range r) { return set_access(k, r.address); });
     }},
    {"in capture: cuMemUnmap",
     [](kit& k) {
       tell_both(
           k, [&] { return mapped(k, true); }, [](range r) { return cuMemUnmap(r.address, 2 * mib); });
     }},
    {"in capture: cuMemRelease",
     [](kit& k) {
       tell_both(
           k, [&] { return mapped(k, false); }, [](range r) { return cuMemRelease(r.handle); });
     }},
    {"in capture: cuMemAddressFree",
     [](kit& k) {
       tell_both(
           k, [&] { return mapped(k, false); }, [](range r) { return cuMemAddressFree(r.address, 2 * mib); });
     }},
    {"in capture: cuMemPoolDestroy",
     [](kit& k) {
       tell_both(
           k, [&] { return make_pool(k); }, [](CUmemoryPool p) { return cuMemPoolDestroy(p); });
     }},
    {"in capture: cuMemPoolSetAccess",
     [](kit& k) {
       tell_both(
           k, [&] { return make_pool(k); },
           [&](CUmemoryPool p) {
             CUmemAccessDesc access{};
             access.location = {CU_MEM_LOCATION_TYPE_DEVICE, k.device};
             access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
             return cuMemPoolSetAccess(p, &access, 1);
           });
     }},
    {"in capture: cuMemPoolGetAccess",
     [](kit& k) {
       tell_both(
           k, [&] { return make_pool(k); },
           [&](CUmemoryPool p) {
             CUmemAccess_flags flags{};
             CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, k.device};
             return cuMemPoolGetAccess(&flags, p, &where);
           });
     }},
    {"in capture: cuDeviceGetDefaultMemPool; cuDeviceGetMemPool",
     [](kit& k) {
       tell_both(k, [&] {
         CUmemoryPool p = nullptr;
         const CUresult r = cuDeviceGetDefaultMemPool(&p, k.device);
         return r ? r : cuDeviceGetMemPool(&p, k.device);
       });
     }},
    {"in capture: cuDeviceGraphMemTrim", [](kit& k) { tell_both(k, [&] { return cuDeviceGraphMemTrim(k.device); }); }},
    {"in capture: cuDeviceGetGraphMemAttribute",
     [](kit& k) {
       tell_both(k, [&] {
         cuuint64_t v = 0;
         return cuDeviceGetGraphMemAttribute(k.device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &v);
       });
     }},
    {"in capture: cuMemAdvise of managed memory",
     [](kit& k) {
       tell_both(
           k,
           [&] {
             CUdeviceptr a = 0;
             REQUIRE(cuMemAllocManaged(&a, 4096, CU_MEM_ATTACH_GLOBAL));
             return a;
           },
           [&](CUdeviceptr a) {
             return cuMemAdvise(a, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
                                CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, k.device});
           });
     }},
    {"in capture: cuMemPrefetchAsync on another stream",
     [](kit& k) {
       tell_both(
           k,
           [&] {
             CUdeviceptr a = 0;
             REQUIRE(cuMemAllocManaged(&a, 4096, CU_MEM_ATTACH_GLOBAL));
             return a;
           },
           [&](CUdeviceptr a) {
             return cuMemPrefetchAsync(a, 4096, CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, k.device}, 0, k.second);
           });
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
    {"in capture: cuMemFreeAsync of pool memory on the capturing stream; on another",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0;
       REQUIRE(cuMemAllocAsync(&a, 64, k.second));
       REQUIRE(cuStreamSynchronize(k.second));
       k.begin(k.stream);
       REQUIRE(k.launch(k.stream));
       k << cuMemFreeAsync(a, k.stream) << k.status(k.stream) << cuMemFreeAsync(a, k.second);
       k.tell_end(k.stream);
     }},
    {"in capture: cuStreamDestroy of another stream",
     [](kit& k) {
       tell_both(
           k, [&] { return k.make_stream(); }, [](CUstream s) { return cuStreamDestroy(s); });
     }},
    {"in capture: cuEventRecord of eager work on another stream",
     [](kit& k) {
       tell_both(
           k, [&] { return k.make_event(); }, [&](CUevent e) { return cuEventRecord(e, k.second); });
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
    {"in capture: cuGraphInstantiateWithParams with upload",
     [](kit& k) {
       tell_both(
           k, [&] { return k.make_graph(); },
           [&](CUgraph g) {
             CUDA_GRAPH_INSTANTIATE_PARAMS params{};
             params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
             params.hUploadStream = k.second;
             CUgraphExec e = nullptr;
             return cuGraphInstantiateWithParams(&e, g, &params);
           });
     }},
    {"in capture: cuGraphInstantiateWithParams without upload",
     [](kit& k) {
       tell_both(
           k, [&] { return k.make_graph(); },
           [&](CUgraph g) {
             CUDA_GRAPH_INSTANTIATE_PARAMS params{};
             CUgraphExec e = nullptr;
             return cuGraphInstantiateWithParams(&e, g, &params);
           });
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
    {"in capture: cuCtxDestroy of another context",
     [](kit& k) {
       tell_both(
           k,
           [&] {
             CUcontext c = nullptr;
             REQUIRE(cuCtxCreate(&c, nullptr, 0, k.device));
             REQUIRE(cuCtxSetCurrent(k.context));
             return c;
           },
           [&](CUcontext c) {
             const CUresult r = cuCtxDestroy(c);
             cuCtxSetCurrent(k.context);
             return r;
           });
     }},
    {"in capture: cuFuncSetCacheConfig",
     [](kit& k) { tell_both(k, [&] { return cuFuncSetCacheConfig(k.store, CU_FUNC_CACHE_PREFER_L1); }); }},
    {"in capture: cuCtxSetCacheConfig",
     [](kit& k) { tell_both(k, [] { return cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1); }); }},
    {"in capture: cuStreamCopyAttributes",
     [](kit& k) { tell_both(k, [&] { return cuStreamCopyAttributes(k.stream, k.second); }); }},
    {"in capture: cuCtxDisablePeerAccess of none",
     [](kit& k) { tell_both(k, [&] { return cuCtxDisablePeerAccess(k.context); }); }},
    {"in capture: cuCtxWaitEvent",
     [](kit& k) {
       tell_both(
           k,
           [&] {
             CUevent e = k.make_event();
             REQUIRE(cuEventRecord(e, k.second));
             REQUIRE(cuEventSynchronize(e));
             return e;
           },
           [&](CUevent e) { return cuCtxWaitEvent(k.context, e); });
     }},
    {"in capture: cuEventQuery of an event never recorded",
     [](kit& k) {
       tell_both(
           k, [&] { return k.make_event(); }, [](CUevent e) { return cuEventQuery(e); });
     }},
    {"in capture: cuStreamGetCaptureInfo of another stream",
     [](kit& k) {
       tell_both(k, [&] {
         CUstreamCaptureStatus status{};
         cuuint64_t id = 0;
         return cuStreamGetCaptureInfo(k.second, &status, &id, nullptr, nullptr, nullptr, nullptr);
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
