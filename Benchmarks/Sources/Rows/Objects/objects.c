// What do objects cost: a queue's life, a reference, a value kept with a queue, and pieces of data?
#include "rows.h"

#include <dispatch/dispatch.h>
#include <string.h>

// MARK: Queues

static struct measurement queue_life(long count) {
  dispatch_queue_t queue = dispatch_queue_create("a queue of the benchmark", NULL);
  struct counter entries = {0};
  dispatch_sync_f(queue, &entries, add_one);
  verify(entries.value, 1, "a new queue works");
  verify(strcmp(dispatch_queue_get_label(queue), "a queue of the benchmark"), 0, "its label");
  dispatch_release(queue);
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    long start = bench_now();
    for (long index = 0; index < count; index++)
      dispatch_release(dispatch_queue_create("a queue of the benchmark", NULL));
    bench_record(&passes, bench_now() - start);
  }
  return per_operation(&passes, count, count);
}

static void signal_end(void *done) { dispatch_semaphore_signal(done); }

static struct measurement retain_release(long count) {
  dispatch_queue_t queue = dispatch_queue_create("serial", NULL);
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  dispatch_set_context(queue, done);
  dispatch_set_finalizer_f(queue, signal_end);
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    long start = bench_now();
    for (long index = 0; index < count; index++) {
      dispatch_retain(queue);
      dispatch_release(queue);
    }
    bench_record(&passes, bench_now() - start);
  }
  verify(dispatch_semaphore_wait(done, DISPATCH_TIME_NOW) != 0, 1, "the queue lives");
  dispatch_release(queue);
  dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  return per_operation(&passes, count, count);
}

struct search {
  long count, time, sum;
};

static const char key;

static void look_up(void *context) {
  struct search *search = context;
  search->sum = 0;
  long start = bench_now();
  for (long index = 0; index < search->count; index++) search->sum += *(const long *)dispatch_get_specific(&key);
  search->time = bench_now() - start;
}

static struct measurement get_specific(long count) {
  static long value = 3;
  dispatch_queue_t queue = dispatch_queue_create("serial", NULL);
  dispatch_queue_set_specific(queue, &key, &value, NULL);
  struct search search = {.count = count};
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    dispatch_sync_f(queue, &search, look_up);
    bench_record(&passes, search.time);
    verify(search.sum, 3 * count, "values found");
  }
  return per_operation(&passes, count, count);
}

// MARK: Data: to append a piece, to visit a piece, to make one piece of many

enum { pieces = 64, piece_size = 64 };

static dispatch_data_t make_piece(void) {
  char bytes[piece_size];
  memset(bytes, 7, sizeof bytes);
  return dispatch_data_create(bytes, sizeof bytes, NULL, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
}

// Returns a data object of `count` pieces, appended one after the other.
static dispatch_data_t join(dispatch_data_t piece, long count) {
  dispatch_data_t joined = dispatch_data_empty;
  for (long index = 0; index < count; index++) {
    dispatch_data_t longer = dispatch_data_create_concat(joined, piece);
    dispatch_release(joined);
    joined = longer;
  }
  return joined;
}

static struct measurement data_concat(long count) {
  dispatch_data_t piece = make_piece();
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    long start = bench_now(), size = 0;
    for (long done = 0; done < count; done += pieces) {
      dispatch_data_t joined = join(piece, done + pieces <= count ? pieces : count - done);
      size += (long)dispatch_data_get_size(joined);
      dispatch_release(joined);
    }
    bench_record(&passes, bench_now() - start);
    verify(size, count * piece_size, "bytes of all pieces");
  }
  dispatch_release(piece);
  return per_operation(&passes, count, count);
}

static struct measurement data_apply(long count) {
  dispatch_data_t piece = make_piece();
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    dispatch_data_t joined = join(piece, pieces);
    __block long regions = 0, bytes = 0;
    long start = bench_now();
    for (long done = 0; done < count; done += pieces)
      dispatch_data_apply(joined, ^bool(dispatch_data_t region, size_t offset, const void *buffer, size_t size) {
        (void)region;
        (void)offset;
        regions += *(const char *)buffer == 7;
        bytes += (long)size;
        return true;
      });
    bench_record(&passes, bench_now() - start);
    long visits = (count + pieces - 1) / pieces;
    verify(regions, visits * pieces, "pieces visited");
    verify(bytes, visits * pieces * piece_size, "bytes visited");
    dispatch_release(joined);
  }
  dispatch_release(piece);
  return per_operation(&passes, count, count);
}

static struct measurement data_map(long count) {
  dispatch_data_t piece = make_piece();
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    dispatch_data_t joined = join(piece, pieces);
    long start = bench_now(), sum = 0;
    for (long index = 0; index < count; index++) {
      const void *buffer;
      size_t size;
      dispatch_data_t mapped = dispatch_data_create_map(joined, &buffer, &size);
      sum += (long)size + ((const char *)buffer)[size - 1];
      dispatch_release(mapped);
    }
    bench_record(&passes, bench_now() - start);
    verify(sum, count * (pieces * piece_size + 7), "mapped bytes");
    dispatch_release(joined);
  }
  dispatch_release(piece);
  return per_operation(&passes, count, count);
}

const struct row objects_rows[] = {
    {"queue-life", queue_life, 500000, "a labelled serial queue, made and released", NULL},
    {"retain-release", retain_release, 10000000, "retain and release a queue", NULL},
    {"get-specific", get_specific, 5000000, "dispatch_get_specific within a task of the queue", NULL},
    {"data-concat", data_concat, 500000, "append a piece to a data object of up to 64 pieces", NULL},
    {"data-apply", data_apply, 5000000, "visit a region of a data object of 64 pieces", NULL},
    {"data-map", data_map, 50000, "map a data object of 64 pieces, 64 bytes each", NULL},
    {0},
};
