/* SPDX-License-Identifier: MIT */
#include "report/axis.h"

#include <math.h>
#include <stdio.h>

/* Sums, differences and quotients of values between these stay what they are. */
static const double LARGEST = 1e300, SMALLEST = 1e-290;
static const double ROUND[] = {1, 2, 5, 10};

/* The smallest of 1, 2 and 5 times a power of ten that is not below `value`, which is positive. */
static double round_up(double value)
{
    double power = pow(10, floor(log10(value)));
    int i = 0;

    while (i < 3 && ROUND[i] * power < value * (1 - 1e-9))
        i++;
    return ROUND[i] * power;
}

/* The largest that is not above it. */
static double round_down(double value)
{
    double power = pow(10, floor(log10(value)));
    int i = 2;

    while (i > 0 && ROUND[i] * power > value * (1 + 1e-9))
        i--;
    return ROUND[i] * power;
}

static void fit_linear(int wanted, bool whole, struct report_axis *a)
{
    double largest = fmax(fabs(a->low), fabs(a->high)), first;

    /* Differences that a double hardly knows are none. */
    if (a->high - a->low <= largest * 1e-9) {
        double room = largest > 0 ? largest / 10 : 1;

        a->low -= a->low == 0 ? 0 : room;
        a->high += room;
    }
    a->step = round_up((a->high - a->low) / wanted);
    if (whole)
        a->step = fmax(1, a->step);
    while ((ceil(a->high / a->step) - floor(a->low / a->step)) >= REPORT_MAX_TICKS)
        a->step = round_up(1.5 * a->step);
    first = floor(a->low / a->step + 1e-9);
    a->count = (int)fmax(1, ceil(a->high / a->step - 1e-9) - first) + 1;
    for (int i = 0; i < a->count; i++)
        a->at[i] = (first + i) * a->step + 0.0; /* a sum, so that there is no -0 */
    a->low = a->at[0];
    a->high = a->at[a->count - 1];
}

/* Ticks at 1, 2 and 5 times powers of ten, or where these are many at every so many-th power. */
static void fit_log(int wanted, struct report_axis *a)
{
    double decades, first;

    a->low = round_down(a->low);
    a->high = round_up(a->high);
    if (a->low == a->high)
        a->high = round_up(1.5 * a->high);
    decades = log10(a->high) - log10(a->low);
    a->step = fmax(1, ceil(decades / wanted));
    if (3 * decades <= wanted + 2) {
        a->at[a->count++] = a->low;
        while (a->at[a->count - 1] < a->high * (1 - 1e-9)) {
            a->at[a->count] = round_up(1.1 * a->at[a->count - 1]);
            a->count++;
        }
        return;
    }
    first = ceil(log10(a->low) - 1e-9);
    a->count = 1 + (int)floor((log10(a->high) - first + 1e-9) / a->step);
    for (int i = 0; i < a->count; i++)
        a->at[i] = pow(10, first + i * a->step);
}

static double within(double value)
{
    return fabs(value) < SMALLEST ? 0 : fmax(-LARGEST, fmin(value, LARGEST));
}

void report_axis_fit(double low, double high, enum report_scale scale, int wanted,
                     struct report_axis *axis_p)
{
    double least = within(fmin(low, high)), most = within(fmax(low, high));

    if (wanted > REPORT_MAX_TICKS / 2)
        wanted = REPORT_MAX_TICKS / 2;
    *axis_p =
        (struct report_axis){.log = scale == REPORT_LOG && least > 0, .low = least, .high = most};
    if (axis_p->log)
        fit_log(wanted, axis_p);
    else
        fit_linear(wanted, scale == REPORT_WHOLE, axis_p);
}

void report_axis_end(struct report_axis *axis, double high)
{
    axis->high = high;
    while (axis->count > 1 && axis->at[axis->count - 1] > high * (1 + 1e-12))
        axis->count--;
}

double report_axis_place(const struct report_axis *axis, double value)
{
    if (axis->log) /* what is not positive is below everything */
        return value > 0 ? (log(value) - log(axis->low)) / (log(axis->high) - log(axis->low)) : 0;
    return (value - axis->low) / (axis->high - axis->low);
}

void report_axis_text(const struct report_axis *axis, double value, char text[REPORT_TICK_TEXT])
{
    static const char *const prefixes[] = {"", " k", " M", " G", " T"};
    /* All ticks of a linear axis have the unit of the largest. */
    double largest = axis->log ? fabs(value) : fmax(fabs(axis->low), fabs(axis->high));
    double unit = 1;
    int prefix = 0, digits;

    while (prefix < 4 && largest / unit >= 1e4) {
        unit *= 1000;
        prefix++;
    }
    if (axis->log || largest / unit >= 1e4 || largest < 1e-3) {
        digits = axis->log ? 4 : 2 + (int)fmin(13, fmax(1, log10(largest / axis->step)));
        snprintf(text, REPORT_TICK_TEXT, "%.*g%s", digits, value / unit,
                 value == 0 ? "" : prefixes[prefix]);
        return;
    }
    digits = (int)fmin(15, fmax(0, -floor(log10(axis->step / unit) + 1e-9)));
    snprintf(text, REPORT_TICK_TEXT, "%.*f%s", digits, value / unit,
             value == 0 ? "" : prefixes[prefix]);
}
