/* SPDX-License-Identifier: MIT
 *
 * How long the steps of a run take: the first apart, because it pays for page faults and lazy
 * set-up; mean, median and rate of the others. Remembers the latest million for the median.
 */
#ifndef TRAIN_PACE_H
#define TRAIN_PACE_H

#include <jansson.h>
#include <stdint.h>

#include "base/status.h"

struct train_pace {
    double *seconds; /* a ring of the steps after the first */
    size_t capacity;
    int64_t count; /* steps, the first included */
    double first, sum;
    int64_t samples; /* of the steps after the first */
};

struct train_pace_summary {
    double first, mean, median, min,
        samples_per_second; /* all but `first` leave the first step out */
};

/* For about so many steps; zeros are a pace that remembers nothing. */
base_status train_pace_init(struct train_pace *pace, int64_t steps);
void train_pace_fini(struct train_pace *pace);

void train_pace_add(struct train_pace *pace, double seconds, int64_t samples);
struct train_pace_summary train_pace_summary(const struct train_pace *pace);

/* {"first","mean","median"} */
json_t *train_pace_json(const struct train_pace *pace);

#endif
