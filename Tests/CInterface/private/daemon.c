// Children that were forked before the runtime had a thread: each is a process of its own, with a main thread.
// Statements: S148.

#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static dispatch_queue_t queue;
static dispatch_semaphore_t semaphore;

// What a program may do before it forks. None of it makes a thread.
static void use_sync(void) { dispatch_sync_f(queue, NULL, nothing); }
static void use_semaphore(void) {
  dispatch_semaphore_wait(semaphore, DISPATCH_TIME_FOREVER);
  dispatch_semaphore_signal(semaphore);
}
static void use_once(void) {
  static dispatch_once_t once;
  dispatch_once_f(&once, NULL, nothing);
}
static void use_label(void) { (void)dispatch_queue_get_label(DISPATCH_CURRENT_QUEUE_LABEL); }
static void pass(void *context, size_t index) {
  (void)context;
  (void)index;
}
static void use_apply(void) { dispatch_apply_f(1, queue, NULL, pass); }
static void use_suspension(void) {
  dispatch_suspend(queue);
  dispatch_resume(queue);
}
static void use_global(void) { dispatch_sync_f(dispatch_get_global_queue(0, 0), NULL, nothing); }
static void use_everything(void) {
  use_sync();
  use_label();
  use_once();
}
static void (*const uses[])(void) = {use_sync,  use_semaphore,  use_once,   use_label,
                                     use_apply, use_suspension, use_global, use_everything};

// What the child does. Each ends it.
static void end(void *status) { _exit((int)(intptr_t)status); }
static void go_back(void *unused) {
  (void)unused;
  dispatch_async_f(dispatch_get_main_queue(), NULL, end);
}
static void go_out(void *unused) {
  (void)unused;
  dispatch_async_f(dispatch_get_global_queue(0, 0), NULL, go_back);
}
static void serve_main(void) {
  dispatch_async_f(dispatch_get_main_queue(), NULL, go_out);
  dispatch_main();
}
static void ask_who(void) {
  bool right = strcmp(dispatch_queue_get_label(DISPATCH_CURRENT_QUEUE_LABEL), "com.apple.main-thread") == 0;
  dispatch_assert_queue(dispatch_get_main_queue());
  dispatch_assert_queue_not(queue);
  _exit(!right);
}
static void serve_run_loop(void) {
  struct pollfd loop = {.fd = _dispatch_get_main_queue_handle_4CF(), .events = POLLIN};
  dispatch_async_f(dispatch_get_main_queue(), NULL, end);
  if (poll(&loop, 1, -1) != 1) _exit(2);
  _dispatch_main_queue_callback_4CF(NULL);
  _exit(3);
}
static void sync_onto_main(void) { dispatch_sync_f(dispatch_get_main_queue(), NULL, nothing); }

static int status_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// The status of a child that `fork` makes, of its child, or of one that `clone` makes.
static int in_child(int kind, void (*deed)(void)) {
  fflush(NULL);
  pid_t child = kind == 2 ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
  if (child != 0) return status_of(child);
  alarm(20);
  if (kind == 2) dispatch_atfork_child();
  if (kind == 1) {
    // As `daemon` does.
    setsid();
    pid_t next = fork();
    if (next != 0) _exit(status_of(next) != 0);
  }
  deed();
  _exit(4);
}

static void daemons(void) {
  for (size_t use = 0; use < sizeof uses / sizeof uses[0]; use++)
    for (int kind = 0; kind < (on_concourse() ? 3 : 2); kind++) {
      // A child of its own, so that each use is the first one.
      fflush(NULL);
      pid_t parent = fork();
      if (parent == 0) {
        queue = dispatch_queue_create("queue", NULL);
        semaphore = dispatch_semaphore_create(1);
        uses[use]();
        void (*const deeds[])(void) = {serve_main, ask_who, serve_run_loop};
        for (size_t deed = 0; deed < 3; deed++) {
          int status = in_child(kind, deeds[deed]);
          if (status != 0) fprintf(stderr, "use %zu, kind %d, deed %zu: %#x\n", use, kind, deed, (unsigned)status);
          if (status != 0) _exit(1);
        }
        _exit(0);
      }
      check_equal(status_of(parent), 0);
    }
}

static void fork_and_sync_onto_main(void) {
  queue = dispatch_queue_create("queue", NULL);
  use_sync();
  pid_t child = fork();
  if (child == 0) sync_onto_main();
  int status = status_of(child);
  if (WIFSIGNALED(status)) raise(WTERMSIG(status));
}

static void *begin_with_sync(void *unused) {
  dispatch_sync_f(queue, NULL, nothing);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    serve_main();
  }
  *(int *)unused = status_of(child);
  return NULL;
}

// The thread that forks is the child's main thread.
static void from_another_thread(void) {
  queue = dispatch_queue_create("queue", NULL);
  use_everything();
  pthread_t thread;
  int status = -1;
  pthread_create(&thread, NULL, begin_with_sync, &status);
  pthread_join(thread, NULL);
  _exit(status != 0);
}

// --- Descriptors ---

static int bytes_in_own_files(void) {
  int bytes = 0;
  struct stat status;
  for (int file = 3; file < 64; file++)
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
      bytes += (int)status.st_size;
      // Nothing has read from it, either.
      bytes += (int)lseek(file, 0, SEEK_CUR);
    }
  return bytes;
}

static void open_own_files(void) {
  char name[] = "/tmp/daemon.XXXXXX";
  for (int file = 3; file < 64; file++) close(file);
  int first = mkstemp(name);
  if (first < 0) _exit(5);
  unlink(name);
  for (int file = 4; file < 64; file++)
    if (openat(AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 0600) < 0) break;
}

static void raise_signals(void) {
  open_own_files();
  raise(SIGUSR1);
  raise(SIGUSR1);
  _exit(bytes_in_own_files());
}

static void count_signals(event *handled) {
  signal(SIGUSR1, SIG_IGN);
  event_init(handled);
  dispatch_source_t source =
      dispatch_source_create(DISPATCH_SOURCE_TYPE_SIGNAL, SIGUSR1, 0, dispatch_get_global_queue(0, 0));
  dispatch_set_context(source, handled);
  dispatch_source_set_event_handler_f(source, event_happens);
  dispatch_activate(source);
  // The source counts from some time after its activation.
  while (!event_has_happened(handled)) {
    raise(SIGUSR1);
    sched_yield();
  }
}

// In the process that has the source: a file of the program takes the place of the first eventfd, the signals' own.
static int raise_after_closing(void) {
  event handled;
  count_signals(&handled);
  char name[32], target[32];
  for (int file = 3; file < 64; file++) {
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = readlink(name, target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    if (strcmp(target, "anon_inode:[eventfd]") != 0) continue;
    close(file);
    if (openat(AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 0600) != file) return 6;
    raise(SIGUSR1);
    return bytes_in_own_files();
  }
  return 7;
}

static void signals_reach_no_foreign_file(void) {
  event handled;
  count_signals(&handled);
  for (int kind = 0; kind < (on_concourse() ? 3 : 2); kind++) check_equal(in_child(kind, raise_signals), 0);
  // The parent's source goes on.
  while (event_has_happened(&handled)) {
  }
  raise(SIGUSR1);
  event_wait(&handled);
  if (!on_concourse()) return;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "daemon", "signals", NULL);
    _exit(8);
  }
  check_equal(status_of(child), 0);
}

static int parents_loop;
static void push_main(void) {
  dispatch_async_f(dispatch_get_main_queue(), NULL, nothing);
  _exit(0);
}
static void push_main_with_own_files(void) {
  open_own_files();
  dispatch_async_f(dispatch_get_main_queue(), NULL, nothing);
  _dispatch_main_queue_callback_4CF(NULL);
  if (bytes_in_own_files() != 0) _exit(9);
  int loop = _dispatch_get_main_queue_handle_4CF();
  struct pollfd question = {.fd = loop, .events = POLLIN};
  dispatch_async_f(dispatch_get_main_queue(), NULL, end);
  if (poll(&question, 1, 0) != 1) _exit(10);
  _dispatch_main_queue_callback_4CF(NULL);
  _exit(11);
}
static void poll_own_loop(void) {
  struct pollfd loop = {.fd = parents_loop, .events = POLLIN};
  if (poll(&loop, 1, 0) != 0) _exit(11);
  dispatch_async_f(dispatch_get_main_queue(), NULL, end);
  if (poll(&loop, 1, 0) != 1) _exit(12);
  _dispatch_main_queue_callback_4CF(NULL);
  _exit(13);
}

// The child has a handle of its own under the parent's number.
static void run_loops(void) {
  parents_loop = _dispatch_get_main_queue_handle_4CF();
  struct pollfd loop = {.fd = parents_loop, .events = POLLIN};
  check_equal(in_child(0, push_main), 0);
  check_equal(poll(&loop, 1, 0), 0);
  check_equal(in_child(0, poll_own_loop), 0);
  check_equal(poll(&loop, 1, 0), 0);
  check_equal(in_child(0, push_main_with_own_files), 0);
  check_equal(poll(&loop, 1, 0), 0);
}

int main(int count, char **words) {
  if (count > 1 && strcmp(words[1], "signals") == 0) return raise_after_closing();
  daemons();
  dies_saying(fork_and_sync_onto_main, "main");
  fflush(NULL);
  // The toolchain's library hangs, or wakes the parent.
  if (on_concourse()) {
    pid_t child = fork();
    if (child == 0) from_another_thread();
    check_equal(status_of(child), 0);
    run_loops();
  }
  signals_reach_no_foreign_file();
  return finish();
}
