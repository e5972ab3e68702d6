// Data objects made and visited without blocks.
// Statements: S115-S120.

#include "check.h"

#include <sys/mman.h>

static event destroyed;
static void *destroyed_buffer;
static char key;
static bool destroyed_on_queue;

static void destructor(void *buffer) {
  destroyed_buffer = buffer;
  destroyed_on_queue = dispatch_get_specific(&key) == (void *)&key;
  event_happens(&destroyed);
}

static dispatch_data_t copied(const char *text) {
  return dispatch_data_create_f(text, strlen(text), NULL, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
}

static void expect_bytes(dispatch_data_t data, const char *text) {
  const void *bytes = text;
  size_t size = 0;
  dispatch_data_t map = dispatch_data_create_map(data, &bytes, &size);
  check_equal(dispatch_data_get_size(data), strlen(text));
  check_equal(size, strlen(text));
  check_that(size == strlen(text) && memcmp(bytes, text, size) == 0, text, __FILE__, __LINE__);
  dispatch_release(map);
}

typedef struct {
  size_t regions, bytes, stop_after;
  bool in_order;
} visit;

static bool visitor(void *context, dispatch_data_t region, size_t offset, const void *buffer, size_t size) {
  visit *v = context;
  if (offset != v->bytes || dispatch_data_get_size(region) != size || buffer == NULL) v->in_order = false;
  v->regions++;
  v->bytes += size;
  return v->regions != v->stop_after;
}

static void shapes(void) {
  dispatch_data_t hello = copied("hello, "), world = copied("world");
  dispatch_data_t both = dispatch_data_create_concat(hello, world);
  expect_bytes(hello, "hello, ");
  expect_bytes(both, "hello, world");
  dispatch_data_t middle = dispatch_data_create_subrange(both, 3, 6);
  expect_bytes(middle, "lo, wo");
  dispatch_data_t tail = dispatch_data_create_subrange(both, 7, SIZE_MAX);
  expect_bytes(tail, "world");
  dispatch_data_t behind = dispatch_data_create_subrange(both, 12, 1);
  check(behind == dispatch_data_empty);
  check(dispatch_data_create_subrange(both, 100, 1) == dispatch_data_empty);
  check(dispatch_data_create_subrange(both, 3, 0) == dispatch_data_empty);
  dispatch_data_t whole = dispatch_data_create_subrange(both, 0, 12);
  check(whole == both);
  dispatch_data_t same = dispatch_data_create_concat(dispatch_data_empty, hello);
  check(same == hello);
  dispatch_data_t same_too = dispatch_data_create_concat(hello, dispatch_data_empty);
  check(same_too == hello);
  dispatch_data_t mapped = dispatch_data_create_map(hello, NULL, NULL);
  check(mapped == hello);

  visit v = {0, 0, 0, true};
  check(dispatch_data_apply_f(both, &v, visitor));
  check_equal(v.regions, 2);
  check_equal(v.bytes, 12);
  check(v.in_order);
  visit stopped = {0, 0, 1, true};
  check(!dispatch_data_apply_f(both, &stopped, visitor));
  check_equal(stopped.regions, 1);
  visit none = {0, 0, 0, true};
  check(dispatch_data_apply_f(dispatch_data_empty, &none, visitor));
  check_equal(none.regions, 0);

  size_t offset = 99;
  dispatch_data_t region = dispatch_data_copy_region(both, 8, &offset);
  check_equal(offset, 7);
  expect_bytes(region, "world");
  dispatch_release(region);
  region = dispatch_data_copy_region(both, 6, &offset);
  check_equal(offset, 0);
  check_equal(dispatch_data_get_size(region), 7);
  dispatch_release(region);
  region = dispatch_data_copy_region(both, 12, &offset);
  check(region == dispatch_data_empty);
  check_equal(offset, 12);
  region = dispatch_data_copy_region(both, SIZE_MAX, &offset);
  check(region == dispatch_data_empty);
  check_equal(offset, 12);

  const void *bytes = &offset;
  size_t size = 5;
  dispatch_data_t nil = dispatch_data_create_map(dispatch_data_empty, &bytes, &size);
  check(nil == dispatch_data_empty);
  check(bytes == NULL);
  check_equal(size, 0);

  // The parts live on in the data made from them.
  dispatch_release(hello);
  dispatch_release(world);
  dispatch_release(same);
  dispatch_release(same_too);
  dispatch_release(mapped);
  dispatch_release(whole);
  dispatch_release(both);
  expect_bytes(middle, "lo, wo");
  expect_bytes(tail, "world");
  dispatch_release(middle);
  dispatch_release(tail);
}

static void destructors(void) {
  static char buffer[] = "not copied";
  dispatch_queue_t queue = dispatch_queue_create("destructor", NULL);
  dispatch_queue_set_specific(queue, &key, &key, NULL);
  dispatch_data_t data = dispatch_data_create_f(buffer, sizeof buffer, queue, destructor);
  const void *bytes = NULL;
  dispatch_data_t map = dispatch_data_create_map(data, &bytes, NULL);
  check(bytes == (void *)buffer);
  dispatch_data_t part = dispatch_data_create_subrange(data, 4, 6);
  dispatch_release(map);
  dispatch_release(data);
  drain(queue);
  check(!event_has_happened(&destroyed));
  dispatch_release(part);
  event_wait(&destroyed);
  check(destroyed_buffer == (void *)buffer);
  check(destroyed_on_queue);
  // No bytes: at once, and the result is the empty object.
  data = dispatch_data_create_f(buffer, 0, queue, destructor);
  check(data == dispatch_data_empty);
  event_wait(&destroyed);
  check(destroyed_on_queue);
  data = dispatch_data_create_f(buffer, 1, NULL, destructor);
  dispatch_release(data);
  event_wait(&destroyed);
  check(!destroyed_on_queue);
  drain(queue);
  dispatch_release(queue);

  char *allocated = malloc(100);
  strcpy(allocated, "freed");
  data = dispatch_data_create_f(allocated, 5, NULL, DISPATCH_DATA_DESTRUCTOR_FREE);
  expect_bytes(data, "freed");
  dispatch_release(data);
  if (on_concourse()) {
    void *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(pages, "unmapped");
    data = dispatch_data_create_f(pages, 8192, NULL, DISPATCH_DATA_DESTRUCTOR_MUNMAP);
    check_equal(dispatch_data_get_size(data), 8192);
    dispatch_release(data);
  }
}

static void copies(void) {
  char text[] = "copied";
  dispatch_data_t data = copied(text);
  text[0] = 'x';
  expect_bytes(data, "copied");
  dispatch_release(data);
}

static void many_parts(void) {
  dispatch_data_t all = dispatch_data_empty, letter = copied("a");
  for (int i = 0; i < 1000; i++) {
    dispatch_data_t longer = dispatch_data_create_concat(all, letter);
    dispatch_release(all);
    all = longer;
  }
  check_equal(dispatch_data_get_size(all), 1000);
  visit v = {0, 0, 0, true};
  check(dispatch_data_apply_f(all, &v, visitor));
  check_equal(v.regions, 1000);
  check(v.in_order);
  const void *bytes;
  size_t size;
  dispatch_data_t map = dispatch_data_create_map(all, &bytes, &size);
  check(map != all);
  check_equal(size, 1000);
  bool right = true;
  for (size_t i = 0; i < size; i++) right = right && ((const char *)bytes)[i] == 'a';
  check(right);
  dispatch_release(map);
  dispatch_release(all);
  dispatch_release(letter);
}

int main(void) {
  event_init(&destroyed);
  shapes();
  destructors();
  copies();
  many_parts();
  return finish();
}
