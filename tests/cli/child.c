/* A small program to be watched. Its arguments say what it does, in order:
 *   exit N     ends with N              kill N    sends signal N to itself
 *   echo TEXT  writes TEXT to stdout    cat       copies stdin to stdout
 *   count      writes "ready", then one letter per SIGINT, SIGTERM or SIGHUP that reaches it; ends 0.7 s after the
 * first ignored    says whether SIGHUP is ignored, and which of the signals 1-31 are blocked or ignored otherwise group
 * says whether it is in the foreground process group of its terminal sleep MS   sleeps daemon MS  leaves a process
 * behind that lives so long, with closed streams map FILE   maps FILE, as a loaded library would be cuda       loads
 * libcuda.so.1 and calls cuInit user N     becomes that user
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile sig_atomic_t came;

static void on_signal(int number) {
  const char letter = number == SIGINT ? 'I' : number == SIGTERM ? 'T' : 'H';
  if (write(STDOUT_FILENO, &letter, 1) == 1) came = 1;
}

static void count(void) {
  const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  for (int i = 0; i < 3; ++i) signal(numbers[i], on_signal);
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) exit(99);
  while (!came) poll(NULL, 0, 20);
  for (int i = 0; i < 60; ++i) poll(NULL, 0, 20);
}

static void ignored(void) {
  struct sigaction action;
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, NULL, &blocked);
  for (int number = 1; number < 32; ++number) {
    if (number == SIGKILL || number == SIGSTOP || sigaction(number, NULL, &action) != 0) continue;
    if (action.sa_handler == SIG_IGN) printf("ignored %d\n", number);
    if (sigismember(&blocked, number)) printf("blocked %d\n", number);
  }
}

static void leave_behind(int ms) {
  if (fork() != 0) return;
  setsid();
  for (int fd = 0; fd < 3; ++fd) close(fd);
  poll(NULL, 0, ms);
  _exit(0);
}

static void map(const char* path) {
  const int fd = open(path, O_RDONLY);
  if (fd < 0 || mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED) exit(98);
  close(fd);
}

static void call_driver(void) {
#ifndef CHILD_IS_STATIC
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  int (*init)(unsigned) = NULL;
  if (library) *(void**)&init = dlsym(library, "cuInit");
  if (!init || init(0) != 0) exit(97);
#endif
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    fflush(stdout);
    if (strcmp(word, "exit") == 0) return atoi(value);
    if (strcmp(word, "kill") == 0) raise(atoi(value));
    if (strcmp(word, "echo") == 0) fputs(value, stdout);
    if (strcmp(word, "count") == 0) count();
    if (strcmp(word, "ignored") == 0) ignored();
    if (strcmp(word, "group") == 0) printf("foreground %d\n", tcgetpgrp(STDIN_FILENO) == getpgrp());
    if (strcmp(word, "sleep") == 0) poll(NULL, 0, atoi(value));
    if (strcmp(word, "daemon") == 0) leave_behind(atoi(value));
    if (strcmp(word, "map") == 0) map(value);
    if (strcmp(word, "user") == 0 && setuid((uid_t)atoi(value)) != 0) exit(96);
    if (strcmp(word, "cuda") == 0) call_driver();
    if (strcmp(word, "cat") == 0) {
      for (int c; (c = getchar()) != EOF;) putchar(c);
    }
  }
  return 0;
}
