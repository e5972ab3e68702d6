// Readers and writers: a concurrent queue, barriers that write, and readers that get a copy.

#include "listing.h"
#include <stdatomic.h>
#include <string.h>

enum { WRITERS = 8, PHOTOS_EACH = 250 };

struct photo_manager {
  dispatch_queue_t queue;
  // Of what follows, barriers write and other items read.
  size_t count;
  size_t capacity;
  int *photos;
};

// One for the whole program, made by its first user.
static struct photo_manager *shared_manager(void) {
  static dispatch_once_t once;
  static struct photo_manager *manager;
  dispatch_once(&once, ^{
    manager = calloc(1, sizeof *manager);
    manager->queue = dispatch_queue_create("org.concourse.guide.photos", DISPATCH_QUEUE_CONCURRENT);
  });
  return manager;
}

// Adds a photo; returns before it is there. `told` is called on the main queue afterwards.
static void add_photo(struct photo_manager *manager, int photo, void (^told)(void)) {
  dispatch_barrier_async(manager->queue, ^{
    if (manager->count == manager->capacity) {
      manager->capacity = manager->capacity * 2 + 8;
      manager->photos = realloc(manager->photos, manager->capacity * sizeof *manager->photos);
    }
    manager->photos[manager->count++] = photo;
    dispatch_async(dispatch_get_main_queue(), told);
  });
}

// Returns a copy of the photos, which the caller frees, and their number.
static int *copy_photos(struct photo_manager *manager, size_t *count) {
  __block int *copy = NULL;
  dispatch_sync(manager->queue, ^{
    *count = manager->count;
    copy = malloc(manager->count * sizeof *copy + 1);
    if (manager->count > 0) memcpy(copy, manager->photos, manager->count * sizeof *copy);
  });
  return copy;
}

// Every photo is there once.
static void check_photos(void) {
  size_t count = 0;
  int *photos = copy_photos(shared_manager(), &count);
  CHECK(count == WRITERS * PHOTOS_EACH, "%zu photos are left of %d", count, WRITERS * PHOTOS_EACH);
  bool *seen = calloc(count, sizeof *seen);
  for (size_t index = 0; index < count; index++) {
    CHECK(!seen[photos[index]], "photo %d is there twice", photos[index]);
    seen[photos[index]] = true;
  }
  printf("%zu photos, each once\n", count);
  free(seen);
  free(photos);
}

int main(void) {
  static int told = 0;
  dispatch_queue_t global = dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0);
  dispatch_async(global, ^{
    dispatch_apply(WRITERS, global, ^(size_t writer) {
      struct photo_manager *manager = shared_manager();
      size_t before = 0;
      for (int number = 0; number < PHOTOS_EACH; number++) {
        add_photo(manager, (int)writer * PHOTOS_EACH + number, ^{
          // On the main queue, one at a time.
          told += 1;
          if (told == WRITERS * PHOTOS_EACH) {
            check_photos();
            exit(EXIT_SUCCESS);
          }
        });
        size_t count = 0;
        free(copy_photos(manager, &count));
        CHECK(count > before, "a photo that this thread has added is not there");
        before = count;
      }
    });
  });
  dispatch_main();
}
