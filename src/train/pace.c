/* SPDX-License-Identifier: MIT */
#include "train/pace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MOST = 1 << 20 };

base_status train_pace_init(struct train_pace *pace, int64_t steps)
{
    *pace = (struct train_pace){.capacity = steps < MOST ? (size_t)steps : MOST};
    return base_tensor(pace->capacity, sizeof *pace->seconds, "step times", &pace->seconds);
}

void train_pace_fini(struct train_pace *pace)
{
    base_free(pace->seconds);
    *pace = (struct train_pace){0};
}

void train_pace_add(struct train_pace *pace, double seconds, int64_t samples)
{
    if (pace->count++ == 0) {
        pace->first = seconds;
        return;
    }
    pace->sum += seconds;
    pace->samples += samples;
    if (pace->capacity > 0)
        pace->seconds[(size_t)(pace->count - 2) % pace->capacity] = seconds;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct train_pace_summary train_pace_summary(const struct train_pace *pace)
{
    struct train_pace_summary s = {.first = pace->first};
    size_t steps = pace->count > 1 ? (size_t)pace->count - 1 : 0;
    size_t kept = steps < pace->capacity ? steps : pace->capacity;
    double *sorted;

    if (kept == 0)
        return s;
    sorted = base_calloc(kept, sizeof *sorted);
    memcpy(sorted, pace->seconds, kept * sizeof *sorted);
    qsort(sorted, kept, sizeof *sorted, by_value);
    s.mean = pace->sum / (double)steps;
    s.min = sorted[0];
    s.median = (sorted[(kept - 1) / 2] + sorted[kept / 2]) / 2;
    s.samples_per_second = (double)pace->samples / pace->sum;
    base_free(sorted);
    return s;
}

json_t *train_pace_json(const struct train_pace *pace)
{
    struct train_pace_summary s = train_pace_summary(pace);

    return json_pack("{s:f, s:f, s:f}", "first", s.first, "mean", s.mean, "median", s.median);
}
