// Command line of verify_bench.
#pragma once

#include "verify_mla.h"

#include <cstdint>
#include <string>
#include <vector>

namespace verify_mla {

struct variant_option {
  std::string name;
  int variant;
  uint32_t flags;
};

struct bench_options {
  std::vector<int> contexts = {1024, 4096, 16384, 65536, 200000}; // prefix tokens per request
  std::vector<int> batches = {1, 2, 4, 8};
  std::vector<int> rows = {8, 16, 32, 64, 72, 128, 576, 2304}; // draft tokens x heads
  std::vector<variant_option> variants;
  std::vector<bool> modes = {true};        // true: graph replay, false: launches
  std::vector<bool> slot_orders = {false}; // true: contiguous pool slots
  uint32_t flags = 0;
  int min_tiles = 0;
  int granules = 0;
  int64_t rotate_bytes = 320 << 20;
  double budget_ms = 40; // per measurement
  bool gathers = false;
  bool ragged = false;
  bool eager_in_graph = false;
  bool demo = false;
  std::string json;
};

// False, after a message on stderr, if the arguments make no sense.
bool parse_options(int argc, char** argv, bench_options& options);

} // namespace verify_mla
