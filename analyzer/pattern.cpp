#include "analyzer/pattern.h"

#include <re2/re2.h>

namespace capturesan {

namespace {

class re2_pattern final : public pattern {
 public:
  re2_pattern(const std::string& text, bool whole) : re_(text, options()), whole_(whole) {}
  bool ok() const { return re_.ok(); }
  std::string error() const { return re_.error(); }
  bool matches(std::string_view text) const override {
    const re2::StringPiece piece(text.data(), text.size());
    return whole_ ? RE2::FullMatch(piece, re_) : RE2::PartialMatch(piece, re_);
  }

 private:
  static RE2::Options options() {
    RE2::Options o;
    o.set_log_errors(false);
    o.set_encoding(RE2::Options::EncodingLatin1); // names may be any bytes
    o.set_dot_nl(true);
    o.set_max_mem(1 << 20);
    return o;
  }
  RE2 re_;
  bool whole_;
};

} // namespace

std::shared_ptr<const pattern> pattern::glob(std::string_view text) {
  std::string re;
  for (const char c : text) {
    if (c == '*') {
      re += ".*";
    } else if (c == '?') {
      re += '.';
    } else {
      re += RE2::QuoteMeta(re2::StringPiece(&c, 1));
    }
  }
  return std::make_shared<re2_pattern>(re, true);
}

std::shared_ptr<const pattern> pattern::regex(const std::string& text, std::string& error) {
  auto p = std::make_shared<re2_pattern>(text, false);
  if (p->ok()) return p;
  error = p->error();
  return nullptr;
}

} // namespace capturesan
