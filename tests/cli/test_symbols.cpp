// Names of return addresses of this very program, whose functions and lines are known.
#include "analyzer/symbols.h"

#include <algorithm>
#include <cstdio>
#include <link.h>
#include <unistd.h>

#include "tests/support/catch.hpp"

using capturesan::stack_frame;
using capturesan::symbols;

namespace {

std::uint64_t address_of_caller() __attribute__((noinline));
std::uint64_t address_of_caller() { return reinterpret_cast<std::uint64_t>(__builtin_return_address(0)); }

constexpr int inlined_line = __LINE__ + 2;
inline __attribute__((always_inline)) std::uint64_t inlined_call() {
  std::uint64_t address = address_of_caller();
  asm volatile("" : "+r"(address)); // no tail call
  return address;
}

constexpr int outer_line = __LINE__ + 2;
__attribute__((noinline)) std::uint64_t outer_call() {
  std::uint64_t address = inlined_call();
  asm volatile("" : "+r"(address));
  return address;
}

std::uint64_t own_bias() {
  std::uint64_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<std::uint64_t*>(to) = info->dlpi_addr;
        return 1; // the program itself comes first
      },
      &bias);
  return bias;
}

std::string own_path() {
  char path[4096] = {};
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path - 1);
  return {path, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

} // namespace

TEST_CASE("a return address has its inlined frames, functions and lines") {
  symbols names;
  const std::uint64_t address = outer_call();
  const std::vector<stack_frame> frames = names.frame(own_path(), "", own_bias(), address);
  REQUIRE(frames.size() == 2);
  CHECK(frames[0].symbol.find("inlined_call") != std::string::npos);
  CHECK(frames[0].line == inlined_line);
  CHECK(frames[1].symbol.find("outer_call") != std::string::npos);
  CHECK(frames[1].line == outer_line);
  for (const stack_frame& frame : frames) {
    CHECK(frame.address == address);
    CHECK(frame.module == "cli_units");
    CHECK(frame.file.ends_with("/tests/cli/test_symbols.cpp"));
    CHECK(frame.file.find("..") == std::string::npos);
    CHECK(frame.symbol.find("_Z") == std::string::npos);
  }
  // Answers are cached by place in the file, so the same file at another address must get its own addresses.
  const std::vector<stack_frame> moved = names.frame(own_path(), "", own_bias() + 0x10000, address + 0x10000);
  REQUIRE(moved.size() == 2);
  CHECK(moved[1].symbol == frames[1].symbol);
  CHECK(moved[1].address == address + 0x10000);
}

TEST_CASE("without debug information the symbol table serves") {
  symbols names;
  struct found {
    std::string path;
    std::uint64_t bias = 0;
  } libc;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        if (std::string_view(info->dlpi_name).find("libc.so") == std::string_view::npos) return 0;
        *static_cast<found*>(to) = {info->dlpi_name, info->dlpi_addr};
        return 1;
      },
      &libc);
  REQUIRE(!libc.path.empty());
  const auto inside_puts = reinterpret_cast<std::uint64_t>(&::getppid) + 4;
  const std::vector<stack_frame> frames = names.frame(libc.path, "", libc.bias, inside_puts);
  REQUIRE(!frames.empty());
  CHECK(frames.back().symbol.find("getppid") != std::string::npos);
  CHECK(frames.back().offset == 4);
}

TEST_CASE("a file that is another one, gone or no ELF file gives the module and the offset") {
  symbols names;
  for (const auto& [path, build_id] : {std::pair<std::string, std::string>{own_path(), "not its build id"},
                                       {"/no/such/libthing.so", ""},
                                       {"/proc/self/status", ""},
                                       {"", ""}}) {
    const std::vector<stack_frame> frames = names.frame(path, build_id, 0x1000, 0x1234);
    REQUIRE(frames.size() == 1);
    CHECK(frames[0].symbol.empty());
    CHECK(frames[0].offset == 0x234);
    CHECK(frames[0].address == 0x1234);
    CHECK(frames[0].module == path.substr(path.rfind('/') + 1));
  }
}

TEST_CASE("names are demangled, and only names that are mangled") {
  symbols names;
  CHECK(names.demangle("_Z3fooPfi") == "foo(float*, int)"); // Itanium C++ ABI, 5.1
  CHECK(names.demangle("foo") == "foo");
  CHECK(names.demangle("_Zrubbish") == "_Zrubbish");
  CHECK(names.demangle("").empty());
}
