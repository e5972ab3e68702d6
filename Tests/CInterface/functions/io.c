// Input and output with functions: single operations and channels, on pipes and on a file.
// Statements: S122-S126, S128-S134.

#include "check.h"

#include <fcntl.h>

static event done, cleaned;
static char collected[300000];
static size_t collected_size;
static int last_error, cleanup_error = -1, done_calls;
static bool had_rest;
static size_t rest_size;

static void collect(dispatch_data_t data) {
  const void *bytes;
  size_t size;
  dispatch_data_t map = dispatch_data_create_map(data, &bytes, &size);
  if (collected_size + size <= sizeof collected) memcpy(collected + collected_size, bytes, size);
  collected_size += size;
  dispatch_release(map);
}

static void was_read(void *context, dispatch_data_t data, int error) {
  if (data) collect(data);
  last_error = error;
  event_happens(context);
}

static void was_written(void *context, dispatch_data_t data, int error) {
  had_rest = data != NULL;
  rest_size = data ? dispatch_data_get_size(data) : 0;
  last_error = error;
  event_happens(context);
}

static void channel_read(void *context, bool finished, dispatch_data_t data, int error) {
  if (data) collect(data);
  last_error = error;
  if (!finished) return;
  done_calls++;
  event_happens(context);
}

static void channel_written(void *context, bool finished, dispatch_data_t data, int error) {
  if (!finished) return;
  rest_size = data ? dispatch_data_get_size(data) : 0;
  last_error = error;
  done_calls++;
  event_happens(context);
}

static void cleanup(void *context, int error) {
  cleanup_error = error;
  event_happens(context);
}

static void cleanup_closing(void *context, int error) {
  cleanup_error = error;
  close((int)(intptr_t)context);
  event_happens(&cleaned);
}

static void forget(void) {
  collected_size = 0;
  last_error = -1;
  done_calls = 0;
  rest_size = 0;
}

static dispatch_data_t text(const char *characters) {
  return dispatch_data_create_f(characters, strlen(characters), NULL, NULL);
}

static void single_operations(dispatch_queue_t queue) {
  int ends[2];
  check_equal(pipe(ends), 0);
  dispatch_data_t data = text("through a pipe");
  forget();
  dispatch_write_f(ends[1], data, queue, &done, was_written);
  event_wait(&done);
  check_equal(last_error, 0);
  check(!had_rest);
  dispatch_read_f(ends[0], SIZE_MAX, queue, &done, was_read);
  event_wait(&done);
  check_equal(last_error, 0);
  check_equal(collected_size, 14);
  check(memcmp(collected, "through a pipe", 14) == 0);
  // The reader waits for the first byte.
  forget();
  dispatch_read_f(ends[0], 4, queue, &done, was_read);
  dispatch_write_f(ends[1], data, queue, &done, was_written);
  event_wait(&done);
  event_wait(&done);
  check_equal(collected_size, 4);
  // The rest, and then the end.
  close(ends[1]);
  forget();
  dispatch_read_f(ends[0], SIZE_MAX, queue, &done, was_read);
  event_wait(&done);
  check_equal(collected_size, 10);
  forget();
  dispatch_read_f(ends[0], SIZE_MAX, queue, &done, was_read);
  event_wait(&done);
  check_equal(last_error, 0);
  check_equal(collected_size, 0);
  drain(queue);
  close(ends[0]);
  // Nothing to read.
  forget();
  dispatch_read_f(-1, 10, queue, &done, was_read);
  event_wait(&done);
  check_equal(last_error, EBADF);
  dispatch_write_f(-1, data, queue, &done, was_written);
  event_wait(&done);
  check_equal(last_error, EBADF);
  // The toolchain's library does not return the unwritten rest.
  if (on_concourse()) check_equal(rest_size, 14);
  dispatch_release(data);
}

static void channels_on_pipes(dispatch_queue_t queue) {
  int ends[2];
  check_equal(pipe(ends), 0);
  dispatch_io_t reader = dispatch_io_create_f(DISPATCH_IO_STREAM, ends[0], queue, (void *)(intptr_t)ends[0],
                                              cleanup_closing);
  dispatch_io_t writer = dispatch_io_create_f(DISPATCH_IO_STREAM, ends[1], queue, (void *)(intptr_t)ends[1],
                                              cleanup_closing);
  check(reader != NULL);
  check(writer != NULL);
  check_equal(dispatch_io_get_descriptor(reader), ends[0]);
  char *large = malloc(200000);
  for (int i = 0; i < 200000; i++) large[i] = (char)i;
  dispatch_data_t data = dispatch_data_create_f(large, 200000, NULL, DISPATCH_DATA_DESTRUCTOR_FREE);
  forget();
  // More than the pipe holds: reading and writing take turns.
  dispatch_io_read_f(reader, 0, SIZE_MAX, queue, &done, channel_read);
  dispatch_io_write_f(writer, 0, data, queue, &cleaned, channel_written);
  event_wait(&cleaned);
  check_equal(last_error, 0);
  check_equal(rest_size, 0);
  dispatch_io_close(writer, 0);
  dispatch_io_close(writer, 0);
  dispatch_release(writer);
  event_wait(&cleaned);
  check_equal(cleanup_error, 0);
  event_wait(&done);
  check_equal(last_error, 0);
  check_equal(collected_size, 200000);
  bool right = true;
  for (int i = 0; i < 200000; i++) right = right && collected[i] == (char)i;
  check(right);
  check_equal(done_calls, 2);
  // No operation begins after close.
  dispatch_io_close(reader, 0);
  forget();
  dispatch_io_read_f(reader, 0, 1, queue, &done, channel_read);
  event_wait(&done);
  check_equal(last_error, ECANCELED);
  dispatch_io_write_f(reader, 0, data, queue, &done, channel_written);
  event_wait(&done);
  check_equal(last_error, ECANCELED);
  check_equal(rest_size, 200000);
  dispatch_release(reader);
  event_wait(&cleaned);
  check_equal(cleanup_error, 0);
  dispatch_release(data);
}

static void stopping(dispatch_queue_t queue) {
  int ends[2];
  check_equal(pipe(ends), 0);
  forget();
  dispatch_io_t reader = dispatch_io_create_f(DISPATCH_IO_STREAM, ends[0], queue, &cleaned, cleanup);
  dispatch_io_read_f(reader, 0, 100, queue, &done, channel_read);
  dispatch_io_close(reader, DISPATCH_IO_STOP);
  event_wait(&done);
  check_equal(last_error, ECANCELED);
  event_wait(&cleaned);
  check_equal(cleanup_error, 0);
  dispatch_release(reader);
  close(ends[0]);
  close(ends[1]);
}

static int barrier_order;
static void note_barrier(void *channel) {
  barrier_order = done_calls;
  check_that(dispatch_io_get_descriptor((dispatch_io_t)channel) >= 0, "open in a barrier", __FILE__, __LINE__);
}

static void files(dispatch_queue_t queue) {
  char path[] = "/tmp/c-interface-XXXXXX";
  int made = mkstemp(path);
  check(made >= 0);
  close(made);
  forget();
  dispatch_io_t file =
      dispatch_io_create_with_path_f(DISPATCH_IO_RANDOM, path, O_RDWR, 0, queue, &cleaned, cleanup);
  check(file != NULL);
  check_equal(dispatch_io_get_descriptor(file), -1);
  dispatch_data_t data = text("0123456789");
  dispatch_io_write_f(file, 0, data, queue, &done, channel_written);
  event_wait(&done);
  check_equal(last_error, 0);
  dispatch_io_write_f(file, 10, data, queue, &done, channel_written);
  event_wait(&done);
  dispatch_io_barrier_f(file, file, note_barrier);
  dispatch_io_read_f(file, 8, 5, queue, &done, channel_read);
  event_wait(&done);
  check_equal(collected_size, 5);
  check(memcmp(collected, "89012", 5) == 0);
  check_equal(barrier_order, 2);
  // To the end of the file.
  collected_size = 0;
  dispatch_io_read_f(file, 15, SIZE_MAX, queue, &done, channel_read);
  event_wait(&done);
  check_equal(last_error, 0);
  check_equal(collected_size, 5);
  // Another channel for the same file, with marks that make small pieces.
  dispatch_io_t second = dispatch_io_create_with_io_f(DISPATCH_IO_RANDOM, file, queue, &cleaned, cleanup);
  check(second != NULL);
  dispatch_io_set_high_water(second, 4);
  dispatch_io_set_low_water(second, 4);
  dispatch_io_set_interval(second, NSEC_PER_SEC, 0);
  collected_size = 0;
  dispatch_io_read_f(second, 0, 20, queue, &done, channel_read);
  event_wait(&done);
  check_equal(collected_size, 20);
  dispatch_io_close(second, 0);
  dispatch_io_close(file, 0);
  event_wait(&cleaned);
  event_wait(&cleaned);
  check_equal(dispatch_io_get_descriptor(file), -1);
  dispatch_release(second);
  dispatch_release(file);
  check_equal(cleanup_error, 0);
  dispatch_release(data);
  unlink(path);
}

static int synced;
static void sync_file(void *channel) {
  synced = fsync(dispatch_io_get_descriptor((dispatch_io_t)channel));
  event_happens(&done);
}

// Write, sync in a barrier, close. The barrier runs after the close, and still has the descriptor if it was submitted
// before and the channel is not stopped.
static void syncing(dispatch_queue_t queue) {
  char path[] = "/tmp/c-interface-XXXXXX";
  int made = mkstemp(path);
  check(made >= 0);
  dispatch_data_t data = text("0123456789");
  // The toolchain's library closes a channel some time after the call.
  for (int round = 0; round < (on_concourse() ? 6 : 2); round++) {
    bool of_a_path = round % 2;
    bool late = round / 2 == 1, stopped = round / 2 == 2;
    dispatch_io_t file =
        of_a_path ? dispatch_io_create_with_path_f(DISPATCH_IO_STREAM, path, O_RDWR, 0, queue, &cleaned, cleanup)
                  : dispatch_io_create_f(DISPATCH_IO_STREAM, made, queue, &cleaned, cleanup);
    forget();
    synced = -2;
    dispatch_suspend(queue);
    if (!stopped) dispatch_io_write_f(file, 0, data, queue, &done, channel_written);
    if (!late) dispatch_io_barrier_f(file, file, sync_file);
    dispatch_io_close(file, stopped ? DISPATCH_IO_STOP : 0);
    if (late) dispatch_io_barrier_f(file, file, sync_file);
    if (on_concourse()) check_equal(dispatch_io_get_descriptor(file), -1);
    dispatch_resume(queue);
    if (!stopped) event_wait(&done);
    event_wait(&done);
    event_wait(&cleaned);
    check_equal(cleanup_error, 0);
    check_equal(synced, late || stopped ? -1 : 0);
    dispatch_release(file);
  }
  dispatch_release(data);
  close(made);
  unlink(path);
}

static int done_before_cleanup;
static void cleanup_counting(void *context, int error) {
  done_before_cleanup = done_calls;
  cleanup(context, error);
}

// The file exists, so opening it fails with the first operation.
static void unopenable(dispatch_queue_t queue) {
  char path[] = "/tmp/c-interface-XXXXXX";
  int made = mkstemp(path);
  check(made >= 0);
  close(made);
  forget();
  cleanup_error = -1;
  int flags = O_RDWR | O_CREAT | O_EXCL;
  dispatch_io_t file =
      dispatch_io_create_with_path_f(DISPATCH_IO_RANDOM, path, flags, 0600, queue, &cleaned, cleanup_counting);
  check(file != NULL);
  dispatch_data_t data = text("unwritten");
  dispatch_io_write_f(file, 0, data, queue, &done, channel_written);
  event_wait(&done);
  check_equal(last_error, EEXIST);
  check_equal(rest_size, 9);
  check_equal(dispatch_io_get_descriptor(file), -1);
  dispatch_io_t second = dispatch_io_create_with_io_f(DISPATCH_IO_STREAM, file, queue, &cleaned, cleanup);
  event_wait(&cleaned);
  check_equal(cleanup_error, EEXIST);
  dispatch_release(second);
  dispatch_io_write_f(file, 0, data, queue, &done, channel_written);
  event_wait(&done);
  check_equal(last_error, EEXIST);
  drain(queue);
  check(!event_has_happened(&cleaned));
  dispatch_io_read_f(file, 0, 1, queue, &done, channel_read);
  dispatch_release(file);
  event_wait(&cleaned);
  check_equal(cleanup_error, 0);
  check_equal(done_before_cleanup, 3);
  event_wait(&done);
  dispatch_release(data);
  unlink(path);
}

static void refusals(dispatch_queue_t queue) {
  forget();
  check(dispatch_io_create_f(7, 0, queue, &cleaned, cleanup) == NULL);
  check(dispatch_io_create_with_path_f(DISPATCH_IO_STREAM, "relative", O_RDONLY, 0, queue, &cleaned, cleanup) == NULL);
  check(dispatch_io_create_with_path_f(9, "/", O_RDONLY, 0, queue, &cleaned, cleanup) == NULL);
  drain(queue);
  check(!event_has_happened(&cleaned));
  dispatch_io_t bad = dispatch_io_create_f(DISPATCH_IO_STREAM, -1, queue, &cleaned, cleanup);
  check(bad != NULL);
  event_wait(&cleaned);
  check_equal(cleanup_error, EBADF);
  dispatch_release(bad);
  int ends[2];
  check_equal(pipe(ends), 0);
  dispatch_io_t no_seeking = dispatch_io_create_f(DISPATCH_IO_RANDOM, ends[0], queue, &cleaned, cleanup);
  check(no_seeking != NULL);
  event_wait(&cleaned);
  check_equal(cleanup_error, ESPIPE);
  dispatch_release(no_seeking);
  close(ends[0]);
  // No reader.
  signal(SIGPIPE, SIG_IGN);
  dispatch_data_t data = text("unheard");
  dispatch_write_f(ends[1], data, queue, &done, was_written);
  event_wait(&done);
  check_equal(last_error, EPIPE);
  check_equal(rest_size, 7);
  dispatch_release(data);
  drain(queue);
  close(ends[1]);
  dispatch_io_t missing = dispatch_io_create_with_path_f(DISPATCH_IO_STREAM, "/nowhere/at/all", O_RDONLY, 0, queue,
                                                         &cleaned, cleanup);
  check(missing != NULL);
  dispatch_io_read_f(missing, 0, 1, queue, &done, channel_read);
  event_wait(&done);
  check_equal(last_error, ENOENT);
  dispatch_release(missing);
  event_wait(&cleaned);
  check_equal(cleanup_error, ENOENT);
}

int main(void) {
  event_init(&done);
  event_init(&cleaned);
  dispatch_queue_t queue = dispatch_queue_create("io", NULL);
  single_operations(queue);
  channels_on_pipes(queue);
  stopping(queue);
  files(queue);
  syncing(queue);
  unopenable(queue);
  refusals(queue);
  dispatch_release(queue);
  return finish();
}
