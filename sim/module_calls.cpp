#include "sim/api.h"
#include "sim/memory.h"
#include "sim/module.h"

#include <algorithm>
#include <cstring>

namespace capturesan::sim {

CUresult new_module(CUcontext context, std::shared_ptr<const image> loaded, CUmodule* result) {
  CUmodule module = create<CUmod_st>();
  module->context = context;
  module->image = std::move(loaded);
  for (const auto& variable : module->image->variables) {
    CUdeviceptr at = 0;
    if (CUresult r = allocate_device(context, std::max<std::size_t>(variable.bytes, 1), memory_kind::module, &at)) {
      delete_module(module);
      return r;
    }
    std::memset(reinterpret_cast<void*>(at), 0, variable.bytes);
    if (!variable.initial.empty())
      std::memcpy(reinterpret_cast<void*>(at), variable.initial.data(), variable.initial.size());
    module->globals.emplace(variable.name, at);
  }
  *result = module;
  return CUDA_SUCCESS;
}

void delete_module(CUmodule module) {
  for (const auto& [name, function] : module->functions) destroy(function);
  for (const auto& [name, address] : module->globals)
    if (const allocation* a = state().memory.at(address)) release_allocation(*a);
  destroy(module);
}

CUfunction function_of(CUmodule module, std::string_view name) {
  auto found = module->functions.find(name);
  if (found != module->functions.end()) return found->second;
  auto info = module->image->find_kernel(name);
  if (!info) return nullptr;
  CUfunction function = create<CUfunc_st>();
  function->module = module;
  function->info = std::move(info);
  module->functions.emplace(name, function);
  return function;
}

CUresult module_of(CUlibrary library, CUcontext context, CUmodule* result) {
  auto found = library->modules.find(context);
  if (found != library->modules.end() && is_live(found->second)) {
    *result = found->second;
    return CUDA_SUCCESS;
  }
  if (CUresult r = new_module(context, library->image, result)) return r;
  (*result)->library = library;
  library->modules[context] = *result;
  return CUDA_SUCCESS;
}

namespace {

CUresult load(CUmodule* result, const image_result& found) {
  if (!found.loaded) return found.error;
  return new_module(current_context(), found.loaded, result);
}

CUresult load_library(CUlibrary* result, const image_result& found) {
  if (!found.loaded) return found.error;
  CUlibrary library = create<CUlib_st>();
  library->image = found.loaded;
  for (const auto& info : library->image->kernels) {
    CUkernel kernel = create<CUkern_st>();
    kernel->library = library;
    kernel->info = info;
    library->kernels.emplace(info->name, kernel);
  }
  *result = library;
  return CUDA_SUCCESS;
}

CUresult find_global(CUmodule module, const char* name, CUdeviceptr* address, size_t* bytes) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  auto found = module->globals.find(std::string_view(name));
  if (found == module->globals.end()) return CUDA_ERROR_NOT_FOUND;
  if (address) *address = found->second;
  if (bytes)
    for (const auto& v : module->image->variables)
      if (v.name == name) *bytes = v.bytes;
  return CUDA_SUCCESS;
}

} // namespace

namespace api {

CUresult cuModuleLoadData(CUmodule* result, const void* data) {
  if (!result || !data) return CUDA_ERROR_INVALID_VALUE;
  return load(result, load_image(data));
}

CUresult cuModuleLoadDataEx(CUmodule* result, const void* data, unsigned, CUjit_option*, void**) {
  return api::cuModuleLoadData(result, data);
}

CUresult cuModuleLoadFatBinary(CUmodule* result, const void* data) { return api::cuModuleLoadData(result, data); }

CUresult cuModuleLoad(CUmodule* result, const char* path) {
  if (!result || !path) return CUDA_ERROR_INVALID_VALUE;
  return load(result, load_image_file(path));
}

CUresult cuModuleUnload(CUmodule module) {
  if (module->library) return CUDA_ERROR_NOT_PERMITTED; // documented: the library owns it
  delete_module(module);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* result, CUmodule module, const char* name) {
  if (!result || !name) return CUDA_ERROR_INVALID_VALUE;
  *result = function_of(module, name);
  return *result ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(module->image->kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned room, CUmodule module) {
  if (!functions) return CUDA_ERROR_INVALID_VALUE;
  unsigned n = 0;
  for (const auto& info : module->image->kernels)
    if (n < room) functions[n++] = function_of(module, info->name);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return find_global(module, name, address, bytes);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* result, const void* data, CUjit_option*, void**, unsigned, CUlibraryOption*,
                           void**, unsigned) {
  if (!result || !data) return CUDA_ERROR_INVALID_VALUE;
  return load_library(result, load_image(data));
}

CUresult cuLibraryLoadFromFile(CUlibrary* result, const char* path, CUjit_option*, void**, unsigned, CUlibraryOption*,
                               void**, unsigned) {
  if (!result || !path) return CUDA_ERROR_INVALID_VALUE;
  return load_library(result, load_image_file(path));
}

CUresult cuLibraryUnload(CUlibrary library) {
  for (const auto& [context, module] : library->modules)
    if (is_live(module)) delete_module(module);
  for (const auto& [name, kernel] : library->kernels) destroy(kernel);
  destroy(library);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* result, CUlibrary library, const char* name) {
  if (!result || !name) return CUDA_ERROR_INVALID_VALUE;
  auto found = library->kernels.find(std::string_view(name));
  if (found == library->kernels.end()) return CUDA_ERROR_NOT_FOUND;
  *result = found->second;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(library->kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned room, CUlibrary library) {
  if (!kernels) return CUDA_ERROR_INVALID_VALUE;
  unsigned n = 0;
  for (const auto& [name, kernel] : library->kernels)
    if (n < room) kernels[n++] = kernel;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* result, CUlibrary library) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  return module_of(library, current_context(), result);
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  CUmodule module = nullptr;
  if (CUresult r = module_of(library, current_context(), &module)) return r;
  return find_global(module, name, address, bytes);
}

} // namespace api
} // namespace capturesan::sim
