// Calls functions of the C interface, legal and illegal ones, as the input says: two bytes for a call, and one for each
// argument. Each input runs in a child process, which must end well, in a trap with its line, or in a wait that nothing
// ends. Anything else is a finding: another signal, a trap without a line, a bug of the runtime's own, a report of the
// sanitizer's.

#include <dispatch/dispatch.h>
#include <dispatch/private.h>

#include <Block.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint8_t *input;
static size_t left;

static uint8_t next(void) {
  if (left == 0) return 0;
  left--;
  return *input++;
}

// Small, or far beyond what makes sense.
static int64_t number(void) {
  uint8_t byte = next();
  return byte < 248 ? (int8_t)byte : byte % 2 ? INT64_MAX >> (byte % 8) * 4 : INT64_MIN >> (byte % 8) * 4;
}

// A moment that comes soon, or has passed.
static dispatch_time_t moment(void) {
  switch (next() % 4) {
  case 0: return DISPATCH_TIME_NOW;
  case 1: return dispatch_time(DISPATCH_TIME_NOW, next() * 1000);
  case 2: return dispatch_walltime(NULL, next() * 1000);
  default: return dispatch_time(0, number());
  }
}

// MARK: Objects

enum kind { any, a_queue, a_group, a_semaphore, a_source, some_data, a_workloop };
enum { places = 16 };
static struct {
  void *object;
  enum kind kind;
} objects[places];

// Takes a reference; false, and it is given back, if there is no place.
static bool keep(void *object, enum kind kind) {
  if (!object) return false;
  for (int place = 0; place < places; place++)
    if (!objects[place].object) {
      objects[place].object = object;
      objects[place].kind = kind;
      return true;
    }
  dispatch_release((dispatch_object_t){object});
  return false;
}

static void *made(enum kind kind) {
  switch (kind) {
  case a_group: return dispatch_group_create();
  case a_semaphore: return dispatch_semaphore_create(1);
  case a_source: return dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, dispatch_get_global_queue(0, 0));
  case some_data: return (void *)dispatch_data_create("abcd", 4, NULL, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
  case a_workloop: return dispatch_workloop_create(NULL);
  default: return dispatch_queue_create("made", NULL);
  }
}

// An object of that kind. A byte beyond 240 takes any object, or none, and so does a full table: the
// call is illegal then.
static void *object(enum kind kind) {
  uint8_t byte = next();
  if (byte > 240) return objects[byte % places].object;
  for (int place = 0; place < places; place++) {
    int found = (byte + place) % places;
    if (objects[found].object && (kind == any || objects[found].kind == kind)) return objects[found].object;
  }
  void *new = made(kind);
  return keep(new, kind == any ? a_queue : kind) ? new : objects[byte % places].object;
}

static dispatch_queue_t queue(void) {
  uint8_t byte = next();
  if (byte % 4 == 0) return dispatch_get_global_queue(0, 0);
  return (dispatch_queue_t)object(byte % 8 == 1 ? a_workloop : a_queue);
}

// Only kept references are given back: one too many would be a use of freed memory.
static void release_one(void) {
  int place = next() % places;
  void *object = objects[place].object;
  objects[place].object = NULL;
  if (object) dispatch_release((dispatch_object_t){object});
}

// MARK: What runs

static int ran;
static void run(void *context) { __atomic_fetch_add(&ran, (int)(intptr_t)context, __ATOMIC_RELAXED); }
static void run_once_more(void *context, size_t index) { run((char *)context + index); }
static bool take(void *context, dispatch_data_t region, size_t offset, const void *bytes, size_t size) {
  (void)region;
  for (size_t place = 0; place < size; place++) run((void *)(uintptr_t)((const uint8_t *)bytes)[place]);
  return offset < 64 || context;
}
static void nest(void *context) { dispatch_sync_f((dispatch_queue_t)context, NULL, run); }

// MARK: Calls

static dispatch_queue_attr_t attribute(void) {
  dispatch_queue_attr_t attribute = next() % 2 ? DISPATCH_QUEUE_CONCURRENT : DISPATCH_QUEUE_SERIAL;
  if (next() % 4 == 0) attribute = dispatch_queue_attr_make_initially_inactive(attribute);
  if (next() % 4 == 0)
    attribute = dispatch_queue_attr_make_with_qos_class(attribute, (dispatch_qos_class_t)next(), (int)number());
  if (next() % 8 == 0) attribute = dispatch_queue_attr_make_with_overcommit(attribute, next() % 2);
  return attribute;
}

static dispatch_source_type_t type(void) {
  switch (next() % 5) {
  case 0: return DISPATCH_SOURCE_TYPE_TIMER;
  case 1: return DISPATCH_SOURCE_TYPE_DATA_ADD;
  case 2: return DISPATCH_SOURCE_TYPE_DATA_OR;
  case 3: return DISPATCH_SOURCE_TYPE_DATA_REPLACE;
  default: return DISPATCH_SOURCE_TYPE_READ;
  }
}

static dispatch_data_format_type_t format(void) {
  dispatch_data_format_type_t all[] = {
      DISPATCH_DATA_FORMAT_TYPE_NONE,   DISPATCH_DATA_FORMAT_TYPE_BASE32,  DISPATCH_DATA_FORMAT_TYPE_BASE64,
      DISPATCH_DATA_FORMAT_TYPE_UTF8,   DISPATCH_DATA_FORMAT_TYPE_UTF16LE, DISPATCH_DATA_FORMAT_TYPE_UTF16BE,
      DISPATCH_DATA_FORMAT_TYPE_UTF_ANY};
  return all[next() % 7];
}

static void transform(void) {
  dispatch_data_t data = object(some_data);
  dispatch_data_format_type_t from = format();
  keep((void *)dispatch_data_create_with_transform(data, from, format()), some_data);
}

static void map(void) {
  const void *bytes;
  size_t size;
  dispatch_data_t mapped = dispatch_data_create_map(object(some_data), &bytes, &size);
  take(NULL, mapped, 0, bytes, size);
  keep((void *)mapped, some_data);
}

static void block(void) {
  dispatch_block_t made = dispatch_block_create((dispatch_block_flags_t)next() % 64, ^{ run(NULL); });
  if (!made) return;
  if (next() % 2) dispatch_block_cancel(made);
  if (next() % 2) dispatch_block_notify(made, queue(), ^{ run(NULL); });
  for (int calls = next() % 3; calls > 0; calls--) dispatch_async(queue(), made);
  if (next() % 2) dispatch_block_wait(made, moment());
  Block_release(made);
}

static void call(void) {
  // The order of evaluation of arguments is not defined: at most one of them reads the input.
  static dispatch_once_t once;
  void *first = NULL;
  switch (next() % 48) {
  case 0: keep(dispatch_queue_create("fuzz", attribute()), a_queue); break;
  case 1: first = attribute(); keep(dispatch_queue_create_with_target(NULL, first, queue()), a_queue); break;
  case 2: keep(dispatch_workloop_create(next() % 2 ? "loop" : NULL), a_workloop); break;
  case 3: keep(dispatch_group_create(), a_group); break;
  case 4: keep(dispatch_semaphore_create(number()), a_semaphore); break;
  case 5: first = (void *)type(); keep(dispatch_source_create(first, next() % 4, 0, queue()), a_source); break;
  case 6: keep((void *)dispatch_data_create(input, left, NULL, DISPATCH_DATA_DESTRUCTOR_DEFAULT), some_data); break;
  case 7: release_one(); break;
  case 8: dispatch_async_f(queue(), NULL, run); break;
  case 9: dispatch_sync_f(queue(), NULL, run); break;
  case 10: dispatch_barrier_async_f(queue(), NULL, run); break;
  case 11: dispatch_barrier_sync_f(queue(), NULL, run); break;
  case 12: dispatch_async_and_wait_f(queue(), NULL, run); break;
  case 13: first = queue(); dispatch_async_f(queue(), first, nest); break;
  case 14: first = queue(); dispatch_sync_f(queue(), first, nest); break;
  case 15: first = (void *)(uintptr_t)next(); dispatch_apply_f((size_t)first, queue(), NULL, run_once_more); break;
  case 16: { dispatch_time_t when = moment(); dispatch_after_f(when, queue(), NULL, run); break; }
  case 17: dispatch_suspend((dispatch_object_t){object(next() % 2 ? a_queue : a_source)}); break;
  case 18: dispatch_resume((dispatch_object_t){object(next() % 2 ? a_queue : a_source)}); break;
  case 19: dispatch_activate((dispatch_object_t){object(next() % 2 ? a_queue : a_source)}); break;
  case 20: first = object(any); dispatch_set_target_queue((dispatch_object_t){first}, queue()); break;
  case 21: dispatch_queue_set_specific(queue(), &once, &once, run); break;
  case 22: (void)dispatch_queue_get_specific(queue(), &once); break;
  case 23: dispatch_assert_queue_not(queue()); break;
  case 24: first = object(a_group); dispatch_group_async_f(first, queue(), NULL, run); break;
  case 25: dispatch_group_enter(object(a_group)); break;
  case 26: dispatch_group_leave(object(a_group)); break;
  case 27: first = object(a_group); dispatch_group_wait(first, moment()); break;
  case 28: first = object(a_group); dispatch_group_notify_f(first, queue(), NULL, run); break;
  case 29: dispatch_semaphore_signal(object(a_semaphore)); break;
  case 30: first = object(a_semaphore); dispatch_semaphore_wait(first, moment()); break;
  case 31: dispatch_source_set_event_handler_f(object(a_source), next() % 8 ? run : NULL); break;
  case 32: dispatch_source_set_cancel_handler_f(object(a_source), next() % 8 ? run : NULL); break;
  case 33: dispatch_source_cancel(object(a_source)); break;
  case 34: first = object(a_source); dispatch_source_merge_data(first, (uintptr_t)number()); break;
  case 35: {
    first = object(a_source);
    dispatch_time_t start = moment();
    uint64_t interval = (uint64_t)number();
    dispatch_source_set_timer(first, start, interval, (uint64_t)number());
    break;
  }
  case 36: first = object(a_source); run((void *)dispatch_source_get_data(first)); break;
  case 37: run((void *)dispatch_source_get_handle(object(a_source))); break;
  case 38: {
    first = object(some_data);
    keep((void *)dispatch_data_create_concat(first, object(some_data)), some_data);
    break;
  }
  case 39: {
    first = object(some_data);
    size_t offset = (size_t)number();
    keep((void *)dispatch_data_create_subrange(first, offset, (size_t)number()), some_data);
    break;
  }
  case 40: map(); break;
  case 41: first = object(some_data); dispatch_data_apply_f(first, (void *)(uintptr_t)(next() % 2), take); break;
  case 42: transform(); break;
  case 43: block(); break;
  case 44: first = object(any); dispatch_set_context((dispatch_object_t){first}, first); break;
  case 45: dispatch_set_finalizer_f((dispatch_object_t){object(any)}, next() % 4 ? run : NULL); break;
  case 46: {
    dispatch_object_t floored = {._dq = queue()};
    dispatch_qos_class_t class = (dispatch_qos_class_t)next();
    dispatch_set_qos_class_floor(floored, class, (int)number());
    break;
  }
  case 47: (void)dispatch_get_global_queue(number(), (uintptr_t)number()); dispatch_once_f(&once, NULL, run); break;
  }
}

static void child(void) {
  // Without the fuzzer's handlers; a bad access is the sanitizer's.
  for (int number = 1; number < 32; number++)
    if (number != SIGSEGV && number != SIGBUS) signal(number, SIG_DFL);
  setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 300000}, NULL);
  while (left > 0) call();
  // What was submitted runs, unless it waits for something.
  dispatch_group_t group = dispatch_group_create();
  dispatch_group_async_f(group, dispatch_get_global_queue(0, 0), NULL, run);
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
  for (int place = 0; place < places; place++)
    if (objects[place].object) dispatch_release((dispatch_object_t){objects[place].object});
  _exit(0);
}

// MARK: The fuzzer

// The bounds of the counters, in assembly: a name in C would take the place of the sanitizer's own.
__asm__(".pushsection .data.rel, \"aw\"\n"
        ".balign 8\n"
        "first_counter: .quad __start___sancov_cntrs\n"
        "end_of_counters: .quad __stop___sancov_cntrs\n"
        ".popsection\n");
extern char *first_counter, *end_of_counters;
static int output;

// The counters of what the child reaches are in memory that the fuzzer shares with it. Those in pages with something
// else are lost.
int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  char *start = (char *)(((uintptr_t)first_counter + 4095) & ~4095ul);
  size_t size = (size_t)(((uintptr_t)end_of_counters & ~4095ul) - (uintptr_t)start);
  if (mmap(start, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != start) abort();
  output = memfd_create("output", 0);
  if (output < 0) abort();
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (ftruncate(output, 0) != 0 || lseek(output, 0, SEEK_SET) != 0) abort();
  pid_t process = fork();
  if (process < 0) abort();
  if (process == 0) {
    input = data;
    left = size;
    dup2(output, 2);
    child();
  }
  int status;
  while (waitpid(process, &status, 0) != process)
    if (errno != EINTR) abort();
  char text[4096] = "";
  ssize_t length = pread(output, text, sizeof text - 1, 0);
  text[length > 0 ? length : 0] = 0;
  const char *line = strstr(text, "Concourse: BUG IN CLIENT OF DISPATCH: ");
  bool has_ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  bool waits = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  // SIGTRAP on arm64.
  bool is_trap = WIFSIGNALED(status) && (WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP);
  bool has_trapped = is_trap && line && strstr(line, "[C");
  if (has_ended || waits || has_trapped) return 0;
  fprintf(stderr, "the child ended with status 0x%x, and said:\n%s\n", status, text);
  abort();
}
