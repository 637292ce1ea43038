// Call ids, call classes and their names, all made from calls.def and classes.def. Constants only; safe in any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace capturesan::trace {

enum class call_id : std::uint16_t {
#define CALL(symbol, api, call_class, since, ...) symbol,
#include "calls.def"
  count,
};

enum class call_class : std::uint8_t {
#define CALL_CLASS(name, record, order, a, b, c) name,
#include "classes.def"
  count,
};

// When the shim records a call of a class; see classes.def.
enum class record_when : std::uint8_t { always, window, refused };
enum class order_at : std::uint8_t { entry, exit };

struct class_info {
  std::string_view name;
  record_when record;
  order_at order;
  std::string_view operands[3];
};

inline constexpr class_info class_table[] = {
#define CALL_CLASS(name, record, order, a, b, c) {#name, record_when::record, order_at::order, {a, b, c}},
#include "classes.def"
};

struct call_info {
  std::string_view symbol; // ABI name
  std::string_view api;    // documented name
  call_class cls;
  std::uint16_t since; // CUDA version, as in CUDA_VERSION
};

inline constexpr call_info call_table[] = {
#define CALL(symbol, api, call_class_, since, ...) {#symbol, #api, call_class::call_class_, since},
#include "calls.def"
};

inline constexpr std::size_t call_count = static_cast<std::size_t>(call_id::count);
inline constexpr std::size_t class_count = static_cast<std::size_t>(call_class::count);
static_assert(sizeof(call_table) / sizeof(call_table[0]) == call_count);
static_assert(sizeof(class_table) / sizeof(class_table[0]) == class_count);

// Events that are no driver calls: their ids follow those of the driver calls.
enum class foreign_id : std::uint16_t {
  before_first = static_cast<std::uint16_t>(call_count) - 1,
#define FOREIGN(symbol, words, call_class) symbol,
#include "foreign.def"
  end,
};
inline constexpr call_info foreign_table[] = {
#define FOREIGN(symbol, words, call_class_) {#symbol, words, call_class::call_class_, 0},
#include "foreign.def"
};

constexpr const call_info& info(call_id id) { return call_table[static_cast<std::size_t>(id)]; }
constexpr const class_info& info(call_class c) { return class_table[static_cast<std::size_t>(c)]; }

// True for the variants in which stream 0 is the calling thread's own default stream.
constexpr bool per_thread_variant(std::string_view symbol) {
  return symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
}

} // namespace capturesan::trace
