// A task's hop from one actor to another. Swift's runtime gives up the first and takes the second in one call, between
// which other tasks may have either on a machine with several processors. So the hop goes through no actor.

#include "exploring.h"

#define ASYNC __attribute__((swiftasynccall))
#define CONTEXT __attribute__((swift_async_context))

typedef void ASYNC resume_function(void *CONTEXT context);

/// Swift's reference to a serial executor. An actor without an executor of its own has only an identity; no actor has
/// none.
struct executor {
  const void *identity;
  uintptr_t implementation;
};

typedef void ASYNC switch_function(void *CONTEXT context, resume_function *resume, struct executor executor);

/// GUARDED BY the token. The tasks that have left an actor for another. Most go on at once; one that prefers an executor
/// does so as a job.
static struct hop {
  void *context;
  resume_function *resume;
  struct executor executor;
} hops[64];

enum { HOPS = sizeof hops / sizeof hops[0] };

static switch_function *real_switch;

static struct hop *find(const void *context) {
  for (int i = 0; i < HOPS; i++) {
    if (hops[i].context == context) return &hops[i];
  }
  return NULL;
}

static struct executor current_executor(void) {
  static struct executor (*current)(void);
  if (!current) *(void **)&current = explore_real("swift_task_getCurrentExecutor");
  return current ? current() : (struct executor){NULL, 0};
}

/// The point between the two. Its place is the code that goes on, as if that had made the hop.
static void has_left(const struct hop *hop) {
  struct explored *self = explore_current();
  const void *frame[2] = {NULL, (const char *)hop->resume + 1};
  if (self) explore_point(self, OP_TASK_SWITCH, hop->executor.identity, frame);
}

/// The task has no actor, and goes on to the second one.
static void ASYNC take_second(void *CONTEXT context) {
  struct hop *place = find(context);
  has_left(place);
  resume_function *resume = place->resume;
  struct executor executor = place->executor;
  place->context = NULL;
  return real_switch(context, resume, executor);
}

/// As `swift_task_switch`, behind the point.
static void ASYNC explore_hop(void *CONTEXT context, resume_function *resume, struct executor executor) {
  struct executor current = current_executor();
  bool is_split = explore_current() && executor.identity && current.identity && !current.implementation &&
                  current.identity != executor.identity;
  struct hop *place = is_split ? find(NULL) : NULL;
  if (!place) return real_switch(context, resume, executor);
  *place = (struct hop){context, resume, executor};
  return real_switch(context, take_second, (struct executor){NULL, 0});
}

void *explore_hops(void *function) {
  *(void **)&real_switch = function;
  return (void *)explore_hop;
}
