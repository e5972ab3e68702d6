// The program that the tests of `concourse run` start. The first argument says what to print or do.
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef INDIRECT
int indirectWork(void);
static void work(void) { indirectWork(); }
#elif defined(WITHOUT_DISPATCH)
static void work(void) {}
#else
#include <dispatch/dispatch.h>
static void finish(void *semaphore) { dispatch_semaphore_signal(semaphore); }
static void work(void) {
  dispatch_semaphore_t semaphore = dispatch_semaphore_create(0);
  dispatch_async_f(dispatch_get_global_queue(0, 0), semaphore, finish);
  dispatch_semaphore_wait(semaphore, DISPATCH_TIME_FOREVER);
}
#endif

// The files mapped as code whose path has this word in it.
static void tellMaps(const char *word) {
  char line[8192];
  FILE *maps = fopen("/proc/self/maps", "re");
  while (fgets(line, sizeof line, maps)) {
    char *path = strchr(line, '/');
    if (path && strstr(line, " r-xp ") && strstr(path, word)) fputs(path, stdout);
  }
  fclose(maps);
}

static void tellEnvironment(char **environment) {
  for (char **entry = environment; *entry; entry++) puts(*entry);
  const char *list = getenv("LD_PRELOAD");
  printf("getenv: %s\n", list ? list : "(none)");
}

static void tellState(void) {
  char line[1024];
  FILE *status = fopen("/proc/self/status", "re");
  while (fgets(line, sizeof line, status)) {
    if (!strncmp(line, "SigBlk:", 7) || !strncmp(line, "SigIgn:", 7)) fputs(line, stdout);
  }
  fclose(status);
  for (int descriptor = 0; descriptor < 64; descriptor++) {
    if (fcntl(descriptor, F_GETFD) >= 0) printf("open: %d\n", descriptor);
  }
  printf("parent: %d, group: %d, session: %d\n", getppid(), getpgrp(), getsid(0));
}

static void leave(int number) {
  (void)number;
  _exit(7);
}

static int runChild(char **words) {
  pid_t child = fork();
  if (child == 0) {
    execvp(words[0], words);
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

// Runs a command in a new session with its own terminal, types Ctrl-C once it has printed "ready", and
// copies its output.
static int runInTerminal(char **words) {
  int leader = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (leader < 0 || grantpt(leader) || unlockpt(leader)) return 96;
  pid_t child = fork();
  if (child == 0) {
    setsid();
    int terminal = open(ptsname(leader), O_RDWR);
    for (int descriptor = 0; descriptor < 3; descriptor++) dup2(terminal, descriptor);
    close(terminal);
    execv(words[0], words);
    _exit(99);
  }
  char text[4096];
  size_t length = 0;
  int typed = 0;
  for (ssize_t count; (count = read(leader, text + length, sizeof text - 1 - length)) > 0;) {
    fwrite(text + length, 1, count, stdout);
    length += count;
    text[length] = 0;
    if (!typed && strstr(text, "ready")) typed = write(leader, "\003", 1) == 1;
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int count, char **words, char **environment) {
  if (count < 2) return 97;
  const char *what = words[1];
  if (!strcmp(what, "maps")) {
    work();
    tellMaps(words[2]);
  } else if (!strcmp(what, "environment")) {
    tellEnvironment(environment);
  } else if (!strcmp(what, "state")) {
    tellState();
  } else if (!strcmp(what, "identifier")) {
    printf("%d\n", getpid());
  } else if (!strcmp(what, "words")) {
    for (int index = 0; index < count; index++) puts(words[index]);
  } else if (!strcmp(what, "terminal")) {
    printf("%d%d%d foreground: %d\n", isatty(0), isatty(1), isatty(2), tcgetpgrp(0) == getpgrp());
  } else if (!strcmp(what, "in-terminal")) {
    return runInTerminal(words + 2);
  } else if (!strcmp(what, "copy")) {
    for (int byte; (byte = getchar()) != EOF;) putchar(byte);
  } else if (!strcmp(what, "exit")) {
    return atoi(words[2]);
  } else if (!strcmp(what, "raise")) {
    raise(atoi(words[2]));
  } else if (!strcmp(what, "wait")) {
    signal(SIGUSR1, leave);
    work();
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  } else if (!strcmp(what, "child")) {
    return runChild(words + 2);
  } else {
    return 97;
  }
  return 0;
}
