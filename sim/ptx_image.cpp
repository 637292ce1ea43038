// PTX text: the names and parameters of `.entry` functions, and the variables of the module.
#include "sim/image.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace capturesan::sim {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}

// Words and single characters; comments are skipped.
class ptx_tokens {
 public:
  explicit ptx_tokens(std::string_view text) : rest_(text) { next(); }

  std::string_view current() const { return token_; }
  bool at_end() const { return token_.empty(); }

  void next() {
    skip_blank();
    if (rest_.empty()) {
      token_ = {};
      return;
    }
    std::size_t n = 1;
    if (is_word(rest_[0])) {
      while (n < rest_.size() && is_word(rest_[n])) ++n;
    } else if (rest_[0] == '"') {
      while (n < rest_.size() && rest_[n] != '"') ++n;
      if (n < rest_.size()) ++n;
    }
    token_ = rest_.substr(0, n);
    rest_.remove_prefix(n);
  }

 private:
  void skip_blank() {
    while (!rest_.empty()) {
      if (std::isspace(static_cast<unsigned char>(rest_[0])))
        rest_.remove_prefix(1);
      else if (rest_.starts_with("//"))
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      else if (rest_.starts_with("/*"))
        rest_.remove_prefix(std::min(rest_.find("*/"), rest_.size() - 2) + 2);
      else
        return;
    }
  }

  std::string_view rest_, token_;
};

std::size_t number(std::string_view text) {
  std::size_t value = 0;
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

// Bytes of `.u64`, `.b8`, `.f32`, `.pred` ...; 0: not a type.
std::size_t type_bytes(std::string_view word) {
  if (word == ".pred") return 1;
  if (word.size() < 3 || word[0] != '.' || std::string_view("busf").find(word[1]) == std::string_view::npos) return 0;
  if (!std::isdigit(static_cast<unsigned char>(word[2]))) return 0;
  return number(word.substr(2)) / 8;
}

// One declaration: `.align 8 .b8 name[24]`.
struct declaration {
  std::string_view name;
  std::size_t bytes = 0;
  std::size_t alignment = 1;
  std::size_t element = 0;
};

class ptx_parser {
 public:
  explicit ptx_parser(std::string_view text) : tokens_(text) {}

  std::shared_ptr<const image> parse() {
    bool has_version = false;
    for (int depth = 0; !tokens_.at_end();) {
      const auto word = tokens_.current();
      if (word == ".version") has_version = true;
      if (word == "{") ++depth;
      if (word == "}") --depth;
      if (depth == 0 && word == ".entry") {
        parse_entry();
        continue;
      }
      if (depth == 0 && (word == ".global" || word == ".const")) {
        parse_variable();
        continue;
      }
      tokens_.next();
    }
    return has_version ? std::make_shared<const image>(std::move(result_)) : nullptr;
  }

 private:
  declaration parse_declaration() {
    declaration d;
    std::size_t element = 0, count = 1;
    while (!tokens_.at_end()) {
      const auto word = tokens_.current();
      if (word == ".align") {
        tokens_.next();
        d.alignment = number(tokens_.current());
      } else if (word == "[") {
        tokens_.next();
        if (tokens_.current() != "]") count *= number(tokens_.current());
      } else if (word == "," || word == ")" || word == ";" || word == "=") {
        break;
      } else if (const auto bytes = type_bytes(word)) {
        element = bytes;
      } else if (word[0] != '.' && word != "]" && element) {
        d.name = word;
      }
      tokens_.next();
    }
    d.bytes = element * count;
    d.element = element;
    d.alignment = std::max(d.alignment, element);
    return d;
  }

  void parse_entry() {
    auto kernel = std::make_shared<kernel_info>();
    tokens_.next();
    kernel->name = tokens_.current();
    tokens_.next();
    if (tokens_.current() == "(") {
      while (!tokens_.at_end() && tokens_.current() != ")") {
        tokens_.next(); // "(" or ","
        if (tokens_.current() == ")") break;
        add_parameter(*kernel, parse_declaration());
      }
      tokens_.next();
    }
    while (!tokens_.at_end() && tokens_.current() != "{" && tokens_.current() != ";") parse_directive(*kernel);
    result_.kernels.push_back(std::move(kernel));
  }

  static void add_parameter(kernel_info& kernel, const declaration& d) {
    parameter p;
    p.offset = (kernel.parameter_bytes + d.alignment - 1) / d.alignment * d.alignment;
    p.size = d.bytes;
    kernel.parameter_bytes = p.offset + p.size;
    kernel.parameters.push_back(p);
  }

  void parse_directive(kernel_info& kernel) {
    const bool bounds = tokens_.current() == ".maxntid" || tokens_.current() == ".reqntid";
    tokens_.next();
    if (!bounds) return;
    kernel.max_threads = 1;
    while (!tokens_.at_end() && std::isdigit(static_cast<unsigned char>(tokens_.current()[0]))) {
      kernel.max_threads *= static_cast<int>(number(tokens_.current()));
      tokens_.next();
      if (tokens_.current() == ",") tokens_.next();
    }
  }

  void parse_variable() {
    tokens_.next();
    const auto d = parse_declaration();
    variable_info variable;
    variable.name = d.name;
    variable.bytes = d.bytes;
    if (tokens_.current() == "=") variable.initial = parse_initial(d);
    while (!tokens_.at_end() && tokens_.current() != ";") tokens_.next();
    if (!variable.name.empty() && variable.bytes) result_.variables.push_back(std::move(variable));
  }

  // Integers, as the compiler writes most initial values; anything else (addresses of other variables, floats in 0f...
  // form) leaves zeros.
  std::vector<std::byte> parse_initial(const declaration& d) {
    std::vector<std::byte> bytes(d.bytes);
    bool negative = false;
    for (std::size_t at = 0; !tokens_.at_end() && tokens_.current() != ";"; tokens_.next()) {
      const auto word = tokens_.current();
      if (word == "-") negative = true;
      if (!std::isdigit(static_cast<unsigned char>(word[0])) || at + d.element > bytes.size()) continue;
      std::uint64_t value = number(word);
      if (negative) value = ~value + 1;
      negative = false;
      std::memcpy(bytes.data() + at, &value, d.element);
      at += d.element;
    }
    return bytes;
  }

  ptx_tokens tokens_;
  image result_;
};

} // namespace

std::shared_ptr<const image> parse_ptx(std::string_view text) { return ptx_parser(text).parse(); }

} // namespace capturesan::sim
