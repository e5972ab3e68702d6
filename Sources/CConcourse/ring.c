#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// The rings are shared with the kernel. Each index has one writer. A reader's acquiring load pairs with the writer's
// releasing store and sees what was written before it.
#define LOAD(pointer) __atomic_load_n((pointer), __ATOMIC_ACQUIRE)
#define STORE(pointer, value) __atomic_store_n((pointer), (value), __ATOMIC_RELEASE)

static uint32_t *at(void *rings, uint32_t offset) { return (uint32_t *)((char *)rings + offset); }

// Our own rings, of which there is one outside tests.
static atomic_int own_rings;

bool concourse_has_foreign_ring(void) {
  // The second of the last look, doubled, plus whether it found a ring: one word, so that no thread combines two looks.
  static atomic_long last = -1;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  // Looking through all descriptors takes a while where there are many.
  // ORDERING: relaxed, here and below; the word is the only data.
  long seen = atomic_load_explicit(&last, memory_order_relaxed);
  if (seen >> 1 == now.tv_sec) return seen & 1;
  int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = folder < 0 ? NULL : fdopendir(folder);
  // Without /proc or a descriptor nothing is known, and the program may have made a ring since the last look.
  if (!entries) {
    if (folder >= 0) close(folder);
    return true;
  }
  int rings = 0;
  for (struct dirent *entry; (entry = readdir(entries));) {
    char target[32];
    ssize_t length = readlinkat(folder, entry->d_name, target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    rings += strcmp(target, "anon_inode:[io_uring]") == 0;
  }
  closedir(entries);
  bool is_found = rings > atomic_load(&own_rings);
  atomic_store_explicit(&last, (long)now.tv_sec << 1 | is_found, memory_order_relaxed);
  return is_found;
}

int concourse_ring_setup(struct concourse_ring *ring, uint32_t entries) {
  struct io_uring_params parameters;
  memset(&parameters, 0, sizeof parameters);
  memset(ring, 0, sizeof *ring);
  int descriptor = concourse_above_standard((int)syscall(SYS_io_uring_setup, entries, &parameters));
  if (descriptor < 0) return -errno;
  // One mapping for both rings, no dropped completions, reads at the current position: Linux 5.6.
  uint32_t needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS;
  if ((parameters.features & needed) != needed) {
    close((int)descriptor);
    return -ENOSYS;
  }
  ring->descriptor = (int)descriptor;
  ring->entries = parameters.sq_entries;
  uint64_t submissions = parameters.sq_off.array + parameters.sq_entries * sizeof(uint32_t);
  uint64_t completions = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
  ring->rings_size = submissions > completions ? submissions : completions;
  ring->requests_size = parameters.sq_entries * sizeof(struct io_uring_sqe);
  // The pointers hold offsets until the rings are mapped.
  ring->submission_tail = (uint32_t *)(uintptr_t)parameters.sq_off.tail;
  ring->submission_array = (uint32_t *)(uintptr_t)parameters.sq_off.array;
  ring->submission_mask = parameters.sq_entries - 1;
  ring->completion_head = (uint32_t *)(uintptr_t)parameters.cq_off.head;
  ring->completion_tail = (uint32_t *)(uintptr_t)parameters.cq_off.tail;
  ring->completion_mask = parameters.cq_entries - 1;
  ring->completions = (void *)(uintptr_t)parameters.cq_off.cqes;
  atomic_fetch_add(&own_rings, 1);
  return ring->descriptor;
}

int concourse_ring_map(struct concourse_ring *ring) {
  void *rings = mmap(NULL, ring->rings_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                     ring->descriptor, IORING_OFF_SQ_RING);
  if (rings == MAP_FAILED) return -errno;
  void *requests = mmap(NULL, ring->requests_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                        ring->descriptor, IORING_OFF_SQES);
  if (requests == MAP_FAILED) {
    int failure = errno;
    munmap(rings, ring->rings_size);
    return -failure;
  }
  ring->rings = rings;
  ring->requests = requests;
  ring->submission_tail = at(rings, (uint32_t)(uintptr_t)ring->submission_tail);
  ring->submission_array = at(rings, (uint32_t)(uintptr_t)ring->submission_array);
  ring->completion_head = at(rings, (uint32_t)(uintptr_t)ring->completion_head);
  ring->completion_tail = at(rings, (uint32_t)(uintptr_t)ring->completion_tail);
  ring->completions = at(rings, (uint32_t)(uintptr_t)ring->completions);
  return 0;
}

void concourse_ring_close(struct concourse_ring *ring) {
  if (ring->rings) munmap(ring->rings, ring->rings_size);
  if (ring->requests) munmap(ring->requests, ring->requests_size);
  close(ring->descriptor);
  atomic_fetch_sub(&own_rings, 1);
  memset(ring, 0, sizeof *ring);
}

int concourse_ring_register_event(const struct concourse_ring *ring, int descriptor) {
  long result =
      syscall(SYS_io_uring_register, ring->descriptor, IORING_REGISTER_EVENTFD, &descriptor, 1);
  return result < 0 ? -errno : 0;
}

void concourse_ring_prepare(struct concourse_ring *ring, bool write, int descriptor, const void *bytes,
                            uint32_t count, int64_t offset, uint64_t token) {
  uint32_t tail = *ring->submission_tail;
  uint32_t place = tail & ring->submission_mask;
  struct io_uring_sqe *request = (struct io_uring_sqe *)ring->requests + place;
  memset(request, 0, sizeof *request);
  request->opcode = write ? IORING_OP_WRITE : IORING_OP_READ;
  // Always on a kernel thread. Otherwise the kernel completes some requests on the submitting thread and interrupts the
  // client's code there.
  request->flags = IOSQE_ASYNC;
  request->fd = descriptor;
  request->addr = (uint64_t)(uintptr_t)bytes;
  request->len = count;
  request->off = (uint64_t)offset;
  request->user_data = token;
  ring->submission_array[place] = place;
  STORE(ring->submission_tail, tail + 1);
}

void concourse_ring_take_back(struct concourse_ring *ring) {
  STORE(ring->submission_tail, *ring->submission_tail - 1);
}

int concourse_ring_enter(const struct concourse_ring *ring) {
  long result = syscall(SYS_io_uring_enter, ring->descriptor, 1, 0, 0, NULL, 0);
  return result < 0 ? -errno : (int)result;
}

bool concourse_ring_take(struct concourse_ring *ring, uint64_t *token, int32_t *result) {
  uint32_t head = *ring->completion_head;
  if (head == LOAD(ring->completion_tail)) return false;
  const struct io_uring_cqe *completion =
      (const struct io_uring_cqe *)ring->completions + (head & ring->completion_mask);
  *token = completion->user_data;
  *result = completion->res;
  STORE(ring->completion_head, head + 1);
  return true;
}

long concourse_read_cached(int descriptor, void *bytes, uint64_t count, int64_t offset) {
  struct iovec buffer = {bytes, count};
#ifdef __GLIBC__
  long result = preadv2(descriptor, &buffer, 1, offset, RWF_NOWAIT);
#else
  // musl has the function since 1.2.5. The second half of the offset is for processors with registers of 32 bits.
  long result = syscall(SYS_preadv2, descriptor, &buffer, 1, offset, 0, RWF_NOWAIT);
#endif
  return result < 0 ? -errno : result;
}
