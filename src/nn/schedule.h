/* SPDX-License-Identifier: MIT
 *
 * What a file in nn/schedules/ provides: `const struct nn_schedule nn_schedule_NAME`: the learning
 * rate's factor as a pure function of the position, so that it resumes anywhere.
 */
#ifndef NN_SCHEDULE_H
#define NN_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct nn_schedule_setup {
    uint64_t total;      /* steps of the whole run */
    uint64_t warmup;     /* steps of linear rise from 0 before the schedule proper */
    uint64_t period;     /* step: every so many steps … */
    double decay;        /* … multiply by this */
    double final_factor; /* cosine, one-cycle: where it ends */
};

struct nn_schedule {
    const char *name, *help;
    /* Factor at position 0 … 1 of the part after warm-up; `step` counts from the warm-up's end. */
    double (*factor)(const struct nn_schedule_setup *setup, uint64_t step, double position);
};

extern const struct nn_schedule *const nn_schedule_registry[];
extern const size_t nn_schedule_count;

base_status nn_schedule_find(const char *name, const struct nn_schedule **schedule_p);

/* Factor of step 0 … total-1, warm-up included. */
double nn_schedule_factor(const struct nn_schedule *schedule, const struct nn_schedule_setup *setup,
                          uint64_t step);

#endif
