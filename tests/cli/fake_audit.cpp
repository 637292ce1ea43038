// An audit without rules, models or drivers, for tests of the command: each file *.fake in the trace folder says what
// it "finds", as JSON. So the outcome of a run is what the watched program (a shell script) writes down.
//   {"events": 10, "complete": true, "dropped": 0, "driver": "real", "captures": 1, "replays": 2, "notes": ["..."],
//    "findings": [{"rule": "CS101", "severity": "error", "confidence": "proved", "message": "...", "suppressed":
//    false}]}
// A file that is no JSON is "not a trace".
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "analyzer/audit.h"
#include "analyzer/rule_set.h"

namespace capturesan {

namespace {

using nlohmann::json;

finding make_finding(const json& in) {
  finding found;
  found.rule = in.value("rule", "CS101");
  found.name = in.value("name", "a-mistake");
  const std::string level = in.value("severity", "error"), certainty = in.value("confidence", "proved");
  found.sev = level == "note" ? severity::note : level == "warning" ? severity::warning : severity::error;
  found.conf = certainty == "suspected" ? confidence::suspected : confidence::proved;
  found.message = in.value("message", "something is wrong");
  found.suppressed = in.value("suppressed", false);
  found.fingerprint = found.rule + found.message;
  return found;
}

class fake_audit : public audit {
 public:
  explicit fake_audit(audit_options options) : options_(std::move(options)) {
    summary_.rules.push_back({"CS101", "a-mistake", true, "", 0});
    summary_.rules.push_back({"CS202", "another", false, "needs level full", 0});
  }

  result<std::size_t> add(const std::string& path) override {
    namespace fs = std::filesystem;
    std::vector<std::string> paths = {path};
    if (!fs::exists(path)) return failure(path, "no such file or folder");
    if (fs::is_directory(path)) {
      paths.clear();
      for (const auto& entry : fs::directory_iterator(path)) {
        if (entry.path().extension() == ".fake") paths.push_back(entry.path());
      }
    }
    for (const std::string& file : paths) {
      std::ifstream stream(file);
      const json in = json::parse(stream, nullptr, false);
      if (in.is_discarded()) return failure(file, "not a trace");
      if (files_.insert(file).second) absorb(in);
    }
    return paths.size();
  }
  std::size_t poll() override { return std::exchange(unread_, 0); }
  void finish() override {}
  const std::vector<finding>& findings() const override { return findings_; }
  const audit_summary& summary() const override { return summary_; }

 private:
  static problem failure(const std::string& path, const std::string& message) {
    problem p;
    p.at.file = path;
    p.message = message;
    return p;
  }
  void absorb(const json& in) {
    const auto events = in.value("events", std::uint64_t{1});
    unread_ += events;
    summary_.events += events;
    summary_.dropped += in.value("dropped", std::uint64_t{0});
    summary_.complete = summary_.complete && in.value("complete", true);
    summary_.replays += in.value("replays", std::uint64_t{0});
    summary_.captures.resize(summary_.captures.size() + in.value("captures", std::size_t{events > 0 ? 1u : 0u}));
    summary_.driver = {in.value("driver", "real"), "580.159.04", "NVIDIA H200"};
    for (const json& note : in.value("notes", json::array())) summary_.notes.push_back(note);
    for (const json& one : in.value("findings", json::array())) {
      findings_.push_back(make_finding(one));
      if (options_.suppress) options_.suppress(findings_.back());
      if (options_.on_new_finding) options_.on_new_finding(findings_.back());
    }
  }

  audit_options options_;
  audit_summary summary_;
  std::vector<finding> findings_;
  std::set<std::string> files_;
  std::size_t unread_ = 0;
};

} // namespace

result<std::unique_ptr<audit>> audit::create(audit_options options) {
  // A rule file with "wrong" in its name has an error in it.
  for (const std::string& file : options.rule_files) {
    if (file.find("wrong") == std::string::npos) continue;
    problem p;
    p.at = {file, 3, 7};
    p.code = "CGE001";
    p.message = "unknown key 'wehn'";
    p.hint = "did you mean when?";
    p.excerpt = "      wehn: true";
    return p;
  }
  return std::unique_ptr<audit>(std::make_unique<fake_audit>(std::move(options)));
}

} // namespace capturesan
