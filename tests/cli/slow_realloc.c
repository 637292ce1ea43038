// A realloc that can be stopped between letting go of the old block and returning.
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

void* __libc_realloc(void*, size_t);
atomic_int slow_realloc_moved, slow_realloc_go_on;

void* realloc(void* p, size_t n) {
  void* to = __libc_realloc(p, n);
  if (n == 777777) { // as in host_memory.cpp
    atomic_store(&slow_realloc_moved, 1);
    while (!atomic_load(&slow_realloc_go_on)) sched_yield();
  }
  return to;
}
