// What every runtime function goes through: which default stream stream 0 means, driver and context, the last error.
#pragma once

#include "sim/runtime/api.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/thread.h"

#include <bit>
#include <new>
#include <type_traits>

namespace capturesan::runtime {

class call_scope {
 public:
  explicit call_scope(bool per_thread) : outer_(this_thread().per_thread) { this_thread().per_thread = per_thread; }
  ~call_scope() { this_thread().per_thread = outer_; }
  call_scope(const call_scope&) = delete;
  call_scope& operator=(const call_scope&) = delete;

 private:
  bool outer_; // of a call that this one was made from, by a host function
};

// One argument of a runtime function as the driver takes it. The types are of equal layout; api.h checks the
// structures.
template <class To, class From>
To as_driver(From value) {
  if constexpr (std::is_class_v<To>) {
    return std::bit_cast<To>(value);
  } else {
    return (To)(value); // pointers, numbers and enumerations of both headers, with and without const
  }
}

template <class... To, class... From>
cudaError_t pass_on(CUresult (*call)(To...), From... values) {
  static_assert(sizeof...(To) == sizeof...(From));
  return from_driver(call(as_driver<To>(values)...));
}

// A body that passes its arguments on.
template <call_id id>
struct one_call {
  template <class... A>
  cudaError_t operator()(A... arguments) const {
    return pass_on(driver<id>(), arguments...);
  }
};

template <auto body>
struct own_body {
  template <class... A>
  cudaError_t operator()(A... arguments) const {
    return body(arguments...);
  }
};

template <class Body, need what, bool per_thread, class Signature>
struct entry;
template <class Body, need what, bool per_thread, class... A>
struct entry<Body, what, per_thread, cudaError_t(A...)> {
  static cudaError_t call(A... arguments) noexcept {
    try {
      const call_scope scope(per_thread);
      if (cudaError_t e = prepare(what)) return noted(e);
      const cudaError_t result = Body{}(arguments...);
      if constexpr (what == need::none) return result; // those that tell of the last error do not become it
      return noted(result);
    } catch (const std::bad_alloc&) {
      return noted(cudaErrorMemoryAllocation);
    }
  }
};

} // namespace capturesan::runtime
