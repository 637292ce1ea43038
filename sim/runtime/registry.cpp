#include "sim/runtime/registry.h"

#include "sim/runtime/driver.h"
#include "sim/runtime/thread.h"

#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace capturesan::runtime {

struct managed_variable {
  void** host = nullptr;
  std::string name;
};

struct registered_image {
  registered_image* self = this; // what __cudaRegisterFatBinary answers is a pointer to a pointer
  const void* wrapper = nullptr;
  CUlibrary library = nullptr; // null until first used
  std::vector<managed_variable> managed;
  bool managed_ready = false;
};

namespace {

struct function_entry {
  registered_image* image = nullptr;
  std::string name;
  CUkernel kernel = nullptr; // null until first used
};

struct variable_entry {
  registered_image* image = nullptr;
  std::string name;
  std::size_t bytes = 0;
};

struct registry {
  std::recursive_mutex lock; // a tool that hooks the driver may look something up from inside a load
  std::unordered_map<const void*, function_entry> functions;
  std::unordered_map<const void*, variable_entry> variables;
  std::unordered_map<const void*, const void*> hosts; // by kernel, and by function made of it
  std::unordered_set<CUkernel> kernels;               // handed out
};

// Never destroyed: destructors of the program may still call.
registry& all() {
  static auto* const one = new registry;
  return *one;
}

using guard = std::lock_guard<std::recursive_mutex>;

cudaError_t load(registered_image* image) {
  if (image->library) return cudaSuccess;
  return from_driver(CU(cuLibraryLoadData)(&image->library, image->wrapper, nullptr, nullptr, 0, nullptr, nullptr, 0));
}

} // namespace

registered_image* register_image(const void* wrapper) {
  auto* image = new registered_image;
  image->wrapper = wrapper;
  return image;
}

// The library stays loaded: at the end of the process a call into the driver would be one too many, and a graph may
// still hold kernels of a plugin that is being closed.
void unregister_image(registered_image* image) {
  const guard hold(all().lock);
  std::erase_if(all().functions, [&](const auto& f) { return f.second.image == image; });
  std::erase_if(all().variables, [&](const auto& v) { return v.second.image == image; });
  delete image;
}

void register_function(registered_image* image, const void* host, const char* name) {
  const guard hold(all().lock);
  all().functions[host] = {image, name, nullptr};
}

void register_variable(registered_image* image, const void* host, const char* name, std::size_t bytes) {
  const guard hold(all().lock);
  all().variables[host] = {image, name, bytes};
}

void register_managed(registered_image* image, void** host, const char* name, std::size_t bytes) {
  const guard hold(all().lock);
  all().variables[host] = {image, name, bytes};
  image->managed.push_back({host, name});
}

cudaError_t initialise_managed(registered_image* image) {
  const guard hold(all().lock);
  if (image->managed_ready || image->managed.empty()) return cudaSuccess;
  if (cudaError_t e = load(image)) return e;
  for (const auto& variable : image->managed) {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    if (CUresult r = CU(cuLibraryGetGlobal)(&address, &bytes, image->library, variable.name.c_str()))
      return from_driver(r);
    *variable.host = reinterpret_cast<void*>(address);
    all().variables[*variable.host] = {image, variable.name, bytes};
  }
  image->managed_ready = true;
  return cudaSuccess;
}

cudaError_t kernel_of(const void* function, CUkernel* kernel) {
  const guard hold(all().lock);
  auto found = all().functions.find(function);
  if (found == all().functions.end()) {
    auto* handle = static_cast<CUkernel>(const_cast<void*>(function));
    if (all().kernels.count(handle) == 0) return cudaErrorInvalidDeviceFunction;
    *kernel = handle;
    return cudaSuccess;
  }
  auto& entry = found->second;
  if (!entry.kernel) {
    if (cudaError_t e = initialise_managed(entry.image)) return e;
    if (cudaError_t e = load(entry.image)) return e;
    if (CUresult r = CU(cuLibraryGetKernel)(&entry.kernel, entry.image->library, entry.name.c_str()))
      return r == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : from_driver(r);
    all().hosts[entry.kernel] = function;
    all().kernels.insert(entry.kernel);
  }
  *kernel = entry.kernel;
  return cudaSuccess;
}

void note_kernel(CUkernel kernel) {
  const guard hold(all().lock);
  all().kernels.insert(kernel);
}

const void* host_function_of(CUfunction function, CUkernel kernel) {
  const guard hold(all().lock);
  for (const void* handle : {static_cast<const void*>(kernel), static_cast<const void*>(function)})
    if (auto found = all().hosts.find(handle); handle && found != all().hosts.end()) return found->second;
  return kernel ? static_cast<const void*>(kernel) : static_cast<const void*>(function);
}

const char* name_of(const void* function) {
  const guard hold(all().lock);
  auto found = all().functions.find(function);
  return found == all().functions.end() ? nullptr : found->second.name.c_str();
}

cudaError_t variable_of(const void* symbol, variable_place* place) {
  const guard hold(all().lock);
  auto found = all().variables.find(symbol);
  if (found == all().variables.end()) return cudaErrorInvalidSymbol;
  const auto& entry = found->second;
  if (cudaError_t e = load(entry.image)) return e;
  const CUresult r = CU(cuLibraryGetGlobal)(&place->address, &place->bytes, entry.image->library, entry.name.c_str());
  return r == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : from_driver(r);
}

} // namespace capturesan::runtime
