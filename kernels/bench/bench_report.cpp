#include "bench_report.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace verify_mla {
namespace {

double rate_of(const std::vector<ceiling>& ceilings, const char* unit) {
  for (const ceiling& c : ceilings)
    if (c.unit == unit) return c.value; // the first of a unit is the one that floors are built on
  return 0;
}

} // namespace

void measurement::complete(int64_t tokens, const std::vector<ceiling>& ceilings) {
  const double bytes = static_cast<double>(tokens) * 1160;
  const double operations = static_cast<double>(tokens) * 2176 * rows;
  const double memory_us = bytes / rate_of(ceilings, "GB/s") * 1e-3;
  const double mma_us = operations / rate_of(ceilings, "TFLOP/s") * 1e-6;
  gigabytes_per_second = bytes / us * 1e-3;
  teraflops = operations / us * 1e-6;
  floor_us = std::max(memory_us, mma_us);
  memory_share = memory_us / us;
  mma_share = mma_us / us;
  steps_per_second = 1e6 / (us * 61);
}

void print_header() {
  std::printf("%-14s %-6s %-10s %5s %7s %3s %9s %7s %7s %8s %6s %9s %9s\n", "variant", "mode", "slots", "rows",
              "ctx_req", "B", "step us", "GB/s", "TFLOP/s", "floor us", "share", "steps/s", "workspace");
}

void print_row(const measurement& m) {
  std::printf("%-14s %-6s %-10s %5d %7s %3d %9.2f %7.0f %7.1f %8.2f %6.2f %9.1f %6.1f MB\n", m.variant.c_str(),
              m.mode.c_str(), m.slots.c_str(), m.rows, m.context.c_str(), m.batch, m.us, m.gigabytes_per_second,
              m.teraflops, m.floor_us, m.floor_us / m.us, m.steps_per_second, m.workspace_bytes * 1e-6);
  std::fflush(stdout);
}

bool write_json(const std::string& path, const verify_mla_device& device, const std::vector<ceiling>& ceilings,
                const std::vector<measurement>& results) {
  FILE* f = std::fopen(path.c_str(), "w");
  if (f == nullptr) {
    std::fprintf(stderr, "verify_bench: cannot write %s: %s\n", path.c_str(), std::strerror(errno));
    return false;
  }
  std::fprintf(f, "{\"schema\": 1, \"sm_count\": %d, \"cc\": \"%d.%d\", \"l2_bytes\": %d,\n \"ceilings\": [\n",
               device.sm_count, device.cc_major, device.cc_minor, device.l2_bytes);
  for (size_t i = 0; i < ceilings.size(); ++i)
    std::fprintf(f, "  {\"name\": \"%s\", \"value\": %.1f, \"unit\": \"%s\"}%s\n", ceilings[i].name.c_str(),
                 ceilings[i].value, ceilings[i].unit.c_str(), i + 1 < ceilings.size() ? "," : "");
  std::fprintf(f, " ],\n \"results\": [\n");
  for (size_t i = 0; i < results.size(); ++i) {
    const measurement& m = results[i];
    std::fprintf(
        f,
        "  {\"variant\": \"%s\", \"mode\": \"%s\", \"slots\": \"%s\", \"context\": \"%s\", \"batch\": %d, "
        "\"rows\": %d, \"draft\": %d, \"heads\": %d, \"us\": %.3f, \"floor_us\": %.3f, \"memory_share\": %.4f, "
        "\"mma_share\": %.4f}%s\n",
        m.variant.c_str(), m.mode.c_str(), m.slots.c_str(), m.context.c_str(), m.batch, m.rows, m.draft, m.heads, m.us,
        m.floor_us, m.memory_share, m.mma_share, i + 1 < results.size() ? "," : "");
  }
  std::fprintf(f, " ]}\n");
  return std::fclose(f) == 0;
}

} // namespace verify_mla
