#include "sim/runtime/thread.h"

#include "sim/runtime/driver.h"

#include <atomic>
#include <mutex>
#include <type_traits>
#include <unordered_map>

// By this section `capturesan run` tells a program that is linked with our static runtime from one with NVIDIA's. A
// note stays in stripped programs too.
__asm__(".pushsection .note.capturesan.runtime, \"aR\", %note\n"
        "  .balign 4\n  .long 11, 4, 1\n  .asciz \"CaptureSan\"\n  .balign 4\n  .long 13\n  .popsection\n");

namespace capturesan::runtime {
namespace {

std::atomic<unsigned long long> resets{0};

// The primary contexts that the runtime holds, each retained once.
struct primary_contexts {
  std::mutex lock;
  std::unordered_map<int, CUcontext> contexts;
};

// Never destroyed: destructors of the program may still call.
primary_contexts& primaries() {
  static auto* const one = new primary_contexts;
  return *one;
}

static_assert(std::is_trivially_destructible_v<thread_state>);

// Once: a tool that records the driver's calls would see it before every other one. After a fork the other calls answer
// that the driver is not initialised.
cudaError_t initialise() {
  static std::atomic<bool> done{false};
  if (done.load(std::memory_order_acquire)) return cudaSuccess;
  if (!driver_there()) return cudaErrorInsufficientDriver;
  const CUresult r = CU(cuInit)(0);
  if (r == CUDA_SUCCESS) done.store(true, std::memory_order_release);
  return from_driver(r);
}

} // namespace

thread_state& this_thread() {
  static thread_local thread_state state;
  return state;
}

bool per_thread_streams() { return this_thread().per_thread; }

bool is_sticky(cudaError_t error) {
  switch (error) {
  case cudaErrorIllegalAddress:
  case cudaErrorLaunchTimeout:
  case cudaErrorAssert:
  case cudaErrorHardwareStackError:
  case cudaErrorIllegalInstruction:
  case cudaErrorMisalignedAddress:
  case cudaErrorInvalidAddressSpace:
  case cudaErrorInvalidPc:
  case cudaErrorLaunchFailure:
    return true;
  default:
    return false;
  }
}

cudaError_t noted(cudaError_t error) {
  if (error != cudaSuccess && !is_sticky(this_thread().last_error)) this_thread().last_error = error;
  return error;
}

cudaError_t primary_context(int device, CUcontext* context) {
  auto& all = primaries();
  const std::lock_guard hold(all.lock);
  if (auto found = all.contexts.find(device); found != all.contexts.end()) {
    *context = found->second;
    return cudaSuccess;
  }
  CUdevice ordinal = 0;
  if (CUresult r = CU(cuDeviceGet)(&ordinal, device)) return from_driver(r);
  if (CUresult r = CU(cuDevicePrimaryCtxRetain)(context, ordinal)) return from_driver(r);
  all.contexts[device] = *context;
  return cudaSuccess;
}

void forget_primary(int device) {
  const std::lock_guard hold(primaries().lock);
  primaries().contexts.erase(device);
  resets.fetch_add(1);
}

cudaError_t bind(int device) {
  auto& self = this_thread();
  CUcontext context = nullptr;
  if (cudaError_t e = primary_context(device, &context)) return e;
  CUresult r = CU(cuCtxSetCurrent)(context);
  if (r == CUDA_ERROR_INVALID_CONTEXT || r == CUDA_ERROR_CONTEXT_IS_DESTROYED) { // the program reset it by the driver
    forget_primary(device);
    if (cudaError_t e = primary_context(device, &context)) return e;
    r = CU(cuCtxSetCurrent)(context);
  }
  if (r) return from_driver(r);
  self.device = device;
  self.primary = context;
  self.resets = resets.load();
  return cudaSuccess;
}

cudaError_t prepare(need what) {
  if (what == need::none) return cudaSuccess;
  if (cudaError_t e = initialise()) return e;
  if (what == need::driver) return cudaSuccess;
  auto& self = this_thread();
  CUcontext current = nullptr;
  if (CUresult r = CU(cuCtxGetCurrent)(&current)) return from_driver(r);
  const bool reset = self.primary && current == self.primary && self.resets != resets.load();
  return current && !reset ? cudaSuccess : bind(self.device);
}

} // namespace capturesan::runtime
