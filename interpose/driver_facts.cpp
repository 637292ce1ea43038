#include "interpose/driver_facts.h"

#include "interpose/cuda_abi.h"
#include "interpose/real.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

void copy_text(char* to, std::size_t room, const char* from, std::size_t length) {
  const std::size_t n = length < room - 1 ? length : room - 1;
  std::memcpy(to, from, n);
  to[n] = 0;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ..." : the first word that begins with digits and a dot.
void read_driver_string(trace::file_header& h) {
  char text[512];
  const long fd = raw(SYS_openat, AT_FDCWD, word("/proc/driver/nvidia/version"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return;
  }
  const long n = raw(SYS_read, fd, word(text), sizeof(text) - 1);
  raw(SYS_close, fd);
  if (n <= 0) {
    return;
  }
  text[n] = 0;
  for (const char* at = text; *at != 0 && *at != '\n'; ++at) {
    const bool begins = (at == text || at[-1] == ' ') && *at >= '0' && *at <= '9';
    const std::size_t length = std::strcspn(at, " \n");
    if (begins && std::memchr(at, '.', length) != nullptr) {
      copy_text(h.driver_string, sizeof(h.driver_string), at, length);
      return;
    }
  }
}

} // namespace

void write_unsupported_calls() {
  using unsupported_fn = int (*)(unsigned index, const char** name, unsigned long long* count);
  auto next = reinterpret_cast<unsupported_fn>(driver_symbol("capturesan_sim_unsupported"));
  thread_state* t = next == nullptr || process->session.load() == 0 ? nullptr : enter_thread();
  if (t == nullptr || t->busy != 0) {
    return;
  }
  const own_calls own;
  t->busy = 1;
  const char* name = nullptr;
  unsigned long long count = 0;
  for (unsigned i = 0; i < trace::call_count && next(i, &name, &count) != 0; ++i) {
    write_text(t, trace::text_role::unsupported, count, name);
  }
  t->busy = 0;
}

namespace {

// What all devices have in common, as in the trace's header.
u32 common_capability() {
  auto* count = driver_function<decltype(cuDeviceGetCount)>(call_id::cuDeviceGetCount);
  auto* ask = driver_function<decltype(cuDeviceGetAttribute)>(call_id::cuDeviceGetAttribute);
  int devices = 0;
  if (count == nullptr || ask == nullptr || count(&devices) != CUDA_SUCCESS) {
    return 0;
  }
  int common = 0;
  for (int d = 0; d < devices; ++d) {
    int major = 0;
    int minor = 0;
    if (ask(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d) != CUDA_SUCCESS ||
        ask(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d) != CUDA_SUCCESS) {
      return 0;
    }
    const int one = 10 * major + minor;
    if (common != 0 && common != one) {
      return 0;
    }
    common = one;
  }
  return static_cast<u32>(common);
}

} // namespace

void describe_driver() {
  trace::file_header& h = *process->header;
  const bool simulated = driver_symbol("capturesan_sim_version") != nullptr;
  h.driver.store(simulated ? trace::driver_kind::simulated : trace::driver_kind::real);
  if (!simulated) {
    read_driver_string(h);
  }
  if (auto* get = driver_function<decltype(cuDriverGetVersion)>(call_id::cuDriverGetVersion)) {
    int version = 0;
    if (get(&version) == CUDA_SUCCESS) {
      h.driver_version.store(static_cast<u32>(version));
    }
  }
  if (auto* get = driver_function<decltype(cuDeviceGetName)>(call_id::cuDeviceGetName)) {
    get(h.device, sizeof(h.device) - 1, 0);
  }
  h.capability.store(common_capability());
}

} // namespace capturesan::shim
