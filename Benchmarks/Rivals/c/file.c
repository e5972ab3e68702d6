#include "cbench.h"
#include "rival.h"

#include <stdlib.h>
#include <unistd.h>

enum { window = 256 << 10 };

static long pass(int file, long bytes, unsigned char *buffer, uint64_t *sample) {
  long offset = 0, start = now();
  *sample = 0;
  verify(lseek(file, 0, SEEK_SET), 0, "lseek");
  for (;;) {
    ssize_t count = read(file, buffer, window);
    if (count == 0) break;
    verify(count > 0, 1, "a read succeeded");
    *sample += bench_sample(buffer, count, offset);
    offset += count;
  }
  long time = now() - start;
  verify(offset, bytes, "bytes read");
  return time;
}

struct measurement measure_file(long bytes) {
  int file = bench_make_cached_file(bytes);
  unsigned char *buffer = malloc(window);
  verify(file >= 0 && buffer, 1, "a temporary file is there");
  uint64_t sample, again;
  pass(file, bytes, buffer, &sample);
  long best = pass(file, bytes, buffer, &again);
  for (int index = 0; index < 2; index++) {
    long time = pass(file, bytes, buffer, &again);
    if (time < best) best = time;
  }
  verify((long)again, (long)sample, "the sample of the bytes read");
  return (struct measurement){(double)best / 1e9, bytes, (long)(sample >> 1)};
}
