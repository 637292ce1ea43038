// GitLab code quality: an array of issues, each at a line of a file below the repository's root.
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

#include "analyzer/report_json.h"
#include "analyzer/report_places.h"

namespace capturesan {

namespace {

// GitLab knows info, minor, major, critical and blocker; a suspicion never blocks anybody.
std::string_view grade(const finding& found) {
  if (found.sev == severity::note) return "info";
  if (found.conf == confidence::suspected) return "minor";
  return found.sev == severity::error ? "critical" : "major";
}

} // namespace

std::string write_gitlab(const report_data& data, const report_style&) {
  ordered_json issues = ordered_json::array();
  std::set<std::string> seen;
  for (const finding* found : shown_findings(data)) {
    const source_place place = place_of(best_frame(*found, data.root), data);
    // GitLab merges issues of the same fingerprint.
    std::string fingerprint = printable(found->fingerprint, most_name_bytes);
    for (int i = 2; !seen.insert(fingerprint).second; ++i) fingerprint = fmt::format("{}-{}", found->fingerprint, i);
    issues.push_back(
        {{"description", fmt::format("{}: {}", printable(found->name, most_name_bytes), message_of(*found))},
         {"check_name", printable(found->rule, most_name_bytes)},
         {"fingerprint", fingerprint},
         {"severity", grade(*found)},
         {"location", {{"path", printable(place.path)}, {"lines", {{"begin", std::max(place.line, 1)}}}}}});
  }
  return json_text(issues);
}

} // namespace capturesan
