#include "analyzer/cli/dump_record.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>

#include "analyzer/report.h"
#include "trace/call.h"

namespace capturesan::cli {

namespace {

std::string_view role_name(trace::text_role role) {
  switch (role) {
#define TEXT_ROLE(name, value, meaning)                                                                                \
  case trace::text_role::name:                                                                                         \
    return #name;
    CAPTURESAN_TEXT_ROLES(TEXT_ROLE)
#undef TEXT_ROLE
  }
  return "unknown";
}

std::string_view kind_name(trace::record_kind kind) {
  switch (kind) {
#define RECORD(name, value, meaning)                                                                                   \
  case trace::record_kind::name:                                                                                       \
    return #name;
    CAPTURESAN_RECORDS(RECORD)
#undef RECORD
  }
  return "unknown";
}

struct node_names {
  std::string_view type;
  std::string_view values[4]; // names of value[], empty = unused; those of a kernel are unpacked instead
};

// In the order of trace::node_type.
constexpr node_names node_table[] = {
    {"kernel", {}},
    {"memcpy", {"dst", "src", "bytes", "flags"}},
    {"memset", {"dst", "value", "bytes"}},
    {"host", {"function", "user_data"}},
    {"graph", {"child"}},
    {"empty", {}},
    {"wait_event", {"event"}},
    {"event_record", {"event"}},
    {"ext_semas_signal", {}},
    {"ext_semas_wait", {}},
    {"mem_alloc", {"address", "bytes"}},
    {"mem_free", {"address"}},
    {"batch_mem_op", {}},
    {"conditional", {}},
};
static_assert(std::size(node_table) == static_cast<std::size_t>(trace::node_type::conditional) + 1);

std::string bytes_text(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return text;
}

std::string chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Three dimensions in one operand: kernel nodes and launches pack them alike (event.h).
std::string grid_text(std::uint64_t grid) {
  return fmt::format("{},{},{}", grid & 0xffffffff, (grid >> 32) & 0xffff, grid >> 48);
}

std::string block_text(std::uint64_t block) {
  return fmt::format("{},{},{}", block & 0xffff, (block >> 16) & 0xffff, (block >> 32) & 0xffff);
}

dump_line describe_node(const side_record& record) {
  const auto node = record.as<trace::node_record>();
  dump_line line{"node", {}};
  line.number("index", node.index);
  const auto type = static_cast<std::size_t>(node.type);
  line.text("type", type < std::size(node_table) ? std::string(node_table[type].type) : std::to_string(type));
  if (node.parent) line.number("inside", node.parent - 1);
  line.hex("node", node.node);
  if (node.type == trace::node_type::kernel) {
    const std::uint64_t grid = node.value[1], block = node.value[2];
    line.hex("function", node.value[0]);
    if (node.value[3] != 0) line.hex("kernel", node.value[3]);
    line.text("grid", grid_text(grid));
    line.text("block", block_text(block));
    line.number("shared_kib", block >> 48);
    line.text("params", bytes_text(record.payload(sizeof(trace::node_record), node.bytes)));
  } else if (type < std::size(node_table)) {
    for (std::size_t i = 0; i < std::size(node_table[type].values); ++i) {
      if (!node_table[type].values[i].empty()) line.hex(node_table[type].values[i], node.value[i]);
    }
  }
  return line;
}

dump_line describe_function(const side_record& record) {
  const auto head = record.as<trace::payload_record>();
  const auto payload = record.payload(sizeof head, head.bytes);
  dump_line line{"function", {}};
  line.hex("function", head.key);
  const std::size_t layout = std::min(payload.size(), std::size_t{head.aux} * 4);
  line.text("name", chars(payload.subspan(layout)));
  line.number("bytes", head.id);
  std::string places;
  for (std::size_t at = 0; at + 4 <= layout; at += 4) {
    std::uint16_t place[2];
    std::memcpy(place, payload.data() + at, sizeof place);
    places += fmt::format("{}{}+{}", places.empty() ? "" : ",", place[0], place[1]);
  }
  line.text("params", places);
  return line;
}

// Facts about the whole process are printed once, at its head.
bool told_already(const side_record& record, const traced_process& process) {
  if (record.kind != trace::record_kind::text) return false;
  const auto head = record.as<trace::payload_record>();
  const std::string text = chars(record.payload(sizeof head, head.bytes));
  return std::any_of(process.texts.begin(), process.texts.end(), [&](const traced_text& known) {
    return known.role == static_cast<trace::text_role>(head.aux) && known.key == head.key && known.text == text;
  });
}

dump_line describe_side(const side_record& record) {
  dump_line line{kind_name(record.kind), {}};
  switch (record.kind) {
  case trace::record_kind::node:
    return describe_node(record);
  case trace::record_kind::function:
    return describe_function(record);
  case trace::record_kind::capture_status: {
    const auto status = record.as<trace::capture_status_record>();
    static constexpr std::string_view names[] = {"none", "active", "invalidated"};
    const auto value = static_cast<std::size_t>(status.status);
    line.text("status", std::string(value < std::size(names) ? names[value] : "unknown"));
    line.hex("stream", status.stream);
    break;
  }
  case trace::record_kind::text: {
    const auto head = record.as<trace::payload_record>();
    line.text("role", std::string(role_name(static_cast<trace::text_role>(head.aux))));
    line.hex("key", head.key);
    line.text("text", chars(record.payload(sizeof head, head.bytes)));
    break;
  }
  case trace::record_kind::params: {
    const auto head = record.as<trace::payload_record>();
    line.hex("function", head.key);
    line.text("params", bytes_text(record.payload(sizeof head, head.bytes)));
    break;
  }
  default:
    break;
  }
  return line;
}

std::string_view state_name(trace::process_state state) {
  if (state == trace::process_state::ended) return "ended";
  return state == trace::process_state::replaced ? "replaced" : "running";
}

std::string_view driver_name(trace::driver_kind driver) {
  if (driver == trace::driver_kind::real) return "real";
  return driver == trace::driver_kind::simulated ? "simulated" : "unknown";
}

std::string flag_text(std::uint8_t flags) {
  static constexpr std::string_view names[] = {"in_window", "eager_first", "truncated", "unfinished", "untimed"};
  std::string text;
  for (std::size_t bit = 0; bit < std::size(names); ++bit) {
    if (flags >> bit & 1) text += fmt::format("{}{}", text.empty() ? "" : ",", names[bit]);
  }
  return text;
}

} // namespace

void dump_line::hex(std::string_view key, std::uint64_t value) { fields.push_back({key, fmt::format("{:#x}", value)}); }

namespace {

// In quotes, with a backslash before what would end them, where the bare text could be misread.
std::string quoted(const std::string& value) {
  if (!value.empty() && value.find_first_of(" \"=\\") == std::string::npos) return printable(value);
  std::string escaped;
  for (const char c : value) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return '"' + printable(escaped) + '"';
}

} // namespace

std::string to_text(const dump_line& line) {
  std::string text(line.kind);
  for (const dump_field& field : line.fields) {
    text += fmt::format(" {}={}", field.key, quoted(field.value));
  }
  return text;
}

std::string to_json(const dump_line& line) {
  nlohmann::ordered_json out = {{"kind", line.kind}};
  for (const dump_field& field : line.fields) {
    auto& value = out[std::string(field.key)];
    if (field.number) {
      value = std::stoull(field.value);
    } else {
      value = field.value;
    }
  }
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::vector<dump_line> describe_process(const traced_process& process) {
  std::vector<dump_line> lines(1);
  dump_line& head = lines.front();
  head.kind = "process";
  head.number("pid", process.pid);
  head.number("parent", process.parent_pid);
  head.text("level", process.level == trace::trace_level::full ? "full" : "lite");
  head.text("driver", std::string(driver_name(process.driver)));
  head.text("version", process.driver_string);
  head.text("device", process.device);
  head.text("state", std::string(state_name(process.state)));
  head.number("lost", process.lost);
  head.text("complete", process.truncated || process.lost ? "no" : "yes");
  for (const auto& [index, thread] : process.threads) {
    dump_line line{"thread", {}};
    line.number("pid", process.pid);
    line.number("thread", index);
    line.number("tid", thread.tid);
    line.text("name", thread.name);
    lines.push_back(std::move(line));
  }
  for (const traced_text& text : process.texts) {
    dump_line line{"text", {}};
    line.number("pid", process.pid);
    line.text("role", std::string(role_name(text.role)));
    line.hex("key", text.key);
    line.text("text", text.text);
    lines.push_back(std::move(line));
  }
  return lines;
}

dump_line record_describer::describe_stack(const traced_process& process, std::uint32_t id) const {
  dump_line line{"stack", {}};
  line.number("pid", process.pid);
  line.number("stack", id);
  std::string frames;
  for (const std::uint64_t address : process.stack(id)) {
    if (!frames.empty()) frames += ' ';
    if (const traced_module* module = process.module_at(address)) {
      frames += fmt::format("{}+{:#x}", module->path.substr(module->path.rfind('/') + 1), address - module->bias);
    } else {
      frames += fmt::format("{:#x}", address);
    }
  }
  line.text("frames", std::move(frames));
  return line;
}

dump_line record_describer::describe_event(const merged_event& merged) const {
  const trace::event& event = merged.cursor->current();
  const traced_process& process = merged.file->process();
  dump_line line{"event", {}};
  line.text("time", fmt::format("{:+.9f}", static_cast<double>(merged.at_ns - start_ns_) / 1e9));
  line.number("pid", process.pid);
  line.number("thread", merged.cursor->thread_index());
  line.text("call", merged.call->symbol);
  line.text("result", std::to_string(event.result));
  if (event.stream) line.hex("stream", event.stream);
  const trace::class_info& cls = trace::info(merged.call->cls);
  for (std::size_t i = 0; i < std::size(cls.operands); ++i) {
    const std::string_view name = cls.operands[i];
    if (name == "grid") {
      line.text(name, grid_text(event.arg[i]));
    } else if (name == "block") {
      line.text(name, block_text(event.arg[i]));
    } else if (!name.empty()) {
      line.hex(name, event.arg[i]);
    }
  }
  if (event.stack) line.number("stack", event.stack);
  if (event.flags) line.text("flags", flag_text(event.flags));
  return line;
}

std::vector<dump_line> record_describer::describe(const merged_event& merged) {
  std::vector<dump_line> lines;
  traced_process& process = merged.file->process();
  merged.cursor->each_side_record([&](const side_record& record) {
    if (!told_already(record, process)) lines.push_back(describe_side(record));
  });
  const std::uint32_t stack = merged.cursor->current().stack;
  if (stack && stacks_.insert({&process, stack}).second) lines.push_back(describe_stack(process, stack));
  lines.push_back(describe_event(merged));
  return lines;
}

} // namespace capturesan::cli
