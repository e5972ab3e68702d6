// The kernel's submission and completion rings (io_uring), by raw system calls: only what reading and
// writing files needs. No logic lives here, and no lock: the caller lets one thread in at a time.

#ifndef CONCOURSE_RING_H
#define CONCOURSE_RING_H

#include <stdbool.h>
#include <stdint.h>

/// The two rings as they are mapped into this process.
struct concourse_ring {
  int descriptor;
  uint32_t entries;
  void *_Nullable rings;
  uint64_t rings_size;
  void *_Nullable requests;
  uint64_t requests_size;
  uint32_t *_Nullable submission_tail;
  uint32_t *_Nullable submission_array;
  uint32_t submission_mask;
  uint32_t *_Nullable completion_head;
  uint32_t *_Nullable completion_tail;
  uint32_t completion_mask;
  void *_Nullable completions;
};

/// Asks the kernel for a ring. Returns its descriptor, close-on-exec, or -errno; -ENOSYS for a kernel whose
/// rings lack what is used here. `ring` then holds what `concourse_ring_map` needs.
int concourse_ring_setup(struct concourse_ring *_Nonnull ring, uint32_t entries);
/// Maps the rings. Returns 0 or -errno; on failure nothing stays mapped.
int concourse_ring_map(struct concourse_ring *_Nonnull ring);
/// Unmaps them and closes the descriptor.
void concourse_ring_close(struct concourse_ring *_Nonnull ring);
/// Lets an eventfd become readable with every completion. Returns 0 or -errno.
int concourse_ring_register_event(const struct concourse_ring *_Nonnull ring, int descriptor);

/// Writes one request into the submission ring: a read, or a write. At `offset`, or at the file's own
/// position, which moves then, if that is -1.
void concourse_ring_prepare(struct concourse_ring *_Nonnull ring, bool write, int descriptor,
                            const void *_Nonnull bytes, uint32_t count, int64_t offset, uint64_t token);
/// Takes the last request back, which the kernel has not seen.
void concourse_ring_take_back(struct concourse_ring *_Nonnull ring);
/// Hands one request to the kernel. Returns how many it took, or -errno.
int concourse_ring_enter(const struct concourse_ring *_Nonnull ring);
/// Takes the oldest completion. Returns false if there is none.
bool concourse_ring_take(struct concourse_ring *_Nonnull ring, uint64_t *_Nonnull token,
                         int32_t *_Nonnull result);

/// preadv2 with RWF_NOWAIT of one buffer: reads what is in memory. Returns the count or -errno; -EAGAIN if
/// it would have to wait for a disk. `offset` as above.
long concourse_read_cached(int descriptor, void *_Nonnull bytes, uint64_t count, int64_t offset);

#endif
