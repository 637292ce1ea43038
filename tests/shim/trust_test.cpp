// What a trace is worth after its process was killed: nothing that a call had committed is lost, nothing is torn.
// Expected values: the program's own count of calls that returned (see storm.cpp).
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/reader.h"
#include "tests/support/catch.hpp"

namespace fs = std::filesystem;
using namespace capturesan;

namespace {

struct storm_run {
  fs::path folder;
  pid_t pid = -1;
  int out = -1;

  explicit storm_run(int threads, const char* end, const char* total = nullptr) {
    std::string name = (fs::temp_directory_path() / "capturesan-trust-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder = name;
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    const std::string progress = (folder / "progress").string();
    const std::string count = std::to_string(threads);
    pid = fork();
    if (pid == 0) {
      dup2(pipe_ends[1], STDOUT_FILENO);
      close(pipe_ends[0]);
      setenv("LD_PRELOAD", CAPTURESAN_SHIM, 1);
      setenv("LD_LIBRARY_PATH", CAPTURESAN_FAKE_DRIVER, 1);
      setenv("CAPTURESAN_OUTPUT", (folder / "trace").c_str(), 1);
      execl(CAPTURESAN_STORM, "storm", progress.c_str(), count.c_str(), end, total, static_cast<char*>(nullptr));
      _exit(127);
    }
    close(pipe_ends[1]);
    out = pipe_ends[0];
    char line[8];
    REQUIRE(read(out, line, sizeof(line)) == 8); // "started\n"
  }
  ~storm_run() {
    close(out);
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  storm_run(const storm_run&) = delete;
  storm_run& operator=(const storm_run&) = delete;

  int wait_for_end() const {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  std::map<std::uint64_t, std::uint64_t> progress() const {
    std::map<std::uint64_t, std::uint64_t> counts;
    const int fd = open((folder / "progress").c_str(), O_RDONLY);
    std::uint64_t value = 0;
    for (std::uint64_t n = 0; read(fd, &value, sizeof(value)) == sizeof(value); ++n) {
      if (value != 0) counts[n] = value;
    }
    close(fd);
    return counts;
  }
  fs::path trace() const {
    for (const auto& entry : fs::directory_iterator(folder / "trace")) {
      if (entry.path().extension() == trace::file_suffix) return entry.path();
    }
    return {};
  }
};

struct read_back {
  std::map<std::uint64_t, std::uint64_t> last; // of each thread of the program
  std::uint64_t torn = 0, gaps = 0, lost = 0, threads = 0;
};

read_back read_trace(const fs::path& path) {
  read_back r;
  auto file = trace_file::open(std::move(open_file(path.string()).value()), path.string());
  REQUIRE(file);
  trace_file& f = *file.value();
  f.refresh();
  r.lost = f.process().lost;
  for (thread_cursor* c : f.cursors()) {
    ++r.threads;
    while (c->advance()) {
      const trace::event& e = c->current();
      const call_ref& call = f.process().call(e.call);
      if (call.cls != trace::call_class::query) continue;
      const std::uint64_t number = e.arg[0] >> 40;
      const std::uint64_t n = e.arg[0] & 0xffffffffffull;
      r.torn += e.result != 0 || e.end < e.begin || call.symbol != "cuEventQuery";
      r.gaps += n != r.last[number] + 1;
      r.last[number] = n;
    }
  }
  return r;
}

void check(const storm_run& run) {
  const read_back r = read_trace(run.trace());
  CHECK(r.lost == 0);
  CHECK(r.torn == 0);
  CHECK(r.gaps == 0);
  std::uint64_t missing = 0;
  std::uint64_t calls = 0;
  for (const auto& [number, count] : run.progress()) {
    const auto found = r.last.find(number);
    const std::uint64_t recorded = found == r.last.end() ? 0 : found->second;
    missing += recorded < count ? 1 : 0;
    // One call may have been recorded and not yet counted by the program.
    CHECK(recorded <= count + 1);
    calls += count;
  }
  CHECK(missing == 0);
  CHECK(calls > 0);
}

} // namespace

TEST_CASE("kill -9 loses nothing that was committed") {
  std::mt19937 random(20261129);
  const char* rounds_text = std::getenv("CAPTURESAN_KILL_ROUNDS"); // 200 in the long form
  const int rounds = rounds_text == nullptr ? 6 : std::atoi(rounds_text);
  for (const int threads : {1, 8, 64}) {
    for (int i = 0; i < rounds; ++i) {
      storm_run run(threads, nullptr);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 30000));
      kill(run.pid, SIGKILL);
      REQUIRE(run.wait_for_end() == 128 + SIGKILL);
      if (!run.progress().empty()) check(run);
    }
  }
}

TEST_CASE("every other end leaves a whole trace") {
  const std::map<std::string, int> ends = {
      {"exit", 3}, {"_exit", 3}, {"quick_exit", 3}, {"abort", 128 + SIGABRT}, {"segv", 128 + SIGSEGV}};
  for (const auto& [end, code] : ends) {
    INFO(end);
    storm_run run(4, end.c_str());
    REQUIRE(run.wait_for_end() == code);
    check(run);
    const read_back r = read_trace(run.trace());
    for (const auto& [number, count] : run.progress()) CHECK(r.last.at(number) == count);
  }
}

TEST_CASE("threads that come and go share chunks") {
  const char* total = std::getenv("CAPTURESAN_JOINED_THREADS"); // 100,000 in the long form
  const std::string threads = total == nullptr ? "4096" : total;
  storm_run run(64, "join", threads.c_str());
  REQUIRE(run.wait_for_end() == 3);
  check(run);
  const read_back r = read_trace(run.trace());
  const std::uint64_t joined = std::stoull(threads) / 64 * 64;
  CHECK(r.last.size() == joined);
  // A thread of three calls is 4 slots, 256 bytes; one chunk a thread would be 16 KiB.
  CHECK(fs::file_size(run.trace()) < (8u << 20) + joined * 512);
}

TEST_CASE("a thousand threads alive at once take at most 64 KiB each") {
  storm_run run(1000, "join", "1000");
  REQUIRE(run.wait_for_end() == 3);
  check(run);
  const read_back r = read_trace(run.trace());
  CHECK(r.last.size() == 1000);
  // All that a thread has in the shim is its chunk in the mapped file and 72 bytes.
  CHECK(fs::file_size(run.trace()) < 1000u * 64 * 1024);
}
