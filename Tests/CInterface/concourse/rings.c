// A program's io_uring: the kernel cancels the requests of a thread that ends, so idle workers stay.

#include "check.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int ring = -1, pipe_ends[2];
static struct io_uring_params parameters;
static char *rings;
static char byte;

// On a worker: submits a read that ends when something is written.
static void submit(void *submitted) {
  ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
  if (ring >= 0) {
    size_t size = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
    size_t other = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
    if (other > size) size = other;
    rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *requests = mmap(NULL, parameters.sq_entries * sizeof *requests, PROT_READ | PROT_WRITE,
                                         MAP_SHARED, ring, IORING_OFF_SQES);
    check(rings != MAP_FAILED && (void *)requests != MAP_FAILED);
    memset(requests, 0, sizeof *requests);
    requests->opcode = IORING_OP_READ;
    requests->fd = pipe_ends[0];
    requests->addr = (uintptr_t)&byte;
    requests->len = 1;
    requests->off = (uint64_t)-1;
    *(unsigned *)(rings + parameters.sq_off.array) = 0;
    __atomic_store_n((unsigned *)(rings + parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
    check_equal(syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0), 1);
  }
  event_happens(submitted);
}

int main(void) {
  if (pipe(pipe_ends) != 0) abort();
  event submitted;
  event_init(&submitted);
  dispatch_async_f(dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_BACKGROUND, 0), &submitted, submit);
  event_wait(&submitted);
  if (ring < 0) {
    // A sandbox without io_uring: nothing to show.
    check(true);
    return finish();
  }
  // Longer than idle workers stay otherwise.
  struct timespec rest = {6, 500000000};
  while (nanosleep(&rest, &rest) != 0) {
  }
  check_equal(write(pipe_ends[1], "x", 1), 1);
  check_equal(syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0), 0);
  struct io_uring_cqe *result = (struct io_uring_cqe *)(rings + parameters.cq_off.cqes);
  check_equal(result->res, 1);
  check_equal(byte, 'x');
  return finish();
}
