// Streams on pipes and sockets, and locks of files. `crossed`: two files are locked in both orders. `unlocked`: one is
// counted without. `other`: another process has the lock, and keeps it as long as this one exists.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINES = 40, WORKERS = 3 };
static int ends[2], sockets[2], count, locks = 1;
static char paths[2][40];

static void *write_lines(void *unused) {
  FILE *stream = fdopen(ends[1], "w");
  if (!stream || fileno(stream) != ends[1]) exit(4);
  for (int i = 0; i < LINES; i++) {
    fprintf(stream, "line %d\n", i);
    if (i % 7 == 0) fflush(stream);
  }
  fclose(stream);
  return unused;
}

static void *reply(void *unused) {
  FILE *in = fdopen(sockets[1], "r"), *out = fdopen(dup(sockets[1]), "w");
  char *line = NULL;
  size_t size = 0;
  while (getline(&line, &size, in) > 0) {
    fprintf(out, "re: %s", line);
    fflush(out);
  }
  free(line);
  fclose(in);
  fclose(out);
  return unused;
}

static int check_streams(void) {
  pthread_t writer, server;
  char line[64], expected[64];
  int number;
  if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 5;
  pthread_create(&writer, NULL, write_lines, NULL);
  FILE *stream = fdopen(ends[0], "r");
  for (int i = 0; i < LINES; i++)
    if (fscanf(stream, "line %d ", &number) != 1 || number != i) return 6;
  if (fgetc(stream) != EOF || ferror(stream) || !feof(stream)) return 7;
  fclose(stream);
  pthread_join(writer, NULL);
  pthread_create(&server, NULL, reply, NULL);
  FILE *in = fdopen(dup(sockets[0]), "r"), *out = fdopen(sockets[0], "w");
  for (int i = 0; i < 5; i++) {
    fprintf(out, "%d\n", i);
    fflush(out);
    snprintf(expected, sizeof expected, "re: %d\n", i);
    if (!fgets(line, sizeof line, in) || strcmp(line, expected) != 0) return 8;
  }
  shutdown(fileno(out), SHUT_WR);
  fclose(out);
  if (fgets(line, sizeof line, in)) return 9;
  fclose(in);
  pthread_join(server, NULL);
  return 0;
}

static void *count_up(void *argument) {
  int order = (int)(intptr_t)argument, files[2];
  for (int i = 0; i < 2; i++) files[i] = open(paths[i], O_RDWR);
  if (locks > 0) flock(files[order], LOCK_EX);
  if (locks > 1) flock(files[!order], LOCK_EX);
  int seen = count;
  usleep(1);
  count = seen + 1;
  if (locks > 1) close(files[!order]);
  flock(files[order], LOCK_UN);
  return NULL;
}

int main(int arguments, char **names) {
  const char *what = arguments > 1 ? names[1] : "";
  pthread_t threads[WORKERS];
  // Files without a name, which each thread opens anew.
  for (int i = 0; i < 2; i++) snprintf(paths[i], sizeof paths[i], "/proc/self/fd/%d", memfd_create("file", 0));
  if (strcmp(what, "unlocked") == 0) locks = 0;
  if (strcmp(what, "crossed") == 0) locks = 2;
  if (strcmp(what, "other") == 0) {
    int ready[2];
    char byte;
    if (pipe(ready) != 0 || pipe(ends) != 0) return 10;
    if (fork() == 0) {
      close(ends[1]);
      flock(open(paths[0], O_RDWR), LOCK_EX);
      _exit(write(ready[1], "x", 1) != 1 || read(ends[0], &byte, 1) != 0);
    }
    return read(ready[0], &byte, 1) != 1 || flock(open(paths[0], O_RDWR), LOCK_EX) != 0;
  }
  for (intptr_t i = 0; i < WORKERS; i++)
    pthread_create(&threads[i], NULL, count_up, (void *)(locks > 1 ? i % 2 : 0));
  for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  return count != WORKERS ? 3 : check_streams();
}
