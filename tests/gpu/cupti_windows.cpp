// What CUPTI's own calls do to an open capture. Prints CSV: action, calling thread, mode, CUPTI's answer, status of the
// capture after it, EndCapture's answer, nodes of the graph. What each took goes to stderr. Needs a GPU and a libcupti;
// exit code 77: none.
#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <thread>

namespace {

// As documented in cupti_callbacks.h.
using callback = void (*)(void*, int, std::uint32_t, const void*);
int (*subscribe)(void**, callback, void*);
int (*unsubscribe)(void*);
int (*enable_callback)(std::uint32_t, void*, int, std::uint32_t);
int (*enable_domain)(std::uint32_t, void*, int);
constexpr int driver_domain = 1, runtime_domain = 2, resource_domain = 3;
constexpr std::uint32_t some_callback = 10;

void* subscriber;
unsigned calls;
void on_callback(void*, int, std::uint32_t, const void*) { ++calls; }

int subscribe_now() { return subscribe(&subscriber, on_callback, nullptr); }
int unsubscribe_now() { return unsubscribe(subscriber); }

struct action {
  const char* name;
  bool before; // subscribed before the capture begins
  int (*act)();
  bool after; // to be unsubscribed after it ended
};

const action actions[] = {
    {"subscribe", false, subscribe_now, true},
    {"unsubscribe", true, unsubscribe_now, false},
    {"enable one driver callback", true, [] { return enable_callback(1, subscriber, driver_domain, some_callback); },
     true},
    {"disable one driver callback", true, [] { return enable_callback(0, subscriber, driver_domain, some_callback); },
     true},
    {"enable driver domain", true, [] { return enable_domain(1, subscriber, driver_domain); }, true},
    {"enable runtime domain", true, [] { return enable_domain(1, subscriber, runtime_domain); }, true},
    {"enable resource domain", true, [] { return enable_domain(1, subscriber, resource_domain); }, true},
    {"disable resource domain", true, [] { return enable_domain(0, subscriber, resource_domain); }, true},
    {"nothing", true, [] { return 0; }, true},
};

void must(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "cupti_windows: %s answered %d\n", what, result);
  std::exit(3);
}

} // namespace

int main(int argc, char** argv) {
  void* library = dlopen(argc > 1 ? argv[1] : "libcupti.so.13", RTLD_NOW);
  int count = 0;
  if (!library || cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&count) != CUDA_SUCCESS || !count) {
    std::printf("skipped: %s\n", library ? "no GPU" : dlerror());
    return 77;
  }
  const auto find = [&](auto& f, const char* name) {
    f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(dlsym(library, name));
    if (!f) must(-1, name);
  };
  find(subscribe, "cuptiSubscribe"), find(unsubscribe, "cuptiUnsubscribe");
  find(enable_callback, "cuptiEnableCallback"), find(enable_domain, "cuptiEnableDomain");
  CUcontext context = nullptr;
  must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUdeviceptr buffer = 0;
  must(cuMemAlloc(&buffer, 4096), "cuMemAlloc");
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  std::printf("action,calling_thread,mode,result,status_after,end_capture_result,graph_nodes\n");
  for (const action& a : actions) {
    for (const bool other : {false, true}) {
      for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
        if (a.before) must(subscribe_now(), "cuptiSubscribe");
        must(cuStreamBeginCapture(stream, mode), "cuStreamBeginCapture");
        must(cuMemsetD8Async(buffer, 0, 64, stream), "cuMemsetD8Async");
        int result = -1;
        const auto from = std::chrono::steady_clock::now();
        const auto act = [&] { result = a.act(); };
        if (other)
          std::thread(act).join();
        else
          act();
        const auto took = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - from).count();
        cuMemsetD8Async(buffer, 1, 64, stream); // refused if the capture is invalid by now: the status tells
        CUstreamCaptureStatus status{};
        must(cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing");
        CUgraph graph = nullptr;
        const int ended = cuStreamEndCapture(stream, &graph);
        std::size_t nodes = 0;
        if (graph) must(cuGraphGetNodes(graph, nullptr, &nodes), "cuGraphGetNodes");
        std::printf("%s,%s,%s,%d,%d,%d,%d\n", a.name, other ? "other" : "same",
                    mode == CU_STREAM_CAPTURE_MODE_GLOBAL ? "global" : "relaxed", result, static_cast<int>(status),
                    ended, graph ? static_cast<int>(nodes) : -1);
        std::fprintf(stderr, "%s: %.1f us\n", a.name, took);
        if (a.after) must(unsubscribe_now(), "cuptiUnsubscribe");
      }
    }
  }
}
