// An empty shim: exports every driver name and jumps on. What preloading alone costs, for comparison with the real one.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <dlfcn.h>

#define CALL(symbol, ...)                                                                                              \
  extern "C" __attribute__((visibility("hidden"))) void* next_##symbol;                                                \
  void* next_##symbol;                                                                                                 \
  __asm__(".pushsection .text\n.p2align 4\n.globl " #symbol "\n.type " #symbol ", @function\n" #symbol                 \
          ":\n  jmp *next_" #symbol "(%rip)\n.size " #symbol ", .-" #symbol "\n.popsection\n");
#include "trace/calls.def"

__attribute__((constructor)) static void find_all() {
#define CALL(symbol, ...) next_##symbol = dlsym(RTLD_NEXT, #symbol);
#include "trace/calls.def"
}
