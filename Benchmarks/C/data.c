// What do data objects cost: to append a piece, to visit a piece, to make one piece of many?
#include "bench.h"

#include <string.h>

enum { pieces = 64, piece_size = 64 };

static dispatch_data_t make_piece(void) {
  char bytes[piece_size];
  memset(bytes, 7, sizeof bytes);
  return dispatch_data_create(bytes, sizeof bytes, NULL, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
}

// A data object that has `count` pieces, one appended after the other.
static dispatch_data_t join(dispatch_data_t piece, long count) {
  dispatch_data_t joined = dispatch_data_empty;
  for (long index = 0; index < count; index++) {
    dispatch_data_t longer = dispatch_data_create_concat(joined, piece);
    dispatch_release(joined);
    joined = longer;
  }
  return joined;
}

static long pass_concat(void *piece, long count) {
  long start = now(), size = 0;
  for (long done = 0; done < count; done += pieces) {
    dispatch_data_t joined = join(piece, done + pieces <= count ? pieces : count - done);
    size += (long)dispatch_data_get_size(joined);
    dispatch_release(joined);
  }
  long time = now() - start;
  verify(size, count * piece_size, "bytes of all pieces");
  return time;
}

static long pass_apply(void *piece, long count) {
  dispatch_data_t joined = join(piece, pieces);
  __block long regions = 0, bytes = 0;
  long start = now();
  for (long done = 0; done < count; done += pieces)
    dispatch_data_apply(joined, ^bool(dispatch_data_t region, size_t offset, const void *buffer, size_t size) {
      (void)region;
      (void)offset;
      regions += *(const char *)buffer == 7;
      bytes += (long)size;
      return true;
    });
  long time = now() - start;
  long visits = (count + pieces - 1) / pieces;
  verify(regions, visits * pieces, "pieces visited");
  verify(bytes, visits * pieces * piece_size, "bytes visited");
  dispatch_release(joined);
  return time;
}

static long pass_map(void *piece, long count) {
  dispatch_data_t joined = join(piece, pieces);
  long start = now(), sum = 0;
  for (long index = 0; index < count; index++) {
    const void *buffer;
    size_t size;
    dispatch_data_t mapped = dispatch_data_create_map(joined, &buffer, &size);
    sum += (long)size + ((const char *)buffer)[size - 1];
    dispatch_release(mapped);
  }
  long time = now() - start;
  verify(sum, count * (pieces * piece_size + 7), "mapped bytes");
  dispatch_release(joined);
  return time;
}

static struct measurement measure(long count, pass_function pass) {
  dispatch_data_t piece = make_piece();
  struct measurement result = quickest_pass(count, pass, piece);
  dispatch_release(piece);
  return result;
}

struct measurement data_concat(long count) { return measure(count, pass_concat); }
struct measurement data_apply(long count) { return measure(count, pass_apply); }
struct measurement data_map(long count) { return measure(count, pass_map); }
