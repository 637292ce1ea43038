/* What the simulated driver adds to the driver API, for tools that look at the driver (the shim, tests). Plain C.
 * All are exported by the simulated libcuda.so.1 only: finding capturesan_sim_version is how to know it. Thread-safe.
 */
#ifndef CAPTURESAN_SIM_H
#define CAPTURESAN_SIM_H

#ifdef __cplusplus
extern "C" {
#endif

/* Version of CaptureSan, as text. */
extern const char capturesan_sim_version[] __attribute__((visibility("default")));

/* The calls that were answered with CUDA_ERROR_NOT_SUPPORTED because the simulation lacks them: index from 0; stores
 * the name (never freed) and how often it was called. Returns 0 when there are no more. */
int capturesan_sim_unsupported(unsigned index, const char** name, unsigned long long* count)
    __attribute__((visibility("default")));

/* Counts a driver call, by its ABI name, as one that the simulation lacks: for the runtime, whose functions may need
 * it.
 */
void capturesan_sim_lacks(const char* call) __attribute__((visibility("default")));

#ifdef __cplusplus
}
#endif
#endif
