// The kernel's submission and completion rings (io_uring) by raw system calls, for reading and writing files. No
// locks: the caller serializes the calls for a ring.

#ifndef CONCOURSE_RING_H
#define CONCOURSE_RING_H

#include <stdbool.h>
#include <stdint.h>

/// The two rings as mapped into this process.
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

/// Creates a ring and fills `ring` for `concourse_ring_map`. Returns its close-on-exec descriptor, or -errno; -ENOSYS
/// when the kernel lacks a ring feature that this code uses.
int concourse_ring_setup(struct concourse_ring *_Nonnull ring, uint32_t entries);
/// Maps the rings. Returns 0 or -errno; a failed call leaves nothing mapped.
int concourse_ring_map(struct concourse_ring *_Nonnull ring);
/// Unmaps the rings and closes the descriptor.
void concourse_ring_close(struct concourse_ring *_Nonnull ring);
/// Makes an eventfd readable with every completion. Returns 0 or -errno.
int concourse_ring_register_event(const struct concourse_ring *_Nonnull ring, int descriptor);

/// Writes one read or write request into the submission ring. An `offset` of -1 means the file's own position, which
/// then moves.
void concourse_ring_prepare(struct concourse_ring *_Nonnull ring, bool write, int descriptor,
                            const void *_Nonnull bytes, uint32_t count, int64_t offset, uint64_t token);
/// Removes the last request, which the kernel has not seen yet.
void concourse_ring_take_back(struct concourse_ring *_Nonnull ring);
/// Submits one request to the kernel. Returns how many it accepted, or -errno.
int concourse_ring_enter(const struct concourse_ring *_Nonnull ring);
/// Takes the oldest completion. Returns false if there is none.
bool concourse_ring_take(struct concourse_ring *_Nonnull ring, uint64_t *_Nonnull token,
                         int32_t *_Nonnull result);

/// preadv2 with RWF_NOWAIT into one buffer: reads only bytes that are in memory. Returns the count or -errno; -EAGAIN
/// if the read would wait for a disk. `offset` as above.
long concourse_read_cached(int descriptor, void *_Nonnull bytes, uint64_t count, int64_t offset);

#endif
