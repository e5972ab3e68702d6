// A program without any library; only looked at, never run.

void _start(void) { __builtin_trap(); }
