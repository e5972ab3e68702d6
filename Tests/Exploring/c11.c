// The threads of C11. With the argument `lost` two threads each read a counter and write it back under two locks.
#include <stdint.h>
#include <string.h>
#include <threads.h>
#include <time.h>

static mtx_t mutex;
static cnd_t condition;
static once_flag once = ONCE_FLAG_INIT;
static int inits, items, count;

static void init(void) {
  inits++;
  thrd_yield();
  mtx_init(&mutex, mtx_timed);
  cnd_init(&condition);
}

static int consume(void *unused) {
  (void)unused;
  call_once(&once, init);
  mtx_lock(&mutex);
  while (items == 0) cnd_wait(&condition, &mutex);
  items--;
  mtx_unlock(&mutex);
  return 7;
}

static int produce(void *unused) {
  (void)unused;
  call_once(&once, init);
  for (int i = 0; i < 2; i++) {
    mtx_lock(&mutex);
    items++;
    cnd_signal(&condition);
    mtx_unlock(&mutex);
    thrd_yield();
  }
  return 8;
}

static int lose(void *unused) {
  (void)unused;
  mtx_lock(&mutex);
  int seen = count;
  mtx_unlock(&mutex);
  mtx_lock(&mutex);
  count = seen + 1;
  mtx_unlock(&mutex);
  return 0;
}

static int keep(void *unused) {
  (void)unused;
  mtx_lock(&mutex);
  thrd_sleep(&(struct timespec){.tv_sec = 3600}, NULL);
  mtx_unlock(&mutex);
  thrd_exit(9);
}

static struct timespec in_seconds(int seconds) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  time.tv_sec += seconds;
  return time;
}

int main(int arguments, char **names) {
  thrd_t threads[3];
  int result;
  if (arguments > 1 && strcmp(names[1], "lost") == 0) {
    call_once(&once, init);
    for (int i = 0; i < 2; i++) thrd_create(&threads[i], lose, NULL);
    for (int i = 0; i < 2; i++) thrd_join(threads[i], NULL);
    return count == 2 ? 0 : 3;
  }
  thrd_create(&threads[0], consume, NULL);
  thrd_create(&threads[1], consume, NULL);
  thrd_create(&threads[2], produce, NULL);
  for (int i = 0; i < 3; i++)
    if (thrd_join(threads[i], &result) != thrd_success || result != (i < 2 ? 7 : 8)) return 4;
  if (inits != 1 || items != 0) return 5;

  // The one that sleeps for an hour has the lock, or gets it.
  thrd_create(&threads[0], keep, NULL);
  while (mtx_trylock(&mutex) == thrd_success) {
    mtx_unlock(&mutex);
    thrd_yield();
  }
  struct timespec soon = in_seconds(60), late = in_seconds(7200), never = in_seconds(10000);
  if (mtx_timedlock(&mutex, &soon) != thrd_timedout || mtx_timedlock(&mutex, &late) != thrd_success) return 6;
  if (cnd_timedwait(&condition, &mutex, &never) != thrd_timedout) return 7;
  mtx_unlock(&mutex);
  return thrd_join(threads[0], &result) == thrd_success && result == 9 ? 0 : 8;
}
