#include "include/capturesan_sim.h"

#include "sim/api.h"
#include "sim/state.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>

namespace capturesan::sim {
namespace {

constexpr int driver_version = 13000;

struct error_text {
  CUresult code;
  const char* name;
  const char* text;
};

// Names from cuda.h itself, read at build time; the text is the name in words.
constexpr error_text errors[] = {
#define ERROR_NAME(name, text) {name, #name, text},
#include "sim_error_names.def"
#undef ERROR_NAME
};

const error_text* find_error(CUresult code) {
  for (const auto& e : errors)
    if (e.code == code) return &e;
  return nullptr;
}

CUmemoryPool new_default_pool(device& owner) {
  CUmemoryPool pool = create<CUmemPoolHandle_st>();
  pool->device = &owner;
  owner.pools.push_back(pool);
  pool->is_default = true;
  pool->properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  pool->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, owner.ordinal};
  for (int reuse = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
       reuse <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES; ++reuse)
    pool->attributes[static_cast<std::size_t>(reuse)] = 1;
  return pool;
}

// Once, unless `capturesan run` has seen it and said so.
void tell_of_foreign_runtime() {
  static bool told = std::getenv("CAPTURESAN_SIM_RUNTIME_NOTED") != nullptr;
  if (told) return;
  told = true;
  Dl_info self{};
  const std::string path = ::dladdr(capturesan_sim_version, &self) ? self.dli_fname : "";
  const std::string folder = path.substr(0, path.rfind('/'));
  std::fprintf(stderr,
               "capturesan: NVIDIA's CUDA runtime is part of this program or of a library of it, and refuses the "
               "simulated driver; link with -cudart shared or with -cudart static -L%s, or run it on a GPU\n",
               folder.c_str());
}

} // namespace

namespace api {

CUresult cuInit(unsigned flags) {
  auto& all = state();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (all.forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (all.initialised) return CUDA_SUCCESS;
  if (all.options.devices == 0) return CUDA_ERROR_NO_DEVICE;
  for (int i = 0; i < all.options.devices; ++i) {
    auto fresh = std::make_unique<device>();
    fresh->ordinal = i;
    std::memcpy(fresh->uuid.bytes, "CaptureSan sim ", 15);
    fresh->uuid.bytes[15] = static_cast<char>(i);
    fresh->default_pool = fresh->pool = new_default_pool(*fresh);
    all.devices.push_back(std::move(fresh));
  }
  all.initialised = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = driver_version;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char** name) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  const auto* found = find_error(code);
  *name = found ? found->name : nullptr;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  const auto* found = find_error(code);
  *text = found ? found->text : nullptr;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Undocumented tables by which NVIDIA's own runtime authenticates the driver: there are none here. Nobody else asks.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  tell_of_foreign_runtime();
  if (table) *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

} // namespace api
} // namespace capturesan::sim
