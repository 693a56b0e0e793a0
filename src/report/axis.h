/* SPDX-License-Identifier: MIT
 *
 * The scale of a picture's axis: round limits around the values, ticks at round numbers, their
 * texts.
 */
#ifndef REPORT_AXIS_H
#define REPORT_AXIS_H

#include <stdbool.h>
#include <stddef.h>

enum { REPORT_MAX_TICKS = 16, REPORT_TICK_TEXT = 32 };

struct report_axis {
    bool log;
    double low, high; /* the first tick or lower, the last tick or higher; never equal */
    double step;      /* between ticks; of a linear axis */
    double at[REPORT_MAX_TICKS];
    int count;
};

/* LOG needs positive values; others make the axis linear. WHOLE: values are whole numbers, and so
 * are the ticks. */
enum report_scale { REPORT_LINEAR, REPORT_WHOLE, REPORT_LOG };

/* Around low … high, in either order, with `wanted` ticks or a few more or less. Values must be
 * finite. */
void report_axis_fit(double low, double high, enum report_scale scale, int wanted,
                     struct report_axis *axis_p);

/* The axis ends at `high`, which is above its first tick, and ticks after it go. */
void report_axis_end(struct report_axis *axis, double high);

/* Where a value is on the axis, 0 … 1 between the limits. */
double report_axis_place(const struct report_axis *axis, double value);

/* "0.25", "40", "1.5 M": with as many digits as tell neighbouring ticks apart. */
void report_axis_text(const struct report_axis *axis, double value, char text[REPORT_TICK_TEXT]);

#endif
