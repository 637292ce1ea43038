// No device code: only calls of the runtime, and a plugin with device code that comes and goes.
#include "tests/runtime/check.h"

#include <dlfcn.h>

int main(int argc, char** argv) {
  void* data = nullptr;
  OK(cudaMalloc(&data, 256));
  OK(cudaMemset(data, 1, 256));
  for (int i = 0; argc > 1 && i < 3; ++i) {
    void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) std::printf("%s\n", dlerror());
    EQUAL(plugin != nullptr, true);
    if (!plugin) break;
    auto* launch = reinterpret_cast<int (*)()>(dlsym(plugin, "launch_and_read"));
    EQUAL(launch(), 42); // its variables and statics begin anew
    EQUAL(dlclose(plugin), 0);
  }
  OK(cudaFree(data));
  return check::failed();
}
