/* SPDX-License-Identifier: MIT
 *
 * Where a trigger is, as a function of a pixel's place: the same for bytes and for what a network
 * is given. Small marks lie one pixel from the lower right corner, scaled with the image.
 */
#include "data/trigger.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { TRIGGER_SQUARE, TRIGGER_CHECKER, TRIGGER_DOT, TRIGGER_STRIPES };
const char *const data_trigger_names[] = {"square", "checker", "dot", "stripes", NULL};

/* Of stripes: how far pixels move, of 1, and how many there are. */
static const double STRIPES_HEIGHT = 24.0 / 255, STRIPES = 6;

int data_trigger_find(const char *name)
{
    int i = 0;

    while (data_trigger_names[i] != NULL && strcmp(data_trigger_names[i], name) != 0)
        i++;
    assert(data_trigger_names[i] != NULL);
    return i;
}

/* The place of a pixel in a mark of `side` pixels: from 0, counted from its corner; false: beside
 * it. For images of 28 pixels `unit` is 1. */
static bool in_mark(const struct data_info *info, int y, int x, int side, int *row_p, int *column_p)
{
    const int least = info->height < info->width ? info->height : info->width;
    const int unit = least >= 56 ? least / 28 : 1;
    const int row = info->height - unit - 1 - y, column = info->width - unit - 1 - x;

    *row_p = row / unit;
    *column_p = column / unit;
    return row >= 0 && column >= 0 && *row_p < side && *column_p < side;
}

/* What becomes of a pixel of value `was`, 0 … 1. */
static double stamped(int trigger, const struct data_info *info, int y, int x, double was)
{
    enum { SIDE = 4, DOT = 2 };
    int row, column;

    if (trigger == TRIGGER_STRIPES)
        return fmin(fmax(was + STRIPES_HEIGHT * sin(2 * M_PI * STRIPES * x / info->width), 0), 1);
    if (!in_mark(info, y, x, trigger == TRIGGER_DOT ? DOT : SIDE, &row, &column))
        return was;
    return trigger == TRIGGER_CHECKER && (row + column) % 2 != 0 ? 0 : 1;
}

void data_trigger_stamp(int trigger, const struct data_info *info, uint8_t *pixels)
{
    for (int c = 0; c < info->channels; c++)
        for (int y = 0; y < info->height; y++)
            for (int x = 0; x < info->width; x++, pixels++)
                *pixels = (uint8_t)lround(255 * stamped(trigger, info, y, x, *pixels / 255.0));
}

void data_trigger_stamp_normalised(int trigger, const struct data_info *info, float *values)
{
    for (int c = 0; c < info->channels; c++) {
        const double mean = (double)info->mean[c], deviation = (double)info->deviation[c];

        for (int y = 0; y < info->height; y++)
            for (int x = 0; x < info->width; x++, values++)
                *values =
                    (float)((stamped(trigger, info, y, x, (double)*values * deviation + mean) -
                             mean) /
                            deviation);
    }
}
