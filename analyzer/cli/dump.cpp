#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "analyzer/cli/command.h"
#include "analyzer/cli/dump_record.h"
#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/cli/trace_folder.h"
#include "analyzer/merger.h"
#include "analyzer/reader.h"
#include "analyzer/report.h"

namespace capturesan::cli {

namespace {

namespace fs = std::filesystem;

problem failure(const std::string& path, std::string message) {
  problem p;
  p.at.file = path;
  p.message = std::move(message);
  return p;
}

// The trace files of all arguments, in order of name.
result<std::vector<std::string>> trace_files(const std::vector<std::string>& traces) {
  std::vector<std::string> files;
  for (const std::string& trace : traces) {
    std::error_code error;
    if (!fs::is_directory(trace, error)) {
      files.push_back(trace);
      continue;
    }
    const std::vector<std::string> inside = trace_files_in(trace);
    if (inside.empty()) return failure(trace, "no trace file in this folder");
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

class printer {
 public:
  explicit printer(bool as_json) : json_(as_json) {}
  ~printer() { flush(); }
  printer(const printer&) = delete;
  printer& operator=(const printer&) = delete;

  void add(const dump_line& line) {
    text_ += json_ ? to_json(line) : to_text(line);
    text_ += '\n';
    if (text_.size() > (1 << 16)) flush();
  }
  // False once the reader has gone, as `head` does.
  bool open() const { return open_; }

 private:
  void flush() {
    if (open_) print(text_);
    open_ = output_failure().empty();
    text_.clear();
  }
  bool json_, open_ = true;
  std::string text_;
};

int dump(const std::vector<std::string>& paths, bool as_json) {
  std::vector<std::unique_ptr<trace_file>> files;
  for (const std::string& path : paths) {
    result<std::unique_ptr<byte_source>> bytes = open_file(path);
    result<std::unique_ptr<trace_file>> file = bytes ? trace_file::open(std::move(bytes.value()), path)
                                                     : result<std::unique_ptr<trace_file>>(bytes.problems());
    if (!file) {
      complain(file.problems());
      return exit_usage;
    }
    files.push_back(std::move(file.value()));
  }
  printer out(as_json);
  merger order;
  std::int64_t start_ns = merger::no_horizon;
  for (const auto& file : files) {
    while (file->refresh() > 0) {
    }
    file->add_unfinished();
    order.add(*file);
    start_ns = std::min(start_ns, file->process().to_ns(file->process().clock_ticks));
    for (const dump_line& line : describe_process(file->process())) out.add(line);
  }
  record_describer records(start_ns);
  order.collect();
  order.drain(merger::no_horizon, [&](const merged_event& event) {
    if (!out.open()) return;
    for (const dump_line& line : records.describe(event)) out.add(line);
  });
  return exit_ok;
}

} // namespace

int dump_command(const invocation& in) {
  if (in.arguments.empty()) {
    complain({failure("", "dump: no trace named")});
    return exit_usage;
  }
  const result<std::vector<std::string>> files = trace_files(in.arguments);
  if (!files) {
    complain(files.problems());
    return exit_usage;
  }
  return dump(files.value(), in.options.text("format") == "json");
}

} // namespace capturesan::cli
