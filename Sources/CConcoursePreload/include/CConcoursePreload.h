// Nothing to call: linking this target into the shared library is all. See preload.c.
