#include "sim/api.h"
#include "sim/exports.h"

#include <string_view>

namespace capturesan::sim {
namespace {

struct lookup {
  const trace::call_info* best = nullptr;
  bool known = false; // the name exists, perhaps only in later versions
};

// Among the ABI names of a documented one, the newest that the version allows; the per-thread variant first if asked
// for.
lookup find(std::string_view api, int version, bool per_thread) {
  lookup found;
  bool best_per_thread = false;
  for (const auto& row : trace::call_table) {
    if (row.api != api) continue;
    const bool row_per_thread = trace::per_thread_variant(row.symbol);
    if (row_per_thread && !per_thread) continue;
    found.known = true;
    if (row.since > version) continue;
    const bool better = !found.best || (row_per_thread && !best_per_thread) ||
                        (row_per_thread == best_per_thread && row.since >= found.best->since);
    if (!better) continue;
    found.best = &row;
    best_per_thread = row_per_thread;
  }
  return found;
}

} // namespace

namespace api {

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  if (!symbol || !function) return CUDA_ERROR_INVALID_VALUE;
  constexpr cuuint64_t known_flags = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  int driver = 0;
  api::cuDriverGetVersion(&driver);
  if (flags & ~known_flags || version > driver) return CUDA_ERROR_INVALID_VALUE;
  const auto found = find(symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  *function = found.best ? exported(static_cast<call_id>(found.best - trace::call_table)) : nullptr;
  if (status)
    *status = found.best    ? CU_GET_PROC_ADDRESS_SUCCESS
              : found.known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  CUdriverProcAddressQueryResult status{};
  const CUresult result = api::cuGetProcAddress_v2(symbol, function, version, flags, &status);
  if (result == CUDA_SUCCESS && status != CU_GET_PROC_ADDRESS_SUCCESS) return CUDA_ERROR_NOT_FOUND;
  return result;
}

} // namespace api
} // namespace capturesan::sim
