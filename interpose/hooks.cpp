// Expands calls.def: operands and wrapper of every call, and the table of wrappers.
#include "interpose/hook.h"
#include "interpose/proc_address.h"

namespace capturesan::shim {

#define N operand::none
#define I(n) operand::value<n>
#define IN(n) operand::in<n>
#define O(n) operand::out<n>
#define SCALED(n, k) operand::scaled<n, k>
#define AREA(k) operand::area<k>
#define PITCH operand::pitch
#define GRID(n) operand::grid<n>
#define BLOCK(n) operand::block<n>
#define GRID_EX(n) operand::grid_ex<n>
#define BLOCK_EX(n) operand::block_ex<n>
#define COPY_DST(n) operand::copy_dst<n>
#define COPY_SRC(n) operand::copy_src<n>
#define COPY_BYTES(n) operand::copy_bytes<n>
#define BATCH_DST(n) operand::batch_dst<n>
#define BATCH_SRC(n) operand::batch_src<n>
#define BATCH_BYTES(n) operand::batch_bytes<n>
#define CHILD(n) operand::child_graph<n>
#define FLAGS(n) operand::instantiate_flags<n>
#define UPDATE_RESULT(n) operand::update_result<n>
#define TEXT(n) operand::text<n>

#define CALL(symbol, api, call_class_, since, A, B, C)                                                                 \
  template <>                                                                                                          \
  struct operands_of<call_id::symbol> {                                                                                \
    using a = A;                                                                                                       \
    using b = B;                                                                                                       \
    using c = C;                                                                                                       \
  };
#include "trace/calls.def"

} // namespace capturesan::shim

// What the exported stubs jump to. Plain pointers with constant initialisers: a stub may be called before any
// constructor has run.
#define CALL(symbol, ...)                                                                                              \
  extern "C" __attribute__((visibility("hidden"))) void* const capturesan_to_##symbol =                                \
      reinterpret_cast<void*>(+capturesan::shim::hook<capturesan::trace::call_id::symbol, decltype(::symbol)>::call);
#include "trace/calls.def"

// The exported names. A stub is one jump, so a hook sees the caller's own return address and arguments.
#if defined(__x86_64__)
#define CAPTURESAN_JUMP(symbol) "  endbr64\n  jmp *capturesan_to_" #symbol "(%rip)\n"
#elif defined(__aarch64__)
#define CAPTURESAN_JUMP(symbol)                                                                                        \
  "  bti c\n  adrp x16, capturesan_to_" #symbol "\n  ldr x16, [x16, :lo12:capturesan_to_" #symbol "]\n  br x16\n"
#endif
#define CALL(symbol, ...)                                                                                              \
  __asm__(".pushsection .text\n.p2align 4\n.globl " #symbol "\n.type " #symbol ", @function\n"                         \
          ".globl capturesan_stub_" #symbol "\n.hidden capturesan_stub_" #symbol "\n" #symbol                          \
          ":\ncapturesan_stub_" #symbol ":\n" CAPTURESAN_JUMP(symbol) ".size " #symbol ", .-" #symbol                  \
                                                                      "\n.popsection\n");                              \
  extern "C" __attribute__((visibility("hidden"))) char capturesan_stub_##symbol[];
#include "trace/calls.def"

namespace capturesan::shim {

void* const wrapper_table[trace::call_count] = {
#define CALL(symbol, ...) reinterpret_cast<void*>(+hook<call_id::symbol, decltype(::symbol)>::call),
#include "trace/calls.def"
};

void* const export_table[trace::call_count] = {
#define CALL(symbol, ...) capturesan_stub_##symbol,
#include "trace/calls.def"
};

} // namespace capturesan::shim
