// Captures beside a CUPTI that a test library plays. Prints whether the slot was held before, in and after each window.
//   loaded   the library is there before the captures
//   absent   it is not
//   held     another client subscribed first and stays
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace {

unsigned (*subscriptions)();
int (*held)();
void (*runtime)(int, const char*);
void (*module)();
int (*subscribe)(void**, void (*)(void*, int, unsigned, const void*), void*);

void must(CUresult r) {
  if (r != CUDA_SUCCESS) std::exit(3);
}

void load() {
  void* library = dlopen("libcupti.so.13", RTLD_NOW);
  if (!library) std::exit(4);
  const auto find = [&](auto& f, const char* name) { *reinterpret_cast<void**>(&f) = dlsym(library, name); };
  find(subscriptions, "fake_cupti_subscriptions"), find(held, "fake_cupti_held"), find(runtime, "fake_cupti_runtime");
  find(module, "fake_cupti_module"), find(subscribe, "cuptiSubscribe");
}

void tell(const char* where) {
  if (held) std::printf("%s: %s, %u subscriptions\n", where, held() ? "held" : "free", subscriptions());
}

CUstream stream() {
  CUstream made = nullptr;
  must(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
  return made;
}

} // namespace

int main(int, char** argv) {
  CUcontext context = nullptr;
  must(cuInit(0));
  must(cuDevicePrimaryCtxRetain(&context, 0));
  must(cuCtxSetCurrent(context));
  const CUstream one = stream(), two = stream();
  if (std::strcmp(argv[1], "absent") != 0) load();
  void* mine = nullptr;
  if (std::strcmp(argv[1], "held") == 0 && subscribe(
                                               &mine, [](void*, int, unsigned, const void*) {}, nullptr) != 0)
    return 5;
  CUgraph graph = nullptr;
  tell("before");
  must(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  tell("one capture");
  must(cuStreamBeginCapture(two, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  must(cuStreamEndCapture(one, &graph));
  tell("one of two ended");
  must(cuStreamEndCapture(two, &graph));
  tell("both ended");
  if (runtime) runtime(0, "cudaLeftOver"); // outside: nobody listens
  must(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  if (module) module();
  if (runtime) runtime(0, "cudaStreamSynchronize");
  std::printf("sync: %d\n", cuStreamSynchronize(one)); // the mistake
  if (runtime) runtime(1, "cudaStreamSynchronize");
  std::printf("end: %d\n", cuStreamEndCapture(one, &graph));
  tell("end");
}
