// A call that is wrong in itself may break the capture of its stream. Which do is a measured fact: the rows "in
// capture: launch ..." of tests/golden/facts_580.159.csv, each with result, status after it, answer of EndCapture and
// nodes, once for a global and once for a relaxed capture (tests/sim/facts_both.h).
#include <fstream>
#include <sstream>

#include "tests/unit/support.h"

using namespace capturesan;

namespace {

constexpr std::uint64_t stream = 0x1000;

struct measured {
  std::string name;
  int result = 0, status = 0, end = 0;
  std::uint64_t mode = 0;
};

std::vector<measured> launches() {
  std::ifstream in(std::string(CAPTURESAN_GOLDEN) + "/facts_580.159.csv");
  REQUIRE(in);
  std::vector<measured> out;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("\"in capture: launch")) continue;
    const auto quote = line.find('"', 1);
    std::istringstream numbers(line.substr(quote + 2));
    for (const std::uint64_t mode : {0u, 2u}) {
      measured m;
      int nodes = 0;
      m.name = line.substr(1, quote - 1);
      m.mode = mode;
      if (numbers >> m.result >> m.status >> m.end >> nodes) out.push_back(m);
    }
  }
  return out;
}

} // namespace

TEST_CASE("a launch that is wrong in itself is the culprit exactly where the driver said that it broke the capture") {
  int broke = 0, harmless = 0;
  for (const measured& m : launches()) {
    if (m.result == 0 || is_capture_result(m.result)) continue;
    INFO(m.name << ", mode " << m.mode);
    trace_builder b;
    const auto begin = b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = stream, .arg = {m.mode}});
    const auto status = static_cast<trace::capture_status>(m.status);
    b.status(1, stream, begin, status);
    b.call(1, {.symbol = "cuLaunchKernel", .result = m.result, .stream = stream});
    b.status(1, stream, begin, status);
    b.call(1, {.symbol = "cuStreamEndCapture", .result = m.end, .stream = stream, .arg = {0x50, 1}});
    const judged j(b.bytes());
    if (status != trace::capture_status::invalidated) {
      ++harmless;
      // Nobody is blamed for the capture; that its graph lacks the launch is a suspicion.
      CHECK(std::all_of(j.findings().begin(), j.findings().end(),
                        [](const finding& f) { return f.rule == "CS111" && f.conf == confidence::suspected; }));
      continue;
    }
    ++broke;
    REQUIRE(j.rules() == std::vector<std::string>{"CS105"});
    CHECK(j.findings()[0].result == m.result);
    CHECK(j.findings()[0].conf == confidence::likely);
    CHECK(j.findings()[0].cascade.size() == 1); // the end
  }
  CHECK(broke == 4);    // no grid, too many threads; in both modes
  CHECK(harmless == 4); // without values, of no function
}

TEST_CASE("a refusal that comes after a launch broke the capture follows it") {
  trace_builder b;
  const auto begin = b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = stream});
  for (const auto& [symbol, result] : {std::pair{"cuLaunchKernel", 1}, std::pair{"cuStreamSynchronize", 900}}) {
    b.status(1, stream, begin, trace::capture_status::invalidated);
    b.call(1, {.symbol = symbol, .result = result, .stream = stream});
  }
  b.status(1, stream, begin, trace::capture_status::invalidated);
  b.call(1, {.symbol = "cuStreamEndCapture", .result = 901, .stream = stream});
  const judged j(b.bytes());
  REQUIRE(j.rules() == std::vector<std::string>{"CS105", "CS101"});
  CHECK(j.findings()[0].cascade.size() == 1);
  CHECK(j.findings()[1].after == j.findings()[0].fingerprint);
}

TEST_CASE("a wrong call on another stream is not blamed for what broke the capture") {
  trace_builder b;
  const auto begin = b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = stream});
  b.status(1, stream, begin, trace::capture_status::invalidated);
  b.call(1, {.symbol = "cuLaunchKernel", .result = 1, .stream = 0x2000});
  b.status(1, stream, begin, trace::capture_status::invalidated);
  b.call(1, {.symbol = "cuStreamEndCapture", .result = 901, .stream = stream});
  CHECK(judged(b.bytes()).rules() == std::vector<std::string>{"CS902"}); // culprit not seen
}
