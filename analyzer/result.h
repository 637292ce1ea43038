// Value or error with a position; the one error style of the analyzer libraries (C++20 has no std::expected).
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capturesan {

struct source_position {
  std::string file;
  int line = 0, column = 0; // from 1; 0 = not known
};

struct problem {
  source_position at;
  std::string code;    // stable, such as "CGE012"; may be empty
  std::string message; // one sentence, no newline
  std::string hint;    // what to do next; may be empty
  std::string excerpt; // the line of the file the position is in; of a long one the part around it
  int length = 1;      // characters the position covers
  int caret = 0;       // column of the position in the excerpt; 0 = the same as in the file
};

// Either a value or at least one problem.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : state_(std::move(value)) {}
  result(problem p) : state_(std::vector<problem>{std::move(p)}) {}
  result(std::vector<problem> ps) : state_(std::move(ps)) {}

  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  T& value() { return std::get<T>(state_); }
  const T& value() const { return std::get<T>(state_); }
  const std::vector<problem>& problems() const { return std::get<std::vector<problem>>(state_); }

 private:
  std::variant<T, std::vector<problem>> state_;
};

} // namespace capturesan
