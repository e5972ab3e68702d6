// Calls during which their object may be destroyed: an item that they submit or let continue releases
// the last reference. In turn after each of its instructions, the calling thread is stopped until the object is freed.
// The object has its own page, so a later access ends the process. On a slow machine the stops may
// be too short for that, or too many: then the program finds less, but nothing fails.

#include "check.h"

#if defined(__x86_64__)

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

// MARK: Objects on pages of their own

enum { PAGE = 4096, PAGES = 1 << 16 };
static char *arena;
static atomic_int pages_used;
static _Thread_local bool guarded;
// The object of this round, and whether it has been freed.
static void *object;
static atomic_bool gone;

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *memory);

void *malloc(size_t size) {
  if (!guarded || size > PAGE) return __libc_malloc(size);
  int page = atomic_fetch_add(&pages_used, 1);
  return page < PAGES ? arena + (size_t)page * PAGE : __libc_malloc(size);
}

void free(void *memory) {
  if (memory != NULL && memory == object) atomic_store(&gone, true);
  if (arena == NULL || (char *)memory < arena || (char *)memory >= arena + (size_t)PAGES * PAGE) {
    return __libc_free(memory);
  }
  mprotect(memory, PAGE, PROT_NONE);
}

// MARK: One instruction at a time

static volatile int steps, stop_at;
// Set when the call has reached the instruction to stop at.
static atomic_bool go;
// A thread that waits for the call's effect; it looks again after each interruption.
static pthread_t waiter;
static volatile bool has_waiter;

static void interrupted(int signal) { (void)signal; }

static void stepped(int signal, siginfo_t *information, void *context) {
  (void)signal, (void)information;
  // A thread made by the call inherits the flag, but must run normally.
  bool is_other = gettid() != getpid();
  if (!is_other && ++steps != stop_at) return;
  // The rest of the call runs normally too.
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
  if (is_other) return;
  atomic_store(&go, true);
  if (has_waiter) pthread_kill(waiter, SIGUSR1);
  // Until the call has submitted something, the object stays.
  struct timespec now, end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += 300000;
  do {
    sched_yield();
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (!atomic_load(&gone) &&
           (now.tv_sec - end.tv_sec) * 1000000000L + now.tv_nsec - end.tv_nsec < 0);
}

// The processor's trap flag, set and cleared; the stack's red zone is left alone.
#define FLAGS(operation)                                                                                    \
  __asm__ volatile("leaq -128(%%rsp), %%rsp; pushfq; " operation " (%%rsp); popfq; leaq 128(%%rsp), %%rsp" \
                   ::: "cc", "memory")
#define STEP_BY_STEP(call) \
  FLAGS("orq $0x100,");    \
  call;                    \
  FLAGS("andq $0xFFFFFFFFFFFFFEFF,")

// MARK: The calls

static void await_go(void *unused) {
  (void)unused;
  while (!atomic_load(&go)) sched_yield();
}
static void release(void *object) { dispatch_release(object); }

static dispatch_queue_t fresh_queue(dispatch_queue_attr_t attribute, dispatch_queue_t target) {
  guarded = true;
  dispatch_queue_t queue = target ? dispatch_queue_create_with_target(NULL, attribute, target)
                                  : dispatch_queue_create(NULL, attribute);
  guarded = false;
  object = queue;
  return queue;
}

static void busy_async(void) {
  dispatch_queue_t queue = fresh_queue(NULL, NULL);
  dispatch_async_f(queue, NULL, await_go);
  STEP_BY_STEP(dispatch_async_f(queue, queue, release));
}
static void barrier_async(void) {
  dispatch_queue_t queue = fresh_queue(DISPATCH_QUEUE_CONCURRENT, NULL);
  dispatch_async_f(queue, NULL, await_go);
  STEP_BY_STEP(dispatch_barrier_async_f(queue, queue, release));
}
static void async_nested(void) {
  dispatch_queue_t target = fresh_queue(NULL, NULL);
  dispatch_queue_t queue = fresh_queue(NULL, target);
  dispatch_release(target);
  STEP_BY_STEP(dispatch_async_f(queue, queue, release));
}
static void group_async(void) {
  dispatch_group_t group = dispatch_group_create();
  dispatch_queue_t queue = fresh_queue(NULL, NULL);
  dispatch_async_f(queue, NULL, await_go);
  STEP_BY_STEP(dispatch_group_async_f(group, queue, queue, release));
  atomic_store(&go, true);
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
  dispatch_release(group);
}

static void (*thread_body)(void *);
static void *run_thread(void *context) {
  thread_body(context);
  return NULL;
}
static void in_thread(void (*body)(void *), void *context) {
  thread_body = body;
  pthread_create(&waiter, NULL, run_thread, context);
  has_waiter = true;
  // Usually enough for the thread to sleep, which makes the call longer. Not required.
  usleep(1000);
}
static void end_thread(void) {
  has_waiter = false;
  pthread_join(waiter, NULL);
}
static void wait_and_release(void *semaphore) {
  dispatch_semaphore_wait(semaphore, DISPATCH_TIME_FOREVER);
  dispatch_release(semaphore);
}
static void signal_semaphore(void) {
  guarded = true;
  dispatch_semaphore_t semaphore = dispatch_semaphore_create(0);
  guarded = false;
  object = semaphore;
  in_thread(wait_and_release, semaphore);
  STEP_BY_STEP(dispatch_semaphore_signal(semaphore));
  end_thread();
}
static void wait_group_and_release(void *group) {
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
  dispatch_release(group);
}
static void leave(void) {
  guarded = true;
  dispatch_group_t group = dispatch_group_create();
  guarded = false;
  object = group;
  dispatch_group_enter(group);
  in_thread(wait_group_and_release, group);
  STEP_BY_STEP(dispatch_group_leave(group));
  end_thread();
}

static const struct {
  const char *name;
  void (*call)(void);
} calls[] = {
    {"async", busy_async},
    {"barrier async", barrier_async},
    {"async to a queue on a queue", async_nested},
    {"group async", group_async},
    {"signal", signal_semaphore},
    {"leave", leave},
};

static void signal_it(void *semaphore) { dispatch_semaphore_signal(semaphore); }

// So that the runtime's threads and memory are not created while single-stepping.
static void warm_up(void) {
  dispatch_queue_t queue = dispatch_queue_create(NULL, NULL);
  dispatch_semaphore_t fired = dispatch_semaphore_create(0);
  dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, 1000), queue, fired, signal_it);
  dispatch_semaphore_wait(fired, DISPATCH_TIME_FOREVER);
  drain(queue);
  dispatch_release(fired);
  dispatch_release(queue);
}

// One round for each instruction, until calls end before they are stopped, or the time is up.
static void rounds(void (*call)(void)) {
  call();
  int round = 0, short_rounds = 0;
  time_t end = time(NULL) + 5;
  do {
    atomic_store(&gone, false);
    atomic_store(&go, false);
    steps = 0;
    stop_at = ++round;
    call();
    atomic_store(&go, true);
    while (!atomic_load(&gone)) sched_yield();
    short_rounds = steps < stop_at ? short_rounds + 1 : 0;
  } while (short_rounds < 20 && round < 6000 && time(NULL) < end);
}

int main(void) {
  arena = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) abort();
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = interrupted}, NULL);
  sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = stepped, .sa_flags = SA_SIGINFO}, NULL);
  for (size_t index = 0; index < sizeof calls / sizeof *calls; index++) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(100);
      warm_up();
      rounds(calls[index].call);
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status) fprintf(stderr, "%s: status %#x\n", calls[index].name, (unsigned)status);
    check(status == 0);
  }
  return finish();
}

#else
int main(void) { return finish(); }
#endif
