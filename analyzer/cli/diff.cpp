#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unistd.h>

#include "analyzer/cli/command.h"
#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/cli/trace_folder.h"
#include "analyzer/graph_diff.h"
#include "analyzer/report.h"
#include "analyzer/symbols.h"

namespace capturesan::cli {

namespace {

namespace fs = std::filesystem;

// TRACE or TRACE#GRAPH.
struct side {
  std::string path;
  int graph = 0; // 0 = the only one, or the last
};

struct loaded {
  std::vector<std::unique_ptr<trace_file>> files; // own what the copies point to
  std::unique_ptr<model> state;
  std::map<int, graph_copy> graphs;
};

std::optional<side> parse(const std::string& word) {
  side s{word, 0};
  std::error_code error;
  const auto hash = word.rfind('#');
  if (hash == std::string::npos || fs::exists(word, error)) return s;
  const char* end = word.data() + word.size();
  const auto [stop, bad] = std::from_chars(word.data() + hash + 1, end, s.graph);
  if (bad != std::errc{} || stop != end || s.graph <= 0) return std::nullopt;
  s.path = word.substr(0, hash);
  return s;
}

result<std::unique_ptr<loaded>> load(const std::string& path) {
  std::error_code error;
  std::vector<std::string> paths{path};
  if (fs::is_directory(path, error)) paths = trace_files_in(path);
  if (paths.empty()) return problem{{path}, "TRC006", "no trace file in this folder", "", ""};
  auto out = std::make_unique<loaded>();
  out->state = std::make_unique<model>();
  out->state->keep_parameters = true;
  out->state->on_exec = [&graphs = out->graphs](process_state&, const exec_state& x) {
    graph_copy& g = graphs[x.id];
    g = {x.id, x.place, x.nodes, x.pointers};
  };
  merger order;
  for (const std::string& p : paths) {
    auto bytes = open_file(p);
    if (!bytes) return bytes.problems();
    auto file = trace_file::open(std::move(bytes.value()), p);
    if (!file) return file.problems();
    out->files.push_back(std::move(file.value()));
    while (out->files.back()->refresh() > 0) {
    }
    out->state->add(*out->files.back());
    order.add(*out->files.back());
  }
  event_view view;
  order.collect();
  order.drain(merger::no_horizon, [&](const merged_event& e) { out->state->apply(e, view); });
  for (const auto& p : out->state->processes())
    for (const auto& [handle, x] : p->execs) out->state->on_exec(*p, *x);
  return out;
}

const graph_copy* choose(const loaded& from, const side& s) {
  if (from.graphs.empty()) {
    say(fmt::format("diff: {} has no executable graph", s.path));
    return nullptr;
  }
  if (s.graph == 0) return &from.graphs.rbegin()->second;
  const auto it = from.graphs.find(s.graph);
  if (it != from.graphs.end()) return &it->second;
  say(fmt::format("diff: {} has no graph {}; its graphs are 1 to {}", s.path, s.graph, from.graphs.rbegin()->first));
  return nullptr;
}

std::string line(const graph_difference& d, symbolizer& names) {
  if (d.what == graph_difference::kind::topology && d.node_type.empty())
    return fmt::format("topology: {} -> {}\n", d.before, d.after);
  std::string text = fmt::format("node {} ({}{}{})", d.node, d.node_type, d.kernel.empty() ? "" : " ",
                                 d.kernel.empty() ? "" : printable(names.demangle(d.kernel)));
  if (d.parameter >= 0) text += fmt::format(", parameter {}", d.parameter);
  if (d.offset != 0) text += fmt::format(", byte {:#x}", d.offset);
  return text + fmt::format(": {}: {} -> {}\n", name_of(d.what), printable(d.before), printable(d.after));
}

} // namespace

int diff_command(const invocation& in) {
  if (in.arguments.size() != 2) {
    say("diff: two graphs are needed: diff TRACE[#GRAPH] TRACE[#GRAPH]");
    return exit_usage;
  }
  const auto first = parse(in.arguments[0]), second = parse(in.arguments[1]);
  if (!first || !second) {
    say(fmt::format("diff: what follows # must be the number of a graph: {}", in.arguments[first ? 1 : 0]));
    return exit_usage;
  }
  auto one = load(first->path);
  if (!one) {
    complain(one.problems());
    return exit_usage;
  }
  const bool same = first->path == second->path;
  auto other = same ? result<std::unique_ptr<loaded>>(std::unique_ptr<loaded>()) : load(second->path);
  if (!other) {
    complain(other.problems());
    return exit_usage;
  }
  const loaded& b_side = same ? *one.value() : *other.value();
  const graph_copy* a = choose(*one.value(), *first);
  const graph_copy* b = choose(b_side, *second);
  if (a == nullptr || b == nullptr) return exit_usage;
  const auto found = compare_graphs(*a, *b, same);
  if (in.options.text("format") == "json") {
    auto list = nlohmann::ordered_json::array();
    for (const auto& d : found) {
      list.push_back({{"what", name_of(d.what)},
                      {"node", d.node},
                      {"node_type", d.node_type},
                      {"kernel", d.kernel},
                      {"parameter", d.parameter},
                      {"offset", d.offset},
                      {"before", d.before},
                      {"after", d.after}});
    }
    write_all(STDOUT_FILENO, list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else {
    symbols names;
    std::string text;
    for (const auto& d : found) text += line(d, names);
    text += fmt::format("{} difference{} between graph {} and graph {} ({} nodes)\n", found.size(),
                        found.size() == 1 ? "" : "s", a->id, b->id, a->nodes.size());
    write_all(STDOUT_FILENO, text);
  }
  return found.empty() ? exit_ok : exit_findings;
}

} // namespace capturesan::cli
