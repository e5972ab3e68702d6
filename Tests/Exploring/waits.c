// Each wait of the C library. With an argument the program then never ends: `deadlock`, `spin`, `unseen`, `poll`, `outside`.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 4 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore;
static int is_ready, count, inits, readers, ends[2], sockets[2];
static volatile sig_atomic_t handled;

static void handle(int signal) { handled += signal == SIGUSR1; }
static void init(void) { inits++; }

static void *work(void *argument) {
  pthread_once(&once, init);
  pthread_barrier_wait(&barrier);
  pthread_mutex_lock(&mutex);
  while (!is_ready) pthread_cond_wait(&condition, &mutex);
  count++;
  pthread_mutex_unlock(&mutex);
  sem_post(&semaphore);
  pthread_rwlock_rdlock(&lock);
  usleep(10);
  pthread_rwlock_unlock(&lock);
  pthread_rwlock_wrlock(&lock);
  readers++;
  pthread_rwlock_unlock(&lock);
  return argument;
}

// What the compiler calls in place of `read` and others if it checks the sizes of buffers.
extern ssize_t __read_chk(int descriptor, void *bytes, size_t size, size_t room);
extern ssize_t __recv_chk(int descriptor, void *bytes, size_t size, size_t room, int flags);
extern ssize_t __recvfrom_chk(int descriptor, void *bytes, size_t size, size_t room, int flags, void *from, socklen_t *length);
extern int __poll_chk(struct pollfd *descriptors, nfds_t count, int timeout, size_t room);
extern int __ppoll_chk(struct pollfd *descriptors, nfds_t count, const struct timespec *time, const sigset_t *mask, size_t room);

static void *read_checked(void *unused) {
  char bytes[4];
  struct pollfd question = {.fd = sockets[0], .events = POLLIN};
  intptr_t size = __poll_chk(&question, 1, -1, sizeof question) == 1 ? __read_chk(sockets[0], bytes, 1, sizeof bytes) : 0;
  size += __recv_chk(sockets[0], bytes, 1, sizeof bytes, 0);
  if (__ppoll_chk(&question, 1, NULL, NULL, sizeof question) == 1)
    size += __recvfrom_chk(sockets[0], bytes, 1, sizeof bytes, 0, NULL, NULL);
  (void)unused;
  return (void *)size;
}

static void *read_all(void *unused) {
  char bytes[1000];
  intptr_t size = 0;
  (void)unused;
  for (ssize_t part; (part = read(ends[0], bytes, sizeof bytes)) > 0;) size += part;
  return (void *)(size + recv(sockets[0], bytes, 1, 0));
}

static void *lock_both(void *unused) {
  pthread_mutex_lock(&other);
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  pthread_mutex_unlock(&other);
  return unused;
}

static int check(void) {
  pthread_t threads[WORKERS], reader;
  void *result;
  sem_init(&semaphore, 0, 0);
  pthread_barrier_init(&barrier, NULL, WORKERS + 1);
  for (intptr_t i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  pthread_barrier_wait(&barrier);
  pthread_mutex_lock(&mutex);
  is_ready = 1;
  pthread_cond_broadcast(&condition);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < WORKERS; i++) sem_wait(&semaphore);
  for (intptr_t i = 0; i < WORKERS; i++)
    if (pthread_join(threads[i], &result) != 0 || result != (void *)i) return 2;
  if (count != WORKERS || readers != WORKERS || inits != 1) return 3;

  static char bytes[100000];
  if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 4;
  pthread_create(&reader, NULL, read_all, NULL);
  if (write(ends[1], bytes, sizeof bytes) != (ssize_t)sizeof bytes) return 5;
  close(ends[1]);
  send(sockets[1], "x", 1, 0);
  pthread_join(reader, &result);
  if ((intptr_t)result != (intptr_t)sizeof bytes + 1) return 6;

  pthread_create(&reader, NULL, read_checked, NULL);
  for (int i = 0; i < 3; i++) send(sockets[1], "x", 1, 0);
  pthread_join(reader, &result);
  if ((intptr_t)result != 3) return 12;

  struct timespec now, then;
  struct pollfd question = {.fd = sockets[0], .events = POLLIN};
  clock_gettime(CLOCK_REALTIME, &now);
  then = (struct timespec){.tv_sec = now.tv_sec + 100};
  pthread_mutex_lock(&mutex);
  if (pthread_cond_timedwait(&condition, &mutex, &then) != ETIMEDOUT) return 7;
  pthread_mutex_unlock(&mutex);
  clock_gettime(CLOCK_REALTIME, &now);
  if (now.tv_sec != then.tv_sec || poll(&question, 1, 5000) != 0) return 8;
  clock_gettime(CLOCK_REALTIME, &now);
  if (now.tv_sec != then.tv_sec + 5) return 9;

  signal(SIGUSR1, handle);
  kill(getpid(), SIGUSR1);
  if (handled != 1) return 10;
  int status;
  for (int i = 0; i < 2; i++) {
    // The child's time is that of the machine.
    time_t before = time(NULL);
    pid_t child = i == 0 ? fork() : _Fork();
    if (child == 0) {
      usleep(20000);
      _exit(labs(time(NULL) - before) > 1000 ? 42 : 1);
    }
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 42) return 11;
  }
  return 0;
}

// The C library's own entry, which no library can come in front of.
extern ssize_t __read(int descriptor, void *bytes, size_t size);

int main(int arguments, char **names) {
  int failure = check();
  if (failure || arguments == 1) return failure;
  if (strcmp(names[1], "deadlock") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, lock_both, NULL);
    for (;;) {
      pthread_mutex_lock(&mutex);
      pthread_mutex_lock(&other);
      pthread_mutex_unlock(&other);
      pthread_mutex_unlock(&mutex);
      if (pthread_tryjoin_np(thread, NULL) == 0) return 0;
    }
  }
  if (strcmp(names[1], "unseen") == 0) {
    char byte;
    return (int)__read(sockets[0], &byte, 1);
  }
  if (strcmp(names[1], "outside") == 0) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    return listen(listener, 1) == 0 && accept(listener, NULL, NULL) >= 0;
  }
  for (volatile unsigned i = 0;; i++)
    if (strcmp(names[1], "poll") == 0) usleep(10);
}
