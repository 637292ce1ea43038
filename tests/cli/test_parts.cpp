// Decisions of the command that need no process: exit codes, drivers, folders, environments, sizes, near misses.
#include <algorithm>

#include "analyzer/cli/command.h"
#include "analyzer/cli/driver_choice.h"
#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/installation.h"
#include "analyzer/cli/session_environment.h"
#include "analyzer/cli/trace_folder.h"
#include "tests/support/catch.hpp"

using namespace capturesan;
using namespace capturesan::cli;

TEST_CASE("the first reason that applies gives the exit code") {
  // From the top of the list down: everything applies, then one less each time.
  outcome o{true, true, true, true, 9, true, false};
  CHECK(decide_exit(o).code == 5);
  o.internal_error = false;
  CHECK(decide_exit(o).code == 1);
  o.findings = false;
  CHECK(decide_exit(o).code == 3);
  o.strict = false;
  CHECK(decide_exit(o).code == 9);
  o.child_exit = 0;
  CHECK(decide_exit(o).code == 4);
  o.allow_empty = true;
  CHECK(decide_exit(o).code == 0);
}

TEST_CASE("which driver") {
  driver_probe gpu;
  gpu.device = gpu.loadable = true;
  driver_probe no_library;
  no_library.device = true;
  const driver_probe none;
  CHECK_FALSE(choose_driver("auto", gpu, true).value().simulated);
  CHECK(choose_driver("auto", gpu, true).value().remark.empty());
  CHECK_FALSE(choose_driver("real", gpu, false).value().simulated);
  CHECK(choose_driver("sim", gpu, true).value().simulated);
  CHECK(choose_driver("sim", gpu, true).value().remark.empty());
  for (const driver_probe& probe : {none, no_library}) {
    CHECK(choose_driver("auto", probe, true).value().simulated);
    CHECK_FALSE(choose_driver("auto", probe, true).value().remark.empty());
    CHECK_FALSE(choose_driver("real", probe, true));
    CHECK_FALSE(choose_driver("auto", probe, false));
  }
  CHECK_FALSE(choose_driver("sim", gpu, false));
}

TEST_CASE("network file systems are known by their magic, local ones are not among them") {
  // statfs(2)
  CHECK(network_file_system(0x6969) == "NFS");
  CHECK(network_file_system(0xff534d42) == "CIFS");
  for (const std::uint64_t local : {0xef53ull, 0x01021994ull, 0x9123683eull, 0x58465342ull, 0x794c7630ull}) {
    CHECK(network_file_system(local).empty()); // ext4, tmpfs, btrfs, XFS, overlayfs
  }
}

TEST_CASE("a folder without room is not fit") { CHECK_FALSE(unfit_for_trace("/tmp", UINT64_MAX).empty()); }

TEST_CASE("sizes") {
  bool ok = false;
  CHECK(parse_bytes("1GiB", ok) == 1073741824);
  CHECK(ok);
  CHECK(parse_bytes("64MiB", ok) == 67108864);
  CHECK(parse_bytes("123", ok) == 123);
  CHECK(ok);
  for (const char* wrong : {"", "GiB", "-1", "1 GiB", "1g", "99999999999999999999", "99999999999TiB", "0x10"}) {
    parse_bytes(wrong, ok);
    CHECK_FALSE(ok);
  }
}

TEST_CASE("the near miss and the far one") {
  const std::vector<std::string_view> names = {"check", "report", "rules", "run"};
  CHECK(did_you_mean("chekc", names) == "check");
  CHECK(did_you_mean("repotr", names) == "report");
  CHECK(did_you_mean("rn", names) == "run");
  CHECK(did_you_mean("frobnicate", names).empty());
}

TEST_CASE("every option a command names exists, and every option belongs to a command") {
  for (const command& c : commands()) {
    for (const std::string_view name : c.accepts.names) CHECK(find_option(name));
  }
  for (const option_info& option : all_options()) {
    const auto takes_it = [&](const command& c) {
      return std::find(c.accepts.names.begin(), c.accepts.names.end(), option.name) != c.accepts.names.end();
    };
    INFO(option.name);
    CHECK(std::any_of(commands().begin(), commands().end(), takes_it));
    if (!option.default_text.empty()) CHECK(check_value(option, std::string(option.default_text)).empty());
  }
}

TEST_CASE("replacing variables of an environment") {
  const char* before[] = {"A=1", "LD_PRELOAD=x", "LD_PRELOADED=y", nullptr};
  const std::vector<std::string> after = with_variables(before, {{"LD_PRELOAD", "shim:x"}, {"NEW", ""}});
  CHECK(after == std::vector<std::string>{"A=1", "LD_PRELOADED=y", "LD_PRELOAD=shim:x", "NEW="});
}
