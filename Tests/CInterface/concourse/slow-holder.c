// The child of a process with one thread is a process of its own: its threads may wait long for each other's locks.
// Statements: S148

#include "check.h"

#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { notifications = 200000, attempts = 100, pause_milliseconds = 1500 };

static dispatch_group_t group;
static dispatch_queue_t queue;
static event submitting, paused, measured;
static atomic_int is_measured;

// Stops a thread for longer than a child with lost threads waits for a lock, unless it holds none.
static void pause_thread(int number) {
  (void)number;
  struct timespec rest = {0, NSEC_PER_MSEC};
  event_happens(&paused);
  for (int i = 0; i < pause_milliseconds && !atomic_load(&is_measured); i++) nanosleep(&rest, NULL);
}

// Submits the notifications under the group's lock. The first of them runs meanwhile.
static void *leave(void *unused) {
  dispatch_group_leave(group);
  event_wait(&measured);
  return unused;
}

static long long uptime(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * (long long)NSEC_PER_SEC + now.tv_nsec;
}

// Whether this thread has waited for the lock.
static bool waits_for_lock(void) {
  atomic_store(&is_measured, 0);
  group = dispatch_group_create();
  dispatch_group_enter(group);
  dispatch_group_notify_f(group, queue, &submitting, event_happens);
  for (int i = 0; i < notifications; i++) dispatch_group_notify_f(group, queue, NULL, nothing);
  pthread_t thread;
  check_equal(pthread_create(&thread, NULL, leave, NULL), 0);
  event_wait(&submitting);
  check_equal(pthread_kill(thread, SIGUSR1), 0);
  event_wait(&paused);
  long long begin = uptime();
  dispatch_group_notify_f(group, queue, NULL, nothing);
  long long waited = uptime() - begin;
  atomic_store(&is_measured, 1);
  event_happens(&measured);
  check_equal(pthread_join(thread, NULL), 0);
  dispatch_release(group);
  return waited > pause_milliseconds / 2 * (long long)NSEC_PER_MSEC;
}

static int in_child(void) {
  event_init(&submitting);
  event_init(&paused);
  event_init(&measured);
  signal(SIGUSR1, pause_thread);
  queue = dispatch_queue_create("queue", NULL);
  int attempt = 0;
  while (!waits_for_lock() && attempt < attempts) attempt++;
  check(attempt < attempts);
  drain(queue);
  return finish();
}

int main(void) {
  pid_t child = fork();
  if (child == 0) return in_child();
  int status = -1;
  check_equal(waitpid(child, &status, 0), child);
  check_equal(status, 0);
  return finish();
}
