// Threads that spin on a variable without any call. `never`: no thread sets it, so the program hangs. `each`: two wait for one
// another. `taken`: a spin lock is held while the holder waits for the one that spins.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 3, ROUNDS = 20 };
static atomic_int is_ready, turn, is_late;
static atomic_flag spin = ATOMIC_FLAG_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int count, is_done;

static void lock(void) {
  while (atomic_flag_test_and_set(&spin)) continue;
}
static void unlock(void) { atomic_flag_clear(&spin); }

static void *work(void *unused) {
  while (!atomic_load(&is_ready)) continue;
  for (int i = 0; i < ROUNDS; i++) {
    lock();
    // A point within the lock, so that others come to it meanwhile.
    pthread_mutex_lock(&mutex);
    count++;
    pthread_mutex_unlock(&mutex);
    unlock();
  }
  return unused;
}

static void *sleep_first(void *unused) {
  sleep(3600);
  atomic_store(&is_late, 1);
  return unused;
}

static void *answer(void *unused) {
  while (atomic_load(&turn) != 1) continue;
  atomic_store(&turn, 2);
  return unused;
}

static void *wait_for_lock(void *unused) {
  lock();
  pthread_mutex_lock(&mutex);
  is_done = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  unlock();
  return unused;
}

int main(int arguments, char **names) {
  pthread_t threads[WORKERS];
  if (arguments == 1) {
    for (int i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, work, NULL);
    atomic_store(&is_ready, 1);
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    pthread_create(&threads[0], NULL, sleep_first, NULL);
    while (!atomic_load(&is_late)) continue;
    pthread_join(threads[0], NULL);
    return count == WORKERS * ROUNDS ? 0 : 3;
  }
  if (strcmp(names[1], "taken") == 0) {
    lock();
    pthread_create(&threads[0], NULL, wait_for_lock, NULL);
    pthread_mutex_lock(&mutex);
    while (!is_done) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    unlock();
    return 0;
  }
  pthread_create(&threads[0], NULL, answer, NULL);
  if (strcmp(names[1], "each") == 0)
    while (atomic_load(&turn) != 2) continue;
  return pthread_join(threads[0], NULL);
}
