// All headers, in any language and dialect, and the sizes that they promise.

#include <concourse/inspection.h>
#include <dispatch/dispatch.h>

#include <dispatch/introspection.h>
#include <dispatch/private.h>
#include <os/object.h>

#define ASSERT_THAT(name, condition) typedef char name[(condition) ? 1 : -1] __attribute__((__unused__))

ASSERT_THAT(time_is_64_bits, sizeof(dispatch_time_t) == 8);
ASSERT_THAT(once_is_a_word, sizeof(dispatch_once_t) == sizeof(void *));
ASSERT_THAT(objects_are_pointers, sizeof(dispatch_object_t) == sizeof(void *));
ASSERT_THAT(queues_are_pointers, sizeof(dispatch_queue_t) == sizeof(void *));
ASSERT_THAT(classes_are_ints, sizeof(dispatch_qos_class_t) == sizeof(int));
ASSERT_THAT(frequencies_are_longs, sizeof(dispatch_autorelease_frequency_t) == sizeof(long));
ASSERT_THAT(offsets_have_34_bytes, sizeof(dispatch_queue_offsets) == 34);
ASSERT_THAT(extended_data_is_two_words, sizeof(struct dispatch_source_extended_data_s) == 2 * sizeof(long));
ASSERT_THAT(a_header_of_ours, CONCOURSE_DISPATCH == 1);
ASSERT_THAT(names_of_classes, QOS_CLASS_USER_INTERACTIVE == 0x21 && QOS_CLASS_UNSPECIFIED == 0);

int main(void) {
  static dispatch_once_t predicate;
  dispatch_once_f(&predicate, (void *)0, (dispatch_function_t)0);
  dispatch_apply_f(0, DISPATCH_APPLY_AUTO, (void *)0, (void (*)(void *, size_t))0);
  dispatch_queue_t queue = dispatch_queue_create("queue", DISPATCH_QUEUE_CONCURRENT);
  os_release(os_retain(queue));
  return dispatch_get_main_queue() == queue && MSEC_PER_SEC == 1000 && NSEC_PER_MSEC == 1000000;
}
