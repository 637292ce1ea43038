/* CaptureSan for programs: tell it what it cannot see. Plain C, header only.
 *
 * Every call here does nothing where neither the shim nor the simulated driver is loaded (the symbols are weak), so a
 * program may keep them in production. All are thread-safe and never fail in a way the program has to handle.
 */
#ifndef CAPTURESAN_H
#define CAPTURESAN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAPTURESAN_WEAK __attribute__((weak, visibility("default")))

/* --- Annotations, read by the shim ----------------------------------------------------------------------------------
 */

/* A block of device memory handed out by an allocator that recycles memory without driver calls. `name` says whose
 * allocator it is and may be NULL; it is copied. `stream` is the CUstream the block was handed out for, or NULL. */
void capturesan_block_allocated(const void* address, size_t bytes, const void* stream,
                                const char* name) CAPTURESAN_WEAK;

/* The block was given back; its memory may be handed out again from now on. */
void capturesan_block_freed(const void* address) CAPTURESAN_WEAK;

/* The bytes are an input of the graphs that read them: the program writes them before each replay. */
void capturesan_graph_input(const void* address, size_t bytes, const char* name) CAPTURESAN_WEAK;

/* Names what the calling thread does from here on, until the matching pop; shown in findings. */
void capturesan_push_region(const char* name) CAPTURESAN_WEAK;
void capturesan_pop_region(void) CAPTURESAN_WEAK;

static inline void capturesan_note_allocated(const void* address, size_t bytes, const void* stream, const char* name) {
  if (capturesan_block_allocated) capturesan_block_allocated(address, bytes, stream, name);
}
static inline void capturesan_note_freed(const void* address) {
  if (capturesan_block_freed) capturesan_block_freed(address);
}
static inline void capturesan_note_input(const void* address, size_t bytes, const char* name) {
  if (capturesan_graph_input) capturesan_graph_input(address, bytes, name);
}
static inline void capturesan_enter(const char* name) {
  if (capturesan_push_region) capturesan_push_region(name);
}
static inline void capturesan_leave(void) {
  if (capturesan_pop_region) capturesan_pop_region();
}

/* --- Host kernels, run by the simulated driver ----------------------------------------------------------------------
 */

/* A launch as a host kernel sees it. Everything is valid during the call only. */
typedef struct capturesan_host_launch {
  const char* name;         /* of the kernel, as in the image (mangled for C++) */
  unsigned grid[3];         /* blocks */
  unsigned block[3];        /* threads a block */
  unsigned shared_bytes;    /* dynamic shared memory a block */
  unsigned parameter_count; /* as the image declares them */
  void* const*
      parameters;      /* a pointer to the value of each; device pointers in them can be used on the host as they are */
  unsigned cluster[3]; /* blocks a cluster; 1, 1, 1 without clusters */
  int cooperative;     /* 1: launched so that all blocks run at once */
} capturesan_host_launch;

/* Does the work of the whole grid. May call the driver; runs on the thread that launched the kernel or the graph. */
typedef void (*capturesan_host_kernel)(const capturesan_host_launch* launch, void* user);

/* From now on the simulated driver runs `function` wherever the kernel of that name is launched, eagerly or from a
 * graph; NULL takes it back. Returns 1, or 0 for a bad name. On a real driver the symbol is absent. */
int capturesan_register_host_kernel(const char* name, capturesan_host_kernel function, void* user) CAPTURESAN_WEAK;

/* The same for a kernel of the CUDA runtime, named by its host function as in cudaLaunchKernel. 0 if the function is
 * no kernel. Only the runtime of the simulated driver has it. */
int capturesan_register_host_function(const void* kernel, capturesan_host_kernel function, void* user) CAPTURESAN_WEAK;

/* Sets the condition of a conditional node, as cudaGraphSetConditional does in device code. Returns 0 for an unknown
 * handle. */
int capturesan_set_condition(unsigned long long handle, unsigned value) CAPTURESAN_WEAK;

/* 1 if the kernel will run on the host; 0 if there is no simulated driver. */
static inline int capturesan_use_host_kernel(const char* name, capturesan_host_kernel function, void* user) {
  return capturesan_register_host_kernel ? capturesan_register_host_kernel(name, function, user) : 0;
}

/* The same for the CUDA runtime; capturesan_host.h has a form of it for C++. */
static inline int capturesan_use_host_function(const void* kernel, capturesan_host_kernel function, void* user) {
  return capturesan_register_host_function ? capturesan_register_host_function(kernel, function, user) : 0;
}

#ifdef __cplusplus
}
#endif
#endif
