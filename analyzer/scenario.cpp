#include "analyzer/scenario.h"

#include <charconv>

#include <fmt/format.h>

#include "analyzer/cuda_results.h"
#include "analyzer/fields.h"

namespace capturesan {

namespace {

using kind = yaml_node::kind;

const trace::call_info* find_call(const std::string& name) {
  const trace::call_info* by_api = nullptr;
  for (const auto& c : trace::call_table) {
    if (c.symbol == name) return &c;
    if (by_api == nullptr && c.api == name) by_api = &c;
  }
  for (const auto& c : trace::foreign_table)
    if (c.symbol == name) return &c;
  return by_api;
}

bad_test no_operand(const trace::call_info& call, const yaml_node& key) {
  std::vector<std::string_view> keys{"call", "thread", "stream", "result", "status", "stack", "nodes"};
  std::string operands;
  for (const std::string_view name : trace::info(call.cls).operands) {
    if (name.empty()) continue;
    keys.push_back(name);
    operands += (operands.empty() ? "" : " ") + std::string(name);
  }
  const std::string near = did_you_mean(key.text, keys);
  return {&key, fmt::format("{} has no '{}'", call.api, key.text),
          !near.empty()      ? "did you mean '" + near + "'?"
          : operands.empty() ? "it has no operands"
                             : "its operands are: " + operands};
}

int result_of(const yaml_node& n) {
  int number = 0;
  const auto [end, error] = std::from_chars(n.text.data(), n.text.data() + n.text.size(), number);
  if (error == std::errc{} && end == n.text.data() + n.text.size()) return number;
  if (const auto named = result_by_name(n.text)) return *named;
  const std::string near = did_you_mean(n.text, result_names());
  throw bad_test{&n, "'" + n.text + "' is no result of a call",
                 near.empty() ? "write a number or a CUDA_ERROR_ name" : "did you mean '" + near + "'?"};
}

trace::process_state state_of(const yaml_node& n) {
  if (n.text == "running") return trace::process_state::running;
  if (n.text == "ended") return trace::process_state::ended;
  if (n.text == "replaced") return trace::process_state::replaced;
  throw bad_test{&n, "a process is running, ended or replaced"};
}

} // namespace

std::optional<std::uint64_t> scenario_integer(std::string_view s) {
  std::uint64_t n = 0;
  const bool hex = s.starts_with("0x");
  if (hex) s.remove_prefix(2);
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n, hex ? 16 : 10);
  if (error != std::errc{} || end != s.data() + s.size()) return std::nullopt;
  return n;
}

void scenario::add(const yaml_node& n) {
  if (n.type != kind::map) throw bad_test{&n, "an event must be a map", "such as {call: cuInit}"};
  std::uint64_t times = 1;
  if (const auto* repeat = n.find("repeat")) times = value(*repeat);
  const auto* group = n.find("events");
  for (iteration_ = 0; iteration_ < times; ++iteration_) {
    if (group == nullptr) {
      add_one(n);
      continue;
    }
    for (const auto& item : group->items) {
      if (item.find("repeat") != nullptr || item.find("events") != nullptr)
        throw bad_test{&item, "an event of `events` happens once each time"};
      add_one(item);
    }
  }
}

void scenario::add_one(const yaml_node& n) {
  if (const auto* own = n.find("record")) {
    add_record(n, *own);
  } else {
    add_call(n);
  }
}

int scenario::event_at(std::int64_t ns) const {
  for (std::size_t i = 0; i < spans_.size(); ++i)
    if (spans_[i].first <= ns && ns <= spans_[i].second) return static_cast<int>(i) + 1;
  return 0;
}

std::uint64_t scenario::handle(const std::string& name) {
  const auto [it, fresh] = names_.try_emplace(name, (names_.size() + 1) << 32);
  return it->second;
}

// 12, 0x10, a name, or name+12. In an event that is repeated, name# is another name each time.
std::uint64_t scenario::value(const yaml_node& n) {
  if (n.type != kind::scalar || n.text.empty()) throw bad_test{&n, "a value must be a number or a name"};
  if (const auto i = scenario_integer(n.text)) return *i;
  const auto plus = n.text.find('+');
  std::string name = n.text.substr(0, plus);
  if (name.ends_with('#')) name += std::to_string(iteration_);
  const std::uint64_t base = handle(name);
  if (plus == std::string::npos) return base;
  const auto more = scenario_integer(std::string_view(n.text).substr(plus + 1));
  if (!more) throw bad_test{&n, "what follows + must be a number"};
  return base + *more;
}

std::uint32_t scenario::thread(const yaml_node* n) {
  const std::string name = n == nullptr ? "t1" : n->text;
  const auto [it, fresh] = threads_.try_emplace(name, static_cast<std::uint32_t>(threads_.size() + 1));
  if (fresh) builder_.name_thread(it->second, name);
  return it->second;
}

std::uint64_t scenario::stream(const yaml_node& n) {
  if (n.text == "legacy") return 1;
  if (n.text == "per_thread") return 2;
  if (n.text == "null") return 0;
  return value(n);
}

std::uint64_t scenario::mode(const yaml_node& n) {
  for (const auto& [name, number] : {std::pair{"global", 0}, std::pair{"thread_local", 1}, std::pair{"relaxed", 2}})
    if (n.text == name) return static_cast<std::uint64_t>(number);
  return value(n);
}

std::uint32_t scenario::stack(std::uint32_t t, const std::string& name) {
  const auto id = static_cast<std::uint32_t>(handle("stack " + name) >> 32);
  const std::uint64_t addresses[] = {0x400000 + id * 0x100ull, 0x400010 + id * 0x100ull};
  builder_.stack(t, id, addresses);
  return id;
}

void scenario::add_record(const yaml_node& n, const yaml_node& own) {
  std::uint64_t count = 1;
  std::string text = "cuSomething";
  std::uint32_t t = 0;
  for (const auto& [key, v] : n.entries) {
    if (key.text == "count") {
      count = value(v);
    } else if (key.text == "text") {
      text = v.text;
    } else if (key.text == "thread") {
      t = thread(&v);
    } else if (key.text == "driver_version") {
      builder_.header().driver_version = static_cast<std::uint32_t>(value(v));
    } else if (key.text == "state") {
      builder_.header().state = state_of(v);
    } else if (key.text != "record") {
      throw bad_test{&key, "a record has no '" + key.text + "'",
                     "its keys are: record count text thread driver_version state"};
    }
  }
  if (t == 0) t = thread(nullptr);
  if (own.text == "lost") {
    builder_.lost(t, count);
  } else if (own.text == "uncovered") {
    builder_.text(t, trace::text_role::uncovered, count, text);
  } else if (own.text == "deepbind") {
    builder_.text(t, trace::text_role::deepbind, count, text);
  } else if (own.text == "cupti_held") {
    builder_.text(t, trace::text_role::cupti_holder, count, text);
  } else if (own.text == "unsupported") {
    builder_.text(t, trace::text_role::unsupported, count, text);
  } else if (own.text == "suppression") {
    suppressions_.push_back({text, count});
  } else if (own.text == "thread_end") {
    builder_.thread_end(t);
  } else if (own.text != "process") {
    throw bad_test{&own, "'" + own.text + "' is no record"}; // the loader has said so, with the words there are
  }
  spans_.emplace_back(0, 0);
}

void scenario::add_call(const yaml_node& n) {
  const auto* name = n.find("call");
  if (name == nullptr) throw bad_test{&n, "key 'call' is missing", "an event is a call, or a record"};
  const trace::call_info* call = find_call(name->text);
  if (call == nullptr) {
    std::vector<std::string_view> apis;
    for (const auto& c : trace::call_table) apis.push_back(c.api);
    const std::string near = did_you_mean(name->text, apis);
    throw bad_test{name, "there is no call '" + name->text + "'",
                   near.empty() ? "docs/calls.md lists them" : "did you mean '" + near + "'?"};
  }
  built_call c;
  c.symbol = call->symbol;
  const std::uint32_t t = thread(n.find("thread"));
  const yaml_node* status = nullptr;
  for (const auto& [key, v] : n.entries) {
    if (key.text == "call" || key.text == "thread" || key.text == "repeat") continue;
    if (key.text == "status") {
      status = &v;
    } else if (key.text == "result") {
      c.result = result_of(v);
    } else if (key.text == "nodes") {
      add_nodes(t, v);
    } else if (key.text == "edges") {
      add_edges(t, v);
    } else if (key.text == "table") {
      add_table(t, v);
    } else if (key.text == "took") {
      c.begin = builder_.now() + 1000;
      c.end = c.begin + value(v);
    } else if (key.text == "stack") {
      c.stack = stack(t, v.text);
    } else if (!operand(*call, key.text, v, c)) {
      throw no_operand(*call, key);
    }
  }
  if (status != nullptr) add_statuses(t, *status);
  const std::uint64_t begin = builder_.call(t, c);
  spans_.emplace_back(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(builder_.now()));
  if (c.result == 0 && call->cls == trace::call_class::capture_begin) open_.emplace_back(c.stream, begin);
  if (call->cls == trace::call_class::capture_end && c.result != 903) {
    std::erase_if(open_, [&](const auto& o) { return o.first == c.stream; });
  }
}

// Operands by their names in classes.def; `stream` is the stream passed unless the class makes a stream.
bool scenario::operand(const trace::call_info& call, const std::string& key, const yaml_node& v, built_call& c) {
  const auto& names = trace::info(call.cls).operands;
  for (std::size_t i = 0; i < 3; ++i) {
    if (names[i] != key) continue;
    c.arg[i] = key == "mode" ? mode(v) : value(v);
    return true;
  }
  if (key != "stream") return false;
  c.stream = stream(v);
  return true;
}

// `status: invalidated` for every open capture, or `status: {s1: invalidated, s2: active}`.
void scenario::add_statuses(std::uint32_t t, const yaml_node& n) {
  const auto parse = [](const yaml_node& v) {
    if (v.text == "active") return trace::capture_status::active;
    if (v.text == "invalidated") return trace::capture_status::invalidated;
    if (v.text == "none") return trace::capture_status::none;
    throw bad_test{&v, "a status is active, invalidated or none"};
  };
  for (const auto& [s, begin] : open_) {
    if (n.type == kind::scalar) {
      builder_.status(t, s, begin, parse(n));
      continue;
    }
    for (const auto& [key, v] : n.entries)
      if (stream(key) == s) builder_.status(t, s, begin, parse(v));
  }
}

} // namespace capturesan
