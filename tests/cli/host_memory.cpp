// Memory of the host that a captured copy reads, and calls that take it away, or seem to. The mistake is made by the
// cases that say so; every other leaves the memory as it is (mmap(2), munmap(2), realloc(3)).
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>

#include "examples/example.h"

namespace {

constexpr std::size_t room = 5000, more = 777777; // `more`: the size that slow_realloc.c waits at

CUgraphExec copy_from(CUstream stream, const void* source) {
  const CUdeviceptr data = example::allocate();
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CHECK(cuMemcpyHtoDAsync(data, source, 64, stream));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  return example::instantiate(graph);
}

// Another thread's realloc has let go of the block but has not returned; this one gets it.
int race(CUstream stream) {
  auto* moved = static_cast<std::atomic<int>*>(dlsym(RTLD_DEFAULT, "slow_realloc_moved"));
  auto* go_on = static_cast<std::atomic<int>*>(dlsym(RTLD_DEFAULT, "slow_realloc_go_on"));
  if (moved == nullptr || go_on == nullptr) return 2;
  mallopt(M_ARENA_MAX, 1);
  example::replay(copy_from(stream, std::malloc(64)), stream, 1); // from now on the calls are looked at
  void* first = std::malloc(room);
  void* barrier = std::malloc(64); // so that the first cannot grow where it is
  std::thread other([&] { first = std::realloc(first, more); });
  const void* const before = first;
  while (moved->load() == 0) std::this_thread::yield();
  void* mine = std::malloc(room);
  const CUgraphExec exec = copy_from(stream, mine);
  go_on->store(1);
  other.join();
  example::replay(exec, stream, 1);
  std::puts(mine == before ? "same block" : "other block");
  return barrier == nullptr;
}

} // namespace

int main(int, char** argv) {
  const example::device device;
  const CUstream stream = example::make_stream();
  const char* what = argv[1];
  if (std::strcmp(what, "race") == 0) return race(stream);
  if (std::strncmp(what, "realloc", 7) == 0) {
    void* block = std::malloc(room);
    void* barrier = std::malloc(64);
    const CUgraphExec exec = copy_from(stream, block);
    const std::size_t size = std::strcmp(what, "realloc-moves") == 0   ? more // the mistake
                             : std::strcmp(what, "realloc-fails") == 0 ? SIZE_MAX / 2 - 4096
                                                                       : room;
    void* now = std::realloc(block, size);
    example::replay(exec, stream, 1);
    return barrier == nullptr || (now == nullptr) != (size > more);
  }
  void* pages = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* at = static_cast<char*>(pages);
  const CUgraphExec exec = copy_from(stream, at + 256);
  int result = 0;
  if (std::strcmp(what, "unaligned") == 0) result = munmap(at + 256, 64);
  if (std::strcmp(what, "nothing") == 0) result = munmap(at, 0);
  if (std::strcmp(what, "too-much") == 0) result = munmap(at, SIZE_MAX - 4095);
  if (std::strcmp(what, "unmapped") == 0) {
    // The mistake. Something else is there at once, so that the replay does not fail by itself.
    result = munmap(at, 64); // the whole page goes
    mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  }
  example::replay(exec, stream, 1);
  std::printf("munmap %d\n", result);
}
