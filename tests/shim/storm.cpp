// Makes driver calls as fast as it can on many threads and counts them where a kill cannot reach: in a shared file.
//   storm PROGRESS_FILE THREADS [end [TOTAL]]
// Thread n queries the "events" (n << 40) + 1, + 2, ...: every recorded call says which it was. `end`: how the program
// ends by itself after 20,000 calls a thread: exit | _exit | quick_exit | abort | segv; or join: TOTAL threads of three
// calls each, THREADS of them alive at the same time.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#include <atomic>
#include <barrier>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr int max_threads = 1 << 17;
constexpr std::uint64_t calls_before_end = 20000;

using progress_table = std::atomic<std::uint64_t>[max_threads];

void work(std::atomic<std::uint64_t>& progress, std::uint64_t number, std::uint64_t calls) {
  for (std::uint64_t n = 1; n <= calls; ++n) {
    cuEventQuery(reinterpret_cast<CUevent>(number << 40 | n));
    progress.store(n, std::memory_order_relaxed); // the call has returned: its record must survive
  }
}

void end_by(const char* how) {
  if (std::strcmp(how, "_exit") == 0) _exit(3);
  if (std::strcmp(how, "quick_exit") == 0) std::quick_exit(3);
  if (std::strcmp(how, "abort") == 0) std::abort();
  if (std::strcmp(how, "segv") == 0) raise(SIGSEGV);
  std::exit(3);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(progress_table)) != 0) return 2;
  void* at = mmap(nullptr, sizeof(progress_table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return 2;
  auto& progress = *static_cast<progress_table*>(at);
  const int threads = std::atoi(argv[2]);
  const char* end = argc > 3 ? argv[3] : nullptr;
  const bool join = end != nullptr && std::strcmp(end, "join") == 0;
  const std::uint64_t calls = end == nullptr ? ~std::uint64_t{0} : join ? 3 : calls_before_end;

  const int total = argc > 4 ? std::atoi(argv[4]) : 4096;
  if (threads < 1 || threads > max_threads || total > max_threads) return 2;

  std::puts("started");
  std::fflush(stdout);
  std::uint64_t number = 0;
  for (int round = 0; round < (join ? total / threads : 1); ++round) {
    std::vector<std::thread> pool;
    std::barrier together(threads);
    for (int i = 0; i < threads; ++i, ++number) {
      pool.emplace_back([&progress, &together, number, calls, join] {
        work(progress[number], number, calls);
        if (join) together.arrive_and_wait(); // all of them are alive now, with records of their own
      });
    }
    for (auto& t : pool) t.join();
  }
  end_by(end == nullptr ? "exit" : end);
}
