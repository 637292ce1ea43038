// usage: write_reports FOLDER : writes every format of several invented audits into FOLDER/<case>.<format>, for
// check_reports.py. `hostile` holds in every string what breaks careless writers.
#include <cstdio>
#include <fstream>
#include <string>

#include "analyzer/report.h"

using namespace capturesan;

namespace {

// A symbol name of 1 MB, as templates make them; control characters; ends of strings and sections of every format.
std::vector<std::string> hostile_strings() {
  std::string controls;
  for (char c = 1; c < 32; ++c) controls += c;
  return {
      std::string("nul\0inside", 10),
      controls + "\x7f\x1b[2J\x1b]0;title\x07",
      "]]>",
      "</script><script>alert(1)</script>",
      "%0A::error file=x::forged%0D%25",
      "\n::error title=forged::a second command\r\n",
      "invalid \xff\xfe\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80 utf-8 \xe2\x82",
      "\"quoted\" 'single' \\back\\slash \\n {brace} <tag a=\"b\"> &amp; &#1; |cell|`code`",
      "\xe2\x80\xae right to left \xe2\x81\xa6 \xe2\x80\xa8 line separator \xef\xbf\xbf no character",
      "-- --> <!-- ?> ]]",
      "ordinary",
      std::string(1 << 20, 'm'),
      std::string(511, 'm') + "\xc3\xa4 cut inside a character",
  };
}

stack_frame frame_of(const std::string& text, int line) {
  stack_frame frame;
  frame.address = 0x1000;
  frame.module = text;
  frame.symbol = text;
  frame.offset = 16;
  frame.file = text;
  frame.line = line;
  return frame;
}

finding finding_of(const std::string& text, int number) {
  finding f;
  f.rule = text;
  f.name = text;
  f.sev = static_cast<severity>(number % 3);
  f.message = text;
  f.remediation = text;
  f.doc = text;
  f.api = text;
  f.symbol = text;
  f.result = 900;
  f.result_name = text;
  f.thread = {1, 2, 3, text};
  f.capture = capture_ref{number + 1, text, text, {1, 2, 3, text}, {frame_of(text, 7)}};
  f.graph = graph_ref{1, 2, 3};
  pointer_ref p;
  p.address = p.allocation = 0x7f0000000000;
  p.allocation_bytes = 64;
  p.node_type = text;
  p.kernel = text;
  p.parameter = 0;
  p.allocated_at = {frame_of(text, 0)};
  p.freed_at = {frame_of(text, 1)};
  p.owner_now = text;
  f.pointers = {p};
  f.stack = {frame_of(text, 3)};
  f.python = {frame_of(text, 4)};
  f.count = 2;
  f.cascade = {{text, 901, {1, 2, 3, text}, 1}};
  f.after = text;
  f.fingerprint = text;
  return f;
}

struct audit_data {
  std::vector<finding> findings;
  audit_summary summary;
};

// A name of 1 MB where names can be that long; in every field the test would take minutes.
finding long_names(const std::string& text, int number) {
  finding f = finding_of("ordinary", number);
  f.message = text;
  f.stack[0].symbol = f.stack[0].file = text;
  f.pointers[0].kernel = text;
  f.fingerprint = "long";
  return f;
}

audit_data hostile() {
  audit_data data;
  data.summary.events = 1;
  data.summary.complete = false;
  data.summary.dropped = 7;
  int number = 0;
  for (const std::string& text : hostile_strings()) {
    const bool is_long = text.size() > 4096;
    data.findings.push_back(is_long ? long_names(text, number++) : finding_of(text, number++));
    if (is_long) continue;
    rule_status rule;
    rule.id = text;
    rule.name = text;
    rule.evaluated = number % 2 == 0;
    rule.why_not = text;
    rule.description = rule.remediation = rule.doc = text;
    rule.tags = std::vector<std::string>(12, text.substr(0, 1000));
    data.summary.rules.push_back(rule);
    data.summary.notes.push_back(text);
    graph_summary graph;
    graph.id = number;
    graph.nodes = 2;
    graph.listed = {{0, text, text, true}, {1, text, "", false}};
    data.summary.graphs.push_back(graph);
    capture_summary capture;
    capture.ref = *data.findings.back().capture;
    data.summary.captures.push_back(capture);
    data.summary.coverage[text] = {1, 2};
  }
  data.summary.driver = {"real", hostile_strings()[1], hostile_strings()[6]};
  return data;
}

// More than any reader takes; the last one is the only error.
audit_data many() {
  audit_data data;
  data.summary.events = 1;
  for (int i = 0; i < 6000; ++i) {
    finding f;
    f.rule = "CS106";
    f.name = "first-use-in-capture";
    f.sev = i == 5999 ? severity::error : severity::note;
    if (i == 5999) f.rule = "CS101";
    f.message = "finding " + std::to_string(i);
    f.fingerprint = std::to_string(i);
    data.findings.push_back(f);
  }
  return data;
}

audit_data ordinary(bool with_findings) {
  audit_data data;
  data.summary.events = 12;
  for (const char* id : {"CS101", "CS202"}) {
    rule_status rule;
    rule.id = id;
    rule.name = "a-rule";
    rule.description = "What it is.";
    rule.evaluated = std::string_view(id) == "CS101";
    rule.why_not = "needs level full";
    data.summary.rules.push_back(rule);
  }
  graph_summary graph;
  graph.id = 1;
  graph.nodes = 300;
  for (std::uint32_t i = 0; i < 300; ++i) graph.listed.push_back({i, "kernel", "scale(float*)", true});
  data.summary.graphs.push_back(graph);
  if (!with_findings) return data;
  finding f = finding_of("scale", 2);
  f.rule = "CS101";
  f.name = "a-rule";
  f.message = "a wait";
  f.fingerprint = "abcd";
  f.stack = {frame_of("__libc_start_main", 3), frame_of("step", 41)};
  f.stack[0].file = "../csu/libc-start.c";
  f.stack[1].file = "/src/project/a dir/main.cpp";
  f.stack[1].module = "app";
  f.python.clear();
  f.pointers[0].node = 299;
  data.findings = {f};
  return data;
}

void write(const std::string& folder, const std::string& name, const audit_data& audit) {
  report_data data{audit.findings, audit.summary};
  data.root = "/src/project";
  data.trace = name == "hostile" ? hostile_strings()[7] : "trace";
  data.command = {"/src/project/app"};
  data.child_exit = 0;
  data.exit_code = audit.findings.empty() ? 0 : 1;
  data.exit_reason = audit.findings.empty() ? (audit.summary.events ? "ok" : "nothing-captured") : "findings";
  if (data.exit_reason == "nothing-captured") data.exit_code = 4;
  if (name == "hostile") {
    for (const std::string& text : hostile_strings()) {
      if (text.size() > 4096) continue;
      data.remarks.push_back(text);
      data.unreadable.push_back(text);
      data.uncovered.push_back({1, text});
      data.command.push_back(text);
    }
    data.source_line = [](const std::string&, int) { return hostile_strings()[1] + hostile_strings()[3]; };
  } else {
    data.source_line = [](const std::string& file, int) { return file.ends_with("main.cpp") ? "  wait();" : ""; };
  }
  for (const report_format& format : report_formats) {
    std::ofstream(folder + "/" + name + "." + std::string(format.name), std::ios::binary) << format.write(data, {});
  }
  std::ofstream(folder + "/" + name + ".summary", std::ios::binary) << github_summary(data);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  write(argv[1], "hostile", hostile());
  write(argv[1], "many", many());
  write(argv[1], "ordinary", ordinary(true));
  write(argv[1], "clean", ordinary(false));
  write(argv[1], "empty", {});
  return 0;
}
