// Part of libdispatch.so where Scripts/library links it with Swift's static runtime.
//
// The runtime takes the lock of a `static let` under the id of its thread, which it reads once and keeps. A forked child
// has its parent's: the kernel then lets a second thread of the child wait for the parent, which never unlocks. The
// child forgets the id here. (Where the runtime is a library of its own, the id is out of reach.)

#include <pthread.h>

extern __attribute__((visibility("hidden"))) _Thread_local unsigned kept_thread_id
    __asm__("_ZZN5swift14threading_impl5linux13ulock_get_tidEvE3tid");

static void forget(void) { kept_thread_id = 0; }

__attribute__((constructor)) static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, forget); }
