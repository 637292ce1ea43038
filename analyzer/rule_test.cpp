#include "analyzer/rule_test.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "analyzer/auditor.h"
#include "analyzer/cuda_results.h"
#include "analyzer/trace_builder.h"

namespace capturesan {

namespace {

using kind = yaml_node::kind;

// Stops a test that is itself wrong; caught in this file.
struct bad_test {
  const yaml_node* at;
  std::string why;
};

const trace::call_info* find_call(const std::string& name) {
  const trace::call_info* by_api = nullptr;
  for (const auto& c : trace::call_table) {
    if (c.symbol == name) return &c;
    if (by_api == nullptr && c.api == name) by_api = &c;
  }
  return by_api;
}

// Turns `given` into a trace. Names such as s1 or buf become handles and addresses far apart.
class scenario {
 public:
  explicit scenario(trace::trace_level level) : builder_(1000, level) {}

  void add(const yaml_node& n) {
    if (n.type != kind::map) throw bad_test{&n, "an event must be a map"};
    if (const auto* own = n.find("record")) {
      add_record(n, *own);
    } else {
      add_call(n);
    }
  }

  std::vector<std::byte> bytes() const { return builder_.bytes(); }

  // Which given event (from 1) happened at that time.
  int event_at(std::int64_t ns) const {
    for (std::size_t i = 0; i < spans_.size(); ++i)
      if (spans_[i].first <= ns && ns <= spans_[i].second) return static_cast<int>(i) + 1;
    return 0;
  }

 private:
  std::uint64_t handle(const std::string& name) {
    const auto [it, fresh] = names_.try_emplace(name, (names_.size() + 1) << 32);
    return it->second;
  }

  std::optional<std::uint64_t> integer(std::string_view s) {
    std::uint64_t n = 0;
    const bool hex = s.starts_with("0x");
    if (hex) s.remove_prefix(2);
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n, hex ? 16 : 10);
    if (error != std::errc{} || end != s.data() + s.size()) return std::nullopt;
    return n;
  }

  // 12, 0x10, a name, or name+12.
  std::uint64_t value(const yaml_node& n) {
    if (n.type != kind::scalar || n.text.empty()) throw bad_test{&n, "a value must be a number or a name"};
    if (const auto i = integer(n.text)) return *i;
    const auto plus = n.text.find('+');
    const std::uint64_t base = handle(n.text.substr(0, plus));
    if (plus == std::string::npos) return base;
    const auto more = integer(std::string_view(n.text).substr(plus + 1));
    if (!more) throw bad_test{&n, "what follows + must be a number"};
    return base + *more;
  }

  std::uint32_t thread(const yaml_node* n) {
    const std::string name = n == nullptr ? "t1" : n->text;
    const auto [it, fresh] = threads_.try_emplace(name, static_cast<std::uint32_t>(threads_.size() + 1));
    if (fresh) builder_.name_thread(it->second, name);
    return it->second;
  }

  std::uint64_t stream(const yaml_node& n) {
    if (n.text == "legacy") return 1;
    if (n.text == "per_thread") return 2;
    if (n.text == "null") return 0;
    return value(n);
  }

  static int result_of(const yaml_node& n) {
    int number = 0;
    const auto [end, error] = std::from_chars(n.text.data(), n.text.data() + n.text.size(), number);
    if (error == std::errc{} && end == n.text.data() + n.text.size()) return number;
    if (const auto named = result_by_name(n.text)) return *named;
    throw bad_test{&n, "'" + n.text + "' is no CUresult"};
  }

  void add_record(const yaml_node& n, const yaml_node& own) {
    std::uint64_t count = 1;
    std::string text = "cuSomething";
    for (const auto& [key, v] : n.entries) {
      if (key.text == "count") {
        count = value(v);
      } else if (key.text == "text") {
        text = v.text;
      } else if (key.text != "record") {
        throw bad_test{&key, "unknown key '" + key.text + "'"};
      }
    }
    const std::uint32_t t = thread(nullptr);
    if (own.text == "lost") {
      builder_.lost(t, count);
    } else if (own.text == "uncovered") {
      builder_.text(t, trace::text_role::uncovered, count, text);
    } else if (own.text == "deepbind") {
      builder_.text(t, trace::text_role::deepbind, count, text);
    } else if (own.text == "unsupported") {
      builder_.text(t, trace::text_role::unsupported, count, text);
    } else {
      throw bad_test{&own, "'" + own.text + "' is no record; use lost, uncovered, deepbind or unsupported"};
    }
    spans_.emplace_back(0, 0);
  }

  void add_call(const yaml_node& n) {
    const auto* name = n.find("call");
    if (name == nullptr) throw bad_test{&n, "an event needs `call`"};
    const trace::call_info* call = find_call(name->text);
    if (call == nullptr) {
      std::vector<std::string_view> apis;
      for (const auto& c : trace::call_table) apis.push_back(c.api);
      const std::string near = did_you_mean(name->text, apis);
      throw bad_test{name,
                     "there is no call '" + name->text + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?")};
    }
    built_call c;
    c.symbol = call->symbol;
    const std::uint32_t t = thread(n.find("thread"));
    const yaml_node* status = nullptr;
    for (const auto& [key, v] : n.entries) {
      if (key.text == "call" || key.text == "thread") continue;
      if (key.text == "status") {
        status = &v;
      } else if (key.text == "result") {
        c.result = result_of(v);
      } else if (key.text == "nodes") {
        add_nodes(t, v);
      } else if (key.text == "stack") {
        c.stack = stack(t, v.text);
      } else if (!operand(*call, key.text, v, c)) {
        throw bad_test{&key, fmt::format("{} has no '{}'", call->api, key.text)};
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
  bool operand(const trace::call_info& call, const std::string& key, const yaml_node& v, built_call& c) {
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

  std::uint64_t mode(const yaml_node& n) {
    for (const auto& [name, number] : {std::pair{"global", 0}, std::pair{"thread_local", 1}, std::pair{"relaxed", 2}})
      if (n.text == name) return static_cast<std::uint64_t>(number);
    return value(n);
  }

  std::uint32_t stack(std::uint32_t t, const std::string& name) {
    const auto id = static_cast<std::uint32_t>(handle("stack " + name) >> 32);
    const std::uint64_t addresses[] = {0x400000 + id * 0x100ull, 0x400010 + id * 0x100ull};
    builder_.stack(t, id, addresses);
    return id;
  }

  // `status: invalidated` for every open capture, or `status: {s1: invalidated, s2: active}`.
  void add_statuses(std::uint32_t t, const yaml_node& n) {
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

  void add_nodes(std::uint32_t t, const yaml_node& n) {
    if (n.type != kind::sequence) throw bad_test{&n, "`nodes` must be a list"};
    std::uint32_t index = 0;
    for (const auto& item : n.items) add_node(t, item, index++);
  }

  void add_node(std::uint32_t t, const yaml_node& n, std::uint32_t index) {
    const auto* type = n.find("type");
    if (type == nullptr) throw bad_test{&n, "a node needs `type`"};
    trace::node_record r{};
    r.index = index;
    r.node = handle(fmt::format("node {}", index));
    const auto at = [&](const char* key) {
      const auto* v = n.find(key);
      return v == nullptr ? std::uint64_t{0} : value(*v);
    };
    if (const auto* v = n.find("node")) r.node = value(*v);
    if (type->text == "memcpy") {
      r.type = trace::node_type::memcpy;
      r.value[0] = at("dst");
      r.value[1] = at("src");
      r.value[2] = at("bytes");
    } else if (type->text == "memset") {
      r.type = trace::node_type::memset;
      r.value[0] = at("dst");
      r.value[2] = at("bytes");
    } else if (type->text == "kernel") {
      r.type = trace::node_type::kernel;
      add_kernel(t, n, r);
      return;
    } else {
      throw bad_test{type, "a node is kernel, memcpy or memset"};
    }
    builder_.node(t, r);
  }

  // params: a name is an address of 8 bytes, a number an int of 4, a list a struct of 8-byte words.
  void add_kernel(std::uint32_t t, const yaml_node& n, trace::node_record& r) {
    std::vector<std::byte> block;
    std::vector<std::pair<std::uint16_t, std::uint16_t>> layout;
    const auto put = [&](std::uint64_t v, std::size_t size) {
      block.resize((block.size() + size - 1) / size * size);
      const std::size_t at = block.size();
      block.resize(at + size);
      std::memcpy(block.data() + at, &v, size);
      return static_cast<std::uint16_t>(at);
    };
    if (const auto* params = n.find("params")) {
      for (const auto& p : params->items) {
        if (p.type == kind::sequence) {
          const std::size_t before = (block.size() + 7) / 8 * 8;
          for (const auto& w : p.items) put(value(w), 8);
          layout.emplace_back(static_cast<std::uint16_t>(before), static_cast<std::uint16_t>(p.items.size() * 8));
        } else {
          const std::size_t size = integer(p.text) ? 4 : 8;
          const std::uint16_t at = put(value(p), size);
          layout.emplace_back(at, static_cast<std::uint16_t>(size));
        }
      }
    }
    const auto* function = n.find("function");
    const std::string name = function == nullptr ? "kernel" : function->text;
    r.value[0] = handle("function " + name);
    builder_.function(t, r.value[0], name, layout);
    builder_.node(t, r, block);
  }

  trace_builder builder_;
  std::map<std::string, std::uint64_t> names_;
  std::map<std::string, std::uint32_t> threads_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> open_; // captures: stream, begin
  std::vector<std::pair<std::int64_t, std::int64_t>> spans_;
};

std::string to_word(severity s) { return s == severity::error ? "error" : s == severity::warning ? "warning" : "note"; }
std::string to_word(confidence c) {
  return c == confidence::proved ? "proved" : c == confidence::likely ? "likely" : "suspected";
}

// Compares what was found with `expect` and says both in words.
class verdict {
 public:
  verdict(const yaml_node& expect, const std::vector<const finding*>& found, const scenario& s)
      : found_(found), scenario_(s) {
    if (expect.type == kind::scalar) {
      if (expect.text != "none") throw bad_test{&expect, "`expect` is none or a map"};
      wanted_ = "no finding";
      good_ = found.empty();
      return;
    }
    if (expect.type != kind::map) throw bad_test{&expect, "`expect` is none or a map"};
    for (const auto& [key, v] : expect.entries) check(key, v);
  }

  bool good() const { return good_; }
  std::string wanted() const { return wanted_; }
  std::string got() const {
    if (found_.empty()) return "no finding";
    const finding& f = *found_.front();
    return fmt::format("{} finding{}, first at event {}: {} {} '{}'", found_.size(), found_.size() == 1 ? "" : "s",
                       at(f), to_word(f.conf), to_word(f.sev), f.message);
  }

 private:
  int at(const finding& f) const { return scenario_.event_at(static_cast<std::int64_t>(f.time_s * 1e9 + 1.5)); }

  void check(const yaml_node& key, const yaml_node& v) {
    wanted_ += (wanted_.empty() ? "" : ", ") + key.text + " " + v.text;
    const finding* f = found_.empty() ? nullptr : found_.front();
    const auto same = [&](const std::string& is) { good_ = good_ && f != nullptr && is == v.text; };
    if (key.text == "findings") {
      good_ = good_ && std::to_string(found_.size()) == v.text;
    } else if (key.text == "at") {
      same(f == nullptr ? "" : std::to_string(at(*f)));
    } else if (key.text == "message_has") {
      good_ = good_ && f != nullptr && f->message.find(v.text) != std::string::npos;
    } else if (key.text == "severity") {
      same(f == nullptr ? "" : to_word(f->sev));
    } else if (key.text == "confidence") {
      same(f == nullptr ? "" : to_word(f->conf));
    } else if (key.text == "cascade") {
      same(f == nullptr ? "" : std::to_string(f->cascade.size()));
    } else if (key.text == "count") {
      same(f == nullptr ? "" : std::to_string(f->count));
    } else if (key.text == "after") {
      same(f == nullptr || f->after.empty() ? "no" : "yes");
    } else {
      throw bad_test{&key, "unknown key '" + key.text + "'"};
    }
  }

  const std::vector<const finding*>& found_;
  const scenario& scenario_;
  bool good_ = true;
  std::string wanted_;
};

rule_test_result run_one(const rule& r, const compiled_rules& rules, const yaml_node& test) {
  rule_test_result out;
  out.rule = r.about.id;
  out.at = r.source->position(test.at);
  try {
    for (const auto& [key, v] : test.entries) {
      if (key.text == "name") out.test = v.text;
      if (key.text == "todo") out.todo = v.text == "true";
      static constexpr std::string_view known[] = {"name", "given", "expect", "todo", "level"};
      if (std::find(std::begin(known), std::end(known), key.text) == std::end(known))
        throw bad_test{&key, "unknown key '" + key.text + "'"};
    }
    const auto* given = test.find("given");
    const auto* expect = test.find("expect");
    if (given == nullptr || given->type != kind::sequence)
      throw bad_test{&test, "a test needs `given`, a list of events"};
    if (expect == nullptr) throw bad_test{&test, "a test needs `expect`"};
    const auto* level = test.find("level");
    scenario s(level != nullptr && level->text == "full" ? trace::trace_level::full : trace::trace_level::lite);
    for (const auto& e : given->items) s.add(e);
    auditor a(rules, {});
    auto added = a.add_source(from_memory(s.bytes()), "test");
    if (!added) throw bad_test{&test, added.problems().front().message};
    a.finish();
    std::vector<const finding*> found;
    for (const finding& f : a.findings())
      if (f.rule == r.about.id) found.push_back(&f);
    const verdict v(*expect, found, s);
    out.expected = v.wanted();
    out.found = v.got();
    out.passed = v.good() != out.todo;
  } catch (const bad_test& b) {
    out.at = r.source->position(b.at->at);
    out.expected = "a test that can run";
    out.found = b.why;
    out.passed = false;
  }
  return out;
}

} // namespace

std::vector<rule_test_result> run_rule_tests(const rule& r, const compiled_rules& rules) {
  std::vector<rule_test_result> out;
  if (r.tests == nullptr) return out;
  for (const auto& t : r.tests->items) out.push_back(run_one(r, rules, t));
  return out;
}

} // namespace capturesan
