#include "analyzer/suppressions.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzer/fields.h"
#include "analyzer/yaml_tree.h"

namespace capturesan {

namespace {

using kind = yaml_node::kind;

// CSS = capturesan suppressions; the numbers are for search engines.
constexpr const char* code_structure = "CSS001";
constexpr const char* code_key = "CSS002";
constexpr const char* code_value = "CSS003";

constexpr std::string_view file_keys[] = {"schema", "suppressions"};
constexpr std::string_view keys[] = {"rule", "frame", "api", "fingerprint", "reason", "owner", "expires"};

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto number = [&](std::size_t at, std::size_t length) {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + length, value);
    return error == std::errc{} && end == text.data() + at + length ? value : -1;
  };
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
  if (year < 2000 || month < 1 || month > 12 || day < 1) return false;
  constexpr int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= days[month - 1] + (leap && month == 2 ? 1 : 0);
}

class reader {
 public:
  reader(const yaml_document& document, const std::string& today) : document_(document), today_(today) {}

  result<std::vector<suppression>> read() {
    const yaml_node& root = document_.root();
    if (root.type != kind::map) {
      fail(root, code_structure, "a suppression file is a map", "begin with `schema: 1` and `suppressions:`");
      return std::move(problems_);
    }
    check_keys(root, file_keys);
    const yaml_node* schema = root.find("schema");
    if (schema == nullptr || schema->text != "1") {
      fail(schema ? *schema : root, code_structure, "this capturesan reads suppression files of `schema: 1`");
    }
    const yaml_node* list = root.find("suppressions");
    if (list == nullptr || (list->type != kind::sequence && list->type != kind::null)) {
      fail(list ? *list : root, code_structure, "`suppressions` must be a list");
    } else {
      for (const yaml_node& item : list->items) read_one(item);
    }
    if (!problems_.empty()) return std::move(problems_);
    return std::move(list_);
  }

 private:
  void fail(const yaml_node& at, const char* code, std::string message, std::string hint = {}) {
    problems_.push_back(document_.error(at, code, std::move(message), std::move(hint)));
  }

  void check_keys(const yaml_node& map, std::span<const std::string_view> known) {
    for (const auto& [key, value] : map.entries) {
      if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
      const std::string near = did_you_mean(key.text, known);
      fail(key, code_key, "unknown key '" + key.text + "'", near.empty() ? "" : "did you mean '" + near + "'?");
    }
  }

  std::string text_of(const yaml_node& map, std::string_view key, bool required) {
    const yaml_node* value = map.find(key);
    if (value == nullptr) {
      if (required) fail(map, code_structure, fmt::format("a suppression needs `{}`", key));
      return {};
    }
    if (value->type != kind::scalar || value->text.empty()) {
      fail(*value, code_value, fmt::format("`{}` must be a text", key));
      return {};
    }
    return value->text;
  }

  void read_frames(const yaml_node& item, suppression& one) {
    const yaml_node* frames = item.find("frame");
    if (frames == nullptr) return;
    const std::vector<yaml_node> single = {*frames};
    for (const yaml_node& frame : frames->type == kind::sequence ? frames->items : single) {
      if (frame.type != kind::scalar || frame.text.find('!') == std::string::npos) {
        fail(frame, code_value, "`frame` is a glob on module!symbol", "such as 'libnccl.so*!*' or 'train.py!warm_up'");
        continue;
      }
      one.frames.push_back(frame.text);
      one.frame_patterns.push_back(pattern::glob(frame.text));
    }
  }

  void read_one(const yaml_node& item) {
    if (item.type != kind::map) return fail(item, code_structure, "a suppression is a map", "it needs rule and reason");
    check_keys(item, keys);
    suppression one;
    one.line = document_.position(item.at).line;
    one.rule = text_of(item, "rule", true);
    one.reason = text_of(item, "reason", true);
    one.owner = text_of(item, "owner", false);
    one.api = text_of(item, "api", false);
    one.fingerprint = text_of(item, "fingerprint", false);
    one.expires = text_of(item, "expires", false);
    read_frames(item, one);
    if (!one.expires.empty() && !is_date(one.expires)) {
      fail(*item.find("expires"), code_value, "'" + one.expires + "' is no date", "write it as 2027-06-30");
    }
    one.expired = !one.expires.empty() && one.expires <= today_;
    one.rule_pattern = pattern::glob(one.rule);
    one.api_pattern = pattern::glob(one.api);
    list_.push_back(std::move(one));
  }

  const yaml_document& document_;
  const std::string& today_;
  std::vector<problem> problems_;
  std::vector<suppression> list_;
};

} // namespace

std::string frame_key(const stack_frame& frame) {
  const std::string& module = frame.module.empty() ? frame.file : frame.module;
  return module.substr(module.rfind('/') + 1) + "!" + frame.symbol; // npos + 1 = 0
}

bool suppression::matches(const finding& found) const {
  if (!rule_pattern->matches(found.rule)) return false;
  if (!api.empty() && !api_pattern->matches(found.api)) return false;
  if (!fingerprint.empty() && fingerprint != found.fingerprint) return false;
  return std::all_of(frame_patterns.begin(), frame_patterns.end(), [&](const auto& glob) {
    const auto fits = [&](const stack_frame& frame) { return glob->matches(frame_key(frame)); };
    return std::any_of(found.stack.begin(), found.stack.end(), fits) ||
           std::any_of(found.python.begin(), found.python.end(), fits);
  });
}

std::string suppression::about() const {
  std::string text = rule;
  if (!api.empty()) text += " by " + api;
  if (!frames.empty()) text += fmt::format(" in {}", fmt::join(frames, " and "));
  if (!fingerprint.empty()) text += " with fingerprint " + fingerprint;
  return text;
}

result<suppression_list> suppression_list::parse(const std::string& file, const std::string& text,
                                                 const std::string& today) {
  const result<yaml_document> document = yaml_document::parse(file, text);
  if (!document) return document.problems();
  result<std::vector<suppression>> read = reader(document.value(), today).read();
  if (!read) return read.problems();
  suppression_list list;
  list.list_ = std::move(read.value());
  return list;
}

void suppression_list::apply(finding& found) {
  for (suppression& one : list_) {
    if (one.expired || !one.matches(found)) continue;
    one.used = true; // two that match are both of use
    if (!found.suppressed) found.suppressed_by = one.reason;
    found.suppressed = true;
  }
}

std::vector<own_note> suppression_list::notes(const audit_summary& summary) const {
  std::vector<own_note> out;
  for (const suppression& one : list_) {
    const auto line = static_cast<std::uint64_t>(std::max(one.line, 0));
    if (one.expired) {
      out.push_back(
          {fmt::format("the suppression of {} expired on {} ({})", one.about(), one.expires, one.reason), line});
      continue;
    }
    if (one.used) continue;
    // What was not looked for to the end may still be there.
    bool known = false, looked = summary.complete;
    for (const rule_status& rule : summary.rules) {
      if (!one.rule_pattern->matches(rule.id)) continue;
      known = true;
      looked = looked && rule.evaluated;
    }
    if (!known) {
      out.push_back(
          {fmt::format("the suppression of {} is for a rule that is not loaded ({})", one.about(), one.reason), line});
    } else if (looked) {
      out.push_back({fmt::format("the suppression of {} matched nothing ({})", one.about(), one.reason), line});
    }
  }
  return out;
}

} // namespace capturesan
