// Threads that poll until another thread sets what they look for: after a day, or within the time limit of a third thread.
// With the argument `sleeping`, `yielding` or `looking`, no thread sets it. With `clocks`, they read clocks in between, as an
// empty run loop does.
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_set;
static void (*rest)(void);

static void sleeps(void) { usleep(1000); }
static void yields(void) { sched_yield(); }
static void looks(void) { poll(NULL, 0, 1); }
static void reads_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
}

static bool look(void) {
  pthread_mutex_lock(&mutex);
  bool found = is_set;
  pthread_mutex_unlock(&mutex);
  return found;
}

static void *await(void *unused) {
  while (!look()) rest();
  return unused;
}

static void *set(void *unused) {
  sleep(86400);
  pthread_mutex_lock(&mutex);
  is_set = true;
  pthread_mutex_unlock(&mutex);
  return unused;
}

/// A wait of five seconds beside one that sets something after two.
static void *set_soon(void *condition) {
  sleep(2);
  pthread_mutex_lock(&mutex);
  is_set = true;
  pthread_cond_signal(condition);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static bool is_late;
static void *await_signal(void *condition) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 5;
  pthread_mutex_lock(&mutex);
  while (!is_set && !is_late) is_late = pthread_cond_timedwait(condition, &mutex, &limit) != 0;
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void together(void *(*first)(void *), void *(*second)(void *), void *argument) {
  pthread_t threads[4];
  pthread_create(&threads[0], NULL, await, NULL);
  pthread_create(&threads[1], NULL, await, NULL);
  pthread_create(&threads[2], NULL, first, argument);
  pthread_create(&threads[3], NULL, second, argument);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  is_set = false;
}

int main(int arguments, char **names) {
  void (*const manners[])(void) = {sleeps, yields, looks};
  const char *const modes[] = {"sleeping", "yielding", "looking"};
  for (int i = 0; i < 3 && arguments > 1; i++) {
    if (strcmp(names[1], modes[i]) != 0) continue;
    rest = manners[i];
    together(await, await, NULL);
  }
  if (arguments > 1 && strcmp(names[1], "clocks") == 0) {
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    rest = reads_clock;
    together(set_soon, await_signal, &condition);
    return is_late ? 2 : 0;
  }
  for (int i = 0; i < 3; i++) {
    rest = manners[i];
    together(await, set, NULL);
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    together(set_soon, await_signal, &condition);
    if (is_late) return 2;
  }
  // A time limit of its own ends a wait.
  struct timespec now, end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += 600;
  do {
    usleep(1000);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (!look() && now.tv_sec < end.tv_sec);
  return 0;
}
