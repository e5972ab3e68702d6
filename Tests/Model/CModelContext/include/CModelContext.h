// Coroutines for the model build: stacks and switches between them. No logic lives here.

#ifndef CMODELCONTEXT_H
#define CMODELCONTEXT_H

#include <stddef.h>

/// One stack with the registers that belong to it.
struct model_context;

/// Runs on a new stack. What it returns is the context to go on with; this one is then over.
typedef struct model_context *_Nonnull (*model_entry)(void *_Nullable argument);

/// Makes a context that will run `entry(argument)`; its stack comes from a pool. NULL without memory.
struct model_context *_Nullable model_context_create(model_entry _Nonnull entry, void *_Nullable argument);

/// A context for the calling thread's own stack, to switch away from and back to.
struct model_context *_Nullable model_context_adopt(void);

/// Leaves `from`, which is running, and goes on with `to`.
void model_context_switch(struct model_context *_Nonnull from, struct model_context *_Nonnull to);

/// Gives the stack back to the pool, whether or not its entry has returned.
void model_context_destroy(struct model_context *_Nonnull context);

/// The scheduler that drives the calling thread, or NULL: one thread-local word.
void *_Nullable model_current(void);
void model_set_current(void *_Nullable scheduler);

/// Runs `body(argument)` on a thread of its own and waits for it. Returns 0 or the errno.
int model_run_on_own_thread(void (*_Nonnull body)(void *_Nullable), void *_Nullable argument);

#endif
