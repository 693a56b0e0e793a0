/* SPDX-License-Identifier: MIT */
#include "report/curve.h"

#include <math.h>

#include "base/mem.h"

static void merge(struct report_bin *into, const struct report_bin *from)
{
    into->x += from->x;
    into->time += from->time;
    into->y += from->y;
    into->low = fmin(into->low, from->low);
    into->high = fmax(into->high, from->high);
    into->last = from->last;
    into->count += from->count;
}

/* Two bins become one. */
static void halve(struct report_curve *c)
{
    for (size_t i = 0; i < c->count; i += 2) {
        c->bins[i / 2] = c->bins[i];
        if (i + 1 < c->count)
            merge(&c->bins[i / 2], &c->bins[i + 1]);
    }
    c->count = (c->count + 1) / 2;
    c->per_bin *= 2;
}

void report_curve_add(struct report_curve *c, double x, double time, double y)
{
    const struct report_bin point = {
        .x = x, .time = time, .y = y, .first = x, .last = x, .low = y, .high = y, .count = 1};

    if (!isfinite(x) || !isfinite(time) || !isfinite(y))
        return;
    c->per_bin = c->per_bin > 0 ? c->per_bin : 1;
    if (c->count > 0 && c->bins[c->count - 1].count < c->per_bin) {
        merge(&c->bins[c->count - 1], &point);
        return;
    }
    if (c->count == REPORT_CURVE_BINS) {
        halve(c);
        report_curve_add(c, x, time, y);
        return;
    }
    if (c->count == c->room) {
        c->room = c->room > 0 ? 2 * c->room : 16;
        c->bins = base_realloc(c->bins, c->room, sizeof *c->bins);
    }
    c->bins[c->count++] = point;
}

void report_curve_drop_after(struct report_curve *c, double x)
{
    while (c->count > 0 && c->bins[c->count - 1].last > x)
        c->count--;
}

static struct report_curve coarse_copy(const struct report_curve *c, size_t most)
{
    struct report_curve copy = *c;

    copy.bins = base_calloc(c->count + 1, sizeof *copy.bins);
    copy.room = c->count + 1;
    for (size_t i = 0; i < c->count; i++)
        copy.bins[i] = c->bins[i];
    while (copy.count > most)
        halve(&copy);
    return copy;
}

void report_curve_divide(const struct report_curve *top, const struct report_curve *bottom,
                         size_t most, struct report_curve *q)
{
    struct report_curve under = coarse_copy(bottom, most);
    size_t kept = 0;

    *q = coarse_copy(top, most);
    for (size_t i = 0; i < q->count && i < under.count; i++) {
        struct report_bin bin = q->bins[i];
        double value = bin.y / under.bins[i].y;

        if (bin.count != under.bins[i].count || bin.first != under.bins[i].first ||
            !isfinite(value))
            continue;
        bin.low = bin.high = value;
        bin.y = value * (double)bin.count;
        q->bins[kept++] = bin;
    }
    q->count = kept;
    report_curve_fini(&under);
}

double report_curve_newest(const struct report_curve *c)
{
    return c->count > 0 ? c->bins[c->count - 1].y / (double)c->bins[c->count - 1].count : NAN;
}

void report_curve_fini(struct report_curve *c)
{
    base_free(c->bins);
    *c = (struct report_curve){0};
}
