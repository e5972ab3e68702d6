// Locks of parts of files. `unlocked`: a counter without. `crossed`: two parts are locked in both orders. `other`: another
// process has the lock, and keeps it as long as this one exists.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 3 };
static char path[40];
static int count, parts = 1, order_matters;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int set(int descriptor, int command, short type, off_t begin) {
  struct flock part = {.l_type = type, .l_whence = SEEK_SET, .l_start = begin, .l_len = 10};
  return fcntl(descriptor, command, &part);
}

static void *count_up(void *argument) {
  off_t first = order_matters && (intptr_t)argument % 2 ? 10 : 0;
  int file = open(path, O_RDWR);
  if (parts > 0 && set(file, F_OFD_SETLKW, F_WRLCK, first) != 0) return (void *)1;
  if (parts > 1 && set(file, F_OFD_SETLKW, F_WRLCK, 10 - first) != 0) return (void *)2;
  int seen = count;
  usleep(1);
  count = seen + 1;
  // One gives the locks up, the others close the file; each in its own way.
  if (argument == NULL && set(file, F_OFD_SETLK, F_UNLCK, 0) != 0) return (void *)3;
  if (argument == (void *)1) dup2(0, file);
  else close(file);
  return NULL;
}

static int count_all(void) {
  pthread_t threads[WORKERS];
  void *failure;
  for (intptr_t i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, count_up, (void *)i);
  for (int i = 0; i < WORKERS; i++)
    if (pthread_join(threads[i], &failure) != 0 || failure) return 2;
  return count == WORKERS ? 0 : 3;
}

/// Two threads with different parts, and two that both read, do not wait for one another.
static int check_parts(void) {
  int first = open(path, O_RDWR), second = open(path, O_RDWR);
  if (set(first, F_OFD_SETLKW, F_WRLCK, 0) != 0 || set(second, F_OFD_SETLKW, F_WRLCK, 10) != 0) return 4;
  if (set(second, F_OFD_SETLK, F_WRLCK, 0) != -1 || (errno != EAGAIN && errno != EACCES)) return 5;
  if (set(first, F_OFD_SETLKW, F_RDLCK, 0) != 0 || set(second, F_OFD_SETLKW, F_RDLCK, 0) != 0) return 6;
  close(first);
  close(second);
  // Those of the process do not exclude its own threads.
  first = open(path, O_RDWR), second = open(path, O_RDWR);
  if (set(first, F_SETLKW, F_WRLCK, 0) != 0 || set(second, F_SETLKW, F_WRLCK, 0) != 0) return 7;
  if (lockf(first, F_LOCK, 10) != 0 || lockf(second, F_TEST, 10) != 0 || lockf(second, F_TLOCK, 10) != 0) return 8;
  if (lockf(first, F_ULOCK, 10) != 0) return 9;
  close(first);
  close(second);
  return 0;
}

static void *end_child(void *pipe) {
  for (int i = 0; i < 3; i++) {
    pthread_mutex_lock(&mutex);
    count++;
    pthread_mutex_unlock(&mutex);
  }
  close(((int *)pipe)[1]);
  return NULL;
}

/// Another process has the lock until another thread lets it end.
static int check_child(int kind) {
  int ready[2], end[2];
  char byte;
  pthread_t worker;
  if (pipe(ready) != 0 || pipe(end) != 0) return 10;
  pid_t child = fork();
  if (child == 0) {
    int file = open(path, O_RDWR);
    int failure = kind == 2 ? flock(file, LOCK_EX) : lockf(file, F_LOCK, 0);
    if (failure || write(ready[1], "x", 1) != 1) _exit(1);
    close(end[1]);
    _exit(read(end[0], &byte, 1) != 0);
  }
  if (read(ready[0], &byte, 1) != 1) return 11;
  int file = open(path, O_RDWR), failure;
  if (kind == 2 ? flock(file, LOCK_EX | LOCK_NB) == 0 : lockf(file, F_TLOCK, 0) == 0) return 12;
  pthread_create(&worker, NULL, end_child, end);
  if (kind == 0) failure = lockf(file, F_LOCK, 0);
  else failure = kind == 1 ? set(file, F_SETLKW, F_RDLCK, 5) : flock(file, LOCK_EX);
  if (failure) return 13;
  pthread_join(worker, NULL);
  close(file);
  int status;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 14;
}

int main(int arguments, char **names) {
  const char *what = arguments > 1 ? names[1] : "";
  // A file without a name, which each thread opens anew.
  snprintf(path, sizeof path, "/proc/self/fd/%d", memfd_create("file", 0));
  if (strcmp(what, "unlocked") == 0) parts = 0;
  if (strcmp(what, "crossed") == 0) parts = 2, order_matters = 1;
  if (strcmp(what, "other") == 0) {
    int ready[2], end[2];
    char byte;
    if (pipe(ready) != 0 || pipe(end) != 0) return 15;
    if (fork() == 0) {
      close(end[1]);
      _exit(lockf(open(path, O_RDWR), F_LOCK, 0) != 0 || write(ready[1], "x", 1) != 1 || read(end[0], &byte, 1) != 0);
    }
    return read(ready[0], &byte, 1) != 1 || lockf(open(path, O_RDWR), F_LOCK, 0) != 0;
  }
  int failure = count_all();
  if (failure || parts != 1) return failure;
  failure = check_parts();
  for (int kind = 0; kind < 3 && !failure; kind++) failure = check_child(kind);
  return failure;
}
