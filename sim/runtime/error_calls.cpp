// Errors, versions, entry points of the driver, and the functions that answer something else than an error.
#include "sim/runtime/api.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/thread.h"

namespace capturesan::runtime {
namespace {

struct error_text {
  cudaError_t code;
  const char* name;
  const char* text;
};

// Names from driver_types.h itself, read at build time; the text is the name in words.
constexpr error_text errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
#define ERROR_NAME(name, text) {name, #name, text},
#include "sim_runtime_error_names.def"
#undef ERROR_NAME
};

const error_text* find_error(cudaError_t code) {
  for (const auto& e : errors)
    if (e.code == code) return &e;
  return nullptr;
}

constexpr unsigned long long per_thread_flag = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

} // namespace

namespace api {

// Documented: the error is forgotten, but for those that stay with the process.
cudaError_t cudaGetLastError() {
  const cudaError_t error = this_thread().last_error;
  if (!is_sticky(error)) this_thread().last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return this_thread().last_error; }

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (!version) return noted(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// Documented: 0 where no driver is installed.
cudaError_t cudaDriverGetVersion(int* version) {
  if (!version) return noted(cudaErrorInvalidValue);
  *version = 0;
  return driver_there() ? noted(from_driver(CU(cuDriverGetVersion)(version))) : cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** address, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  if (!symbol || !address) return cudaErrorInvalidValue;
  if (flags == cudaEnableDefault && per_thread_streams()) flags = per_thread_flag;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult r = CU(cuGetProcAddress_v2)(symbol, address, static_cast<int>(version), flags, &found);
  if (status) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  // Documented: what is not there is told by the status.
  return r == CUDA_ERROR_NOT_FOUND && status ? cudaSuccess : from_driver(r);
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** address, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return api::cudaGetDriverEntryPointByVersion(symbol, address, CUDART_VERSION, flags, status);
}

// Undocumented tables: there are none here.
cudaError_t cudaGetExportTable(const void** table, const cudaUUID_t*) {
  if (table) *table = nullptr;
  return noted(cudaErrorSymbolNotFound);
}

// Nothing profiles here; documented to succeed where no profiler is attached.
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

} // namespace api
} // namespace capturesan::runtime

extern "C" {

__attribute__((visibility("default"))) const char* cudaGetErrorName(cudaError_t code) {
  const auto* found = capturesan::runtime::find_error(code);
  return found ? found->name : "unrecognized error code";
}

__attribute__((visibility("default"))) const char* cudaGetErrorString(cudaError_t code) {
  const auto* found = capturesan::runtime::find_error(code);
  return found ? found->text : "unrecognized error code";
}

__attribute__((visibility("default"))) cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                                                   cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

} // extern "C"
