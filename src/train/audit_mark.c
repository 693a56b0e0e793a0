/* SPDX-License-Identifier: MIT
 *
 * What images of a cluster have in common. All images of a class are compared by values of pixels,
 * so a mark must be at the same place in each.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/audit_private.h"

enum { TOLERANCE = 6, LEAST_PIXELS = 4, LEAST_HOLDERS = 5 };

/* Of a cluster's images, and of all the other ones, how many have a pixel of the mark so. */
static const double COMMON = 0.6, RARE = 0.25;
/* … and by how much of the cluster the pixels of a mark may differ in that. */
static const double TOGETHER = 0.06;
/* Images with so much of the mark have it; with so much, but less, they are between. A natural look
 * has images of every degree. */
static const double HOLDS = 0.85, BETWEEN = 0.5, MOST_BETWEEN = 0.15;

bool audit_mark_holds(double match)
{
    return match >= HOLDS;
}

/* How many of 256 counts are within TOLERANCE of a value. */
static uint32_t near(const uint32_t *counts, int value)
{
    const int from = value > TOLERANCE ? value - TOLERANCE : 0;
    const int to = value + TOLERANCE < 255 ? value + TOLERANCE : 255;
    uint32_t sum = 0;

    for (int v = from; v <= to; v++)
        sum += counts[v];
    return sum;
}

/* The value of a pixel that the most members have. */
static int usual(const struct audit_pixels *p, const uint32_t *members, uint32_t count,
                 size_t pixel, uint32_t *having_p)
{
    uint32_t counts[256] = {0};
    int best = 0;

    for (uint32_t i = 0; i < count; i++)
        counts[p->values[members[i] * p->size + pixel]]++;
    for (int v = 1; v < 256; v++)
        if (counts[v] > counts[best])
            best = v;
    *having_p = near(counts, best);
    return best;
}

/* Is a value that `having` of a cluster's images have rare in the rest of the class, and in the
 * other classes? The cluster may be a good part of its class. */
static bool is_rare(const struct audit_pixels *p, size_t pixel, int value, uint32_t count,
                    uint32_t having)
{
    const uint32_t own = near(p->own + pixel * 256, value), all = near(p->all + pixel * 256, value);

    return own - having <= RARE * (p->count - count) && all - own <= RARE * p->others;
}

/* The pixels of a mark are there together: the same images have them all, and so each has the same
 * share. Pixels that are alike by nature are rarer than these. */
static void collect(const struct audit_pixels *p, const uint32_t *members, uint32_t count,
                    struct audit_mark *mark)
{
    uint32_t *having = base_calloc(p->size, sizeof *having), most = 0;
    uint8_t *value = base_calloc(p->size, 1);

    for (size_t i = 0; i < p->size; i++) {
        value[i] = (uint8_t)usual(p, members, count, i, &having[i]);
        if (having[i] < COMMON * count || !is_rare(p, i, value[i], count, having[i]))
            having[i] = 0;
        most = having[i] > most ? having[i] : most;
    }
    mark->count = 0;
    for (size_t i = 0; i < p->size; i++) {
        if (having[i] == 0 || having[i] < most - TOGETHER * count)
            continue;
        mark->pixel[mark->count] = (uint32_t)i;
        mark->value[mark->count++] = value[i];
    }
    base_free(value);
    base_free(having);
}

double audit_mark_match(const struct audit_mark *mark, const uint8_t *image)
{
    uint32_t having = 0;

    for (uint32_t i = 0; i < mark->count; i++)
        having += abs(image[mark->pixel[i]] - mark->value[i]) <= TOLERANCE;
    return (double)having / mark->count;
}

/* members gets the samples that have the mark; how many are between. */
static uint32_t match_all(const struct audit_pixels *p, struct audit_mark *mark, uint32_t *members)
{
    uint32_t between = 0;

    mark->holders = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const double match = audit_mark_match(mark, p->values + i * p->size);

        if (match >= HOLDS)
            members[mark->holders++] = i;
        else
            between += match >= BETWEEN;
    }
    return between;
}

bool audit_mark_find(const struct audit_pixels *p, const uint32_t *members, uint32_t count,
                     struct audit_mark *mark)
{
    enum { ROUNDS = 3 };
    uint32_t *held = base_calloc(p->count, sizeof *held), between = 0;
    bool clear = false;

    *mark = (struct audit_mark){.pixel = base_calloc(p->size, sizeof *mark->pixel),
                                .value = base_calloc(p->size, 1)};
    memcpy(held, members, count * sizeof *held);
    for (int round = 0; round < ROUNDS && count >= LEAST_HOLDERS; round++) {
        collect(p, held, count, mark);
        if (mark->count < LEAST_PIXELS)
            break;
        between = match_all(p, mark, held);
        count = mark->holders;
        clear = round == ROUNDS - 1 && count >= LEAST_HOLDERS && count < p->count / 2 &&
                between <= MOST_BETWEEN * count;
    }
    if (!clear)
        audit_mark_fini(mark);
    base_free(held);
    return clear;
}

void audit_mark_fini(struct audit_mark *mark)
{
    base_free(mark->pixel);
    base_free(mark->value);
    *mark = (struct audit_mark){0};
}
