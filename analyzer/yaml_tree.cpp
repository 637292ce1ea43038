#include "analyzer/yaml_tree.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace capturesan {

namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;
constexpr std::size_t most_depth = 32;

// Thrown through yaml-cpp to stop at once; never leaves this file.
struct stop {};

// Builds the tree from yaml-cpp's events and refuses what a rule file may not contain. yaml-cpp itself accepts
// duplicate keys, aliases to themselves and quotes without an end.
class tree_builder final : public YAML::EventHandler {
 public:
  tree_builder(const yaml_document& doc, const std::string& text, std::vector<problem>& problems)
      : doc_(doc), text_(text), problems_(problems) {}

  yaml_node root;
  bool seen = false;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& m, const std::string&) override { refuse(place(m), "anchors are"); }
  void OnAlias(const YAML::Mark& m, YAML::anchor_t) override { refuse(place(m), "aliases are"); }

  void OnNull(const YAML::Mark& m, YAML::anchor_t) override {
    yaml_node n;
    n.at = place(m);
    add(std::move(n));
  }

  void OnScalar(const YAML::Mark& m, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    yaml_node n;
    n.at = place(m);
    n.type = yaml_node::kind::scalar;
    n.text = value;
    n.quoted = tag == "!";
    check_tag(n.at, tag);
    if (n.quoted) check_quotes(n.at);
    add(std::move(n));
  }

  void OnSequenceStart(const YAML::Mark& m, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(m, tag, yaml_node::kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& m, const std::string& tag, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(m, tag, yaml_node::kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  // Marks of nodes that stand for nothing may lie outside the text.
  std::size_t place(const YAML::Mark& m) const {
    return m.is_null() ? 0 : std::min(static_cast<std::size_t>(m.pos), text_.size());
  }

  void refuse(std::size_t at, const std::string& what) {
    problems_.push_back(doc_.error_at(at, "CGE002", what + " not allowed in rule files", "write the value out"));
    throw stop{};
  }

  void check_tag(std::size_t at, const std::string& tag) {
    if (!tag.empty() && tag != "!" && tag != "?") refuse(at, "tags are");
    if (at < text_.size() && text_[at] == '!') refuse(at, "tags are");
  }

  void check_quotes(std::size_t at) {
    const char quote = at < text_.size() ? text_[at] : ' ';
    if (quote != '\'' && quote != '"') return; // a block scalar
    for (std::size_t i = at + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        if (quote == '\'' && i + 1 < text_.size() && text_[i + 1] == '\'') {
          ++i;
          continue;
        }
        return;
      }
    }
    problems_.push_back(doc_.error_at(at, "CGE005", "this quote is never closed"));
    throw stop{};
  }

  void open(const YAML::Mark& m, const std::string& tag, yaml_node::kind type) {
    const std::size_t at = place(m);
    check_tag(at, tag);
    if (stack_.size() >= most_depth) {
      problems_.push_back(doc_.error_at(at, "CGE006", "nested too deeply"));
      throw stop{};
    }
    stack_.push_back({});
    stack_.back().node.type = type;
    stack_.back().node.at = at;
  }

  void close() {
    yaml_node n = std::move(stack_.back().node);
    stack_.pop_back();
    add(std::move(n));
  }

  void add(yaml_node n) {
    if (stack_.empty()) {
      root = std::move(n);
      seen = true;
      return;
    }
    level& top = stack_.back();
    if (top.node.type == yaml_node::kind::sequence) {
      top.node.items.push_back(std::move(n));
    } else if (top.has_key) {
      top.has_key = false;
      if (top.keep_value) top.node.entries.emplace_back(std::move(top.key), std::move(n));
    } else {
      take_key(top, std::move(n));
    }
  }

  struct level {
    yaml_node node, key;
    bool has_key = false, keep_value = true;
  };

  void take_key(level& top, yaml_node key) {
    if (key.type != yaml_node::kind::scalar) {
      problems_.push_back(doc_.error_at(key.at, "CGE004", "a key must be a plain word"));
      throw stop{};
    }
    if (key.text == "<<") refuse(key.at, "merge keys are");
    top.keep_value = top.node.find(key.text) == nullptr;
    if (!top.keep_value) {
      problems_.push_back(doc_.error_at(key.at, "CGE003", "key '" + key.text + "' occurs twice", "keep one of them",
                                        static_cast<int>(key.text.size())));
    }
    top.key = std::move(key);
    top.has_key = true;
  }

  const yaml_document& doc_;
  const std::string& text_;
  std::vector<problem>& problems_;
  std::vector<level> stack_;
};

// yaml-cpp says "yaml-cpp: error at line 3, column 4: what"; position and prefix are ours to print.
std::string words_of(const YAML::Exception& e) { return e.msg; }

} // namespace

result<yaml_document> yaml_document::parse(std::string file, std::string text) {
  yaml_document doc;
  doc.file_ = std::move(file);
  doc.text_ = std::move(text);
  std::vector<problem> problems;
  if (doc.text_.size() > most_bytes) return doc.error_at(0, "CGE006", "the file is larger than 1 MiB");
  if (const auto zero = doc.text_.find('\0'); zero != std::string::npos) {
    return doc.error_at(zero, "CGE001", "a zero byte is not text");
  }
  tree_builder builder(doc, doc.text_, problems);
  try {
    std::istringstream in(doc.text_);
    YAML::Parser parser(in);
    parser.HandleNextDocument(builder);
    tree_builder second(doc, doc.text_, problems);
    if (problems.empty() && parser.HandleNextDocument(second)) {
      problems.push_back(doc.error_at(second.root.at, "CGE007", "a rule file holds one document"));
    }
  } catch (const stop&) {
  } catch (const YAML::Exception& e) {
    const std::size_t at = e.mark.is_null() ? 0 : std::min(static_cast<std::size_t>(e.mark.pos), doc.text_.size());
    problems.push_back(doc.error_at(at, "CGE001", words_of(e)));
  } catch (const std::exception&) {
    problems.push_back(doc.error_at(0, "CGE001", "this is not YAML"));
  }
  if (!problems.empty()) return problems;
  if (!builder.seen || builder.root.type == yaml_node::kind::null)
    return doc.error_at(0, "CGE001", "the file is empty");
  doc.root_ = std::move(builder.root);
  return doc;
}

source_position yaml_document::position(std::size_t at) const {
  at = std::min(at, text_.size());
  source_position p{file_, 1, 1};
  const auto begin = text_.begin();
  p.line += static_cast<int>(std::count(begin, begin + static_cast<std::ptrdiff_t>(at), '\n'));
  const std::size_t line = at == 0 ? std::string::npos : text_.rfind('\n', at - 1);
  p.column = static_cast<int>(line == std::string::npos ? at : at - line - 1) + 1;
  return p;
}

problem yaml_document::error_at(std::size_t at, std::string code, std::string message, std::string hint,
                                int length) const {
  at = std::min(at, text_.size());
  const std::size_t before = at == 0 ? std::string::npos : text_.rfind('\n', at - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  std::string line = text_.substr(begin, text_.find('\n', begin) - begin);
  std::replace(line.begin(), line.end(), '\t', ' ');
  return {position(at), std::move(code), std::move(message), std::move(hint), std::move(line), std::max(length, 1)};
}

problem yaml_document::error(const yaml_node& n, std::string code, std::string message, std::string hint) const {
  return error_at(n.at, std::move(code), std::move(message), std::move(hint), static_cast<int>(n.text.size()));
}

problem yaml_document::error_in(const yaml_node& n, std::size_t offset, std::string code, std::string message,
                                std::string hint, int length) const {
  return error_at(place_of(n, offset), std::move(code), std::move(message), std::move(hint), length);
}

// Walks the raw text and the value side by side: what the raw text has more (quotes, escapes, line breaks, indentation)
// is stepped over. Good for every style in which the value's characters occur in order, which are all of them except \x
// escapes.
std::size_t yaml_document::place_of(const yaml_node& n, std::size_t offset) const {
  std::size_t raw = n.at;
  if (n.quoted && raw < text_.size()) {
    const char c = text_[raw];
    if (c == '|' || c == '>') {
      raw = std::min(text_.find('\n', raw), text_.size());
    } else if (c == '\'' || c == '"') {
      ++raw;
    }
  }
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t i = 0; i < n.text.size() && raw < text_.size(); ++i) {
    const char want = n.text[i];
    while (raw < text_.size() && text_[raw] != want && !(blank(want) && blank(text_[raw]))) ++raw;
    if (i == offset) return raw;
    if (text_[raw] == '\n' || (blank(want) && text_[raw] != want)) { // a folded line break
      while (raw + 1 < text_.size() && blank(text_[raw + 1])) ++raw;
    }
    if (want == '\'' && raw + 1 < text_.size() && text_[n.at] == '\'' && text_[raw + 1] == '\'') ++raw;
    ++raw;
  }
  return std::min(raw, text_.size());
}

} // namespace capturesan
