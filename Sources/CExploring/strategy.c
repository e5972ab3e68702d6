// Chooses the thread that goes on: by the list of switches to follow, and after that by the strategy.
//
// - Random: in each run one of four manners. Some bugs need a thread to stand still for long, and no fair choice finds them.
// - PCT (Burckhardt et al., ASPLOS 2010): each thread has a random priority, the highest goes on; at `depth - 1` random
//   decisions the running thread's falls below all others. With n threads and k decisions a bug of depth d is found with a
//   probability of at least 1/(n k^(d-1)).
// - POS (Yuan et al., CAV 2018): each operation that a thread is about to begin has a random priority; the highest goes
//   on, and those that race with it, on the same object, get new ones.
//
// A thread whose priority has fallen stands still also while only time can pass, for as long as that is a choice: the
// engine's monitor then takes what the thread has kept for itself.
//
// Time is a candidate like a thread, as long as `explore_may_advance` allows it.

#include "exploring.h"

#include <string.h>

struct sequence {
  uint64_t state;
};
static struct sequence schedule, program;

static uint64_t next_of(struct sequence *sequence) {
  uint64_t word = (sequence->state += 0x9E3779B97F4A7C15ull);
  word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9ull;
  word = (word ^ word >> 27) * 0x94D049BB133111EBull;
  return word ^ word >> 31;
}

void explore_seed(uint64_t seed) {
  schedule.state = seed;
  // The program's numbers do not depend on the schedule: a shrunk schedule, which has another seed, sees the same.
  program.state = 0x636f6e636f757273ull;
}
uint64_t explore_random(void) { return next_of(&schedule); }

void explore_fill_random(void *into, size_t size) {
  for (size_t done = 0; done < size; done += 8) {
    uint64_t word = next_of(&program);
    memcpy((char *)into + done, &word, size - done < 8 ? size - done : 8);
  }
}

// MARK: The list to follow

// The switches of each thread are a chain, in the order of the list, which is that of their points.
enum { MOST_FOLLOWED = 1 << 20 };
static uint32_t heads[CONCOURSE_EXPLORING_THREADS], tails[CONCOURSE_EXPLORING_THREADS];
/// The number of the next one plus 1; 0 ends a chain.
static uint32_t nexts[MOST_FOLLOWED];

static const struct concourse_exploring_switch *list(void) {
  return (const void *)((const char *)explored_file + explored_file->follow_offset);
}

static void make_chains(void) {
  for (uint32_t i = 0; i < explored_file->follow_count && i < MOST_FOLLOWED; i++) {
    uint16_t thread = list()[i].thread;
    if (thread >= CONCOURSE_EXPLORING_THREADS) continue;
    if (tails[thread]) nexts[tails[thread] - 1] = i + 1;
    else heads[thread] = i + 1;
    tails[thread] = i + 1;
  }
}

/// The switch of the list at this decision; NULL if there is none.
static const struct concourse_exploring_switch *listed(const struct explored *self) {
  uint32_t *head = &heads[self->number];
  // Those of points at which there was no choice.
  for (; *head && list()[*head - 1].point < self->points; *head = nexts[*head - 1]) explored_file->skipped_count++;
  if (*head == 0 || list()[*head - 1].point != self->points) return NULL;
  const struct concourse_exploring_switch *found = &list()[*head - 1];
  *head = nexts[*head - 1];
  return found;
}

// MARK: Priorities

enum { MOST_CHANGES = 64 };
static uint64_t changes[MOST_CHANGES];
static uint32_t change_count, change_next;
/// Set in all priorities but those that have fallen, which count down from below it.
static const uint64_t usual = 1ull << 63;
static uint64_t lowest;

static bool has(const uint16_t *candidates, uint32_t count, uint16_t candidate) {
  for (uint32_t i = 0; i < count; i++)
    if (candidates[i] == candidate) return true;
  return false;
}

static uint64_t priority(uint16_t candidate) {
  return candidate == CONCOURSE_EXPLORING_TIME ? 0 : explored_threads[candidate].priority;
}

/// How a random run chooses: each candidate with equal probability; the running thread seven times of eight; by weights of
/// the threads; or equally, but now and then a thread stands still as long as others can go on.
static enum { EQUALLY, SELDOM, BY_WEIGHT, WITH_STALLS } manner;

static uint64_t weight(uint16_t candidate) { return 1ull << 2 * (priority(candidate) % 4); }

static bool stands_still(uint16_t candidate) {
  return candidate != CONCOURSE_EXPLORING_TIME && !(priority(candidate) & usual);
}

static uint16_t any_moving(struct explored *self, const uint16_t *candidates, uint32_t count) {
  if (explore_random() % 16 == 0) self->priority &= ~usual;
  uint32_t moving = 0;
  for (uint32_t i = 0; i < count; i++) moving += !stands_still(candidates[i]);
  uint64_t place = explore_random() % (moving ? moving : count);
  for (uint32_t i = 0; i < count; i++) {
    if (moving && stands_still(candidates[i])) continue;
    if (place-- > 0) continue;
    if (!moving) explored_threads[candidates[i]].priority |= usual;
    return candidates[i];
  }
  return candidates[0];
}

static uint16_t any(struct explored *self, const uint16_t *candidates, uint32_t count) {
  if (manner == SELDOM && has(candidates, count, self->number) && explore_random() % 8 != 0) return self->number;
  if (manner == WITH_STALLS) return any_moving(self, candidates, count);
  if (manner != BY_WEIGHT) return candidates[explore_random() % count];
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += weight(candidates[i]);
  uint64_t place = explore_random() % sum;
  uint32_t i = 0;
  for (; place >= weight(candidates[i]); i++) place -= weight(candidates[i]);
  return candidates[i];
}

void explore_prepare_strategy(void) {
  lowest = 1ull << 62;
  make_chains();
  if (explored_file->strategy == CONCOURSE_EXPLORING_RANDOM) manner = explore_random() % 4;
  if (explored_file->strategy != CONCOURSE_EXPLORING_PCT) return;
  uint64_t steps = explored_file->expected_steps ? explored_file->expected_steps : 1000;
  change_count = explored_file->depth > 1 ? explored_file->depth - 1 : 0;
  if (change_count > MOST_CHANGES) change_count = MOST_CHANGES;
  for (uint32_t i = 0; i < change_count; i++) {
    uint64_t step = 1 + explore_random() % steps;
    uint32_t place = i;
    for (; place > 0 && changes[place - 1] > step; place--) changes[place] = changes[place - 1];
    changes[place] = step;
  }
}

void explore_arrives(struct explored *thread) {
  bool begins = thread->operation == OP_THREAD_BEGINS;
  if (explored_file->strategy == CONCOURSE_EXPLORING_POS || (explored_file->strategy != CONCOURSE_EXPLORING_FOLLOW && begins))
    thread->priority = explore_random() | usual;
}

static uint16_t highest(const uint16_t *candidates, uint32_t count) {
  uint16_t best = candidates[0];
  for (uint32_t i = 1; i < count; i++)
    if (priority(candidates[i]) > priority(best)) best = candidates[i];
  return best;
}

static bool may_switch;

void explore_let_switch(void) {
  may_switch = true;
  explored_file->began = 1;
}

uint16_t explore_choose(struct explored *self, uint16_t *candidates, uint32_t count, uint16_t fallback, bool exhausted) {
  if (!may_switch) return fallback;
  const struct concourse_exploring_switch *asked = explored_file->follow_count ? listed(self) : NULL;
  if (asked) {
    if (has(candidates, count, asked->next)) {
      explored_file->followed_count++;
      return asked->next;
    }
    explored_file->skipped_count++;
    return fallback;
  }
  // The strategy may be what keeps the thread away that all others wait for.
  if (explore_is_polling()) return fallback;
  bool may_wait = count > 1 && candidates[count - 1] == CONCOURSE_EXPLORING_TIME;
  switch (explored_file->strategy) {
    case CONCOURSE_EXPLORING_RANDOM: {
      // With stalls, time passes when no other thread moves.
      bool all_stand = manner == WITH_STALLS;
      for (uint32_t i = 0; i + may_wait < count; i++) all_stand &= stands_still(candidates[i]);
      if (may_wait && !all_stand && explore_random() % 16 != 0) count--;
      return any(self, candidates, count);
    }
    case CONCOURSE_EXPLORING_PCT: {
      bool changed = exhausted;
      for (; change_next < change_count && explored_file->steps >= changes[change_next]; change_next++) changed = true;
      if (changed) self->priority = lowest--;
      uint16_t best = highest(candidates, may_wait ? count - 1 : count);
      bool passes = may_wait && (stands_still(best) || explore_random() % 32 == 0);
      return passes ? CONCOURSE_EXPLORING_TIME : best;
    }
    case CONCOURSE_EXPLORING_POS: {
      if (may_wait && explore_random() % 16 == 0) return CONCOURSE_EXPLORING_TIME;
      if (may_wait) count--;
      uint16_t best = highest(candidates, count);
      const struct explored *chosen = &explored_threads[best];
      for (uint32_t i = 0; i < count; i++) {
        struct explored *other = &explored_threads[candidates[i]];
        if (other != chosen && other->object == chosen->object && chosen->object)
          other->priority = explore_random() | usual;
      }
      return best;
    }
    default: return fallback;
  }
}
