// Data objects and input and output, with blocks.
// Statements: S115, S116, S118-S120, S122, S124, S129, S132, S133.

#include "check.h"

#include <fcntl.h>

static dispatch_data_t text(const char *characters) {
  return dispatch_data_create(characters, strlen(characters), NULL, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
}

static bool is_text(dispatch_data_t data, const char *characters) {
  const void *bytes;
  size_t size;
  dispatch_data_t map = dispatch_data_create_map(data, &bytes, &size);
  bool same = size == strlen(characters) && (size == 0 || memcmp(bytes, characters, size) == 0);
  dispatch_release(map);
  return same;
}

static void data(dispatch_queue_t queue) {
  dispatch_data_t one = text("one "), two = text("two");
  dispatch_data_t both = dispatch_data_create_concat(one, two);
  __block size_t regions = 0, expected = 0;
  bool finished = dispatch_data_apply(both, ^bool(dispatch_data_t region, size_t offset, const void *buffer, size_t size) {
    check_that(offset == expected && buffer && dispatch_data_get_size(region) == size, "a region", __FILE__, __LINE__);
    expected += size;
    regions++;
    return true;
  });
  check(finished);
  check_equal(regions, 2);
  finished = dispatch_data_apply(both, ^bool(dispatch_data_t region, size_t offset, const void *buffer, size_t size) {
    (void)region, (void)offset, (void)buffer, (void)size;
    return false;
  });
  check(!finished);
  check(is_text(both, "one two"));
  dispatch_release(one);
  dispatch_release(two);
  dispatch_release(both);

  static char buffer[] = "0123456789";
  dispatch_semaphore_t destroyed = dispatch_semaphore_create(0);
  dispatch_data_t owned = dispatch_data_create(buffer, 10, queue, ^{
    dispatch_assert_queue(queue);
    dispatch_semaphore_signal(destroyed);
  });
  dispatch_data_t part = dispatch_data_create_subrange(owned, 2, 3);
  dispatch_release(owned);
  check(dispatch_semaphore_wait(destroyed, DISPATCH_TIME_NOW) != 0);
  check(is_text(part, "234"));
  dispatch_release(part);
  check_equal(dispatch_semaphore_wait(destroyed, DISPATCH_TIME_FOREVER), 0);
  check(dispatch_data_create(buffer, 0, queue, ^{
          dispatch_semaphore_signal(destroyed);
        }) == dispatch_data_empty);
  check_equal(dispatch_semaphore_wait(destroyed, DISPATCH_TIME_FOREVER), 0);
  drain(queue);
  char *allocated = malloc(6);
  strcpy(allocated, "freed");
  dispatch_data_t freed = dispatch_data_create(allocated, 5, queue, DISPATCH_DATA_DESTRUCTOR_FREE);
  check(is_text(freed, "freed"));
  dispatch_release(freed);
  dispatch_release(destroyed);
}

static void pipes(dispatch_queue_t queue) {
  int ends[2];
  check_equal(pipe(ends), 0);
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  dispatch_data_t sent = text("sent");
  dispatch_write(ends[1], sent, queue, ^(dispatch_data_t rest, int error) {
    check_that(rest == NULL && error == 0, "all written", __FILE__, __LINE__);
    dispatch_semaphore_signal(done);
  });
  dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  dispatch_read(ends[0], SIZE_MAX, queue, ^(dispatch_data_t received, int error) {
    check_that(is_text(received, "sent") && error == 0, "all read", __FILE__, __LINE__);
    dispatch_semaphore_signal(done);
  });
  dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  dispatch_release(sent);
  drain(queue);
  close(ends[0]);
  close(ends[1]);
  dispatch_release(done);
}

static void channels(dispatch_queue_t queue) {
  char path[] = "/tmp/c-interface-XXXXXX";
  int file = mkstemp(path);
  check(file >= 0);
  dispatch_semaphore_t done = dispatch_semaphore_create(0), cleaned = dispatch_semaphore_create(0);
  dispatch_io_t channel = dispatch_io_create(DISPATCH_IO_STREAM, file, queue, ^(int error) {
    check_that(error == 0, "no error at the end", __FILE__, __LINE__);
    dispatch_semaphore_signal(cleaned);
  });
  check(channel != NULL);
  dispatch_data_t lines = text("first second third");
  dispatch_io_write(channel, 0, lines, queue, ^(bool finished, dispatch_data_t rest, int error) {
    if (!finished) return;
    check_that(rest == NULL && error == 0, "all written", __FILE__, __LINE__);
    dispatch_semaphore_signal(done);
  });
  dispatch_io_barrier(channel, ^{
    check_that(lseek(dispatch_io_get_descriptor(channel), 0, SEEK_CUR) == 18, "written before", __FILE__, __LINE__);
    dispatch_semaphore_signal(done);
  });
  dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  dispatch_io_close(channel, 0);
  dispatch_release(channel);
  dispatch_semaphore_wait(cleaned, DISPATCH_TIME_FOREVER);
  close(file);

  channel = dispatch_io_create_with_path(DISPATCH_IO_RANDOM, path, O_RDONLY, 0, queue, ^(int error) {
    check_that(error == 0, "no error at the end", __FILE__, __LINE__);
    dispatch_semaphore_signal(cleaned);
  });
  check_equal(dispatch_io_get_descriptor(channel), -1);
  __block int calls = 0, last_calls = 0;
  __block dispatch_data_t received = dispatch_data_empty;
  dispatch_io_set_high_water(channel, 5);
  dispatch_io_set_low_water(channel, 5);
  dispatch_io_read(channel, 6, 12, queue, ^(bool finished, dispatch_data_t more, int error) {
    check_that(error == 0, "no error", __FILE__, __LINE__);
    if (more) {
      check_that(dispatch_data_get_size(more) <= 5, "small pieces", __FILE__, __LINE__);
      dispatch_data_t longer = dispatch_data_create_concat(received, more);
      dispatch_release(received);
      received = longer;
    }
    calls++;
    if (!finished) return;
    last_calls++;
    dispatch_semaphore_signal(done);
  });
  dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  drain(queue);
  check(is_text(received, "second third"));
  check(calls >= 3);
  check_equal(last_calls, 1);
  dispatch_io_t other = dispatch_io_create_with_io(DISPATCH_IO_STREAM, channel, queue, ^(int error) {
    check_that(error == 0, "no error at the end", __FILE__, __LINE__);
    dispatch_semaphore_signal(cleaned);
  });
  check(other != NULL);
  dispatch_io_close(other, 0);
  dispatch_io_close(channel, 0);
  dispatch_release(other);
  dispatch_release(channel);
  dispatch_semaphore_wait(cleaned, DISPATCH_TIME_FOREVER);
  dispatch_semaphore_wait(cleaned, DISPATCH_TIME_FOREVER);
  dispatch_release(received);
  dispatch_release(lines);
  dispatch_release(done);
  dispatch_release(cleaned);
  unlink(path);
}

static void read_on(dispatch_io_t channel, dispatch_queue_t queue, int left, size_t *total) {
  dispatch_io_read(channel, 0, 3, queue, ^(bool finished, dispatch_data_t data, int error) {
    check_that(error == 0, "no error", __FILE__, __LINE__);
    if (data) *total += dispatch_data_get_size(data);
    if (finished && left > 0) read_on(channel, queue, left - 1, total);
  });
}

// Handlers and barriers use a channel that its owner has released.
static void released(dispatch_queue_t queue) {
  dispatch_semaphore_t cleaned = dispatch_semaphore_create(0);
  for (int round = 0; round < 200; round++) {
    int ends[2];
    check_equal(pipe(ends), 0);
    check_equal(write(ends[1], "abcabcabcabc", 12), 12);
    __block size_t total = 0;
    dispatch_io_t channel = dispatch_io_create(DISPATCH_IO_STREAM, ends[0], queue, ^(int error) {
      check_that(error == 0, "no error at the end", __FILE__, __LINE__);
      dispatch_semaphore_signal(cleaned);
    });
    if (round % 2 == 0) {
      read_on(channel, queue, 3, &total);
    } else {
      int descriptor = ends[0];
      size_t *read = &total;
      dispatch_io_barrier(channel, ^{
        check_that(dispatch_io_get_descriptor(channel) == descriptor, "the descriptor", __FILE__, __LINE__);
        read_on(channel, queue, 3, read);
      });
    }
    dispatch_release(channel);
    check_equal(dispatch_semaphore_wait(cleaned, DISPATCH_TIME_FOREVER), 0);
    check_equal(total, 12);
    close(ends[0]);
    close(ends[1]);
  }
  dispatch_release(cleaned);
}

int main(void) {
  dispatch_queue_t queue = dispatch_queue_create("queue", NULL);
  data(queue);
  pipes(queue);
  channels(queue);
  released(queue);
  dispatch_release(queue);
  return finish();
}
