#include "include/CConcourse.h"
#include "concourse_version.h"

// The record that `concourse report` looks for, and the note that leads to it. A note is in memory and in core dumps,
// and remains when the symbols are stripped. Type 1 of the same owner is that of CConcoursePreload; type 3 is the version
// as text, type 4 leads to the record of recordings.

struct concourse_inspection concourse_inspection_record = {
    .layout = CONCOURSE_INSPECTION_LAYOUT,
    .size = sizeof concourse_inspection_record,
};

// Sizes of name and content, the type, the name, and the distance from the content to the record.
__asm__(
    ".pushsection .note.concourse,\"a\",@note\n"
    ".balign 4\n"
    ".long 10, 8, 2\n"
    ".asciz \"Concourse\"\n"
    ".balign 4\n"
    "0: .quad concourse_inspection_record - 0b\n"
    ".long 10, 2f - 1f, 3\n"
    ".asciz \"Concourse\"\n"
    ".balign 4\n"
    "1: .asciz \"" CONCOURSE_VERSION "\"\n"
    "2: .balign 4\n"
    ".popsection\n");
