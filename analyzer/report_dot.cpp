// The graphs for Graphviz: one cluster for each executable graph, its nodes in the driver's order, findings in red.
// A trace does not hold the dependencies between nodes, so there are no edges, and the picture says so.
#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>

#include "analyzer/report_places.h"

namespace capturesan {

namespace {

constexpr std::size_t most_graphs = 100, most_nodes = 200; // in all; of one graph
constexpr std::size_t most_label_bytes = 120;

// The inside of a double-quoted string; `\n` there is a line break, so backslashes are doubled.
std::string dot_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string label(std::string_view text) { return printable(text, most_label_bytes); }

using node_findings = std::map<std::uint32_t, std::vector<const finding*>>;

void write_node(std::string& out, int graph, const graph_node& node, const node_findings& bad) {
  std::string text = fmt::format("{} {}", node.index, label(node.type));
  if (!node.kernel.empty()) text += ": " + label(node.kernel);
  if (!node.enabled) text += " (disabled)";
  const auto found = bad.find(node.index);
  std::string style;
  if (found != bad.end()) {
    std::string rules, tip;
    for (const finding* f : found->second) {
      rules += " " + label(f->rule);
      tip += (tip.empty() ? "" : "; ") + message_of(*f);
    }
    text += " -" + rules;
    style =
        fmt::format(", color=red, fontcolor=red, penwidth=2, tooltip={}", dot_text(printable(tip, most_message_bytes)));
  } else if (!node.enabled) {
    style = ", color=gray, fontcolor=gray";
  }
  fmt::format_to(std::back_inserter(out), "    g{}n{} [label={}{}];\n", graph, node.index, dot_text(text), style);
}

void write_graph(std::string& out, const graph_summary& graph, const std::vector<const finding*>& findings) {
  node_findings bad;
  std::string whole;
  for (const finding* found : findings) {
    if (found->pointers.empty()) whole += " " + label(found->rule);
    for (const pointer_ref& pointer : found->pointers) {
      auto& list = bad[pointer.node];
      if (list.empty() || list.back() != found) list.push_back(found);
    }
  }
  std::string title = fmt::format("graph {}: {} nodes, {} replays", graph.id, graph.nodes, graph.replays);
  if (graph.capture > 0) title += fmt::format(", from capture {}", graph.capture);
  if (!whole.empty()) title += " -" + whole;
  const auto text = std::back_inserter(out);
  fmt::format_to(text, "  subgraph cluster_{} {{\n    label={};\n", graph.id, dot_text(title));
  if (!findings.empty()) out += "    color=red;\n    fontcolor=red;\n";
  std::size_t drawn = 0, left_out = 0;
  std::string before;
  for (const graph_node& node : graph.listed) {
    if (drawn >= most_nodes && !bad.count(node.index)) {
      ++left_out;
      continue;
    }
    ++drawn;
    write_node(out, graph.id, node, bad);
    const std::string name = fmt::format("g{}n{}", graph.id, node.index);
    if (!before.empty()) fmt::format_to(text, "    {} -> {} [style=invis];\n", before, name);
    before = name;
  }
  left_out += graph.nodes > graph.listed.size() ? graph.nodes - graph.listed.size() : 0;
  if (drawn == 0 || left_out) {
    fmt::format_to(text, "    g{}more [shape=plaintext, label=\"{} nodes are not drawn\"];\n", graph.id, left_out);
  }
  out += "  }\n";
}

} // namespace

std::string write_dot(const report_data& data, const report_style&) {
  std::map<int, std::vector<const finding*>> by_graph;
  for (const finding* found : shown_findings(data)) {
    if (found->graph) by_graph[found->graph->id].push_back(found);
  }
  // Those with findings first; the rest as far as there is room.
  std::vector<const graph_summary*> graphs;
  for (const graph_summary& graph : data.summary.graphs) {
    if (graph.id > 0) graphs.push_back(&graph);
  }
  std::stable_sort(graphs.begin(), graphs.end(), [&](const graph_summary* a, const graph_summary* b) {
    return by_graph.count(a->id) > by_graph.count(b->id);
  });
  std::string title = "CaptureSan: nodes in the driver's order; their dependencies are not in the trace";
  if (graphs.size() > most_graphs) {
    title += fmt::format("; {} graphs are not drawn", graphs.size() - most_graphs);
    graphs.resize(most_graphs);
  }
  std::string out =
      fmt::format("digraph capturesan {{\n  label={};\n  node [shape=box, fontname=\"monospace\"];\n", dot_text(title));
  for (const graph_summary* graph : graphs) write_graph(out, *graph, by_graph[graph->id]);
  return out + "}\n";
}

} // namespace capturesan
