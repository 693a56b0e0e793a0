/* SPDX-License-Identifier: MIT
 *
 * For tests: a worker that kills itself at a named place of a named step, so that losses can be
 * seen at every phase without guessing the moment. PACELINE_FAULT is "ID:PHASE:STEP".
 */
#ifndef TRAIN_FAULT_H
#define TRAIN_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct train_fault { /* zeros: none */
    char phase[24];
    int64_t step; /* under way, from 1; of `checkpoint` and `evaluation`: the last one done */
    bool armed;   /* this worker is the one */
};

base_status train_fault_find(uint32_t id, struct train_fault *fault_p);
/* The worker is at `phase` of `step`: kills the process if that is what was asked for. */
void train_fault_at(const struct train_fault *fault, const char *phase, int64_t step);

#endif
