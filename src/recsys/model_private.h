/* SPDX-License-Identifier: MIT
 *
 * What models share.
 */
#ifndef RECSYS_MODEL_PRIVATE_H
#define RECSYS_MODEL_PRIVATE_H

#include "recsys/model.h"

/* ---- of a model's `open` ---- */

/* These return the buffer's index; memory comes later. A row for each user or item: */
int recsys_add_rows(struct recsys_fit *fit, const char *name, enum recsys_axis of, uint32_t width);
/* Eight floats for each in every one of so many rows: */
int recsys_add_slices(struct recsys_fit *fit, const char *name, enum recsys_axis of, uint32_t rows);
/* Of neither: */
int recsys_add_buffer(struct recsys_fit *fit, const char *name, uint32_t rows, uint32_t width);
/* `work` as in struct recsys_phase; `writes`: a buffer. Returns the phase's index. */
int recsys_add_phase(struct recsys_fit *fit, const char *name, uint32_t rows, const uint64_t *work,
                     int writes);

/* Buffers declared, places them one after another in the flat memory. */
base_status recsys_lay_out(struct recsys_fit *fit);

static inline float *recsys_at(const struct recsys_fit *fit, int buffer, size_t row)
{
    const struct recsys_buffer *b = &fit->buffers[buffer];

    return b->at + (row - b->first) * b->width;
}

/* ---- work of rows ---- */

/* Calls the task for disjoint ranges that make up from … to-1, on the team's threads. The ranges
 * have about equal work; which ones there are must not change a result. */
typedef void recsys_range_task(const void *context, uint32_t from, uint32_t to, int thread);
void recsys_each_range(struct base_team *team, const uint64_t *work, uint32_t from, uint32_t to,
                       recsys_range_task *task, const void *context);

/* Rows of about equally many ratings for each unit: cut (units+1). */
void recsys_cut_rows(const uint64_t *start, uint32_t rows, int units, uint32_t *cut);

/* Rows in units that each sum over all columns by themselves: their number follows from the ratings
 * alone, so that sums that are added in the units' order are the same for any number of threads. */
enum { RECSYS_MAX_UNITS = 16 };
struct recsys_units {
    int count;
    uint32_t cut[RECSYS_MAX_UNITS + 1];
};
struct recsys_units recsys_units_of(const struct recsys_rows *rows);

static inline uint64_t recsys_row_count(const struct recsys_rows *rows, uint32_t row)
{
    return rows->start[row + 1] - rows->start[row];
}

/* The values of ratings from … from+count-1, less `minus`. */
void recsys_values(const struct recsys_scale *scale, const struct recsys_rows *rows, uint64_t from,
                   int count, float minus, float *values);

float recsys_clip(const struct recsys_scale *scale, float value);

#endif
