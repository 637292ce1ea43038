// What is found in the machine code of sass/kernels.cu: the words that a launch uses as addresses, and those that look
// so.
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "analyzer/sass_follow.h"
#include "tests/support/catch.hpp"

using namespace capturesan::sass;

namespace {

// As in sass/kernels.cu.
struct work {
  std::uint64_t data = 0x7f1000000000, number = 40, other = 0x7f2000000000;
  std::int32_t flag = 0, n = 64;
  std::uint64_t places = 0x7f3000000000;
};
constexpr std::uint64_t memory = 4096; // bytes behind each of the three
constexpr int architectures[] = {80, 90, 120};

std::string text_of(int sm) {
  std::ifstream file(fmt::format("{}/kernels_sm{}.txt", CAPTURESAN_SASS, sm));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(!text.empty());
  return text;
}

listing code_of(int sm, const char* kernel) {
  auto all = parse(text_of(sm), kernel);
  REQUIRE(all.size() == 1);
  CHECK(all[0].sm == sm);
  return std::move(all[0]);
}

std::optional<use> ask(const listing& code, const work& w, std::size_t offset, bool inside_only = false) {
  question q;
  q.how.sm = code.sm;
  q.how.parameters = std::as_bytes(std::span(&w, 1));
  q.how.block[0] = 128;
  q.how.grid[0] = 2;
  q.offset = static_cast<std::uint32_t>(offset);
  std::memcpy(&q.begin, reinterpret_cast<const char*>(&w) + offset, 8);
  q.end = q.begin + memory;
  q.inside_only = inside_only;
  return find_use(code, q);
}

constexpr std::size_t data = offsetof(work, data), number = offsetof(work, number), other = offsetof(work, other),
                      places = offsetof(work, places);

struct expectation {
  const char* kernel;
  std::size_t word;
  bool used;
  work with = {};
};

work flag_set() { return {.flag = 1}; }
work none() { return {.n = 0}; }
work null() { return {.other = 0}; }
// A number that is an address of something that is gone.
work address_as_number() { return {.number = 0x7f5000000000}; }

} // namespace

// What each kernel does is in its source.
TEST_CASE("words that a launch uses as addresses, and words that only look so") {
  const expectation all[] = {
      {"plain", data, true},
      {"plain", data, false, none()},
      {"plain", other, false},
      {"plain", number, false, address_as_number()},
      {"flagged", data, true},
      {"flagged", other, true, flag_set()},
      {"flagged", other, false},
      {"checked", other, true},
      {"checked", other, false, null()},
      {"gathered", data, true},
      {"gathered", places, true},
      {"gathered", other, true}, // at an index that is not known
      {"gathered", other, false, none()},
      {"strided", other, true},
      {"strided", other, false, none()},
      {"divided", data, true},
      {"divided", other, true},
      {"second_warp", other, true},
      {"last_lane", other, true},
      {"staged", data, true},
      {"staged", other, true},
      {"copied_async", other, true},
      {"added_up", data, true},
      {"added_up", data, false, none()},
      {"selected", data, true},
      {"selected", other, false},
      {"selected", other, true, flag_set()},
      {"selected", data, false, flag_set()},
      {"by_memory", data, true},
      {"by_memory", other, false}, // perhaps, perhaps not
      {"limit", data, true},
      {"limit", number, false, address_as_number()},
      {"offset", data, true},
      {"offset", number, false, address_as_number()},
      {"offset", data, false, address_as_number()}, // somewhere else altogether
      {"offset_in_area", number, false, address_as_number()},
      {"scaled", data, true},
      {"scaled", number, false, address_as_number()},
      {"stored", data, true},
      {"stored", number, false, address_as_number()},
      {"saved_whole", data, false},
      {"saved_whole", other, false},
      {"range", other, false},
      {"before_end", other, false},
      {"hashed", number, false, address_as_number()},
  };
  for (const int sm : architectures) {
    for (const expectation& e : all) {
      INFO("sm_" << sm << " " << e.kernel << " word " << e.word << (e.used ? "" : " not"));
      CHECK(ask(code_of(sm, e.kernel), e.with, e.word).has_value() == e.used);
    }
  }
}

TEST_CASE("a range of which both ends are known begins at the first") {
  for (const int sm : architectures) {
    work w;
    w.other = w.data + 300;
    if (sm != 120) CHECK(ask(code_of(sm, "range"), w, data, true)); // there its 64-bit arithmetic is not followed
    CHECK_FALSE(ask(code_of(sm, "range"), w, other, true));
    w.other = w.data;
    CHECK_FALSE(ask(code_of(sm, "range"), w, data)); // empty
  }
}

// An index from memory may lead anywhere: enough for a word that nothing speaks against, not for one that may be the
// end of other memory.
TEST_CASE("an address that is not known counts unless it must lie inside") {
  for (const int sm : architectures) {
    CHECK(ask(code_of(sm, "gathered"), {}, other, false));
    CHECK_FALSE(ask(code_of(sm, "gathered"), {}, other, true));
    CHECK(ask(code_of(sm, "gathered"), {}, data, true));
  }
}

TEST_CASE("the access is named") {
  const auto found = ask(code_of(90, "plain"), {}, data);
  REQUIRE(found);
  CHECK(found->instruction == "LDG.E.U8");
  const listing code = code_of(90, "plain");
  CHECK(code.code[found->at / instruction_bytes].name == "LDG.E.U8");
}

TEST_CASE("what a call or a table in local memory hides is not known") {
  for (const int sm : architectures) {
    CHECK_FALSE(ask(code_of(sm, "by_call"), {}, other));
    CHECK_FALSE(ask(code_of(sm, "from_table"), {}, data));
  }
}

TEST_CASE("an architecture whose parameters lie elsewhere is not judged") {
  listing code = code_of(90, "plain");
  code.sm = 60;
  CHECK_FALSE(ask(code, {}, data));
  code.sm = 130;
  CHECK_FALSE(ask(code, {}, data));
}

namespace {

// Instructions as the disassembler prints them, for compute capability 9.0: data at c[0x0][0x210], number at 0x218,
// other at 0x220, flag at 0x228.
listing code_from(const std::vector<std::string>& lines) {
  std::string text = "code for sm_90\n\t\tFunction : f\n";
  std::size_t at = 0;
  for (const std::string& line : lines) {
    char address[32];
    std::snprintf(address, sizeof address, "/*%04zx*/", at);
    text += address + (" " + line) + " ;\n";
    at += instruction_bytes;
  }
  auto all = parse(text, "f");
  REQUIRE(all.size() == 1);
  REQUIRE(all[0].code.size() == lines.size());
  return std::move(all[0]);
}

bool uses(const std::vector<std::string>& lines, std::size_t word, const work& w = {}) {
  return ask(code_from(lines), w, word).has_value();
}

} // namespace

TEST_CASE("an address plus something that may be an address is nobody's") {
  const std::vector<std::string> load = {"LDC.64 R2, c[0x0][0x210]", "LDC.64 R8, c[0x0][0x220]",
                                         "LDG.E.64 R4, desc[UR4][R8.64]"};
  const auto with = [&](const std::vector<std::string>& lines) {
    std::vector<std::string> all = load;
    all.insert(all.end(), lines.begin(), lines.end());
    all.emplace_back("STG.E desc[UR4][R6.64], R0");
    return uses(all, data);
  };
  // Both halves read from memory: an offset or another address.
  CHECK_FALSE(with({"IADD3 R6, P0, R4, R2, RZ", "IADD3.X R7, R5, R3, RZ, P0, !PT"}));
  CHECK_FALSE(with({"IADD.64 R6, R2, R4"}));
  // The lower half only, widened: an index.
  CHECK(with({"IADD3 R6, P0, R4, R2, RZ", "IADD3.X R7, RZ, R3, RZ, P0, !PT"}));
  CHECK(with({"SHF.R.S32.HI R5, RZ, 0x1f, R4", "IADD3 R6, P0, R4, R2, RZ", "IADD3.X R7, R5, R3, RZ, P0, !PT"}));
  CHECK(with({"IMAD.WIDE R6, R4, 0x4, R2"}));
  CHECK(with({"IADD3 R6, P0, R2, R4, RZ", "LEA.HI.X.SX32 R7, R4, R3, 0x1, P0"})); // how compilers add a sign
  // A scaled 64-bit index is no address; an unscaled one may be.
  CHECK(with({"LEA R6, P0, R4, R2, 0x2", "LEA.HI.X R7, R4, R3, R5, 0x2, P0"}));
  CHECK_FALSE(with({"LEA R6, P0, R4, R2, 0x0", "LEA.HI.X R7, R4, R3, R5, 0x0, P0"}));
  // Half of one address and half of another.
  CHECK_FALSE(with({"MOV R6, R2", "MOV R7, R5"}));
  CHECK_FALSE(with({"MOV R6, R3", "MOV R7, R2"}));
  // Taken away from something, inverted, masked to a page of its own.
  CHECK_FALSE(with({"IADD3 R6, P0, R4, -R2, RZ", "IADD3.X R7, R5, ~R3, RZ, P0, !PT"}));
  CHECK_FALSE(with({"LOP3.LUT R6, R2, R4, RZ, 0x3c, !PT", "LOP3.LUT R7, R3, R5, RZ, 0x3c, !PT"}));
}

// The loader writes addresses of variables into such places.
TEST_CASE("an immediate zero is not taken for zero") {
  CHECK_FALSE(uses({"MOV R2, 0x0", "MOV R3, 0x0", "ULDC.64 UR6, c[0x0][0x218]", "IADD3 R2, P0, R2, UR6, RZ",
                    "IADD3.X R3, R3, UR7, RZ, P0, !PT", "STG.E desc[UR4][R2.64], R0"},
                   number, address_as_number()));
}

TEST_CASE("what decides must be known") {
  const std::string access = "LDG.E R4, desc[UR4][R2.64]";
  const std::vector<std::string> head = {"LDC.64 R2, c[0x0][0x220]", "LDC.64 R8, c[0x0][0x210]",
                                         "LDG.E R0, desc[UR4][R8.64]", "ISETP.NE.AND P0, PT, R0, RZ, PT"};
  const auto with = [&](const std::vector<std::string>& lines) {
    std::vector<std::string> all = head;
    all.insert(all.end(), lines.begin(), lines.end());
    return uses(all, other);
  };
  CHECK(with({access, "EXIT"}));
  CHECK_FALSE(with({"@P0 " + access, "EXIT"}));
  CHECK_FALSE(with({"@P0 EXIT", access, "EXIT"}));
  CHECK_FALSE(with({"@P0 BRA 0x60", access, "EXIT"}));
  CHECK(with({"@P0 BRA 0x60", access, access, "EXIT"})); // either way
  CHECK(with({"@!PT EXIT", access, "EXIT"}));
  const std::string to_shared = "LDGSTS.E.LTC128B [R10], desc[UR4][R2.64]";
  CHECK(with({to_shared, "EXIT"}));
  CHECK(with({to_shared + ", PT", "EXIT"}));
  CHECK_FALSE(with({to_shared + ", P0", "EXIT"}));
  CHECK_FALSE(with({to_shared + ", !PT", "EXIT"}));
  CHECK_FALSE(with({"LDGSTS.E.LTC128B [R2.64], desc[UR4][R10.64]", "EXIT"}));
  CHECK_FALSE(with({"BRA.DIV UR7, 0x60", access, "EXIT"}));
  CHECK_FALSE(with({"BRA.U UP0, 0x60", access, "EXIT"}));
  CHECK(with({"BRA.U !UPT, 0x60", access, "EXIT"}));
  CHECK_FALSE(with({"@P0 MOV R2, R0", access, "EXIT"}));
  CHECK_FALSE(with({"BRX R4 -0x10", access, "EXIT"}));
  CHECK_FALSE(with({"CALL.REL.NOINC 0x60", access, "EXIT"}));
  // An instruction that is not known may write any register.
  CHECK_FALSE(with({"NEWOP R40, R41", access, "EXIT"}));
  CHECK_FALSE(with({"DMUL R2, R10, R12", access, "EXIT"}));
  CHECK_FALSE(with({"LDG.E.128 R0, desc[UR4][R8.64]", access, "EXIT"}));
  CHECK_FALSE(with({"IMNMX.U64 PT, PT, R2, R8, UR6, !PT, !PT", access, "EXIT"}));
  CHECK_FALSE(with({"IMNMX.U64 PT, PT, R2, R8, UR6, !PT, !PT", "LDC R2, c[0x0][0x220]", access, "EXIT"}));
  CHECK_FALSE(with({"SEL.64 R2, RZ, 0x1, P0", "LDC R2, c[0x0][0x220]", access, "EXIT"}));
  CHECK_FALSE(with({"IADD3.NEW R2, PT, PT, R2, RZ, RZ", access, "EXIT"}));
  CHECK(with({"MOV.64 R6, R2", "LDG.E R4, desc[UR4][R6.64]", "EXIT"}));
  CHECK(with({"FADD R4, R10, R12", access, "EXIT"}));
  CHECK_FALSE(with({"BRA 0x40", access})); // for ever
}

TEST_CASE("comparisons and carries of 64-bit numbers") {
  const auto reached = [](std::uint64_t a, std::uint64_t b, const char* low, const char* high) {
    work w;
    w.number = a;
    w.places = b; // at 0x230
    return uses({"LDC.64 R2, c[0x0][0x220]", "LDC.64 R4, c[0x0][0x218]", "LDC.64 R6, c[0x0][0x230]",
                 std::string("ISETP.") + low + ".U32.AND P0, PT, R4, R6, PT",
                 std::string("ISETP.") + high + ".AND.EX P1, PT, R5, R7, PT, P0", "@!P1 EXIT",
                 "LDG.E R4, desc[UR4][R2.64]"},
                other, w);
  };
  const std::uint64_t big = 0x100000000, negative = ~std::uint64_t{0};
  for (const auto& [a, b] : {std::pair{big + 5, big + 6},
                             {std::uint64_t{6}, big + 5},
                             {big + 5, big + 5},
                             {big * 2, big + 7},
                             {negative, std::uint64_t{1}}}) {
    CHECK(reached(a, b, "LT", "LT.U32") == (a < b));
    CHECK(reached(a, b, "GE", "GE.U32") == (a >= b));
    CHECK(reached(a, b, "LT", "LT") == (static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b)));
    CHECK(reached(a, b, "GT", "GT") == (static_cast<std::int64_t>(a) > static_cast<std::int64_t>(b)));
    CHECK(reached(a, b, "EQ", "EQ") == (a == b));
    CHECK(reached(a, b, "NE", "NE") == (a != b));
  }
  // other - 16 + 16, with a borrow and a carry between the halves.
  work w;
  w.other = 0x7f2000000000;
  const std::string less = "IADD3 R2, P0, R2, -0x10, RZ", more = "IADD3 R2, P0, R2, 0x10, RZ",
                    less_high = "IADD3.X R3, R3, -0x1, RZ, P0, !PT", more_high = "IADD3.X R3, RZ, R3, RZ, P0, !PT",
                    load = "LDC.64 R2, c[0x0][0x220]", access = "LDG.E R4, desc[UR4][R2.64]";
  CHECK(uses({load, less, less_high, more, more_high, access}, other, w));
  CHECK_FALSE(uses({load, less, less_high, access}, other, w));       // below the memory
  CHECK_FALSE(uses({load, less, less_high, more, access}, other, w)); // without its carry
}

TEST_CASE("damaged listings are left out, not guessed") {
  const std::string whole = text_of(90);
  for (std::size_t cut = 0; cut < whole.size(); cut += 997) CHECK_NOTHROW(parse(whole.substr(0, cut), "plain"));
  CHECK(parse("code for sm_90\nFunction : f\n/*0000*/ NOP ;\n/*0020*/ EXIT ;\n", "f").empty()); // a hole
  CHECK(parse("code for sm_90\nFunction : f\n", "f").empty());
  CHECK(parse("code for sm_90\nFunction : g\n/*0000*/ EXIT ;\n", "f").empty());
  CHECK(parse("Function : f\n/*0000*/ EXIT ;\n", "f").empty()); // of which architecture?
}
