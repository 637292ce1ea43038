// The exported functions of runtime.def. Each is one jump through a pointer, so that it needs no parameter list; the
// pointer's target has the vendor's signature.
#include "sim/runtime/entry.h"
#include "sim/runtime/launch.h"

namespace capturesan::runtime {
namespace {

template <class Signature>
struct lacking;
template <class... A>
struct lacking<cudaError_t(A...)> {
  template <char const* call>
  struct counted_as {
    cudaError_t operator()(A...) const {
      note_lacking(call);
      return cudaErrorNotSupported;
    }
  };
};

} // namespace
} // namespace capturesan::runtime

#if defined(__x86_64__)
#define JUMP(symbol) "  endbr64\n  jmp *capturesan_runtime_" #symbol "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(symbol)                                                                                                   \
  "  bti c\n  adrp x16, capturesan_runtime_" #symbol "\n  ldr x16, [x16, :lo12:capturesan_runtime_" #symbol            \
  "]\n  br x16\n"
#else
#error "no entry code for this processor yet"
#endif

#define EXPORT(symbol, function, per_thread, what, ...)                                                                \
  extern "C" __attribute__((visibility("hidden"), used)) decltype(&::function) const capturesan_runtime_##symbol =     \
      &capturesan::runtime::entry<__VA_ARGS__, capturesan::runtime::need::what, per_thread,                            \
                                  decltype(::function)>::call;                                                         \
  __asm__(".pushsection .text\n.p2align 4\n.globl " #symbol "\n.type " #symbol ", %function\n" #symbol                 \
          ":\n" JUMP(symbol) ".size " #symbol ", . - " #symbol "\n.popsection\n");

#define ONE_BODY(call) capturesan::runtime::one_call<capturesan::runtime::call_id::call>
#define ONE(function, call, what) EXPORT(function, function, false, what, ONE_BODY(call))
#define ONE_PTSZ(function, call, what)                                                                                 \
  ONE(function, call, what) EXPORT(function##_ptsz, function, true, what, ONE_BODY(call##_ptsz))
#define ONE_PTDS(function, call, what)                                                                                 \
  ONE(function, call, what) EXPORT(function##_ptds, function, true, what, ONE_BODY(call##_ptds))

#define OWN_BODY(function) capturesan::runtime::own_body<&capturesan::runtime::api::function>
#define OWN(function, what) EXPORT(function, function, false, what, OWN_BODY(function))
#define OWN_PTSZ(function, what) OWN(function, what) EXPORT(function##_ptsz, function, true, what, OWN_BODY(function))
#define OWN_PTDS(function, what) OWN(function, what) EXPORT(function##_ptds, function, true, what, OWN_BODY(function))

#define LACKS_BODY(function) capturesan::runtime::lacking<decltype(::function)>::counted_as<lacks_##function>
#define LACKS(function, call)                                                                                          \
  static constexpr char lacks_##function[] = #call;                                                                    \
  EXPORT(function, function, false, driver, LACKS_BODY(function))
#define LACKS_PTSZ(function, call)                                                                                     \
  LACKS(function, call) EXPORT(function##_ptsz, function, true, driver, LACKS_BODY(function))
#define LACKS_PTDS(function, call)                                                                                     \
  LACKS(function, call) EXPORT(function##_ptds, function, true, driver, LACKS_BODY(function))

#include "sim/runtime/runtime.def"

// The stub of a <<<>>> launch calls these with what __cudaGetKernel gave it.
namespace {

cudaError_t launch_from_stub(bool per_thread, cudaKernel_t kernel, dim3 grid, dim3 block, void** values,
                             std::size_t shared, cudaStream_t stream) {
  using namespace capturesan::runtime;
  const call_scope scope(per_thread);
  if (cudaError_t e = prepare(need::context)) return noted(e);
  return noted(launch(kernel, grid, block, values, shared, stream));
}

} // namespace

extern "C" {
__attribute__((visibility("default"))) cudaError_t
__cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** values, size_t shared, cudaStream_t stream) {
  return launch_from_stub(false, kernel, grid, block, values, shared, stream);
}
__attribute__((visibility("default"))) cudaError_t
__cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** values, size_t shared, cudaStream_t stream) {
  return launch_from_stub(true, kernel, grid, block, values, shared, stream);
}
} // extern "C"
