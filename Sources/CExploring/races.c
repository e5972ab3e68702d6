// Races, with `concourse explore --races`: the program has been built with the thread sanitizer, whose runtime is in the
// program itself. It notices two accesses to the same memory that nothing orders.
//
// The sanitizer learns what orders accesses from its own definitions of functions of the C library, which come before those
// of this library and call them. The gates of threads are no such functions, so it does not see who gave the token to whom.
// For Dispatch it has definitions, too, which know the toolchain's library from inside; the first instruction of each is
// replaced by a jump to the entry here. In their place this file says what Dispatch orders:
//
// - An item begins after what its queue's submitters had done, and after the items before it that it must not overlap: on
//   its queue and on the queues above that one.
// - A wait returns after what let it return.
//
// What an item stands behind is not always known exactly: the end of any item of a group orders all notifications of
// groups. So a pair of accesses may count as ordered in one schedule and not in another.

#include "exploring.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>

bool explored_races;

typedef void order_function(void *address);
static order_function *acquire_address, *release_address;

// Each object of Dispatch orders by some addresses in it, at which no instrumented code has variables.
enum key { SUBMITTED = 0, ENDED_ALONE = 8, ENDED_BESIDE_OTHERS = 16, OBJECT = 24 };
// GUARDED BY the token, as all state here.

/// What any item may stand behind, and what the end of any item is before; and the same of resumed continuations.
static uint64_t any_item, any_end, any_resumption;
/// Whether the program uses what makes items begin after the ends of others: notifications, sources, channels.
static bool ends_begin_items;

static void acquire(const void *object, enum key key) { acquire_address((char *)object + key); }
static void release(const void *object, enum key key) { release_address((char *)object + key); }

// MARK: Queues

enum { MOST_QUEUES = 32 };
// Of the engine (HeldQueues.swift). The lowest bit of a queue in the list says that the item runs alone on it.
int concourse_list_hierarchy(const void *reference, bool is_alone, uintptr_t *queues, int most);
const void *concourse_find_queue(const void *reference);
const void *concourse_find_running(bool *is_alone, const void **group);

static void begin_on(const void *queue, bool is_alone) {
  uintptr_t queues[MOST_QUEUES];
  int count = concourse_list_hierarchy(queue, is_alone, queues, MOST_QUEUES);
  for (int i = 0; i < count; i++) {
    const void *held = (const void *)(queues[i] & ~(uintptr_t)1);
    acquire(held, ENDED_ALONE);
    if (queues[i] & 1) acquire(held, ENDED_BESIDE_OTHERS);
  }
}

static void end_on(const void *queue, bool is_alone) {
  uintptr_t queues[MOST_QUEUES];
  int count = concourse_list_hierarchy(queue, is_alone, queues, MOST_QUEUES);
  for (int i = 0; i < count; i++)
    release((const void *)(queues[i] & ~(uintptr_t)1), queues[i] & 1 ? ENDED_ALONE : ENDED_BESIDE_OTHERS);
}

void explore_order_item_begin(void) {
  bool is_alone;
  const void *group, *queue = concourse_find_running(&is_alone, &group);
  if (!queue) return;
  acquire(queue, SUBMITTED);
  acquire(&any_item, 0);
  begin_on(queue, is_alone);
}

void explore_order_item_end(void) {
  bool is_alone;
  const void *group, *queue = concourse_find_running(&is_alone, &group);
  if (!queue) return;
  end_on(queue, is_alone);
  if (group) release(group, OBJECT);
  release(&any_end, 0);
  if (ends_begin_items) release(&any_item, 0);
}

// MARK: Operations

/// What an operation orders.
enum manner {
  /// What comes before it is before items that begin later.
  BEGINS_ITEMS,
  /// The same, and the ends of others are before those items, too.
  FOLLOWS_ITEMS,
  /// The same, of one queue, which is the first argument.
  SUBMITS,
  /// It runs what was registered before.
  CANCELS,
  /// It runs an item of the queue and waits for it.
  RUNS,
  RUNS_ALONE,
  /// Before it, and behind another one of the object.
  SIGNALS,
  WAITS,
  /// Behind the ends of items.
  WAITS_FOR_ITEMS,
  NOTHING,
};

static enum manner manner_of(uint16_t operation) {
  switch (operation) {
    case OP_ASYNC: case OP_ASYNC_F: case OP_ASYNC_ENFORCE_F: case OP_BARRIER_ASYNC: case OP_BARRIER_ASYNC_F: return SUBMITS;
    case OP_SYNC: case OP_SYNC_F: case OP_ASYNC_AND_WAIT: case OP_ASYNC_AND_WAIT_F: return RUNS;
    case OP_BARRIER_SYNC: case OP_BARRIER_SYNC_F: case OP_BARRIER_ASYNC_AND_WAIT: case OP_BARRIER_ASYNC_AND_WAIT_F:
      return RUNS_ALONE;
    case OP_GROUP_NOTIFY: case OP_GROUP_NOTIFY_F: case OP_BLOCK_NOTIFY: case OP_SOURCE_HANDLER: case OP_SOURCE_HANDLER_F:
    case OP_IO_READ: case OP_IO_READ_F: case OP_IO_WRITE: case OP_IO_WRITE_F: case OP_IO_BARRIER: case OP_IO_BARRIER_F:
      return FOLLOWS_ITEMS;
    case OP_GROUP_ENTER: case OP_APPLY: case OP_APPLY_F: case OP_DISPATCH_ONCE: case OP_DISPATCH_ONCE_F: return NOTHING;
    case OP_GROUP_LEAVE: case OP_SEMAPHORE_SIGNAL: return SIGNALS;
    case OP_TASK_CANCEL: return CANCELS;
    case OP_SEMAPHORE_WAIT: return WAITS;
    case OP_GROUP_WAIT: case OP_BLOCK_WAIT: case OP_SOURCE_CANCEL_AND_WAIT: return WAITS_FOR_ITEMS;
    default: return BEGINS_ITEMS;
  }
}

/// Whether the thread that waits runs its item alone. Blocks with flags may say so.
static bool runs_alone(uint16_t operation, const void *work) {
  if (manner_of(operation) == RUNS_ALONE) return true;
  bool is_block = operation == OP_SYNC || operation == OP_ASYNC_AND_WAIT;
  return is_block && work && explore_is_own_code(((void *const *)work)[2]);
}

void explore_order_before(struct explored *self, uint16_t operation, const void *object, const void *argument,
                          const void *place) {
  switch (manner_of(operation)) {
    case NOTHING:
    case WAITS:
    case WAITS_FOR_ITEMS: break;
    case SUBMITS:
      // Swift's runtime says itself what is before a job.
      if (!explore_is_quiet(((void *const *)place)[1])) release(concourse_find_queue(object), SUBMITTED);
      break;
    case RUNS:
    case RUNS_ALONE:
      self->run_on = concourse_find_queue(object);
      self->runs_alone = runs_alone(operation, argument);
      release(self->run_on, SUBMITTED);
      break;
    case SIGNALS:
      release(object, OBJECT);
      if (ends_begin_items) release(&any_item, 0);
      break;
    case FOLLOWS_ITEMS:
      // What has left the group, or has run, before.
      if (operation == OP_BLOCK_NOTIFY) acquire(&any_end, 0);
      else acquire(object, OBJECT);
      ends_begin_items = true;
      release(&any_item, 0);
      break;
    case CANCELS: acquire(&any_item, 0); release(&any_item, 0); break;
    case BEGINS_ITEMS: release(&any_item, 0); break;
  }
}

void explore_order_run(const struct explored *self) { begin_on(self->run_on, self->runs_alone); }

void explore_order_after(struct explored *self, uint16_t operation, const void *object, const void *argument) {
  switch (manner_of(operation)) {
    case RUNS:
    case RUNS_ALONE: {
      const void *queue = concourse_find_queue(object);
      bool is_alone = runs_alone(operation, argument);
      end_on(queue, is_alone);
      // It may have been a work item, which others wait for.
      release(&any_end, 0);
      if (ends_begin_items) release(&any_item, 0);
      // If another thread has run it.
      begin_on(queue, is_alone);
      acquire(&any_end, 0);
      self->run_on = NULL;
      break;
    }
    case WAITS: acquire(object, OBJECT); break;
    case WAITS_FOR_ITEMS:
      acquire(object, OBJECT);
      if (operation != OP_GROUP_WAIT) acquire(&any_end, 0);
      break;
    default: break;
  }
}

// Swift's runtime does not say what a continuation orders that is resumed before its task waits. The task then goes on from
// inside of the runtime, where no function here is called; the first one is that which frees the memory of the call.
void explore_order_resumption(void) { release(&any_resumption, 0); }
void explore_order_return(void) { acquire(&any_resumption, 0); }

// A wait for a condition releases its mutex without a call that the sanitizer sees.
typedef void mutex_begin_function(void *mutex, unsigned flags);
typedef void mutex_end_function(void *mutex, unsigned flags, int recursion);
static mutex_begin_function *before_lock, *before_unlock, *after_unlock;
static mutex_end_function *after_lock;

void explore_order_mutex(void *mutex, bool is_taken) {
  if (is_taken) {
    before_lock(mutex, 0);
    after_lock(mutex, 0, 0);
  } else {
    before_unlock(mutex, 0);
    after_unlock(mutex, 0);
  }
}

void explore_order_lock(const void *lock) { acquire(lock, 0); }
void explore_order_unlock(const void *lock) { release(lock, 0); }

// MARK: Once, and parallel loops

void explored_dispatch_once(long *once, void *block);
void explored_dispatch_once_f(long *once, void *context, void (*function)(void *));
void explored_dispatch_apply(size_t count, void *queue, void *block);
void explored_dispatch_apply_f(size_t count, void *queue, void *context, void (*function)(void *, size_t));
void ordered_dispatch_once(long *once, void *block);
void ordered_dispatch_once_f(long *once, void *context, void (*function)(void *));
void ordered_dispatch_apply(size_t count, void *queue, void *block);
void ordered_dispatch_apply_f(size_t count, void *queue, void *context, void (*function)(void *, size_t));

/// The function of a block.
static void *function_of(void *block) { return ((void **)block)[2]; }

// Callers look by themselves whether all bits of the word are set, and then do not call. So another value says that the
// body has run.
enum { RUNNING = 1, HAS_RUN = 2 };

void ordered_dispatch_once_f(long *once, void *context, void (*function)(void *)) {
  struct explored *self = explore_current();
  // Also in a forked child, which has left the schedule.
  if (explored_races && *once == HAS_RUN) return acquire(once, 0);
  if (!explored_races || !self) return explored_dispatch_once_f(once, context, function);
  const void *place = HERE;
  while (*once == RUNNING) explore_wait(self, OP_ONCE, once, NEVER, place);
  if (*once != HAS_RUN) {
    *once = RUNNING;
    function(context);
    release(once, 0);
    *once = HAS_RUN;
    explore_wake(once, INT32_MAX);
  }
  acquire(once, 0);
}

void ordered_dispatch_once(long *once, void *block) {
  if (!explored_races || (!explore_current() && *once != HAS_RUN)) return explored_dispatch_once(once, block);
  ordered_dispatch_once_f(once, block, (void (*)(void *))function_of(block));
}

struct loop {
  void *context;
  void (*function)(void *, size_t);
};

static void iterate(void *context, size_t index) {
  struct loop *loop = context;
  struct explored *self = explore_current();
  acquire(loop, 0);
  // Between two iterations nothing else is a point.
  if (self) explore_point(self, OP_ITEM_BEGINS, loop, HERE);
  loop->function(loop->context, index);
  release(loop, sizeof loop->context);
}

void ordered_dispatch_apply_f(size_t count, void *queue, void *context, void (*function)(void *, size_t)) {
  struct loop loop = {context, function};
  if (!explored_races) return explored_dispatch_apply_f(count, queue, context, function);
  release(&loop, 0);
  explored_dispatch_apply_f(count, queue, &loop, iterate);
  acquire(&loop, sizeof loop.context);
}

void ordered_dispatch_apply(size_t count, void *queue, void *block) {
  if (!explored_races) return explored_dispatch_apply(count, queue, block);
  ordered_dispatch_apply_f(count, queue, block, (void (*)(void *, size_t))function_of(block));
}

// MARK: Data

// Its destructor is an item.
typedef void *data_function(const void *bytes, size_t count, void *queue, void *destructor);
static data_function *make_data;

static void *create_data(const void *bytes, size_t count, void *queue, void *destructor) {
  release(&any_item, 0);
  return make_data(bytes, count, queue, destructor);
}

// MARK: Static variables of C++

typedef int guard_function(void *guard);
static guard_function *guard_acquire, *guard_release, *guard_abort;

static int begin_static(void *guard) {
  int begins = guard_acquire(guard);
  acquire(guard, 0);
  return begins;
}

static int end_static(void *guard) {
  release(guard, 0);
  return guard_release(guard);
}

static int abandon_static(void *guard) { return guard_abort(guard); }

// MARK: The beginning

/// The sanitizer's definitions that are replaced.
static const char *const replaced[] = {
#define OPERATION(number, name)
#define FUNCTION(number, name) #name,
#define RUNTIME(number, name)
#include "include/concourse_exploring_operations.h"
    "dispatch_io_create", "dispatch_io_create_with_io", "dispatch_io_create_with_path",
    "dispatch_source_set_cancel_handler", "dispatch_source_set_cancel_handler_f",
    "dispatch_source_set_registration_handler", "dispatch_source_set_registration_handler_f", "pthread_once",
    // Those of the sanitizer call the C library's by their version, past this library.
    "pthread_cond_init", "pthread_cond_destroy", "pthread_cond_signal", "pthread_cond_broadcast", "pthread_cond_wait",
    "pthread_cond_timedwait", "pthread_cond_clockwait",
};

static void lead(uint8_t *from, const void *to) {
  // jmp *(%rip), and the address behind it.
  static const uint8_t jump[] = {0xFF, 0x25, 0, 0, 0, 0};
  enum { LENGTH = sizeof jump + sizeof to };
  uintptr_t page = (uintptr_t)from & -4096ul;
  size_t size = (uintptr_t)from + LENGTH - page;
  if (SYSTEM3(SYS_mprotect, page, size, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
  for (size_t i = 0; i < sizeof jump; i++) from[i] = jump[i];
  for (size_t i = 0; i < sizeof to; i++) from[sizeof jump + i] = (uint8_t)((uintptr_t)to >> 8 * i);
  SYSTEM3(SYS_mprotect, page, size, PROT_READ | PROT_EXEC);
}

/// In the program itself.
static void replace(const char *name, const void *with) {
  void *theirs = dlsym(RTLD_DEFAULT, name);
  if (theirs && with && explore_is_program(theirs)) lead(theirs, with);
}

void explore_prepare_races(void) {
  if (!dlsym(RTLD_DEFAULT, "__tsan_init")) return;
  acquire_address = (order_function *)dlsym(RTLD_DEFAULT, "__tsan_acquire");
  release_address = (order_function *)dlsym(RTLD_DEFAULT, "__tsan_release");
  Dl_info own;
  void *library = dladdr((void *)explore_prepare_races, &own) ? dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  before_lock = (mutex_begin_function *)dlsym(RTLD_DEFAULT, "__tsan_mutex_pre_lock");
  after_lock = (mutex_end_function *)dlsym(RTLD_DEFAULT, "__tsan_mutex_post_lock");
  before_unlock = (mutex_begin_function *)dlsym(RTLD_DEFAULT, "__tsan_mutex_pre_unlock");
  after_unlock = (mutex_begin_function *)dlsym(RTLD_DEFAULT, "__tsan_mutex_post_unlock");
  if (!acquire_address || !release_address || !library || !before_lock || !after_lock || !before_unlock || !after_unlock ||
      !explore_prepare_report())
    return;
  for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++) {
    char name[96] = "__interceptor_";
    size_t length = sizeof "__interceptor_" - 1;
    for (const char *next = replaced[i]; *next; next++) name[length++] = *next;
    replace(name, dlsym(library, replaced[i]));
  }
  make_data = (data_function *)dlsym(library, "dispatch_data_create");
  if (make_data) replace("__interceptor_dispatch_data_create", (const void *)create_data);
  // Threads would wait for one another in the sanitizer's own sleep.
  guard_acquire = (guard_function *)explore_real("__cxa_guard_acquire");
  guard_release = (guard_function *)explore_real("__cxa_guard_release");
  guard_abort = (guard_function *)explore_real("__cxa_guard_abort");
  if (guard_acquire && guard_release && guard_abort) {
    replace("__cxa_guard_acquire", (const void *)begin_static);
    replace("__cxa_guard_release", (const void *)end_static);
    replace("__cxa_guard_abort", (const void *)abandon_static);
  }
  explored_races = true;
}
