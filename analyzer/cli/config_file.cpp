// capturesan.yaml. The only file of the command that knows yaml-cpp; its exceptions end here.
#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include "analyzer/cli/options.h"
#include "analyzer/text_file.h"

namespace capturesan::cli {

namespace {

constexpr std::size_t most_bytes = 1 << 20;

class config_reader {
 public:
  config_reader(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  std::vector<problem> read(option_values& values) {
    try {
      const std::vector<YAML::Node> documents = YAML::LoadAll(text_);
      if (documents.size() > 1) fail(documents[1].Mark(), "a second document begins here");
      if (documents.size() == 1 && !documents[0].IsNull()) read_map(documents[0], values);
    } catch (const YAML::Exception& error) {
      fail(error.mark, error.msg);
    }
    return std::move(problems_);
  }

 private:
  void fail(const YAML::Mark& mark, std::string message, std::string hint = {}) {
    problem p;
    p.at.file = path_;
    if (!mark.is_null()) {
      p.at.line = mark.line + 1;
      p.at.column = mark.column + 1;
      std::size_t begin = 0;
      for (int i = 0; i < mark.line && begin != std::string::npos; ++i) {
        begin = text_.find('\n', begin);
        if (begin != std::string::npos) ++begin;
      }
      if (begin != std::string::npos) p.excerpt = text_.substr(begin, text_.find('\n', begin) - begin);
    }
    p.message = std::move(message);
    p.hint = std::move(hint);
    problems_.push_back(std::move(p));
  }

  // yaml-cpp lets an opening quote without a partner swallow the rest of the file.
  bool closed_quote(const YAML::Node& node) {
    const auto at = static_cast<std::size_t>(std::max(node.Mark().pos, 0));
    if (at >= text_.size() || (text_[at] != '"' && text_[at] != '\'')) return true;
    for (std::size_t i = at + 1; i < text_.size(); ++i) {
      if (text_[at] == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == text_[at]) {
        return true;
      }
    }
    fail(node.Mark(), "this quote is never closed");
    return false;
  }

  void read_map(const YAML::Node& root, option_values& values) {
    if (!root.IsMap()) return fail(root.Mark(), "expected a list of `option: value` lines");
    std::set<std::string> seen;
    for (const auto& entry : root) {
      if (!entry.first.IsScalar()) {
        fail(entry.first.Mark(), "expected the name of an option");
        continue;
      }
      const std::string key = entry.first.Scalar();
      if (!seen.insert(key).second) fail(entry.first.Mark(), fmt::format("{} is set twice", key));
      if (const option_info* option = find(key)) {
        read_value(*option, entry.second, values);
      } else {
        fail(entry.first.Mark(), fmt::format("unknown option {}", key), near(key));
      }
    }
  }

  void read_value(const option_info& option, const YAML::Node& node, option_values& values) {
    std::vector<std::string> items;
    if (node.IsScalar()) {
      if (add(option, node, items)) values.set(option.name, items);
      return;
    }
    if (!node.IsSequence() || option.type != option_type::list) {
      return fail(node.Mark(), fmt::format("{} needs {}", file_key(option.name),
                                           option.type == option_type::list ? "a value or a list" : "one value"));
    }
    bool good = true;
    for (const auto& item : node) good = add(option, item, items) && good;
    if (good) values.set(option.name, items);
  }

  bool add(const option_info& option, const YAML::Node& node, std::vector<std::string>& items) {
    if (!node.IsScalar()) {
      fail(node.Mark(), fmt::format("{} needs plain values", file_key(option.name)));
      return false;
    }
    const std::string wrong = check_value(option, node.Scalar());
    if (!wrong.empty()) fail(node.Mark(), fmt::format("{}: {}", file_key(option.name), wrong));
    items.push_back(node.Scalar());
    return closed_quote(node) && wrong.empty();
  }

  static const option_info* find(const std::string& key) {
    for (const option_info& option : all_options()) {
      if (file_key(option.name) == key) return &option;
    }
    return nullptr;
  }

  static std::string near(const std::string& key) {
    std::vector<std::string> keys;
    for (const option_info& option : all_options()) keys.push_back(file_key(option.name));
    const std::string best = did_you_mean(key, std::vector<std::string_view>(keys.begin(), keys.end()));
    return best.empty() ? "" : fmt::format("did you mean {}?", best);
  }

  std::string path_, text_;
  std::vector<problem> problems_;
};

} // namespace

std::vector<problem> read_file(const std::string& path, option_values& values) {
  if (::access(path.c_str(), F_OK) != 0) return {};
  result<std::string> text = read_text_file(path, most_bytes);
  if (!text) return text.problems();
  return config_reader(path, std::move(text.value())).read(values);
}

} // namespace capturesan::cli
