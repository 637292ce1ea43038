// Programs that use a driver in unusual ways or moments; output and exit code must not depend on the shim.
//   odd_victim preinit | at_exit | signal | jump | deepbind PLUGIN | dlmopen PLUGIN | reload PLUGIN | tls PLUGIN |
//   forks | fork_storm | daemon | spawn | spawn_environment | child | child_environment
#define __CUDA_API_VERSION_INTERNAL 1
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

int before_constructors = -1;

// Runs before the constructor of any library, the shim's too.
void preinit(int argc, char** argv, char**) {
  if (argc > 1 && std::strcmp(argv[1], "preinit") == 0) before_constructors = static_cast<int>(cuInit(0));
}
__attribute__((section(".preinit_array"), used)) void (*preinit_entry)(int, char**, char**) = preinit;

void last_call() { std::printf("at exit: %d\n", static_cast<int>(cuMemFree_v2(0))); }

struct late_object { // destroyed after main and after every atexit handler registered before it
  ~late_object() { cuCtxSynchronize(); }
};

std::atomic<long> handled;
void on_signal(int) {
  cuEventQuery(nullptr);
  handled.fetch_add(1, std::memory_order_relaxed);
}

int signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval often{{0, 100}, {0, 100}};
  setitimer(ITIMER_PROF, &often, nullptr);
  int bad = 0;
  // Until handlers have interrupted the shim in many places.
  for (long i = 0; i < 3000000000 && handled.load(std::memory_order_relaxed) < 500; ++i) {
    bad += cuEventQuery(nullptr) != CUDA_SUCCESS ? 1 : 0;
  }
  std::printf("refused: %d, handlers ran: %s\n", bad, handled.load() > 10 ? "yes" : "no");
  return 0;
}

// Where the shim's code is, if it is there.
struct extent {
  std::uintptr_t begin = 0, end = 0;
};
int find_shim(dl_phdr_info* info, std::size_t, void* out) {
  if (std::strstr(info->dlpi_name, "libcapturesan.so") == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    *static_cast<extent*>(out) = {info->dlpi_addr + part.p_vaddr, info->dlpi_addr + part.p_vaddr + part.p_memsz};
  }
  return 1;
}

#if defined(__x86_64__)
sigjmp_buf back;
extent shim_code;
volatile int steps_left;

// After each instruction; leaves the call for good at the n-th one that is the shim's.
void on_step(int, siginfo_t*, void* state) {
  auto& registers = static_cast<ucontext_t*>(state)->uc_mcontext.gregs;
  const auto at = static_cast<std::uintptr_t>(registers[REG_RIP]);
  if (at < shim_code.begin || at >= shim_code.end) return;
  steps_left = steps_left - 1;
  if (steps_left == 0) siglongjmp(back, 1);
}

void step(bool on) {
  if (on) {
    asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "cc", "memory");
  } else {
    asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "cc", "memory");
  }
}
#endif

// Jumps out of a signal handler at one instruction of the shim after the other; then calls that must be recorded.
int jumps() {
  cuMemFree_v2(1); // what only the first call does
  for (int i = 0; i < 10; ++i) cuEventQuery(nullptr);
#if defined(__x86_64__)
  dl_iterate_phdr(find_shim, &shim_code);
  struct sigaction action {};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, nullptr);
  static int n; // a jump brings other variables into doubt
  for (n = 1; n <= 100; ++n) {
    steps_left = n;
    if (sigsetjmp(back, 1) == 0) {
      step(true);
      cuEventQuery(nullptr);
      step(false);
    }
    cuEventQuery(nullptr);
  }
#endif
  int bad = 0;
  for (CUdeviceptr i = 0; i < 50; ++i) bad += cuMemFree_v2(0x1000 + i) != CUDA_SUCCESS ? 1 : 0;
  std::printf("refused after the jumps: %d\n", bad);
  return 3;
}

using plugin_fn = int (*)(int);

int plugin(const char* path, int flags, bool own_namespace) {
  void* handle = own_namespace ? dlmopen(LM_ID_NEWLM, path, flags) : dlopen(path, flags);
  if (handle == nullptr) {
    std::printf("plugin: %s\n", dlerror());
    return 1;
  }
  auto f = reinterpret_cast<plugin_fn>(dlsym(handle, "plugin_work"));
  std::printf("plugin says %d\n", f == nullptr ? -1 : f(3));
  return 0;
}

int reload(const char* path) {
  int sum = 0;
  for (int i = 0; i < 1000; ++i) {
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return 1;
    sum += reinterpret_cast<plugin_fn>(dlsym(handle, "plugin_work"))(1);
    dlclose(handle);
  }
  std::printf("sum %d\n", sum);
  return 0;
}

int forks() {
  int ended = 0;
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      cuEventQuery(nullptr);
      _exit(i % 7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ended += WIFEXITED(status) && WEXITSTATUS(status) == i % 7 ? 1 : 0;
  }
  std::printf("%d children ended as they should\n", ended);
  return 0;
}

// Forks while four threads are in the middle of calls: whatever lock or record they hold, the child has its own.
int fork_storm() {
  std::atomic<bool> stop{false};
  std::atomic<long> refused{0};
  std::vector<std::thread> pool;
  for (int i = 0; i < 4; ++i) {
    pool.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) refused += cuEventQuery(nullptr) != CUDA_SUCCESS ? 1 : 0;
    });
  }
  int ended = 0;
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (int n = 0; n < 10; ++n) cuEventQuery(nullptr);
      _exit(i % 7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ended += WIFEXITED(status) && WEXITSTATUS(status) == i % 7 ? 1 : 0;
  }
  stop = true;
  for (auto& t : pool) t.join();
  std::printf("%d children ended as they should, %ld calls refused\n", ended, refused.load());
  return 0;
}

extern "C" char** environ;

// posix_spawn shares the parent's memory until the new image is there.
int spawn(const char* what) {
  char name[] = "odd_victim";
  char word[32];
  std::snprintf(word, sizeof(word), "%s", what);
  char* arguments[] = {name, word, nullptr};
  int good = 0;
  for (int i = 0; i < 10; ++i) {
    std::fflush(stdout);
    pid_t child = -1;
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0) return 1;
    int status = 0;
    waitpid(child, &status, 0);
    good += WIFEXITED(status) && WEXITSTATUS(status) == 5 && cuEventQuery(nullptr) == CUDA_SUCCESS ? 1 : 0;
  }
  std::printf("%d spawned\n", good);
  return 0;
}

int print_environment() {
  for (char** e = environ; *e != nullptr; ++e) {
    if (std::strncmp(*e, "LD_PRELOAD", 10) == 0 || std::strncmp(*e, "CAPTURESAN", 10) == 0) std::puts(*e);
  }
  return 5;
}

int as_daemon() {
  std::fflush(stdout);
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return 1;
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      for (int fd = 3; fd < 64; ++fd) {
        if (fd != pipe_ends[1]) close(fd); // as daemons do
      }
      const char answer = cuEventQuery(nullptr) == CUDA_SUCCESS ? 'y' : 'n';
      _exit(write(pipe_ends[1], &answer, 1) == 1 ? 0 : 1);
    }
    _exit(0);
  }
  wait(nullptr);
  char answer = '?';
  close(pipe_ends[1]);
  if (read(pipe_ends[0], &answer, 1) != 1) answer = '-';
  std::printf("daemon: %c\n", answer);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const char* path = argc > 2 ? argv[2] : "";
  const auto is = [mode](const char* name) { return std::strcmp(mode, name) == 0; };
  if (is("preinit")) {
    std::printf("before constructors: %d\n", before_constructors);
    return 4;
  }
  if (is("at_exit")) {
    std::atexit(last_call);
    static late_object late;
    std::printf("init: %d\n", static_cast<int>(cuInit(0)));
    return 4;
  }
  cuEventQuery(nullptr);
  if (is("signal")) return signals();
  if (is("jump")) return jumps();
  if (is("deepbind")) return plugin(path, RTLD_NOW | RTLD_DEEPBIND, false);
  if (is("dlmopen")) return plugin(path, RTLD_NOW, true);
  if (is("reload")) return reload(path);
  if (is("tls")) return plugin(path, RTLD_NOW, false);
  if (is("forks")) return forks();
  if (is("fork_storm")) return fork_storm();
  if (is("spawn")) return spawn("child");
  if (is("spawn_environment")) return spawn("child_environment");
  if (is("child")) return 5;
  if (is("child_environment")) return print_environment();
  if (is("daemon")) return as_daemon();
  return 2;
}
