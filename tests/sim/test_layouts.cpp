// Parameter layouts, names and variables of every form of device code. Expected values: the C++ compiler's own layout
// of the same declarations, which the device's compiler shares.
#include "tests/support/catch.hpp"

#include "layouts.h"

#include <cstddef>
#include <cstdlib>
#include <cuda.h>
#include <set>
#include <string>
#include <vector>

using namespace layouts;

namespace {

struct parameter {
  std::size_t offset, size;
};

// As a structure whose members are the parameters of `mixed`.
struct mixed_parameters {
  char a;
  double b;
  odd c;
  int* d;
  empty e;
  short f;
};

struct bounded_parameters {
  long long a;
  char b;
  long long c;
  int* out;
};

const std::vector<std::pair<std::string, std::vector<parameter>>> expected = {
    {"mixed",
     {{offsetof(mixed_parameters, a), sizeof(char)},
      {offsetof(mixed_parameters, b), sizeof(double)},
      {offsetof(mixed_parameters, c), sizeof(odd)},
      {offsetof(mixed_parameters, d), sizeof(int*)},
      {offsetof(mixed_parameters, e), sizeof(empty)},
      {offsetof(mixed_parameters, f), sizeof(short)}}},
    {"nothing", {}},
    {"large_block", {{0, large}, {large, sizeof(int*)}}},
    {"huge_block", {{0, huge}, {huge, sizeof(int*)}}},
    {"constant_block", {{0, sizeof(odd)}, {sizeof(odd), sizeof(float*)}}},
    {"bounded",
     {{offsetof(bounded_parameters, a), 8},
      {offsetof(bounded_parameters, b), 1},
      {offsetof(bounded_parameters, c), 8},
      {offsetof(bounded_parameters, out), 8}}},
};

void check_parameters(CUfunction kernel, const std::vector<parameter>& parameters) {
  std::size_t offset = 0, size = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    REQUIRE(cuFuncGetParamInfo(kernel, i, &offset, &size) == CUDA_SUCCESS);
    CHECK(offset == parameters[i].offset);
    CHECK(size == parameters[i].size);
  }
  CHECK(cuFuncGetParamInfo(kernel, parameters.size(), &offset, &size) == CUDA_ERROR_INVALID_VALUE);
}

template <class T>
T variable(CUmodule module, const char* name) {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  T value{};
  REQUIRE(cuModuleGetGlobal(&address, &bytes, module, name) == CUDA_SUCCESS);
  REQUIRE(bytes == sizeof value);
  REQUIRE(cuMemcpyDtoH(&value, address, bytes) == CUDA_SUCCESS);
  return value;
}

struct four_steps {
  unsigned short step[4];
};

void check_image(const char* path) {
  INFO(path);
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  REQUIRE(cuModuleLoad(&module, path) == CUDA_SUCCESS);
  unsigned count = 0;
  CHECK(cuModuleGetFunctionCount(&count, module) == CUDA_SUCCESS);
  CHECK(count == expected.size());
  for (const auto& [name, parameters] : expected) {
    INFO(name);
    CUfunction kernel = nullptr;
    const char* found = nullptr;
    REQUIRE(cuModuleGetFunction(&kernel, module, name.c_str()) == CUDA_SUCCESS);
    CHECK(cuFuncGetName(&found, kernel) == CUDA_SUCCESS);
    CHECK(found == name);
    check_parameters(kernel, parameters);
    if (name != "bounded") continue;
    int threads = 0;
    CHECK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel) == CUDA_SUCCESS);
    CHECK(threads == 256);
  }
  CHECK(variable<int>(module, "counter") == 42);
  CHECK(variable<four_steps>(module, "steps").step[2] == 300);
}

} // namespace

TEST_CASE("cubin") { check_image(LAYOUTS_CUBIN); }
TEST_CASE("fatbin: machine code, zstd") { check_image(LAYOUTS_SIZE); }
TEST_CASE("fatbin: PTX, zstd") { check_image(LAYOUTS_BALANCE); }
TEST_CASE("fatbin: PTX, lz4") { check_image(LAYOUTS_SPEED); }
TEST_CASE("fatbin: PTX, not compressed") { check_image(LAYOUTS_NONE); }
