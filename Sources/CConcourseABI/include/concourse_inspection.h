// The structures of the public header, for the functions that fill them in.
#include "../../../include/concourse/inspection.h"
