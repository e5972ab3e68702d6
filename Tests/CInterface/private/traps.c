// Misuse of functions without a public header.
// Statements: S14, S105.

#include "check.h"

static void width_of_serial(void) { dispatch_queue_set_width(dispatch_queue_create("serial", NULL), 2); }
static void release_without_mandatory_cancel(void) {
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, NULL);
  dispatch_source_set_mandatory_cancel_handler_f(source, nothing);
  dispatch_activate(source);
  dispatch_release(source);
  wait_for_death();
}
static void mandatory_handler_is_final(void) {
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, NULL);
  dispatch_source_set_mandatory_cancel_handler_f(source, nothing);
  dispatch_activate(source);
  dispatch_source_set_event_handler_f(source, nothing);
}
static void cancel_and_wait_with_handler(void) {
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, NULL);
  dispatch_source_set_cancel_handler_f(source, nothing);
  dispatch_activate(source);
  dispatch_source_cancel_and_wait(source);
}
static void configure_active_workloop(void) {
  dispatch_workloop_set_autorelease_frequency(dispatch_workloop_create("active"), DISPATCH_AUTORELEASE_FREQUENCY_NEVER);
}
// There are no vouchers on Linux, and the message says so.
static void queue_with_voucher(void) {
  (void)!dispatch_queue_create_with_accounting_override_voucher("voucher", NULL, NULL);
}

int main(void) {
  dies(queue_with_voucher);
  dies(width_of_serial);
  dies(release_without_mandatory_cancel);
  dies(mandatory_handler_is_final);
  dies(cancel_and_wait_with_handler);
  dies(configure_active_workloop);
  return finish();
}
