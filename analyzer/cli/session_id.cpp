#include "analyzer/cli/session_id.h"

#include <ctime>
#include <fmt/format.h>
#include <unistd.h>

namespace capturesan::cli {

std::string new_session_id() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return fmt::format("{}-{}", text, ::getpid());
}

} // namespace capturesan::cli
