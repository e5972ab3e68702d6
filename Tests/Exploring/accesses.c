// Programs for the thread sanitizer under the exploring library: `accesses NAME` accesses a variable from several threads
// without an order, `accesses NAME mended` with one. Without a name it prints all names.

#include <dispatch/dispatch.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_mended;
static int value;

static void add(void *unused) {
  (void)unused;
  value++;
}
static void *add_in_thread(void *unused) {
  add(unused);
  return NULL;
}

/// Runs the function in two threads.
static void in_two(void *(*function)(void *)) {
  pthread_t first, second;
  if (pthread_create(&first, NULL, function, NULL) != 0 || pthread_create(&second, NULL, function, NULL) != 0) abort();
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  value++;
}

// MARK: Threads

static void threads(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, add_in_thread, NULL) != 0) abort();
  if (is_mended) pthread_join(thread, NULL);
  value++;
  if (!is_mended) pthread_join(thread, NULL);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *lock_and_add(void *unused) {
  if (is_mended) pthread_mutex_lock(&mutex);
  value++;
  if (is_mended) pthread_mutex_unlock(&mutex);
  return unused;
}
static void locks(void) { in_two(lock_and_add); }

// The reader checks the flag without the lock.
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool is_ready;
static void *await_flag(void *unused) {
  if (is_mended) {
    pthread_mutex_lock(&mutex);
    while (!is_ready) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
  } else {
    for (int i = 0; i < 1000 && !*(volatile bool *)&is_ready; i++) usleep(1000);
  }
  value++;
  return unused;
}
static void flag(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, await_flag, NULL) != 0) abort();
  pthread_mutex_lock(&mutex);
  value++;
  is_ready = true;
  pthread_cond_broadcast(&condition);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static void *read_or_write(void *unused) {
  pthread_rwlock_rdlock(&rwlock);
  int seen = value;
  pthread_rwlock_unlock(&rwlock);
  if (is_mended) pthread_rwlock_wrlock(&rwlock);
  else pthread_rwlock_rdlock(&rwlock);
  value = seen + 1;
  pthread_rwlock_unlock(&rwlock);
  return unused;
}
static void readers(void) { in_two(read_or_write); }

static sem_t semaphore;
static void *add_and_post(void *unused) {
  if (!is_mended) sem_post(&semaphore);
  value++;
  if (is_mended) sem_post(&semaphore);
  return unused;
}
static void semaphores(void) {
  pthread_t thread;
  sem_init(&semaphore, 0, 0);
  if (pthread_create(&thread, NULL, add_and_post, NULL) != 0) abort();
  sem_wait(&semaphore);
  value++;
  pthread_join(thread, NULL);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void set(void) { value = 1; }
static void *once_and_read(void *unused) {
  if (is_mended) pthread_once(&once, set);
  else if (value == 0) set();
  return value == 1 ? unused : NULL;
}
static void onces(void) { in_two(once_and_read); }

// MARK: Dispatch

static void queues(void) {
  dispatch_queue_t first = dispatch_queue_create("first", NULL), second = dispatch_queue_create("second", NULL);
  dispatch_group_t group = dispatch_group_create();
  dispatch_group_async_f(group, first, NULL, add);
  dispatch_group_async_f(group, is_mended ? first : second, NULL, add);
  dispatch_sync_f(first, NULL, add);
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
  value++;
}

static dispatch_once_t predicate;
static void dispatch_once_and_read(void *unused) {
  if (is_mended) dispatch_once(&predicate, ^{ value = 1; });
  else if (value == 0) value = 1;
  if (value != 1) abort();
  (void)unused;
}
static void predicates(void) {
  dispatch_queue_t queue = dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0);
  dispatch_group_t group = dispatch_group_create();
  for (int i = 0; i < 3; i++) dispatch_group_async_f(group, queue, NULL, dispatch_once_and_read);
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
  value++;
}

static void loops(void) {
  dispatch_queue_t queue = dispatch_queue_create("queue", NULL);
  value++;
  dispatch_apply(3, dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0), ^(size_t index) {
    (void)index;
    if (is_mended) dispatch_sync_f(queue, NULL, add);
    else value++;
  });
  value++;
}

static void barriers(void) {
  dispatch_queue_t queue = dispatch_queue_create("queue", DISPATCH_QUEUE_CONCURRENT);
  for (int i = 0; i < 2; i++) dispatch_async(queue, ^{ if (value < 0) abort(); });
  if (is_mended) dispatch_barrier_async_f(queue, NULL, add);
  else dispatch_async_f(queue, NULL, add);
  dispatch_async(queue, dispatch_block_create(is_mended ? DISPATCH_BLOCK_BARRIER : 0, ^{ value++; }));
  dispatch_async(queue, ^{ if (value < 0) abort(); });
  dispatch_barrier_sync_f(queue, NULL, add);
}

static void checks(void) {
  dispatch_queue_t first = dispatch_queue_create("first", NULL), second = dispatch_queue_create("second", NULL);
  dispatch_group_t group = dispatch_group_create();
  for (int i = 0; i < 2; i++)
    dispatch_group_async(group, dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0), ^{
      __block int seen;
      dispatch_sync(first, ^{ seen = value; });
      if (seen == 0) dispatch_sync(is_mended ? first : second, ^{ value++; });
    });
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
}

static void targets(void) {
  dispatch_queue_t base = dispatch_queue_create("base", NULL);
  dispatch_queue_t first = dispatch_queue_create_with_target("first", NULL, base);
  dispatch_queue_t second = dispatch_queue_create_with_target("second", NULL, is_mended ? base : NULL);
  dispatch_group_t group = dispatch_group_create();
  dispatch_group_async_f(group, first, NULL, add);
  dispatch_group_async_f(group, second, NULL, add);
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
  value++;
}

static const struct {
  const char *name;
  void (*function)(void);
} programs[] = {
    {"threads", threads}, {"locks", locks}, {"flag", flag}, {"readers", readers}, {"semaphores", semaphores},
    {"onces", onces}, {"queues", queues}, {"predicates", predicates}, {"loops", loops}, {"barriers", barriers},
    {"checks", checks}, {"targets", targets},
};

int main(int count, char **arguments) {
  is_mended = count > 2;
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    if (count == 1) puts(programs[i].name);
    else if (strcmp(programs[i].name, arguments[1]) == 0) programs[i].function();
  }
  return 0;
}
