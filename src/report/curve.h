/* SPDX-License-Identifier: MIT
 *
 * A curve of any number of points in memory of fixed size: neighbours share a bin once there are
 * more points than bins, and a bin keeps the mean, the lowest and the highest of its points. Points
 * come in the order of x, but the newest may be taken back.
 */
#ifndef REPORT_CURVE_H
#define REPORT_CURVE_H

#include <stddef.h>

enum { REPORT_CURVE_BINS = 512 };

struct report_bin {
    double x, time, y;  /* sums */
    double first, last; /* x of its first and of its newest point */
    double low, high;   /* of y */
    size_t count;
};

struct report_curve { /* init by = {0} */
    struct report_bin *bins;
    size_t count, room;
    size_t per_bin; /* points of every bin but the last; 0: no point was added yet */
};

/* Values that are not finite are left out. */
void report_curve_add(struct report_curve *curve, double x, double time, double y);
/* Points after x never were: bins that end after it go, and with them points up to x that share a
 * bin with one after it. The gap is smaller than a bin. */
void report_curve_drop_after(struct report_curve *curve, double x);
/* top / bottom in at most `most` bins, where both have the same points: a rate is a mean over time.
 */
void report_curve_divide(const struct report_curve *top, const struct report_curve *bottom,
                         size_t most, struct report_curve *quotient_p);
/* The mean of the newest bin; NAN: there is none. */
double report_curve_newest(const struct report_curve *curve);
void report_curve_fini(struct report_curve *curve);

#endif
