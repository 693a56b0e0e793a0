/* SPDX-License-Identifier: MIT
 *
 * What inputs are normalised with, measured over the training part: levels of pixels, the numbers
 * of a table.
 */
#include <math.h>

#include "base/mem.h"
#include "data/data_private.h"
#include "data/table.h"

enum { STATISTICS_SAMPLE = 2000 };

/* Mean and deviation from how often each of the 256 levels occurs, so the sums are exact. */
static void statistics_of(const uint64_t levels[256], float *mean_p, float *deviation_p)
{
    double count = 0, sum = 0, squares = 0, mean, variance;

    for (int level = 0; level < 256; level++) {
        double x = level / 255.0, n = (double)levels[level];

        count += n;
        sum += n * x;
        squares += n * x * x;
    }
    mean = sum / count;
    variance = squares / count - mean * mean;
    *mean_p = (float)mean;
    /* a channel of one level is only centred */
    *deviation_p = variance > 1e-12 ? (float)sqrt(variance) : 1.0f;
}

/* Over the training part; of costly sources over evenly spread images, at most 2,000: enough for
 * three digits, and opening a folder of a million images stays quick. */
base_status data_measure_images(const struct data_set *set, float *mean, float *deviation)
{
    base_status st = BASE_OK;
    const struct data_info *info = data_describe(set);
    enum data_part part = info->count[DATA_TRAIN] > 0 ? DATA_TRAIN : DATA_TEST;
    uint32_t count = info->count[part], used = count;
    size_t plane = (size_t)info->height * (size_t)info->width;
    size_t channels = (size_t)info->channels;
    uint64_t(*levels)[256] = base_calloc(channels, sizeof *levels);
    uint8_t *pixels = NULL;

    if (data_costly(set) && used > STATISTICS_SAMPLE)
        used = STATISTICS_SAMPLE;
    TRY(base_tensor(plane, channels, "an image", &pixels));
    for (uint32_t i = 0; i < used; i++) {
        TRY(data_pixels(set, part, (uint32_t)((uint64_t)i * count / used), pixels));
        for (size_t c = 0; c < channels; c++)
            for (size_t k = 0; k < plane; k++)
                levels[c][pixels[c * plane + k]]++;
    }
    for (size_t c = 0; c < channels; c++)
        statistics_of(levels[c], &mean[c], &deviation[c]);
out:
    base_free(pixels);
    base_free(levels);
    return st;
}

/* Mean and deviation of cell `at` over a part, missing ones left out; in two passes, so that large
 * numbers with small differences keep their digits. A column of one value is only centred. */
static void measure_column(const struct data_set *set, enum data_part part, int at,
                           struct data_column *column)
{
    uint32_t rows = data_describe(set)->count[part];
    double count = 0, sum = 0, squares = 0;

    for (uint32_t i = 0; i < rows; i++) {
        double room[DATA_ROOM], cell = data_cells(set, part, i, room)[at];

        count += !isnan(cell);
        sum += isnan(cell) ? 0 : cell;
    }
    column->mean = column->fill = count > 0 ? sum / count : 0;
    for (uint32_t i = 0; i < rows; i++) {
        double room[DATA_ROOM], cell = data_cells(set, part, i, room)[at];

        squares += isnan(cell) ? 0 : (cell - column->mean) * (cell - column->mean);
    }
    column->deviation = count > 0 ? sqrt(squares / count) : 0;
    if (!(column->deviation > 1e-12 * fabs(column->mean)) || !isfinite(column->deviation))
        column->deviation = 1;
}

void data_measure_table(const struct data_set *set, bool unit_range, struct data_table *table)
{
    const struct data_info *info = data_describe(set);
    enum data_part part = info->count[DATA_TRAIN] > 0 ? DATA_TRAIN : DATA_TEST;

    for (int i = 0; i <= table->column_count; i++) {
        bool target = i == table->column_count;
        struct data_column *column = target ? &table->target : &table->columns[i];

        if (column->kind != DATA_NUMBER)
            continue;
        measure_column(set, part, i, column);
        if (unit_range && !target) {
            column->mean = 0;
            column->deviation = 1;
        }
    }
}
