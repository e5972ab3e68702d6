// The functions of the C interface and of Swift Concurrency that are points of a schedule. Scripts/library has renamed the
// real ones of the interface to explored_NAME.
#include "entries.h"

// These two may hold items back (hold.c).
#define explored_dispatch_async_f held_dispatch_async_f
#define explored_dispatch_main held_dispatch_main
// And these order what they run (races.c).
#define explored_dispatch_once ordered_dispatch_once
#define explored_dispatch_once_f ordered_dispatch_once_f
#define explored_dispatch_apply ordered_dispatch_apply
#define explored_dispatch_apply_f ordered_dispatch_apply_f

#define OPERATION(number, name)
#define FUNCTION(number, name) around name, explored_##name, number
#define RUNTIME(number, name) before name, number
#include "include/concourse_exploring_operations.h"

// No points. What these order is said to the thread sanitizer (races.c): a continuation is resumed, by CheckedContinuation and
// AsyncStream, and an asynchronous call has returned.
before "$sScC6resume9returningyxn_tF", 1, explore_find_ordering
before "$sScC6resume8throwingyq_n_tF", 2, explore_find_ordering
before "$sScS12ContinuationV5yieldyAB11YieldResultOyx__GxnF", 3, explore_find_ordering
before "$sScS12ContinuationV6finishyyF", 4, explore_find_ordering
before "$sScs12ContinuationV5yieldyAB11YieldResultOyxq___GxnF", 5, explore_find_ordering
before "$sScs12ContinuationV6finish8throwingyq_Sgn_tF", 6, explore_find_ordering
before swift_task_dealloc, 7, explore_find_ordering

.section .note.GNU-stack, "", @progbits
