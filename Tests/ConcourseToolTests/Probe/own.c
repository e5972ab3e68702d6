// A program that defines a function of dispatch.

void dispatch_async_f(void *queue, void *context, void (*work)(void *)) {
  (void)queue;
  work(context);
}
int main(void) { return 0; }
