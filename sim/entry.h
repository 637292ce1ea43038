// What every call goes through before its body: lock, initialisation, context, handles, capture.
#pragma once

#include "sim/answer.h"
#include "sim/capture.h"
#include "sim/state.h"

#include <exception>
#include <mutex>
#include <new>

namespace capturesan::sim {

class call_scope {
 public:
  explicit call_scope(call_id id);
  ~call_scope();
  call_scope(const call_scope&) = delete;
  call_scope& operator=(const call_scope&) = delete;

  // Looks at one argument; streams are replaced by the objects they stand for.
  template <class T>
  void see(T&) {}
  void see(CUstream& stream);
  void see(const CUlaunchConfig*& config);
  void see(CUevent& event);
  template <class T>
  void see_handle(T* handle, CUresult if_bad) {
    if (!bad_ && !is_live(handle)) bad_ = if_bad;
  }
  void see(CUmodule& module);
  void see(CUlibrary& l) { see_handle(l, CUDA_ERROR_INVALID_HANDLE); }
  void see(CUkernel& k) { see_handle(k, CUDA_ERROR_INVALID_HANDLE); }
  void see(CUgraph& g) { see_handle(g, CUDA_ERROR_INVALID_VALUE); }
  void see(CUgraphNode& n) { see_handle(n, CUDA_ERROR_INVALID_VALUE); }
  void see(CUgraphExec& e) { see_handle(e, CUDA_ERROR_INVALID_VALUE); }
  void see(CUuserObject& o) { see_handle(o, CUDA_ERROR_INVALID_VALUE); }
  void see(CUfunction& function); // may also be a kernel
  void see(CUcontext& context);   // may be null
  void see(CUmemoryPool& pool);   // may be null

  // CUDA_SUCCESS: the body may run.
  CUresult enter();

 private:
  const answer& answer_;
  std::unique_lock<std::mutex> lock_;
  std::unique_lock<std::mutex>* outer_ = nullptr; // of a call that this one was made from
  bool outer_per_thread_ = false;
  call_operands operands_;
  CUresult bad_ = CUDA_SUCCESS;
  CUcontext owner_ = nullptr; // of an event or a module
  bool no_context_ = false;
  unsigned events_ = 0;
};

CUresult unsupported(call_id id);

struct no_body {};
template <call_id>
inline constexpr no_body body_of{};

template <call_id id, class Signature>
struct entry;
template <call_id id, class... A>
struct entry<id, CUresult(A...)> {
  static CUresult call(A... arguments) noexcept {
    if constexpr (requires { body_of<id>(arguments...); }) {
      try {
        call_scope scope(id);
        (scope.see(arguments), ...);
        if (CUresult r = scope.enter()) return r;
        return body_of<id>(arguments...);
      } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
      } catch (const std::exception&) {
        return CUDA_ERROR_UNKNOWN;
      }
    } else {
      return unsupported(id);
    }
  }
};

} // namespace capturesan::sim
