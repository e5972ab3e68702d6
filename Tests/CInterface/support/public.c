// The headers that both sets have, compared declaration by declaration.

#include <dispatch/dispatch.h>

#include <dispatch/introspection.h>
