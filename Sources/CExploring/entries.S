// The functions of the C interface and of Swift Concurrency that are points of a schedule. Scripts/library has renamed the
// real ones of the interface to explored_NAME.
#include "entries.h"

// These two may hold items back (hold.c).
#define explored_dispatch_async_f held_dispatch_async_f
#define explored_dispatch_main held_dispatch_main

#define OPERATION(number, name)
#define FUNCTION(number, name) around name, explored_##name, number
#define RUNTIME(number, name) before name, number
#include "include/concourse_exploring_operations.h"

.section .note.GNU-stack, "", @progbits
