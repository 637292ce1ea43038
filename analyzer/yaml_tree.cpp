#include "analyzer/yaml_tree.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <unordered_map>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace capturesan {

namespace {

constexpr std::size_t most_depth = 32;
constexpr std::size_t most_duplicates = 100;
constexpr std::size_t many_keys = 16;     // from here on a map's keys are looked up, not searched
constexpr std::size_t block = 256;        // bytes between two known counts of characters
constexpr std::size_t most_excerpt = 160; // bytes of a line that are shown

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Where the first byte is that is no UTF-8 (overlong forms and surrogates included); npos if all of it is.
std::size_t not_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = c < 0x80                ? 1
                               : c >= 0xc2 && c < 0xe0 ? 2
                               : c >= 0xe0 && c < 0xf0 ? 3
                               : c >= 0xf0 && c < 0xf5 ? 4
                                                       : 0;
    if (length == 0 || i + length > text.size()) return i;
    for (std::size_t k = 1; k < length; ++k)
      if (!continues(text[i + k])) return i;
    if (length > 1) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) || (c == 0xf0 && second < 0x90) ||
          (c == 0xf4 && second > 0x8f))
        return i;
    }
    i += length;
  }
  return std::string_view::npos;
}

std::size_t characters(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues));
}

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
    if (!stack_.empty() && stack_.back().has_key) { // of a key without a value, yaml-cpp tells where the next thing is
      const yaml_node& key = stack_.back().key;
      n.at = std::min(text_.find(':', key.at + key.text.size()), text_.size() - 1) + 1;
    }
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
    std::unordered_map<std::string, std::size_t> seen; // keys beyond the first `many_keys`: their entry

    const yaml_node* find(const std::string& name) const {
      for (std::size_t i = 0; i < std::min(many_keys, node.entries.size()); ++i)
        if (node.entries[i].first.text == name) return &node.entries[i].first;
      const auto it = seen.find(name);
      return it == seen.end() ? nullptr : &node.entries[it->second].first;
    }
  };

  void take_key(level& top, yaml_node key) {
    if (key.type != yaml_node::kind::scalar) {
      problems_.push_back(doc_.error_at(key.at, "CGE004", "a key must be a plain word"));
      throw stop{};
    }
    if (key.text == "<<") refuse(key.at, "merge keys are");
    const yaml_node* other = top.find(key.text);
    top.keep_value = other == nullptr;
    if (other != nullptr) {
      const int line = doc_.position(other->at).line;
      problems_.push_back(doc_.error_at(key.at, "CGE003", "key '" + key.text + "' occurs twice",
                                        "the first is on line " + std::to_string(line),
                                        static_cast<int>(key.text.size())));
      if (problems_.size() >= most_duplicates) throw stop{};
    }
    if (top.keep_value && top.node.entries.size() >= many_keys) top.seen.emplace(key.text, top.node.entries.size());
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
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  if (text.size() > most_bytes) {
    return problem{{doc.file_}, "CGE006", "the file is larger than 1 MiB", "", ""};
  }
  doc.text_ = std::move(text);
  doc.index();
  if (doc.text_.starts_with("\xff\xfe") || doc.text_.starts_with("\xfe\xff"))
    return doc.error_at(0, "CGE001", "the file is UTF-16", "save it as UTF-8");
  if (const auto zero = doc.text_.find('\0'); zero != std::string::npos)
    return doc.error_at(zero, "CGE001", "a zero byte is not text", "save the file as UTF-8");
  if (const auto bad = not_utf8(doc.text_); bad != std::string::npos)
    return doc.error_at(bad, "CGE001", "this byte is not UTF-8", "save the file as UTF-8");
  std::vector<problem> problems;
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
    return problem{{doc.file_}, "CGE001", "the file is empty", "", ""};
  doc.root_ = std::move(builder.root);
  return doc;
}

void yaml_document::index() {
  line_starts_.assign(1, 0);
  std::uint32_t continuations = 0;
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (i % block == 0) continuations_before_.push_back(continuations);
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
    if (continues(text_[i])) ++continuations;
  }
  continuations_before_.push_back(continuations);
}

// Characters from the begin of the file to a byte.
std::size_t yaml_document::characters_before(std::size_t at) const {
  const std::size_t known = std::min(at / block, continuations_before_.size() - 1);
  const std::string_view rest = std::string_view(text_).substr(known * block, at - known * block);
  return known * block - continuations_before_[known] + characters(rest);
}

source_position yaml_document::position(std::size_t at) const {
  at = std::min(at, text_.size());
  const auto line = std::upper_bound(line_starts_.begin(), line_starts_.end(), at) - line_starts_.begin();
  const std::size_t begin = line_starts_[static_cast<std::size_t>(line) - 1];
  return {file_, static_cast<int>(line), static_cast<int>(characters_before(at) - characters_before(begin)) + 1};
}

problem yaml_document::error_at(std::size_t at, std::string code, std::string message, std::string hint,
                                int length) const {
  at = std::min(at, text_.size());
  const source_position where = position(at);
  std::size_t begin = line_starts_[static_cast<std::size_t>(where.line) - 1];
  std::size_t end = std::min(text_.find('\n', begin), text_.size());
  if (end > begin && text_[end - 1] == '\r') --end;
  const std::size_t covered = std::min(at + static_cast<std::size_t>(std::max(length, 1)), std::max(end, at));
  // Of a long line only what is around the place.
  if (end - begin > most_excerpt) {
    if (at - begin > most_excerpt / 2) begin = at - most_excerpt / 2;
    while (begin < at && continues(text_[begin])) ++begin;
    end = std::min(end, begin + most_excerpt);
    while (end > at && end < text_.size() && continues(text_[end])) --end;
  }
  problem p{where, std::move(code), std::move(message), std::move(hint), "", 1};
  const std::string_view all = text_;
  p.excerpt = all.substr(begin, std::max(end, at) - begin);
  std::replace(p.excerpt.begin(), p.excerpt.end(), '\t', ' ');
  p.caret = static_cast<int>(characters(all.substr(begin, at - begin))) + 1;
  const std::size_t until = std::max(at, std::min(covered, end));
  p.length = std::max(1, static_cast<int>(characters(all.substr(at, until - at))));
  return p;
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
