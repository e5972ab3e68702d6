// Sources of descriptors: reading and writing, on pipes and sockets.
// Statements: S108-S110.

#include "check.h"

#include <fcntl.h>
#include <sys/socket.h>

static dispatch_source_t source;
static event handled, cancelled;
static uintptr_t last;
static int calls;
static bool consume;

static void handle_read(void *context) {
  char buffer[100];
  int descriptor = (int)(intptr_t)context;
  last = dispatch_source_get_data(source);
  calls++;
  if (consume) {
    ssize_t count = read(descriptor, buffer, sizeof buffer);
    check_that(count == (ssize_t)last, "as many bytes as told", __FILE__, __LINE__);
  }
  if (calls == 3 || last == 0) dispatch_source_cancel(source);
  event_happens(&handled);
}

static void handle_write(void *context) {
  (void)context;
  last = dispatch_source_get_data(source);
  calls++;
  if (calls == 3) dispatch_source_cancel(source);
  event_happens(&handled);
}

static void close_it(void *context) {
  close((int)(intptr_t)context);
  event_happens(&cancelled);
}

static void make(dispatch_source_type_t type, int descriptor, dispatch_queue_t queue, dispatch_function_t handler) {
  source = dispatch_source_create(type, (uintptr_t)descriptor, 0, queue);
  check(source != NULL);
  check_equal(dispatch_source_get_handle(source), descriptor);
  dispatch_set_context(source, (void *)(intptr_t)descriptor);
  dispatch_source_set_event_handler_f(source, handler);
  dispatch_source_set_cancel_handler_f(source, close_it);
  calls = 0;
  last = 12345;
}

static void end(void) {
  event_wait(&cancelled);
  dispatch_release(source);
  while (event_has_happened(&handled)) {
  }
}

int main(void) {
  event_init(&handled);
  event_init(&cancelled);
  dispatch_queue_t queue = dispatch_queue_create("descriptors", NULL);
  int ends[2];

  // Each time the bytes just written, since each call consumes them.
  check_equal(pipe(ends), 0);
  make(DISPATCH_SOURCE_TYPE_READ, ends[0], queue, handle_read);
  consume = true;
  dispatch_activate(source);
  for (int i = 1; i <= 3; i++) {
    check_equal(write(ends[1], "123456789", (size_t)i), i);
    event_wait(&handled);
    check_equal(last, i);
  }
  end();
  check_equal(calls, 3);
  close(ends[1]);

  // Repeatedly, as long as there are bytes.
  check_equal(pipe(ends), 0);
  make(DISPATCH_SOURCE_TYPE_READ, ends[0], queue, handle_read);
  consume = false;
  dispatch_activate(source);
  check_equal(write(ends[1], "12345", 5), 5);
  end();
  check_equal(calls, 3);
  check_equal(last, 5);
  close(ends[1]);

  // The end of the file is reported with no bytes.
  check_equal(pipe(ends), 0);
  make(DISPATCH_SOURCE_TYPE_READ, ends[0], queue, handle_read);
  dispatch_activate(source);
  close(ends[1]);
  end();
  check_equal(last, 0);
  check_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  make(DISPATCH_SOURCE_TYPE_READ, ends[0], queue, handle_read);
  dispatch_activate(source);
  shutdown(ends[1], SHUT_WR);
  end();
  check_equal(last, 0);
  close(ends[1]);

  // Repeatedly, while there is room to write.
  check_equal(pipe(ends), 0);
  make(DISPATCH_SOURCE_TYPE_WRITE, ends[1], queue, handle_write);
  dispatch_activate(source);
  end();
  check_equal(calls, 3);
  check(last > 0);
  close(ends[0]);
  check_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  make(DISPATCH_SOURCE_TYPE_WRITE, ends[1], queue, handle_write);
  dispatch_activate(source);
  end();
  // The toolchain's library reports how much of the room is taken.
  check(last > 0 || !on_concourse());
  close(ends[0]);

  // No room until bytes are read.
  check_equal(pipe(ends), 0);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  char block[4096] = {0};
  while (write(ends[1], block, sizeof block) > 0) {
  }
  make(DISPATCH_SOURCE_TYPE_WRITE, ends[1], queue, handle_write);
  dispatch_activate(source);
  drain(queue);
  check_equal(calls, 0);
  while (read(ends[0], block, sizeof block) == sizeof block && calls == 0) {
  }
  end();
  check(calls > 0);
  close(ends[0]);

  // A file is always ready.
  int file = open("/proc/self/exe", O_RDONLY);
  check(file >= 0);
  make(DISPATCH_SOURCE_TYPE_READ, file, queue, handle_read);
  dispatch_activate(source);
  end();
  check_equal(calls, 3);
  check(last > 0);
  dispatch_release(queue);
  return finish();
}
