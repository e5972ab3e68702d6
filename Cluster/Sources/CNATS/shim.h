// The client library of NATS, Debian's libnats-dev.
#include <nats/nats.h>
