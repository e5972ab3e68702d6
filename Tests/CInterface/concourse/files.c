// Sources that watch files.
// Statements: S114.

#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>

static dispatch_source_t source;
static dispatch_semaphore_t handled, cancelled;
static uintptr_t all;

// Waits until an event has been reported, with or after others.
static void expect(uintptr_t event, const char *name) {
  while ((all & event) == 0) dispatch_semaphore_wait(handled, DISPATCH_TIME_FOREVER);
  check_that(true, name, __FILE__, __LINE__);
  all = 0;
}

int main(void) {
  char path[] = "/tmp/c-interface-XXXXXX", other_path[64];
  int file = mkstemp(path);
  check(file >= 0);
  snprintf(other_path, sizeof other_path, "%s.renamed", path);
  int watched = open(path, O_RDONLY);
  handled = dispatch_semaphore_create(0);
  cancelled = dispatch_semaphore_create(0);
  dispatch_queue_t queue = dispatch_queue_create("files", NULL);
  uintptr_t mask = DISPATCH_VNODE_WRITE | DISPATCH_VNODE_EXTEND | DISPATCH_VNODE_ATTRIB | DISPATCH_VNODE_RENAME |
                   DISPATCH_VNODE_DELETE;
  source = dispatch_source_create(DISPATCH_SOURCE_TYPE_VNODE, (uintptr_t)watched, mask, queue);
  check(source != NULL);
  check_equal(dispatch_source_get_mask(source), mask);
  dispatch_source_set_event_handler(source, ^{
    __atomic_fetch_or(&all, dispatch_source_get_data(source), __ATOMIC_SEQ_CST);
    dispatch_semaphore_signal(handled);
  });
  dispatch_source_set_cancel_handler(source, ^{
    close(watched);
    dispatch_semaphore_signal(cancelled);
  });
  __block bool registered = false;
  dispatch_semaphore_t ready = dispatch_semaphore_create(0);
  dispatch_source_set_registration_handler(source, ^{
    registered = true;
    dispatch_semaphore_signal(ready);
  });
  dispatch_activate(source);
  dispatch_semaphore_wait(ready, DISPATCH_TIME_FOREVER);
  check(registered);
  check_equal(write(file, "text", 4), 4);
  expect(DISPATCH_VNODE_WRITE, "written");
  fchmod(file, 0600);
  fchmod(file, 0644);
  expect(DISPATCH_VNODE_ATTRIB, "attributes");
  check_equal(rename(path, other_path), 0);
  expect(DISPATCH_VNODE_RENAME, "renamed");
  close(file);
  check_equal(unlink(other_path), 0);
  expect(DISPATCH_VNODE_DELETE, "deleted");
  dispatch_source_cancel(source);
  dispatch_semaphore_wait(cancelled, DISPATCH_TIME_FOREVER);
  dispatch_release(source);
  dispatch_release(ready);
  check(dispatch_source_create(DISPATCH_SOURCE_TYPE_VNODE, (uintptr_t)-1, mask, queue) == NULL);
  dispatch_release(queue);
  return finish();
}
