// Message templates of rules: text with `{field}` or `{field|hex|size|dur}` in it; `{{` and `}}` stand for braces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/condition.h"

namespace capturesan {

class message_template {
 public:
  // Adds every problem it finds. `never`: groups of fields that never have a value where it is used.
  static message_template parse(std::string_view text, std::vector<condition_problem>& problems,
                                const std::set<field_group>& never = {});
  std::string fill(const field_source& s) const;
  bool empty() const { return parts_.empty(); }

 private:
  enum class format : std::uint8_t { plain, hex, size, duration };
  static bool applies(format as, field_type type);
  struct part {
    std::string text;
    field_id field = field_id::count; // count: text
    format as = format::plain;
  };
  std::vector<part> parts_;
};

// As messages show a value: words by name, results by name and number, addresses in hex, sizes and times with units.
std::string show(field_id id, const field_value& v);

} // namespace capturesan
