#define _GNU_SOURCE
#include "include/CModelContext.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { stack_size = 256 * 1024, guard_size = 16 * 1024 };

struct model_context {
  ucontext_t registers;
  model_entry entry;
  void *argument;
  char *stack;
  struct model_context *next_free;
  // The Swift runtime's list of this stack's open exclusive accesses.
  void *accesses[4];
};

// The Swift runtime links its open exclusive accesses through the stacks that make them. Each coroutine saves and
// restores its own list, like a Swift task. Otherwise a switch during an access would look like a conflict, and an
// abandoned stack would stay in the list.
extern void swift_task_enterThreadLocalContext(char *state) __attribute__((weak));
extern void swift_task_exitThreadLocalContext(char *state) __attribute__((weak));

// The Swift side holds a lock during an exploration, so this pool needs none.
static struct model_context *free_contexts;

static __thread void *current_scheduler;

void *model_current(void) { return current_scheduler; }
void model_set_current(void *scheduler) { current_scheduler = scheduler; }

static void begin(unsigned high, unsigned low) {
  struct model_context *self = (struct model_context *)((uintptr_t)high << 32 | (uintptr_t)low);
  model_context_switch(self, self->entry(self->argument));
  abort();  // a context that is over is never switched to
}

static struct model_context *make(void) {
  struct model_context *context = calloc(1, sizeof *context);
  if (context == NULL) return NULL;
  context->stack = mmap(NULL, stack_size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (context->stack == MAP_FAILED) {
    free(context);
    return NULL;
  }
  // An overflow must fault instead of reaching the next stack.
  mprotect(context->stack, guard_size, PROT_NONE);
  return context;
}

struct model_context *model_context_create(model_entry entry, void *argument) {
  struct model_context *context = free_contexts;
  if (context != NULL) {
    free_contexts = context->next_free;
  } else {
    context = make();
    if (context == NULL) return NULL;
  }
  context->entry = entry;
  context->argument = argument;
  for (size_t i = 0; i < sizeof context->accesses / sizeof context->accesses[0]; i++)
    context->accesses[i] = NULL;
  getcontext(&context->registers);
  context->registers.uc_stack.ss_sp = context->stack;
  context->registers.uc_stack.ss_size = stack_size;
  context->registers.uc_link = NULL;
  uintptr_t self = (uintptr_t)context;
  // makecontext passes only ints.
  makecontext(&context->registers, (void (*)(void))begin, 2, (unsigned)((uint64_t)self >> 32),
              (unsigned)self);
  return context;
}

struct model_context *model_context_adopt(void) { return calloc(1, sizeof(struct model_context)); }

void model_context_switch(struct model_context *from, struct model_context *to) {
  if (from == to) return;
  if (swift_task_exitThreadLocalContext != NULL && swift_task_enterThreadLocalContext != NULL) {
    swift_task_exitThreadLocalContext((char *)from->accesses);
    swift_task_enterThreadLocalContext((char *)to->accesses);
  }
  swapcontext(&from->registers, &to->registers);
}

void model_context_destroy(struct model_context *context) {
  if (context->stack == NULL) {
    free(context);
    return;
  }
  context->next_free = free_contexts;
  free_contexts = context;
}

struct own_thread {
  void (*body)(void *);
  void *argument;
};

static void *run_own_thread(void *argument) {
  struct own_thread *thread = argument;
  thread->body(thread->argument);
  return NULL;
}

int model_run_on_own_thread(void (*body)(void *), void *argument) {
  struct own_thread thread = {body, argument};
  pthread_t handle;
  int failure = pthread_create(&handle, NULL, run_own_thread, &thread);
  if (failure != 0) return failure;
  return pthread_join(handle, NULL);
}
