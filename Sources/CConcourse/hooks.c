#include "concourse_hooks.h"

const concourse_entry_runner concourse_entry_runners[] = {
    concourse_run_item,
    concourse_run_queue,
    concourse_run_boosted,
    concourse_run_test_entry,
};
