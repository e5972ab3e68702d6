// What both sets of headers have in common; compared declaration by declaration.

#include <dispatch/dispatch.h>

#include <dispatch/introspection.h>
