// The exported symbols. Each is one jump through a pointer, so that it is an ordinary function symbol with an address
// of its own, and needs no parameter list; the pointer's target has the vendor's signature.
#include "sim/exports.h"
#include "include/capturesan_sim.h"
#include "sim/api.h"
#include "sim/entry.h"

#include <atomic>
#include <cstdio>

namespace capturesan::sim {

#define ANSWER(symbol, ...)                                                                                            \
  template <>                                                                                                          \
  inline constexpr auto body_of<call_id::symbol> = &api::symbol;
#define ANSWER_PTSZ(symbol, ...)                                                                                       \
  template <>                                                                                                          \
  inline constexpr auto body_of<call_id::symbol> = &api::symbol;                                                       \
  template <>                                                                                                          \
  inline constexpr auto body_of<call_id::symbol##_ptsz> = &api::symbol;
#define ANSWER_PTDS(symbol, ...)                                                                                       \
  template <>                                                                                                          \
  inline constexpr auto body_of<call_id::symbol> = &api::symbol;                                                       \
  template <>                                                                                                          \
  inline constexpr auto body_of<call_id::symbol##_ptds> = &api::symbol;
#define ANSWER_AS(symbol, body, ...)                                                                                   \
  template <>                                                                                                          \
  inline constexpr auto body_of<call_id::symbol> = &api::body;
#include "sim/answers.def"

namespace {
std::atomic<unsigned long long> refused_calls[trace::call_count];
} // namespace

CUresult unsupported(call_id id) {
  const auto index = static_cast<std::size_t>(id);
  if (refused_calls[index].fetch_add(1, std::memory_order_relaxed) == 0)
    std::fprintf(stderr, "capturesan: the simulated driver does not implement %s (answers 801)\n",
                 trace::info(id).symbol.data());
  return CUDA_ERROR_NOT_SUPPORTED;
}

} // namespace capturesan::sim

#if defined(__x86_64__)
#define JUMP(symbol) "  endbr64\n  jmp *capturesan_entry_" #symbol "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(symbol)                                                                                                   \
  "  bti c\n  adrp x16, capturesan_entry_" #symbol "\n  ldr x16, [x16, :lo12:capturesan_entry_" #symbol "]\n  br "     \
  "x16\n"
#else
#error "no entry code for this processor yet"
#endif

#define CALL(symbol, ...)                                                                                              \
  extern "C" __attribute__((visibility("hidden"))) decltype(&::symbol) const capturesan_entry_##symbol =               \
      &capturesan::sim::entry<capturesan::sim::call_id::symbol, decltype(::symbol)>::call;                             \
  __asm__(".pushsection .text\n.p2align 4\n.globl " #symbol "\n.type " #symbol ", %function\n" #symbol                 \
          ":\n" JUMP(symbol) ".size " #symbol ", . - " #symbol "\n.popsection\n");
#include "trace/calls.def"

namespace capturesan::sim {

void* exported(call_id id) {
  static void* const addresses[] = {
#define CALL(symbol, ...) reinterpret_cast<void*>(&::symbol),
#include "trace/calls.def"
  };
  return addresses[static_cast<std::size_t>(id)];
}

} // namespace capturesan::sim

extern "C" {

const char capturesan_sim_version[] = CAPTURESAN_VERSION;

int capturesan_sim_unsupported(unsigned index, const char** name, unsigned long long* count) {
  using namespace capturesan;
  for (std::size_t i = 0; i < trace::call_count; ++i) {
    const auto n = sim::refused_calls[i].load(std::memory_order_relaxed);
    if (n == 0 || index-- != 0) continue;
    if (name) *name = trace::call_table[i].symbol.data();
    if (count) *count = n;
    return 1;
  }
  return 0;
}

void capturesan_sim_lacks(const char* call) {
  using namespace capturesan;
  for (std::size_t i = 0; i < trace::call_count; ++i)
    if (trace::call_table[i].symbol == call) sim::unsupported(static_cast<trace::call_id>(i));
}

} // extern "C"
