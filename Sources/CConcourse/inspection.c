#include "include/CConcourse.h"

// The record that `concourse report` looks for, and the note that leads to it. A note is in memory and in core dumps,
// and remains when the symbols are stripped. Type 1 of the same owner is that of CConcoursePreload.

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
    ".popsection\n");
