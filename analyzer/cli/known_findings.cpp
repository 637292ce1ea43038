#include "analyzer/cli/known_findings.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analyzer/text_file.h"

namespace capturesan::cli {

namespace {

using json = nlohmann::ordered_json;

constexpr int baseline_schema = 1;
constexpr std::size_t most_bytes = 64 << 20, most_frames = 3;

problem failure(const std::string& file, std::string message, std::string hint = {}) {
  problem p;
  p.at.file = file;
  p.message = std::move(message);
  p.hint = std::move(hint);
  return p;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

} // namespace

result<std::set<std::string>> read_baseline(const std::string& file) {
  const result<std::string> text = read_text_file(file, most_bytes);
  if (!text) {
    problem p = text.problems()[0];
    p.hint = "capturesan baseline TRACE > FILE writes one";
    return p;
  }
  try {
    const json in = json::parse(text.value());
    if (in.at("schema") != baseline_schema) {
      return failure(file, fmt::format("this capturesan reads baselines of schema {}", baseline_schema));
    }
    std::set<std::string> known;
    for (const json& one : in.at("findings")) known.insert(one.at("fingerprint").get<std::string>());
    return known;
  } catch (const nlohmann::json::exception& error) {
    return failure(file, fmt::format("is no baseline: {}", error.what()),
                   "capturesan baseline TRACE > FILE writes one");
  }
}

std::string baseline_text(const report_data& data) {
  std::vector<const finding*> findings = shown_findings(data);
  std::erase_if(findings, [](const finding* f) { return f->rule.starts_with("CS9"); });
  const auto key = [](const finding* f) { return std::tie(f->rule, f->fingerprint); };
  std::sort(findings.begin(), findings.end(), [&](const finding* a, const finding* b) { return key(a) < key(b); });
  json list = json::array();
  for (const finding* found : findings) {
    json frames = json::array();
    for (const auto* stack : {&found->python, &found->stack}) {
      for (std::size_t i = 0; i < std::min(stack->size(), most_frames); ++i) frames.push_back(frame_key((*stack)[i]));
    }
    list.push_back({{"fingerprint", found->fingerprint},
                    {"rule", found->rule},
                    {"name", found->name},
                    {"api", found->api},
                    {"frames", std::move(frames)}});
  }
  const json out = {{"schema", baseline_schema}, {"tool", "capturesan"}, {"findings", std::move(list)}};
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

result<std::shared_ptr<known_findings>> known_findings::load(const option_values& options, bool with_baseline) {
  auto known = std::make_shared<known_findings>();
  if (options.given("suppress")) {
    const std::string file = options.text("suppress");
    const result<std::string> text = read_text_file(file, 1 << 20);
    if (!text) return text.problems();
    result<suppression_list> list = suppression_list::parse(file, text.value(), today());
    if (!list) return list.problems();
    known->suppressions_ = std::move(list.value());
  }
  if (with_baseline && options.given("baseline")) {
    known->baseline_file_ = options.text("baseline");
    result<std::set<std::string>> fingerprints = read_baseline(known->baseline_file_);
    if (!fingerprints) return fingerprints.problems();
    known->baseline_ = std::move(fingerprints.value());
  }
  return known;
}

void known_findings::apply(finding& found) {
  if (found.suppressed_by.starts_with("baseline ")) { // under the fingerprint that it had
    found.suppressed = false;
    found.suppressed_by.clear();
  }
  suppressions_.apply(found);
  if (!baseline_.count(found.fingerprint)) {
    // The second of a fingerprint and those after it have a number behind it: the baseline counts them.
    const std::string first = found.fingerprint.substr(0, found.fingerprint.find('-'));
    if (first != found.fingerprint && baseline_.count(first)) more_.insert(first);
    return;
  }
  seen_.insert(found.fingerprint);
  if (!found.suppressed) found.suppressed_by = "baseline " + baseline_file_;
  found.suppressed = true;
}

closing_notes known_findings::close(const audit_summary& summary) const {
  closing_notes out;
  out.suppressions = suppressions_.notes(summary);
  const std::size_t gone = baseline_.size() - seen_.size();
  if (gone > 0 && summary.complete) {
    out.remarks.push_back(fmt::format("{} of {} findings of the baseline {} were not found this time", gone,
                                      baseline_.size(), baseline_file_));
  }
  for (const std::string& first : more_) {
    out.remarks.push_back(fmt::format("there are more findings of fingerprint {} than the baseline {} knows; any of "
                                      "them may be the new one, not only the last",
                                      first, baseline_file_));
  }
  return out;
}

} // namespace capturesan::cli
