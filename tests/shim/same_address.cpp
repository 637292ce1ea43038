// What a program that is linked with the driver sees of its functions: whether an address that it asks for is the one
// that it has, and what that is said to be. Built twice, position-independent and not: the linker gives the two
// different answers.
#define __CUDA_API_VERSION_INTERNAL 1
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda.h>

#include <cstdio>
#include <cstring>

#include <dlfcn.h>

namespace {

const char* file_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return "nothing";
  const char* slash = std::strrchr(info.dli_fname, '/');
  return slash == nullptr ? info.dli_fname : slash + 1;
}

void compare(void* library, const char* name, const void* linked) {
  void* found = dlsym(library, name);
  void* anywhere = dlsym(RTLD_DEFAULT, name);
  void* next = dlsym(RTLD_NEXT, name);
  void* asked = nullptr;
  std::printf("%s: the library's %d, any %d, the next %d; from %s, %s, %s\n", name, found == linked, anywhere == linked,
              next == anywhere, file_of(linked), file_of(found), file_of(next));
  if (cuGetProcAddress_v2(name, &asked, 12000, 0, nullptr) == CUDA_SUCCESS)
    std::printf("  the driver's own answer %d %d\n", asked == found, asked == linked);
}

} // namespace

int main() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return 1;
  compare(library, "cuInit", reinterpret_cast<const void*>(&cuInit));
  compare(library, "cuMemAlloc_v2", reinterpret_cast<const void*>(&cuMemAlloc_v2));
  compare(library, "cuGraphLaunch", reinterpret_cast<const void*>(&cuGraphLaunch));
  compare(library, "cuGetErrorName", reinterpret_cast<const void*>(&cuGetErrorName));
  compare(library, "cuGetProcAddress_v2", reinterpret_cast<const void*>(&cuGetProcAddress_v2));
  return 6;
}
