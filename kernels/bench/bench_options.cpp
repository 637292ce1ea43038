#include "bench_options.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace verify_mla {
namespace {

const char USAGE[] =
    "usage: verify_bench [--contexts N,..] [--batch N,..] [--rows N,..] [--variant NAME,..] [--mode "
    "graph|launch|both]\n"
    "                    [--slots random|contiguous|both] [--ragged] [--ceilings] [--json FILE] [--budget-ms N]\n"
    "                    [--min-tiles N] [--granules N] [--narrow] [--no-pdl] [--old-prefix] [--demo]\n"
    "variants: balanced, balanced-fp32, fixed16, fixed64, eager\n"
    "--demo captures a step of one variant, replays it with other contents and compares with an oracle\n"
    "--variant eager --mode graph puts each step of the naive path into a capture and prints what refused it\n";

const variant_option VARIANTS[] = {{"balanced", VERIFY_MLA_BALANCED, 0},
                                   {"balanced-fp32", VERIFY_MLA_BALANCED, VERIFY_MLA_PARTIAL_F32},
                                   {"fixed16", VERIFY_MLA_FIXED_SPLIT_16, 0},
                                   {"fixed64", VERIFY_MLA_FIXED_SPLIT_64, 0},
                                   {"eager", VERIFY_MLA_EAGER, 0}};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  size_t from = 0;
  while (true) {
    const size_t comma = text.find(',', from);
    parts.push_back(text.substr(from, comma - from));
    if (comma == std::string::npos) return parts;
    from = comma + 1;
  }
}

bool parse_numbers(const std::string& text, std::vector<int>& out) {
  out.clear();
  for (const std::string& part : split(text)) {
    char* end = nullptr;
    const long n = std::strtol(part.c_str(), &end, 10);
    if (part.empty() || *end != 0 || n < 0 || n > 100000000) return false;
    out.push_back(static_cast<int>(n));
  }
  return !out.empty();
}

bool parse_choice(const std::string& text, const char* no, const char* yes, std::vector<bool>& out) {
  if (text == "both") return out = {false, true}, true;
  if (text == no) return out = {false}, true;
  if (text == yes) return out = {true}, true;
  return false;
}

bool parse_variants(const std::string& text, std::vector<variant_option>& out) {
  out.clear();
  for (const std::string& name : split(text)) {
    bool found = false;
    for (const variant_option& v : VARIANTS)
      if (v.name == name) out.push_back(v), found = true;
    if (!found) return false;
  }
  return true;
}

bool parse_number(const std::string& text, int& out) {
  std::vector<int> numbers;
  if (!parse_numbers(text, numbers) || numbers.size() != 1) return false;
  out = numbers[0];
  return true;
}

bool parse_one(const std::string& name, const std::string& value, bench_options& o) {
  int number = 0;
  if (name == "--contexts") return parse_numbers(value, o.contexts);
  if (name == "--batch") return parse_numbers(value, o.batches);
  if (name == "--rows") {
    if (!parse_numbers(value, o.rows)) return false;
    for (int r : o.rows)
      if (r < 8 || r % (r > 512 ? 64 : 8) != 0 || r > 4096) return false; // 8 heads, or 64 beyond 512 rows
    return true;
  }
  if (name == "--variant") return parse_variants(value, o.variants);
  if (name == "--mode") return parse_choice(value, "launch", "graph", o.modes);
  if (name == "--slots") return parse_choice(value, "random", "contiguous", o.slot_orders);
  if (name == "--json") return o.json = value, !value.empty();
  if (name == "--min-tiles") return parse_number(value, o.min_tiles);
  if (name == "--granules") return parse_number(value, o.granules);
  if (name == "--budget-ms") return parse_number(value, number) && (o.budget_ms = number, true);
  return false;
}

} // namespace

bool parse_options(int argc, char** argv, bench_options& o) {
  o.variants = {VARIANTS[0]};
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--ragged")
      o.ragged = true;
    else if (name == "--ceilings")
      o.gathers = true;
    else if (name == "--demo")
      o.demo = true;
    else if (name == "--narrow")
      o.flags |= VERIFY_MLA_NARROW;
    else if (name == "--old-prefix")
      o.flags |= VERIFY_MLA_OLD_PREFIX;
    else if (name == "--no-pdl")
      o.flags |= VERIFY_MLA_NO_PDL;
    else if (i + 1 < argc && parse_one(name, argv[i + 1], o))
      ++i;
    else {
      std::fprintf(stderr, "verify_bench: cannot use '%s'\n%s", argv[i], USAGE);
      return false;
    }
  }
  for (const variant_option& v : o.variants)
    for (bool graph : o.modes) o.eager_in_graph |= graph && v.variant == VERIFY_MLA_EAGER;
  if (o.demo && (o.variants.size() > 1 || o.variants[0].variant == VERIFY_MLA_EAGER)) {
    std::fprintf(stderr, "verify_bench: --demo shows one variant, and not the eager one: that is --mode graph\n");
    return false;
  }
  if (o.eager_in_graph && o.variants.size() > 1) {
    std::fprintf(stderr, "verify_bench: the eager variant cannot be captured; run it alone or with --mode launch\n");
    return false;
  }
  return true;
}

} // namespace verify_mla
