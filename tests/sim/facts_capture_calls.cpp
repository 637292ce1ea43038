// Calls on objects and memory that the capture tables leave out.
#include "facts_both.h"

namespace facts {
namespace {

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

CUlibrary load_library() {
  static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry empty() { ret; }\n";
  CUlibrary library = nullptr;
  REQUIRE(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
  return library;
}

} // namespace

const std::vector<fact> capture_call_facts = {
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
};

} // namespace facts
