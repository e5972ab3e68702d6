// A program that defines the function that makes queues.

#include <stddef.h>

void *dispatch_queue_create(const char *label, void *attribute) {
  (void)label;
  (void)attribute;
  return NULL;
}
int main(void) { return 0; }
