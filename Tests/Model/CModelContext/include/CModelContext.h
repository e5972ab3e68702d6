// Coroutines for the model build: stacks and switches between them. No logic lives here.

#ifndef CMODELCONTEXT_H
#define CMODELCONTEXT_H

#include <stdbool.h>
#include <stddef.h>

/// A stack and its registers.
struct model_context;

/// Runs on a new stack. Returns the context to switch to; the calling context is then finished.
typedef struct model_context *_Nonnull (*model_entry)(void *_Nullable argument);

/// Creates a context that will run `entry(argument)` on a stack from a pool. NULL when memory is exhausted.
struct model_context *_Nullable model_context_create(model_entry _Nonnull entry, void *_Nullable argument);

/// A context for the calling thread's own stack.
struct model_context *_Nullable model_context_adopt(void);

/// Switches from the running context `from` to `to`.
void model_context_switch(struct model_context *_Nonnull from, struct model_context *_Nonnull to);

/// Returns the stack to the pool, whether or not its entry has returned.
void model_context_destroy(struct model_context *_Nonnull context);

/// The scheduler that drives the calling thread, or NULL. Thread-local.
void *_Nullable model_current(void);
void model_set_current(void *_Nullable scheduler);

/// Runs `body(argument)` on a new thread and waits for it. Returns 0 or the errno.
int model_run_on_own_thread(void (*_Nonnull body)(void *_Nullable), void *_Nullable argument);

/// What the ledger of cache lines needs to see of reference counting: each allocation, retain and release of a Swift
/// object by the thread that runs coroutines.
///
/// `size` is 0 for a retain or release, which writes the object's second word.
typedef void (*model_reference_observer)(const void *_Nonnull object, const void *_Nonnull metadata, size_t size);

/// Reports to `observer` until it is called with NULL. The observer's own references are not reported.
void model_observe_references(model_reference_observer _Nullable observer);

#endif
