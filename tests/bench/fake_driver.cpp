// A libcuda.so.1 in which every entry point answers CUDA_SUCCESS in two instructions: what is left of a call's time is
// the shim's. It simulates nothing; for the overhead bench only.
#if defined(__x86_64__)
#define FAKE_BODY "  xor %eax, %eax\n  ret\n"
#elif defined(__aarch64__)
#define FAKE_BODY "  mov w0, #0\n  ret\n"
#endif
#define CALL(symbol, ...)                                                                                              \
  __asm__(".pushsection .text\n.p2align 4\n.globl " #symbol "\n.type " #symbol ", @function\n" #symbol ":\n" FAKE_BODY \
          ".size " #symbol ", .-" #symbol "\n.popsection\n");
#include "trace/calls.def"
