#ifndef CONCOURSE_FUTEX_BITS_H
#define CONCOURSE_FUTEX_BITS_H

// The bits of the engine's waits, which tell them from those of other code. A wake-up without bits is for all.
#define CONCOURSE_FUTEX_BITS 0xFFFFFFFEu

#endif
