// Threads that are cancelled in their waits: a condition, whose mutex the handler unlocks, a semaphore, a read and a sleep.
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int ends[2], cleaned;

static void clean(void *unused) {
  (void)unused;
  cleaned++;
  pthread_mutex_unlock(&mutex);
}

static void *wait_condition(void *unused) {
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(clean, NULL);
  for (;;) pthread_cond_wait(&condition, &mutex);
  pthread_cleanup_pop(1);
  return unused;
}

static void *wait_semaphore(void *unused) {
  sem_wait(&semaphore);
  return unused;
}

static void *wait_read(void *unused) {
  char byte;
  return read(ends[0], &byte, 1) == 1 ? &semaphore : unused;
}

static void *wait_sleep(void *unused) {
  sleep(1000000);
  return unused;
}

int main(void) {
  void *(*const waits[])(void *) = {wait_condition, wait_semaphore, wait_read, wait_sleep};
  enum { COUNT = sizeof waits / sizeof waits[0] };
  pthread_t threads[COUNT];
  sem_init(&semaphore, 0, 0);
  if (pipe(ends) != 0) return 1;
  for (int i = 0; i < COUNT; i++) pthread_create(&threads[i], NULL, waits[i], NULL);
  usleep(1000);
  for (int i = 0; i < COUNT; i++) {
    void *result;
    pthread_cancel(threads[i]);
    pthread_join(threads[i], &result);
    if (result != PTHREAD_CANCELED) return 2 + i;
  }
  return cleaned == 1 && pthread_mutex_trylock(&mutex) == 0 ? 0 : 10;
}
