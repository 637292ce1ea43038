// A library that uses the driver. With 1.4 KiB of static TLS: what glibc keeps in reserve for such libraries is about
// that much, so a shim that took a larger share would make this dlopen fail.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

static thread_local char block[1400] __attribute__((tls_model("initial-exec")));

extern "C" __attribute__((visibility("default"))) int plugin_work(int calls) {
  int good = 0;
  for (int i = 0; i < calls; ++i) good += cuEventQuery(nullptr) == CUDA_SUCCESS ? 1 : 0;
  block[0] = static_cast<char>(block[0] + good);
  return good + block[1];
}
