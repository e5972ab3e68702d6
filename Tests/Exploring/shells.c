// Processes with a stream, and a standard input that is a pipe. `input`: reads two lines of it and its end.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINES = 30 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int count, ends[2];

static void *work(void *unused) {
  for (int i = 0; i < 5; i++) {
    pthread_mutex_lock(&mutex);
    count++;
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}

static void *open_gate(void *unused) {
  close(ends[1]);
  return unused;
}

static void handle(int signal) { (void)signal; }

static int ended_with(int status, int expected) { return WIFEXITED(status) && WEXITSTATUS(status) == expected; }

/// Ends when the gate is open.
static int call_shell(void) {
  char command[80];
  snprintf(command, sizeof command, "exec %d>&-; cat <&%d; exit 7", ends[1], ends[0]);
  return ended_with(system(command), 7);
}

static void *call_shell_in_thread(void *unused) { return call_shell() ? unused : NULL; }

static int check(void) {
  char line[64], expected[64], command[80];
  pthread_t worker;
  pthread_create(&worker, NULL, work, NULL);
  FILE *lines = popen("i=0; while [ $i -lt 30 ]; do echo line $i; i=$((i + 1)); done; exit 3", "r");
  if (!lines) return 2;
  for (int i = 0; i < LINES; i++) {
    snprintf(expected, sizeof expected, "line %d\n", i);
    if (!fgets(line, sizeof line, lines) || strcmp(line, expected) != 0) return 3;
  }
  if (fgets(line, sizeof line, lines) || !feof(lines) || !ended_with(pclose(lines), 3)) return 4;
  pthread_join(worker, NULL);

  // The second process must not keep the first one's pipe, or that would never end. The last is closed by `fclose`.
  if (pipe(ends) != 0) return 5;
  snprintf(command, sizeof command, "read a; read b; [ \"$a $b\" = 'one two' ] || exit 1; cat; echo done >&%d", ends[1]);
  FILE *first = popen(command, "w"), *second = popen("cat >/dev/null", "we");
  if (!first || !second || fileno(first) == fileno(second)) return 6;
  fprintf(first, "one\ntwo\n");
  if (!ended_with(pclose(first), 0) || read(ends[0], line, sizeof line) != 5 || fclose(second) != 0) return 7;
  if (waitpid(-1, NULL, 0) != -1 || errno != ECHILD) return 8;

  // Another thread lets the process end for which this one waits.
  close(ends[0]);
  close(ends[1]);
  if (pipe(ends) != 0) return 9;
  pthread_create(&worker, NULL, open_gate, NULL);
  if (!call_shell()) return 10;
  pthread_join(worker, NULL);

  // Two threads wait for a shell. Which of them begins or ends first must not matter to the handler.
  struct sigaction action = {.sa_handler = handle};
  pthread_t others[2];
  void *results[2];
  sigaction(SIGINT, &action, NULL);
  close(ends[0]);
  if (pipe(ends) != 0) return 17;
  for (int i = 0; i < 2; i++) pthread_create(&others[i], NULL, call_shell_in_thread, others);
  pthread_create(&worker, NULL, open_gate, NULL);
  if (!call_shell()) return 18;
  for (int i = 0; i < 2; i++) pthread_join(others[i], &results[i]);
  pthread_join(worker, NULL);
  sigaction(SIGINT, NULL, &action);
  if (!results[0] || !results[1] || action.sa_handler != handle) return 19;

  // Two streams on one socket.
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 20;
  FILE *reader = fdopen(sockets[0], "r"), *writer = fdopen(sockets[0], "w"), *other = fdopen(sockets[1], "w");
  if (!reader || !writer || fileno(reader) != sockets[0] || fileno(writer) != sockets[0]) return 21;
  if (fputs("three\n", other) < 0 || fclose(other) != 0 || fclose(writer) != 0) return 22;
  if (fileno(reader) != sockets[0]) return 23;
  errno = 0;
  if (popen("true", "rw") || errno != EINVAL || !system(NULL)) return 11;
  return 0;
}

static int read_input(void) {
  char *line = NULL, word[16];
  size_t size = 0;
  pthread_t worker;
  pthread_create(&worker, NULL, work, NULL);
  if (getline(&line, &size, stdin) != 4 || strcmp(line, "one\n") != 0) return 12;
  if (scanf("%15s", word) != 1 || strcmp(word, "two") != 0 || getchar() != '\n' || getchar() != EOF) return 13;
  if (fileno(stdin) != STDIN_FILENO || !feof(stdin)) return 14;
  free(line);
  // A file takes its place.
  if (!freopen("/dev/null", "r", stdin) || fileno(stdin) != STDIN_FILENO || getchar() != EOF) return 15;
  pthread_join(worker, NULL);
  return count == 5 ? 0 : 16;
}

int main(int arguments, char **names) { return arguments > 1 && strcmp(names[1], "input") == 0 ? read_input() : check(); }
