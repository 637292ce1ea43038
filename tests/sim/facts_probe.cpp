// Prints facts about the driver it runs on, as CSV: fact, answers. `facts_probe [substring]` asks only those whose name
// has it. Exit code 77: there is no device.
#include "facts.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace facts;

constexpr unsigned seconds_for_one = 60;
constexpr std::size_t at_a_time = 8;

// One fact, asked in a process of its own, whose one line of output is the answer.
struct question {
  const fact* asked;
  pid_t child = -1;
  int output = -1;
};

question ask(const fact& f) {
  int ends[2];
  question q{&f};
  if (pipe(ends) != 0) return q;
  q.child = fork();
  if (q.child == 0) {
    alarm(seconds_for_one);
    kit k;
    f.ask(k);
    const auto& text = k.answer();
    _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  q.output = ends[0];
  return q;
}

std::string answer(const question& q) {
  std::string text;
  char part[256];
  for (ssize_t n; (n = read(q.output, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
  close(q.output);
  int status = 0;
  waitpid(q.child, &status, 0);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status)) return "exit " + std::to_string(WEXITSTATUS(status));
  return text;
}

// A process of its own also counts the devices: a driver that was initialised here would be lost in the children.
int count_devices() {
  const pid_t child = fork();
  int count = 0;
  if (child == 0) _exit(cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS ? count : 0);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

} // namespace

int main(int argc, char** argv) {
  const bool two = argc > 1 && std::strcmp(argv[1], "two") == 0;
  if (argc < 2 || (!two && std::strcmp(argv[1], "one") != 0)) {
    std::fprintf(stderr, "usage: facts_probe one|two [PART OF A NAME]\n");
    return 2;
  }
  if (const int devices = count_devices(); devices < (two ? 2 : 1)) {
    std::printf("skipped: %d CUDA devices, %d needed\n", devices, two ? 2 : 1);
    return 77;
  }
  std::printf("fact,answer\n");
  std::fflush(stdout); // the children must not inherit it
  std::vector<const std::vector<fact>*> lists = {
      &driver_facts,       &memory_facts, &overlap_facts, &per_thread_facts,   &capture_facts, &capture_work_facts,
      &capture_call_facts, &graph_facts,  &update_facts,  &graph_memory_facts, &replay_facts};
  if (two) lists = {&two_device_facts};
  std::vector<const fact*> chosen;
  for (const auto* list : lists)
    for (const fact& f : *list)
      if (argc < 3 || std::strstr(f.name, argv[2])) chosen.push_back(&f);
  std::deque<question> open;
  for (std::size_t next = 0; next < chosen.size() || !open.empty();) {
    while (next < chosen.size() && open.size() < at_a_time) open.push_back(ask(*chosen[next++]));
    std::printf("\"%s\",%s\n", open.front().asked->name, answer(open.front()).c_str());
    std::fflush(stdout);
    open.pop_front();
  }
}
