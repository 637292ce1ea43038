// Checks of a runtime-API program: each prints what differs and counts; main answers with failed().
#pragma once

#include <cstdio>
#include <cuda_runtime.h>

namespace check {

inline int& failures() {
  static int count = 0;
  return count;
}

template <class A, class B>
void equal(const A& got, const B& right, const char* what, int line) {
  if (static_cast<long long>(got) == static_cast<long long>(right)) return;
  ++failures();
  std::printf("line %d: %s is %lld, expected %lld\n", line, what, static_cast<long long>(got),
              static_cast<long long>(right));
}

inline void answers(cudaError_t got, cudaError_t right, const char* what, int line) {
  if (got == right) return;
  ++failures();
  std::printf("line %d: %s answered %s, expected %s\n", line, what, cudaGetErrorName(got), cudaGetErrorName(right));
}

inline int failed() {
  std::printf("%s\n", failures() ? "FAILED" : "ok");
  return failures() ? 1 : 0;
}

} // namespace check

#define EQUAL(got, right) check::equal((got), (right), #got, __LINE__)
#define OK(call) check::answers((call), cudaSuccess, #call, __LINE__)
#define ANSWERS(error, call) check::answers((call), (error), #call, __LINE__)
