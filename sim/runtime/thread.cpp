#include "sim/runtime/thread.h"

#include "sim/runtime/driver.h"

#include <atomic>
#include <type_traits>

// By this section `capturesan run` tells a program that is linked with our static runtime from one with NVIDIA's. A
// note stays in stripped programs too.
__asm__(".pushsection .note.capturesan.runtime, \"aR\", %note\n"
        "  .balign 4\n  .long 11, 4, 1\n  .asciz \"CaptureSan\"\n  .balign 4\n  .long 13\n  .popsection\n");

namespace capturesan::runtime {
namespace {

std::atomic<unsigned long long> resets{0};
static_assert(std::is_trivially_destructible_v<thread_state>);

// cuInit costs nothing when it has been done; what it answers may change after a fork.
cudaError_t initialise() {
  if (!driver_there()) return cudaErrorInsufficientDriver;
  return from_driver(CU(cuInit)(0));
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

cudaError_t bind(int device) {
  auto& self = this_thread();
  CUdevice ordinal = 0;
  if (CUresult r = CU(cuDeviceGet)(&ordinal, device)) return from_driver(r);
  CUcontext context = nullptr;
  if (CUresult r = CU(cuDevicePrimaryCtxRetain)(&context, ordinal)) return from_driver(r);
  if (CUresult r = CU(cuCtxSetCurrent)(context)) return from_driver(r);
  self.device = device;
  self.primary = context;
  self.resets = resets.load();
  return cudaSuccess;
}

void note_reset() { resets.fetch_add(1); }

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
