// A library through which a program uses dispatch.

#include <dispatch/dispatch.h>

static void nothing(void *context) { (void)context; }
int indirectWork(void) {
  dispatch_sync_f(dispatch_get_global_queue(0, 0), 0, nothing);
  return 0;
}
