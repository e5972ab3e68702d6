// A program that loads the library as plug-ins do, without linking it. It closes the library while the pool's threads
// still live, and loads it again.

#include <dlfcn.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t done;

static void finish(void *context) {
  (void)context;
  sem_post(&done);
}

int main(int count, char **arguments) {
  if (count != 2 || sem_init(&done, 0, 0) != 0) return 2;
  for (int round = 0; round < 3; round++) {
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    void *(*global)(long, unsigned long) = (void *(*)(long, unsigned long))dlsym(library, "dispatch_get_global_queue");
    void (*async)(void *, void *, void (*)(void *)) =
        (void (*)(void *, void *, void (*)(void *)))dlsym(library, "dispatch_async_f");
    if (global == NULL || async == NULL) return 1;
    for (int item = 0; item < 100; item++) async(global(0, 0), NULL, finish);
    for (int item = 0; item < 100; item++) {
      while (sem_wait(&done) != 0) {}
    }
    dlclose(library);
  }
  return 0;
}
