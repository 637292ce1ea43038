#include <fmt/format.h>
#include <unistd.h>

#include "analyzer/cli/command.h"
#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/terminal.h"
#include "trace/call.h"
#include "trace/format.h"

namespace capturesan::cli {

int version_command(const invocation&) {
  print(fmt::format("capturesan {}, trace format {}.{}, {} driver calls known\n", CAPTURESAN_VERSION,
                    trace::format_major, trace::format_minor, trace::call_count));
  return exit_ok;
}

} // namespace capturesan::cli
