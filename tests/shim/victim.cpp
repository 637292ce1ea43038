// Prints everything a program can see of the driver's entry points. Its output must be the same with and without the
// shim.
//   victim [fork|vfork|exec]
#define __CUDA_API_VERSION_INTERNAL 1
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

const char* base_name(const char* path) {
  const char* slash = path == nullptr ? nullptr : std::strrchr(path, '/');
  return path == nullptr ? "(none)" : slash == nullptr ? path : slash + 1;
}

void describe(const char* what, const void* address) {
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0) {
    std::printf("%s: no object\n", what);
    return;
  }
  std::printf("%s: %s %s\n", what, base_name(info.dli_fname), info.dli_sname == nullptr ? "(none)" : info.dli_sname);
  void* map = nullptr;
  if (dladdr1(address, &info, &map, RTLD_DL_LINKMAP) != 0) {
    std::printf("  link map: %s\n", base_name(static_cast<link_map*>(map)->l_name));
  }
}

// Every call is made with a marker in errno, which a driver call must leave alone.
#define SEE(call)                                                                                                      \
  do {                                                                                                                 \
    errno = 77;                                                                                                        \
    const int result_ = static_cast<int>(call);                                                                        \
    std::printf("%s = %d, errno %d\n", #call, result_, errno);                                                         \
  } while (0)

void entry_points(void* driver) {
  for (const char* name :
       {"cuInit", "cuMemAlloc_v2", "cuLaunchKernel", "cuGetProcAddress_v2", "cuStreamBeginCapture_v2"}) {
    describe(name, dlsym(driver, name));
    std::printf("  default scope: %s\n", dlsym(RTLD_DEFAULT, name) != nullptr ? "found" : "missing");
  }
  std::printf("unknown name: %s\n", dlsym(driver, "cuNoSuchCall") == nullptr ? "missing" : "found");
  std::printf("error text: %s\n", dlerror() == nullptr ? "no" : "yes");
  std::printf("another library's name: %s\n", dlsym(RTLD_DEFAULT, "printf") != nullptr ? "found" : "missing");
  describe("next printf", dlsym(RTLD_NEXT, "puts"));
  describe("linked cuInit", reinterpret_cast<const void*>(&cuInit));
}

void proc_addresses() {
  struct {
    const char* name;
    int version;
  } const asked[] = {{"cuMemAlloc", 3020},         {"cuStreamBeginCapture", 12000}, {"cuGetProcAddress", 12000},
                     {"cuLaunchKernel", 13000},    {"cuNoSuchCall", 13000},         {"cuMemAlloc", 1000},
                     {"cuGraphInstantiate", 12000}};
  for (const auto& a : asked) {
    void* p = nullptr;
    auto status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    SEE(cuGetProcAddress_v2(a.name, &p, a.version, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    std::printf("  status %d\n", static_cast<int>(status));
    describe("  v2", p);
    p = nullptr;
    SEE(cuGetProcAddress(a.name, &p, a.version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
    describe("  v1", p);
  }
}

void calls() {
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUevent event = nullptr;
  SEE(cuDevicePrimaryCtxRetain(&context, 0));
  SEE(cuCtxSetCurrent(context));
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR_v2 shape{16, 16, CU_AD_FORMAT_FLOAT, 1};
  SEE(cuArrayCreate_v2(&array, &shape)); // the simulated driver has no arrays: the trace must name the call
  SEE(cuMemAlloc_v2(&memory, 4096));
  SEE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  SEE(cuEventCreate(&event, 0));
  SEE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  SEE(cuMemsetD8Async(memory, 1, 64, stream));
  SEE(cuStreamSynchronize(stream));        // refused: 900
  SEE(cuStreamEndCapture(stream, &graph)); // 901
  SEE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  SEE(cuMemsetD8Async(memory, 1, 64, stream));
  SEE(cuStreamEndCapture(stream, &graph));
  SEE(cuGraphInstantiateWithFlags(&exec, graph, 0));
  SEE(cuGraphLaunch(exec, stream));
  SEE(cuStreamSynchronize(stream));
  SEE(cuEventQuery(event));
  SEE(cuMemFree_v2(memory));
  SEE(cuMemFree_v2(memory)); // an error
  SEE(cuStreamDestroy_v2(stream));
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  std::printf("environment: %s\n", std::getenv("VICTIM_SETTING") == nullptr ? "(none)" : std::getenv("VICTIM_SETTING"));
  SEE(cuInit(0));
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  entry_points(driver);
  proc_addresses();
  calls();
  std::fflush(stdout);
  if (std::strcmp(mode, "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      int version = 0;
      SEE(cuDriverGetVersion(&version));
      CUevent event = nullptr;
      cuEventCreate(&event, 0); // a context does not survive a fork: any answer will do, a crash will not
      std::fflush(stdout);
      _exit(5);
    }
    wait_for(child);
  } else if (std::strcmp(mode, "exec") == 0 || std::strcmp(mode, "vfork") == 0) {
    const pid_t child = std::strcmp(mode, "vfork") == 0 ? vfork() : fork();
    if (child == 0) {
      execl("/proc/self/exe", argv[0], "child", static_cast<char*>(nullptr));
      _exit(6);
    }
    wait_for(child);
  }
  return 7;
}
