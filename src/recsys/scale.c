/* SPDX-License-Identifier: MIT
 *
 * The values that ratings take: those of all threads together, and the step between them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/recsys_private.h"

enum { UNITS = 10000 }; /* steps are multiples of a ten-thousandth */

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* All levels, rising, each once; base_free. */
static float *all_levels(const struct recsys_text *t, uint32_t *count_p)
{
    float *all = base_calloc((size_t)t->threads * RECSYS_MAX_LEVELS, sizeof *all);
    uint32_t count = 0, kept = 0;

    for (int i = 0; i < t->threads; i++)
        for (uint32_t k = 0; k < t->levels[i].count; k++)
            all[count++] = t->levels[i].level[k];
    if (count > 0)
        qsort(all, count, sizeof *all, by_value);
    for (uint32_t k = 0; k < count; k++)
        if (k == 0 || all[k] != all[k - 1])
            all[kept++] = all[k];
    *count_p = kept;
    return all;
}

uint32_t recsys_count_levels(const struct recsys_text *t)
{
    uint32_t count;

    base_free(all_levels(t, &count));
    return count;
}

/* The greatest step that all levels are multiples of, from the lowest. */
static float step_of(const struct recsys_scale *scale)
{
    int64_t step = 0;

    for (uint32_t i = 1; i < scale->levels; i++) {
        double units = ((double)scale->level[i] - (double)scale->level[0]) * UNITS;
        int64_t rest = llround(units);

        if (fabs(units) > 1e12 || fabs(units - (double)rest) > 0.05)
            return 0;
        while (rest != 0) { /* Euclid */
            int64_t next = step % rest;

            step = rest;
            rest = next;
        }
    }
    return (float)((double)step / UNITS);
}

static void scale_of_floats(const struct recsys_text *t, struct recsys_scale *scale)
{
    int decimals = 0;

    scale->lowest = INFINITY;
    scale->highest = -INFINITY;
    for (int i = 0; i < t->threads; i++) {
        scale->lowest = fminf(scale->lowest, t->levels[i].lowest);
        scale->highest = fmaxf(scale->highest, t->levels[i].highest);
        if (t->levels[i].decimals > decimals)
            decimals = t->levels[i].decimals;
    }
    scale->step = decimals <= 4 ? (float)pow(10, -decimals) : 0;
}

void recsys_scale_of(const struct recsys_text *t, struct recsys_scale *scale, uint8_t *codes)
{
    float *all;

    memset(scale, 0, sizeof *scale); /* its padding goes into files, too */
    if (t->floats) {
        scale_of_floats(t, scale);
        return;
    }
    all = all_levels(t, &scale->levels);
    memcpy(scale->level, all, scale->levels * sizeof *all);
    scale->lowest = all[0];
    scale->highest = all[scale->levels - 1];
    scale->step = step_of(scale);
    for (int i = 0; i < t->threads; i++)
        for (uint32_t k = 0; k < t->levels[i].count; k++) {
            const float *level =
                bsearch(&t->levels[i].level[k], all, scale->levels, sizeof *all, by_value);

            codes[i * RECSYS_MAX_LEVELS + (int)k] = (uint8_t)(level - all);
        }
    base_free(all);
}
