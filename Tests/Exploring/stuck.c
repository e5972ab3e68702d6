// Threads that wait for one another while others still wait for a time, or for what comes from outside; servers that only
// wait for the outside; and the bits of futexes.

#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static uint64_t rounds;

// MARK: What goes on beside

static void *sleeps(void *unused) {
  for (;; rounds++) usleep(10000);
  return unused;
}

static void *reads_timer(void *unused) {
  int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  struct itimerspec time = {.it_value.tv_nsec = 1000000, .it_interval.tv_nsec = 1000000};
  timerfd_settime(timer, 0, &time, NULL);
  for (uint64_t count; read(timer, &count, sizeof count) == sizeof count; rounds += count) {}
  return unused;
}

static void *waits_for_condition(void *unused) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  struct timespec time;
  pthread_mutex_lock(&mutex);
  for (;; rounds++) {
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec++;
    if (pthread_cond_timedwait(&condition, &mutex, &time) != ETIMEDOUT) return unused;
  }
}

static int listener(int type) {
  int descriptor = socket(AF_INET, type, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0) return -1;
  return type == SOCK_STREAM && listen(descriptor, 5) != 0 ? -1 : descriptor;
}

static void *accepts(void *unused) {
  accept(listener(SOCK_STREAM), NULL, NULL);
  return unused;
}

static void *polls(void *unused) {
  struct pollfd question = {.fd = listener(SOCK_STREAM), .events = POLLIN};
  poll(&question, 1, -1);
  return unused;
}

// One in another.
static void *awaits_events(void *unused) {
  struct epoll_event event = {.events = EPOLLIN};
  int inner = epoll_create1(0), outer = epoll_create1(0);
  epoll_ctl(inner, EPOLL_CTL_ADD, listener(SOCK_STREAM), &event);
  epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event);
  epoll_wait(outer, &event, 1, -1);
  return unused;
}

static void *receives(void *unused) {
  char byte;
  recv(listener(SOCK_DGRAM), &byte, 1, 0);
  return unused;
}

// A server that cleans up now and then.
static void *serves(void *unused) {
  struct pollfd question = {.fd = listener(SOCK_STREAM), .events = POLLIN};
  for (; poll(&question, 1, 1000) == 0; rounds++) {}
  return unused;
}

// MARK: What waits for one another

static void *mutexes(void *argument) {
  pthread_mutex_t *mine = argument;
  pthread_mutex_lock(mine);
  pthread_barrier_wait(&barrier);
  pthread_mutex_lock(mine == &first ? &second : &first);
  return NULL;
}

static pthread_t writer, joiner;

static void *writes(void *unused) {
  pthread_rwlock_wrlock(&shared);
  pthread_barrier_wait(&barrier);
  pthread_join(joiner, NULL);
  return unused;
}

static void *reads(void *unused) {
  pthread_barrier_wait(&barrier);
  pthread_rwlock_rdlock(&shared);
  return unused;
}

static void *leaves_locked(void *unused) {
  pthread_mutex_lock(&first);
  pthread_barrier_wait(&barrier);
  return unused;
}

static void *wants_first(void *unused) {
  pthread_barrier_wait(&barrier);
  pthread_mutex_lock(&first);
  return unused;
}

static const struct {
  const char *name;
  void *(*function)(void *);
} others[] = {{"sleeping", sleeps},  {"timer", reads_timer},     {"condition", waits_for_condition}, {"accepting", accepts},
              {"polling", polls},    {"events", awaits_events},  {"receiving", receives},            {"serving", serves}};

static void run_beside(const char *name) {
  pthread_t thread;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(others[i].name, name) == 0) pthread_create(&thread, NULL, others[i].function, NULL);
}

// MARK: Bits

static uint32_t word;
static int woken[2];

static void *waits_for_bit(void *argument) {
  intptr_t bit = (intptr_t)argument;
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 1u << bit);
  woken[bit]++;
  return NULL;
}

// The waker of the second bit must not wake the first one, which has waited longer.
static int bits(void) {
  pthread_t threads[2];
  struct timespec time = {.tv_sec = 1000};
  for (intptr_t i = 0; i < 2; i++) {
    pthread_create(&threads[i], NULL, waits_for_bit, (void *)i);
    // Until it waits: time passes only then, but for 10 ms in all.
    usleep(100000);
  }
  if (syscall(SYS_futex, &word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 4) != 0) return 2;
  if (syscall(SYS_futex, &word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 2) != 1) return 3;
  pthread_join(threads[1], NULL);
  if (woken[0] != 0 || woken[1] != 1) return 4;
  // Without bits of its own, a wake is for all.
  if (syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 5) != 1) return 5;
  pthread_join(threads[0], NULL);
  if (syscall(SYS_futex, &word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 0) != -1 || errno != EINVAL) return 6;
  return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &time, NULL, 0) == -1 && errno == EINVAL ? 0 : 7;
}

// stuck mutexes|rwlock|left BESIDE, stuck idle BESIDE, stuck bits
int main(int count, char **arguments) {
  if (count < 2) return 1;
  const char *what = arguments[1];
  if (strcmp(what, "bits") == 0) return bits();
  pthread_t threads[2];
  pthread_barrier_init(&barrier, NULL, 2);
  run_beside(count > 2 ? arguments[2] : "");
  if (strcmp(what, "mutexes") == 0) {
    pthread_create(&threads[0], NULL, mutexes, &first);
    pthread_create(&threads[1], NULL, mutexes, &second);
    pthread_join(threads[0], NULL);
  } else if (strcmp(what, "rwlock") == 0) {
    pthread_create(&joiner, NULL, reads, NULL);
    pthread_create(&writer, NULL, writes, NULL);
    pthread_join(writer, NULL);
  } else if (strcmp(what, "left") == 0) {
    pthread_create(&threads[0], NULL, leaves_locked, NULL);
    pthread_create(&threads[1], NULL, wants_first, NULL);
    pthread_join(threads[1], NULL);
  } else {
    // Others wait for work.
    pthread_mutex_lock(&first);
    for (pthread_cond_t work = PTHREAD_COND_INITIALIZER;;) pthread_cond_wait(&work, &first);
  }
  return 0;
}
