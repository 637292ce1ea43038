// What include/capturesan.h offers for the simulated driver.
#include "include/capturesan.h"

#include "sim/condition.h"
#include "sim/state.h"
#include "sim/work.h"

#include <mutex>

using namespace capturesan::sim;

extern "C" {

int capturesan_register_host_kernel(const char* name, capturesan_host_kernel function, void* user) {
  if (!name || !*name) return 0;
  const std::lock_guard hold(state().lock);
  register_host_kernel(name, reinterpret_cast<host_kernel>(function), user);
  return 1;
}

int capturesan_set_condition(unsigned long long handle, unsigned value) {
  const std::lock_guard hold(state().lock);
  if (!is_condition(handle)) return 0;
  set_condition(handle, value);
  return 1;
}

} // extern "C"
