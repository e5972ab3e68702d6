// What POSIX and Linux say of calls that signals, cancellations and time limits meet, and of numbers and objects that are
// used again. Without an argument it prints the names of the cases; each ends with status 0 in every schedule.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int ends[2], sockets[2];
static volatile sig_atomic_t handled;
static pthread_t handler_thread;
static sem_t semaphore;

static void handle(int signal) {
  (void)signal;
  handled++;
  handler_thread = pthread_self();
}

static void set_handler(int signal, int flags) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
  sigaction(signal, &action, NULL);
}

static int failure(const char *what, long result) {
  printf("%s: %ld, errno %d\n", what, result, errno);
  return 1;
}

/// Runs a function on another thread, does something to it a millisecond later, and lets it end.
static int run_with(void *(*function)(void *), void (*disturb)(pthread_t), void (*end)(void)) {
  pthread_t thread;
  void *result;
  pthread_create(&thread, NULL, function, NULL);
  usleep(1000);
  disturb(thread);
  usleep(1000);
  if (end) end();
  pthread_join(thread, &result);
  return result != NULL;
}

static void send_user(pthread_t thread) { pthread_kill(thread, SIGUSR1); }
static void write_one(void) {
  if (write(ends[1], "x", 1) != 1) abort();
}

static void *read_one(void *unused) {
  char byte;
  (void)unused;
  ssize_t count = read(ends[0], &byte, 1);
  return count == 1 ? NULL : (void *)(long)failure("read", count);
}

static void *sleep_two(void *unused) {
  (void)unused;
  unsigned rest = sleep(2);
  return rest == 0 ? NULL : (void *)(long)failure("sleep", rest);
}

// MARK: Signals

static int blocked(void) {
  sigset_t user;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  set_handler(SIGUSR1, 0);
  pthread_sigmask(SIG_BLOCK, &user, NULL);
  return run_with(read_one, send_user, write_one) || run_with(sleep_two, send_user, NULL) || handled;
}

static int ignored(void) {
  signal(SIGUSR1, SIG_IGN);
  return run_with(read_one, send_user, write_one) || run_with(sleep_two, send_user, NULL);
}

static void set_late(pthread_t thread) {
  signal(SIGUSR1, SIG_IGN);
  pthread_kill(thread, SIGUSR1);
  set_handler(SIGUSR1, 0);
}
// It is ignored when it is sent.
static int discarded(void) { return run_with(read_one, set_late, write_one) || handled; }

static volatile int is_awake;
static void *sleep_once(void *unused) {
  void *result = sleep(2) == 0 ? (void *)1 : NULL;
  is_awake = 1;
  return unused ? unused : result;
}

/// Whether handlers end a sleep. The first signals may come before it.
static int wakes(int flags) {
  pthread_t thread;
  void *result;
  set_handler(SIGUSR1, flags);
  pthread_create(&thread, NULL, sleep_once, NULL);
  while (!is_awake) {
    pthread_kill(thread, SIGUSR1);
    usleep(1000);
  }
  pthread_join(thread, &result);
  return result != NULL;
}

static int interrupted(void) { return wakes(0); }
// Sleeps do not go on.
static int not_restarted(void) { return wakes(SA_RESTART); }

static void *receive_one(void *unused) {
  char byte;
  (void)unused;
  ssize_t count = recv(sockets[0], &byte, 1, 0);
  return count == 1 ? NULL : (void *)(long)failure("recv", count);
}
static void send_one(void) { send(sockets[1], "x", 1, 0); }

static void *wait_semaphore(void *unused) {
  (void)unused;
  return sem_wait(&semaphore) == 0 ? NULL : (void *)(long)failure("sem_wait", -1);
}
static void post(void) { sem_post(&semaphore); }

static int locked, other;
static void *lock_file(void *unused) {
  (void)unused;
  return flock(other, LOCK_EX) == 0 ? NULL : (void *)(long)failure("flock", -1);
}
static void unlock_file(void) { flock(locked, LOCK_UN); }

static int listening;
static struct sockaddr_un place = {.sun_family = AF_UNIX};
static socklen_t place_size = sizeof place;
static void *accept_one(void *unused) {
  (void)unused;
  int found = accept(listening, NULL, NULL);
  return found >= 0 ? NULL : (void *)(long)failure("accept", found);
}
static void connect_one(void) {
  int made = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(made, (const struct sockaddr *)&place, place_size) != 0) abort();
}

static void *fill(void *unused) {
  char bytes[8192];
  (void)unused;
  memset(bytes, 0, sizeof bytes);
  for (int i = 0; i < 9; i++) {
    ssize_t count = write(ends[1], bytes, sizeof bytes);
    if (count != sizeof bytes) return (void *)(long)failure("write", count);
  }
  return NULL;
}
static void drain(void) {
  char bytes[8192];
  for (size_t rest = 9 * sizeof bytes; rest > 0;) {
    ssize_t count = read(ends[0], bytes, sizeof bytes);
    if (count <= 0) abort();
    rest -= (size_t)count;
  }
}

static int restarted(void) {
  set_handler(SIGUSR1, SA_RESTART);
  char path[] = "/dev/shm/explored-XXXXXX";
  locked = mkstemp(path);
  other = open(path, O_RDWR);
  unlink(path);
  flock(locked, LOCK_EX);
  listening = socket(AF_UNIX, SOCK_STREAM, 0);
  bind(listening, (const struct sockaddr *)&place, sizeof(sa_family_t));
  listen(listening, 2);
  getsockname(listening, (struct sockaddr *)&place, &place_size);
  sem_init(&semaphore, 0, 0);
  return run_with(read_one, send_user, write_one) || run_with(receive_one, send_user, send_one) ||
         run_with(wait_semaphore, send_user, post) || run_with(lock_file, send_user, unlock_file) ||
         run_with(accept_one, send_user, connect_one) || run_with(fill, send_user, drain);
}

/// What a call has transferred, while signals come.
static long transferred;
enum { MUCH = 300000 };
static char much[MUCH];
static void *write_much(void *unused) {
  transferred = write(ends[1], much, MUCH);
  is_awake = 1;
  return unused;
}
static void *write_parts(void *unused) {
  struct iovec parts[2] = {{much, 100}, {much, MUCH - 100}};
  transferred = writev(ends[1], parts, 2);
  is_awake = 1;
  return unused;
}
static void *send_much(void *unused) {
  struct iovec parts[2] = {{much, 100}, {much, MUCH - 100}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  transferred = sendmsg(sockets[1], &message, 0);
  is_awake = 1;
  return unused;
}
static void *receive_all(void *unused) {
  transferred = recv(sockets[0], much, MUCH, MSG_WAITALL);
  is_awake = 1;
  return unused;
}

/// Sends signals until the call ends. The first may come before it.
static int ends_short(const char *what, void *(*function)(void *)) {
  pthread_t thread;
  is_awake = 0;
  pthread_create(&thread, NULL, function, NULL);
  while (!is_awake) {
    pthread_kill(thread, SIGUSR1);
    usleep(1000);
  }
  pthread_join(thread, NULL);
  return transferred > 0 && transferred < MUCH ? 0 : failure(what, transferred);
}

// Only a call that has transferred nothing goes on after a handler.
static int partial(void) {
  int other_ends[2];
  set_handler(SIGUSR1, SA_RESTART);
  if (ends_short("write", write_much) || pipe(other_ends) != 0) return 1;
  dup2(other_ends[1], ends[1]);
  if (ends_short("writev", write_parts) || ends_short("sendmsg", send_much)) return 1;
  return ends_short("recv", receive_all);
}

static void *terminate(void *unused) {
  sleep(1);
  kill(getpid(), SIGTERM);
  return unused;
}
static int semaphores(void) {
  pthread_t thread;
  sem_init(&semaphore, 0, 0);
  set_handler(SIGTERM, 0);
  pthread_create(&thread, NULL, terminate, NULL);
  if (sem_wait(&semaphore) == 0 || errno != EINTR) return failure("sem_wait", 0);
  pthread_join(thread, NULL);
  return !handled;
}

// The kernel gives a signal of the process to the first thread.
static int first_thread(void) {
  pthread_t thread;
  set_handler(SIGTERM, 0);
  pthread_create(&thread, NULL, terminate, NULL);
  pause();
  pthread_join(thread, NULL);
  return handled != 1 || !pthread_equal(handler_thread, pthread_self());
}

// MARK: Cancellation

static void *sleep_on(void *unused) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  if (sleep_two(unused)) return (void *)1;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  sleep(1);
  return (void *)2;
}
static int cancel_state(void) {
  pthread_t thread;
  void *result;
  pthread_create(&thread, NULL, sleep_on, NULL);
  sleep(1);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  return result != PTHREAD_CANCELED;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *lock_and_sleep(void *unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  sleep(1);
  return NULL;
}
// No wait for a mutex ends by it, and the next sleep does.
static int cancel_lock(void) {
  pthread_t thread;
  void *result;
  pthread_mutex_lock(&mutex);
  pthread_create(&thread, NULL, lock_and_sleep, NULL);
  usleep(1000);
  pthread_cancel(thread);
  usleep(1000);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, &result);
  return result != PTHREAD_CANCELED;
}

// MARK: Numbers and objects that are used again

/// Whether eight bytes that were written come through the pipe.
static int passes(int reads, int writes) {
  char bytes[9] = {0};
  if (write(writes, "ABCDEFGH", 8) != 8 || read(reads, bytes, 8) != 8) return 0;
  return strcmp(bytes, "ABCDEFGH") == 0;
}

static int random_number(void) {
  int source = open("/dev/urandom", O_RDONLY), copy = dup(source), pipes[2];
  unsigned char first[8], second[8];
  if (read(source, first, 8) != 8 || read(copy, second, 8) != 8 || memcmp(first, second, 8) == 0) return 1;
  close(copy);
  FILE *stream = fdopen(source, "r");
  fgetc(stream);
  fclose(stream);
  if (pipe(pipes) != 0 || pipes[0] != source) return 2;
  return !passes(pipes[0], pipes[1]);
}

static int timer_number(void) {
  int timer = timerfd_create(CLOCK_MONOTONIC, 0), pipes[2];
  struct itimerspec soon = {.it_value.tv_nsec = 1000, .it_interval.tv_nsec = 1000};
  timerfd_settime(timer, 0, &soon, NULL);
  if (pipe(pipes) != 0) return 1;
  dup2(pipes[0], timer);
  usleep(100);
  return !passes(timer, pipes[1]);
}

static void wrong(union sigval value) {
  if (value.sival_int != 7) abort();
}
// A timer is deleted while its thread makes one for a call, and another timer takes its place.
static int timers(void) {
  signal(SIGUSR1, SIG_IGN);
  for (int i = 0; i < 5; i++) {
    timer_t timer, next;
    struct sigevent calls = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 7};
    calls.sigev_notify_function = wrong;
    struct sigevent sends = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec soon = {.it_value.tv_nsec = 1000000};
    if (timer_create(CLOCK_MONOTONIC, &calls, &timer) != 0) return 1;
    timer_settime(timer, 0, &soon, NULL);
    usleep(1000);
    timer_delete(timer);
    usleep(100);
    if (timer_create(CLOCK_MONOTONIC, &sends, &next) != 0) return 2;
    usleep(100);
    timer_delete(next);
  }
  return 0;
}

static pthread_barrier_t barrier;
static void *pass_barrier(void *unused) {
  if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
    pthread_barrier_destroy(&barrier);
    memset(&barrier, 0, sizeof barrier);
    pthread_barrier_init(&barrier, NULL, 3);
  }
  return unused;
}
static int barriers(void) {
  pthread_t thread;
  for (int i = 0; i < 3; i++) {
    memset(&barrier, 0, sizeof barrier);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, pass_barrier, NULL);
    pass_barrier(NULL);
    pthread_join(thread, NULL);
  }
  return 0;
}

static void *leave_locked(void *unused) {
  pthread_mutex_lock(&mutex);
  usleep(1000);
  return unused;
}
static int robust(void) {
  pthread_t thread;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  pthread_create(&thread, NULL, leave_locked, NULL);
  usleep(100);
  int result = pthread_mutex_lock(&mutex);
  if (result == EOWNERDEAD) result = pthread_mutex_consistent(&mutex);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
  return result;
}

// MARK: Limits

static int socket_limits(void) {
  struct timeval limit = {0, 100000};
  char bytes[1000] = {0};
  ssize_t count;
  setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (recv(sockets[0], bytes, 1, 0) != -1 || errno != EAGAIN) return failure("recv", 0);
  if (read(sockets[0], bytes, 1) != -1 || errno != EAGAIN) return failure("read", 0);
  do count = send(sockets[0], bytes, sizeof bytes, 0);
  while (count > 0);
  return errno == EAGAIN ? 0 : failure("send", count);
}

static int empty(void) {
  char byte;
  return read(ends[0], &byte, 0) != 0 || read(sockets[0], &byte, 0) != 0;
}

static int own_lock(void) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  pthread_rwlock_wrlock(&lock);
  return pthread_rwlock_wrlock(&lock) != EDEADLK || pthread_rwlock_rdlock(&lock) != EDEADLK;
}

static int times(void) {
  struct timespec bad = {0, 1000000000}, past = {-1, 0};
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  sem_init(&semaphore, 0, 1);
  if (nanosleep(&bad, NULL) != -1 || errno != EINVAL || nanosleep(&past, NULL) != -1 || errno != EINVAL) return 1;
  if (clock_nanosleep(CLOCK_MONOTONIC, 0, &bad, NULL) != EINVAL) return 2;
  pthread_mutex_lock(&mutex);
  if (pthread_mutex_timedlock(&mutex, &bad) != EINVAL) return 3;
  if (pthread_cond_timedwait(&condition, &mutex, &bad) != EINVAL) return 4;
  pthread_mutex_unlock(&mutex);
  if (pthread_mutex_timedlock(&mutex, &bad) != 0) return 5;
  if (pthread_rwlock_timedrdlock(&lock, &bad) != EINVAL) return 6;
  if (sem_timedwait(&semaphore, &bad) != -1 || errno != EINVAL) return 7;
  if (ppoll(NULL, 0, &bad, NULL) != -1 || errno != EINVAL) return 8;
  return pselect(0, NULL, NULL, NULL, &bad, NULL) != -1 || errno != EINVAL;
}

// For locks and semaphores it has passed; the kernel refuses it.
static int negative_times(void) {
  struct timespec past = {-1, 0};
  struct timeval before[2] = {{-1, 0}, {0, -1}}, much_more = {0, 2500000};
  struct epoll_event event;
  struct itimerspec once = {.it_value = past}, again = {.it_value.tv_sec = 1, .it_interval = past};
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  sigset_t user;
  timer_t timer;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &user, NULL);
  sem_init(&semaphore, 0, 0);
  pthread_mutex_lock(&mutex);
  pthread_rwlock_rdlock(&lock);
  if (pthread_mutex_timedlock(&mutex, &past) != ETIMEDOUT) return 1;
  if (pthread_cond_timedwait(&condition, &mutex, &past) != ETIMEDOUT) return 2;
  if (pthread_rwlock_timedwrlock(&lock, &past) != ETIMEDOUT) return 3;
  if (sem_timedwait(&semaphore, &past) != -1 || errno != ETIMEDOUT) return 4;
  if (ppoll(NULL, 0, &past, NULL) != -1 || errno != EINVAL) return 5;
  if (pselect(0, NULL, NULL, NULL, &past, NULL) != -1 || errno != EINVAL) return 6;
  for (int i = 0; i < 2; i++)
    if (select(0, NULL, NULL, NULL, &before[i]) != -1 || errno != EINVAL) return 7;
  if (select(0, NULL, NULL, NULL, &much_more) != 0) return 8;
  if (sigtimedwait(&user, NULL, &past) != -1 || errno != EINVAL) return 9;
  if (epoll_pwait2(epoll_create1(0), &event, 1, &past, NULL) != -1 || errno != EINVAL) return 10;
  int descriptor = timerfd_create(CLOCK_MONOTONIC, 0);
  if (timerfd_settime(descriptor, 0, &once, NULL) != -1 || errno != EINVAL) return 11;
  if (timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &again, NULL) != -1 || errno != EINVAL) return 12;
  struct sigevent nothing = {.sigev_notify = SIGEV_NONE};
  if (timer_create(CLOCK_MONOTONIC, &nothing, &timer) != 0) return 13;
  return timer_settime(timer, 0, &once, NULL) != -1 || errno != EINVAL;
}

static int remaining(void) {
  struct timeval limit = {10, 0};
  fd_set reads;
  FD_ZERO(&reads);
  FD_SET(ends[0], &reads);
  write_one();
  if (select(ends[0] + 1, &reads, NULL, NULL, &limit) != 1 || limit.tv_sec < 9) return 1;
  limit = (struct timeval){0, 1000};
  return select(0, NULL, NULL, NULL, &limit) != 0 || limit.tv_sec != 0 || limit.tv_usec != 0;
}

static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static void *try_shared(void *unused) {
  (void)unused;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_sec++;
  if (pthread_rwlock_clockwrlock(&shared, CLOCK_MONOTONIC, &time) != ETIMEDOUT) return (void *)1;
  time.tv_sec += 20;
  return pthread_rwlock_clockrdlock(&shared, CLOCK_MONOTONIC, &time) == 0 ? NULL : (void *)2;
}
static int clocked(void) {
  pthread_t thread;
  void *result;
  pthread_rwlock_wrlock(&shared);
  pthread_create(&thread, NULL, try_shared, NULL);
  sleep(10);
  pthread_rwlock_unlock(&shared);
  pthread_join(thread, &result);
  return result != NULL;
}

// MARK: Much at once

static void *send_parts(void *unused) {
  for (const char *part = "abcdefgh"; *part; part += 2) {
    send(sockets[1], part, 2, 0);
    usleep(1000);
  }
  return unused;
}
static int wait_all(void) {
  for (int i = 0; i < 3; i++) {
    pthread_t thread;
    char bytes[9] = {0};
    struct iovec parts[2] = {{bytes, 3}, {bytes + 3, 5}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    pthread_create(&thread, NULL, send_parts, NULL);
    ssize_t count = i == 0   ? recv(sockets[0], bytes, 8, MSG_WAITALL)
                    : i == 1 ? recvfrom(sockets[0], bytes, 8, MSG_WAITALL, NULL, NULL)
                             : recvmsg(sockets[0], &message, MSG_WAITALL);
    pthread_join(thread, NULL);
    if (count != 8 || strcmp(bytes, "abcdefgh") != 0) return failure("receiving all", count);
  }
  return 0;
}

static size_t taken;
static void *take_all(void *descriptor) {
  char bytes[50000];
  ssize_t count;
  while ((count = read((int)(long)descriptor, bytes, sizeof bytes)) > 0) taken += (size_t)count;
  return NULL;
}

static int big(void) {
  const size_t size = 300000;
  char *bytes = calloc(1, size);
  struct iovec parts[3] = {{bytes, 0}, {bytes, 100}, {bytes, size - 100}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
  pthread_t thread, next;
  pthread_create(&thread, NULL, take_all, (void *)(long)ends[0]);
  if (writev(ends[1], parts, 3) != (ssize_t)size) return failure("writev", 0);
  close(ends[1]);
  pthread_join(thread, NULL);
  pthread_create(&next, NULL, take_all, (void *)(long)sockets[0]);
  if (sendmsg(sockets[1], &message, 0) != (ssize_t)size) return failure("sendmsg", 0);
  if (sendto(sockets[1], bytes, size, 0, NULL, 0) != (ssize_t)size) return failure("sendto", 0);
  close(sockets[1]);
  pthread_join(next, NULL);
  free(bytes);
  return taken != 3 * size;
}

// A message is not divided.
static int messages(void) {
  int pair[2];
  char bytes[10000] = {0};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) return 1;
  if (send(pair[0], bytes, sizeof bytes, 0) != sizeof bytes) return 2;
  return recv(pair[1], bytes, sizeof bytes, 0) != sizeof bytes;
}

static void *select_nothing(void *unused) {
  struct timeval limit = {0, 100};
  volatile char used[4500];
  for (size_t i = 0; i < sizeof used; i += 100) used[i] = 0;
  select(0, NULL, NULL, NULL, &limit);
  return unused;
}
static int small_stack(void) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
  if (pthread_create(&thread, &attributes, select_nothing, NULL) != 0) return 1;
  return pthread_join(thread, NULL);
}

static pthread_rwlock_t kept;
static char order[3];

static void *read_kept(void *unused) {
  pthread_rwlock_rdlock(&kept);
  strcat(order, "r");
  pthread_rwlock_unlock(&kept);
  return unused;
}

static void *write_kept(void *unused) {
  pthread_rwlock_wrlock(&kept);
  strcat(order, "w");
  pthread_rwlock_unlock(&kept);
  return unused;
}

// Readers let a writer go first that waits, if the lock says so, until its time is over.
static int writers_first(void) {
  pthread_t writer, reader;
  pthread_rwlockattr_t attributes;
  struct timespec time;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(&kept, &attributes);
  pthread_rwlock_rdlock(&kept);
  // Time passes only once the thread waits, but for 10 ms.
  pthread_create(&writer, NULL, write_kept, NULL);
  usleep(100000);
  if (pthread_rwlock_tryrdlock(&kept) != EBUSY) return 1;
  pthread_create(&reader, NULL, read_kept, NULL);
  usleep(100000);
  pthread_rwlock_unlock(&kept);
  pthread_join(writer, NULL);
  pthread_join(reader, NULL);
  if (strcmp(order, "wr") != 0) return 2;
  pthread_rwlock_rdlock(&kept);
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_sec++;
  if (pthread_rwlock_timedwrlock(&kept, &time) != EDEADLK && pthread_rwlock_tryrdlock(&kept) != 0) return 3;
  return 0;
}

static const struct {
  const char *name;
  int (*run)(void);
} cases[] = {
    {"blocked", blocked},           {"ignored", ignored},         {"discarded", discarded},
    {"interrupted", interrupted},   {"restarted", restarted},     {"not-restarted", not_restarted},
    {"semaphores", semaphores},     {"first-thread", first_thread}, {"cancel-state", cancel_state},
    {"cancel-lock", cancel_lock},   {"random-number", random_number}, {"timer-number", timer_number},
    {"timers", timers},             {"barriers", barriers},       {"robust", robust},
    {"socket-limits", socket_limits}, {"empty", empty},           {"own-lock", own_lock},
    {"times", times},               {"remaining", remaining},     {"clocked", clocked},
    {"partial", partial},           {"negative-times", negative_times},
    {"wait-all", wait_all},         {"big", big},                 {"messages", messages},
    {"small-stack", small_stack},   {"writers-first", writers_first},
};

int main(int count, char **arguments) {
  signal(SIGPIPE, SIG_IGN);
  if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 100;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (count < 2) puts(cases[i].name);
    else if (strcmp(arguments[1], cases[i].name) == 0) return cases[i].run();
  }
  return count < 2 ? 0 : 101;
}
