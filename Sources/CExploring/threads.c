// Threads: their numbers, their beginning and their end; and how the library begins.

#include "exploring.h"

#include <link.h>
#include <string.h>
#include <sys/prctl.h>

extern void *__libc_stack_end;
static pthread_key_t end_key;
bool explored_is_on;

/// Code whose own locks are no points: this library's, and that of the runtimes beside it. The first is this library.
enum { MOST_QUIET = 8 };
static struct range {
  uintptr_t start, end;
} quiet[MOST_QUIET];
static uint32_t quiet_count = 1;
/// The program itself: the first object.
static struct range program, program_data;

void *explore_real(const char *name) {
  // `dlsym` may allocate, and so come here again.
  struct explored *self = explored_self;
  bool was_inside = self && self->inside;
  if (self) self->inside = true;
  void *found = dlsym(RTLD_NEXT, name);
  if (self) self->inside = was_inside;
  return found;
}

static bool is_in(const struct range *range, const void *address) {
  return (uintptr_t)address - range->start < range->end - range->start;
}

bool explore_is_own_code(const void *address) { return is_in(&quiet[0], address); }

bool explore_is_program(const void *address) { return is_in(&program, address); }

const void *explore_program_data(size_t *size) {
  const size_t most = 256 * 1024;
  *size = program_data.end - program_data.start;
  if (*size > most) *size = most;
  return (const void *)program_data.start;
}

bool explore_is_quiet(const void *address) {
  for (uint32_t i = 0; i < quiet_count; i++)
    if (is_in(&quiet[i], address)) return true;
  return false;
}

static bool is_runtime(const char *path) {
  static const char *const names[] = {"/libswiftCore.so", "/libswift_Concurrency.so", "/libstdc++.so.",
                                      "/libgcc_s.so.", "/libBlocksRuntime.so"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strstr(path, names[i])) return true;
  return false;
}

static int find_code(struct dl_phdr_info *object, size_t size, void *unused) {
  (void)size, (void)unused;
  struct range range = {UINTPTR_MAX, 0};
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD) continue;
    uintptr_t start = object->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
    if (start < range.start) range.start = start;
    if (end > range.end) range.end = end;
  }
  if (program.end == 0) {
    program = range;
    for (int i = 0; i < object->dlpi_phnum; i++) {
      const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
      uintptr_t start = object->dlpi_addr + segment->p_vaddr;
      if (segment->p_type == PT_LOAD && segment->p_flags & PF_W) program_data = (struct range){start, start + segment->p_memsz};
    }
  }
  if (is_in(&range, (const void *)find_code)) {
    quiet[0] = range;
  } else if (is_runtime(object->dlpi_name) && quiet_count < MOST_QUIET) {
    quiet[quiet_count++] = range;
  }
  return 0;
}

/// A number for another thread: a new one, or at the limit the lowest of those whose threads have gone. Their points go on
/// where the former ones ended.
static struct explored *take_number(struct explored *creator) {
  if (explored_thread_count < CONCOURSE_EXPLORING_THREADS) {
    explored_threads[explored_thread_count].number = (uint16_t)explored_thread_count;
    return &explored_threads[explored_thread_count++];
  }
  for (uint32_t i = 1; i < CONCOURSE_EXPLORING_THREADS; i++) {
    struct explored *former = &explored_threads[i];
    if (former->state != CONCOURSE_EXPLORING_ENDED || !former->is_detached) continue;
    uint16_t number = former->number;
    uint32_t points = former->points;
    memset(former, 0, sizeof *former);
    former->number = number;
    former->points = points;
    return former;
  }
  explore_finish(CONCOURSE_EXPLORING_TOO_MANY_THREADS, creator ? creator->number : 0, 0);
}

struct explored *explore_new_thread(struct explored *creator) {
  struct explored *thread = take_number(creator);
  thread->creator = creator ? creator->number : 0;
  thread->deadline = NEVER;
  thread->operation = OP_THREAD_BEGINS;
  thread->state = CONCOURSE_EXPLORING_RUNNABLE;
  uint32_t place = explored_live_count++;
  for (; place > 0 && explored_live[place - 1]->number > thread->number; place--)
    explored_live[place] = explored_live[place - 1];
  explored_live[place] = thread;
  explored_file->thread_count = explored_thread_count;
  explore_arrives(thread);
  return thread;
}

// The C library runs the destructors of thread-specific data four times, as long as there are any. In the last round
// those of the program have run.
static void end_of_round(void *argument) {
  struct explored *thread = argument;
  if (explored_self != thread) return;
  if (++thread->rounds < 4) {
    pthread_setspecific(end_key, thread);
  } else {
    explore_end(thread);
  }
}

void explore_leave_child(void) {
  explored_self = NULL;
  explored_is_on = explored_is_fixed = false;
}

extern char concourse_recording_word[] __attribute__((weak, visibility("hidden")));

static void start(void) {
  // A command that is killed cannot end its runs. A thread that spins would go on for ever.
  SYSTEM3(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
  if (program.end == 0) dl_iterate_phdr(find_code, NULL);
  explore_seed(explored_file->seed);
  explore_begin_time();
  explore_prepare_strategy();
  if (pthread_key_create(&end_key, end_of_round) != 0 || pthread_atfork(NULL, NULL, explore_leave_child) != 0) return;
  struct explored *first = explore_new_thread(NULL);
  first->id = (uint32_t)SYSTEM1(SYS_gettid, 0);
  first->handle = pthread_self();
  first->stack_end = (uintptr_t)__libc_stack_end;
  pthread_setspecific(end_key, first);
  // The lowest 16 bits count the tracers. With one, the engine calls the functions that record an item (entries.S).
  if (concourse_recording_word) *(uint16_t *)concourse_recording_word = 1;
  explored_file->outcome = CONCOURSE_EXPLORING_RUNNING;
  explore_watch();
  explored_is_on = explored_is_fixed = true;
  explored_self = first;
}

// Before the constructors of the engine and of the program.
__attribute__((constructor(101))) void explore_start(void) {
  static bool has_begun;
  if (has_begun) return;
  has_begun = true;
  bool is_explored = explore_open_file();
  dl_iterate_phdr(find_code, NULL);
  if (is_explored) explore_prepare_races();
  // Where the sanitizer looks at them, those of the program are calls.
  if (!explored_races) explore_find_exchanges();
  if (!is_explored) return;
  explore_let_switch();
  start();
  if (explored_is_on) explore_take_input();
}

EXPORTED int concourse_exploring_begin_run(struct concourse_exploring_header *header) {
  if (!explore_use_file(header)) return 0;
  explore_drop_items();
  start();
  return explored_is_on;
}

EXPORTED void concourse_exploring_explore_run(void) {
  if (!explored_is_on) return;
  for (uint32_t i = 0; i < explored_thread_count; i++) explored_threads[i].points = 0;
  explore_count_anew();
  explore_let_switch();
}

static void *begin(void *argument) {
  struct explored *self = argument;
  self->id = (uint32_t)SYSTEM1(SYS_gettid, 0);
  self->stack_end = (uintptr_t)__builtin_frame_address(0) + 16;
  self->place = __builtin_frame_address(0);
  self->inside = true;
  explored_self = self;
  explore_sleep(self);
  pthread_setspecific(end_key, self);
  self->inside = false;
  return self->entry(self->argument);
}

static int (*real_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/// What the thread sanitizer's first function of a thread begins with. Its creator waits until the thread has come to the
/// entry, so that one waits for the token.
struct sanitized {
  void *(*entry)(void *);
  void *argument;
};

// `sanitized`: the same as `argument`, if the sanitizer has called.
static int create(struct explored *self, pthread_t *handle, const pthread_attr_t *attributes, void *(*entry)(void *),
                  void *argument, struct sanitized *sanitized, bool is_engine, const void *place) {
  if (!real_create) *(void **)&real_create = explore_real("pthread_create");
  explore_point(self, OP_CREATE, NULL, place);
  struct explored *thread = explore_new_thread(self);
  thread->is_engine = is_engine;
  int detached = PTHREAD_CREATE_JOINABLE;
  if (attributes) pthread_attr_getdetachstate(attributes, &detached);
  thread->is_detached = detached == PTHREAD_CREATE_DETACHED;
  thread->entry = sanitized ? sanitized->entry : entry;
  thread->argument = sanitized ? sanitized->argument : argument;
  if (sanitized) *sanitized = (struct sanitized){begin, thread};
  self->inside = true;
  // The thread takes signals when it has the token. It inherits the mask only then.
  explore_block_signals(self);
  thread->mask = self->mask;
  thread->has_mask = true;
  thread->signals = ~self->mask;
  int failure = real_create(&thread->handle, attributes, sanitized ? entry : begin, sanitized ? argument : thread);
  self->inside = false;
  self->has_mask = false;
  SYSTEM4(SYS_rt_sigprocmask, SIG_SETMASK, &self->mask, NULL, MASK_SIZE);
  if (failure != 0) {
    thread->state = CONCOURSE_EXPLORING_ENDED;
    thread->is_detached = true;
    explore_forget(thread);
    return failure;
  }
  *handle = thread->handle;
  // The creator has to wait for the thread first.
  if (!sanitized) explore_point(self, OP_CREATE, thread, place);
  return 0;
}

/// GUARDED BY the token. Whether this library makes a thread for the program.
static bool creates_for_program;

int explore_create(struct explored *self, pthread_t *handle, const pthread_attr_t *attributes, void *(*entry)(void *),
                   void *argument, bool is_engine, const void *place) {
  if (!explored_races) return create(self, handle, attributes, entry, argument, NULL, is_engine, place);
  // The sanitizer must know it.
  creates_for_program = !is_engine;
  int failure = pthread_create(handle, attributes, entry, argument);
  creates_for_program = false;
  return failure;
}

EXPORTED int pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*entry)(void *), void *argument) {
  struct explored *self = explore_current();
  const void *caller = __builtin_return_address(0);
  // The sanitizer has called it. A thread without an argument is its own.
  struct sanitized *sanitized = explored_races ? argument : NULL;
  if (sanitized) caller = (const void *)sanitized->entry;
  if (self && (sanitized || !explored_races)) {
    bool is_engine = explore_is_own_code(caller) && !creates_for_program;
    creates_for_program = false;
    return create(self, handle, attributes, entry, argument, sanitized, is_engine, HERE);
  }
  if (!real_create) *(void **)&real_create = explore_real("pthread_create");
  return real_create(handle, attributes, entry, argument);
}

/// The joinable thread with this handle.
static struct explored *find(pthread_t handle) {
  for (uint32_t i = explored_thread_count; i-- > 0;)
    if (pthread_equal(explored_threads[i].handle, handle) && !explored_threads[i].is_detached) return &explored_threads[i];
  return NULL;
}

INTERPOSED(int, pthread_detach, pthread_t handle) {
  struct explored *thread = explored_is_on ? find(handle) : NULL;
  if (thread) thread->is_detached = true;
  return REAL(pthread_detach)(handle);
}

static int await_end(struct explored *self, struct explored *thread, uint64_t deadline, const void *place) {
  explore_point(self, OP_JOIN, thread, place);
  // Itself: the C library refuses it.
  if (!thread || thread == self) return 0;
  while (thread->state != CONCOURSE_EXPLORING_ENDED) {
    if (explore_wait(self, OP_JOIN, thread, deadline, place) == ETIMEDOUT) return ETIMEDOUT;
    explore_test_cancel(self);
  }
  return 0;
}

static int (*real_join)(pthread_t, void **);

int explore_join(struct explored *self, pthread_t handle, void **result, const void *place) {
  if (!real_join) *(void **)&real_join = explore_real("pthread_join");
  struct explored *thread = self ? find(handle) : NULL;
  if (self) await_end(self, thread, NEVER, place);
  int failure = real_join(handle, result);
  if (thread && failure == 0) thread->is_detached = true;
  return failure;
}

EXPORTED int pthread_join(pthread_t handle, void **result) { return explore_join(explore_current(), handle, result, HERE); }

INTERPOSED(int, pthread_tryjoin_np, pthread_t handle, void **result) {
  struct explored *self = explore_current();
  struct explored *thread = self ? find(handle) : NULL;
  if (self) explore_yield(self, OP_JOIN, thread, HERE);
  int failure = REAL(pthread_tryjoin_np)(handle, result);
  if (thread && failure == 0) thread->is_detached = true;
  return failure;
}

static int (*real_timed)(pthread_t, void **, clockid_t, const struct timespec *);
static int join_until(pthread_t handle, void **result, clockid_t clock, const struct timespec *time, const void *place) {
  struct explored *self = explore_current();
  if (self && explore_is_time(time)) {
    if (await_end(self, find(handle), explore_deadline(clock, time, true), place) == ETIMEDOUT) return ETIMEDOUT;
    return pthread_join(handle, result);
  }
  if (!real_timed) real_timed = explore_real("pthread_clockjoin_np");
  return real_timed(handle, result, clock, time);
}

EXPORTED int pthread_timedjoin_np(pthread_t handle, void **result, const struct timespec *time) {
  return join_until(handle, result, CLOCK_REALTIME, time, HERE);
}

EXPORTED int pthread_clockjoin_np(pthread_t handle, void **result, clockid_t clock, const struct timespec *time) {
  return join_until(handle, result, clock, time, HERE);
}

INTERPOSED(int, pthread_setcancelstate, int state, int *former) {
  int failure = REAL(pthread_setcancelstate)(state, former);
  if (failure == 0 && explored_self) explored_self->refuses_cancelling = state == PTHREAD_CANCEL_DISABLE;
  return failure;
}

INTERPOSED(int, pthread_cancel, pthread_t handle) {
  struct explored *self = explore_current();
  int failure = REAL(pthread_cancel)(handle);
  if (!self || failure != 0) return failure;
  for (uint32_t i = 0; i < explored_live_count; i++) {
    struct explored *thread = explored_live[i];
    if (!pthread_equal(thread->handle, handle)) continue;
    thread->is_cancelled = true;
    if (explore_ends_by_cancelling(thread)) explore_interrupt(thread);
  }
  explore_point(self, OP_KILL, NULL, HERE);
  return 0;
}
