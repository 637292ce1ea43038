// Text patterns of conditions: globs (* and ?) and regular expressions of linear time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace capturesan {

class pattern {
 public:
  virtual ~pattern() = default;
  virtual bool matches(std::string_view text) const = 0;

  // The whole text must match. Never fails.
  static std::shared_ptr<const pattern> glob(std::string_view text);
  // Any part may match. Null and a reason if it is not a regular expression.
  static std::shared_ptr<const pattern> regex(const std::string& text, std::string& error);
};

} // namespace capturesan
