/* SPDX-License-Identifier: MIT
 *
 * The largest values alone (Lin et al. 2018), the rest stays in the residual. A message:
 *
 *   le32  number of values that are sent, n
 *   u8    Rice parameter r of the distances
 *   bf16  2^(bits - 1) magnitudes, the levels, little-endian
 *   bits  for each value, lowest bit first: its distance from the one before, as distance >> r
 *         zeros, a one, and r low bits; its level; its sign. Zeros fill the last byte.
 *
 * The levels divide the magnitudes that are sent into bins of equal ratio, and are the means of
 * these bins: most values are little above the smallest one, and few are large. Of equal magnitudes
 * at the edge the first are sent.
 */
#include <math.h>
#include <string.h>

#include "base/cursor.h"
#include "coll/kernels.h"
#include "train/wire.h"

enum { MOST_BITS = 8, MOST_LEVELS = 1 << (MOST_BITS - 1), MOST_RICE = 31 };

struct options {
    double share;
    int64_t bits;
};

static uint32_t magnitude(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits & 0x7fffffff;
}

static float of_magnitude(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static int level_count(const struct options *o)
{
    return 1 << (o->bits - 1);
}

static size_t most_values(const struct options *o, size_t count)
{
    size_t most = (size_t)ceil(o->share * (double)count);

    return most < count ? most : count;
}

/* ---- which values ---- */

/* The bits of the wanted-th largest magnitude, digit by digit from the highest: a histogram of the
 * values that agree in all digits before. *ties_p: how many of that very magnitude are wanted.
 * Zeros are no values: the magnitude is at least 1. */
static uint32_t topk_edge(const float *v, size_t count, size_t wanted, size_t *ties_p)
{
    static const int SHIFT[] = {20, 10, 0}, WIDTH[] = {11, 10, 10};
    uint32_t edge = 0;

    for (int digit = 0; digit < 3; digit++) {
        uint32_t histogram[1 << 11] = {0}, mask = (1u << WIDTH[digit]) - 1;
        int before = SHIFT[digit] + WIDTH[digit];
        uint32_t value = mask;

        for (size_t i = 0; i < count; i++) {
            uint32_t bits = magnitude(v[i]);

            if (bits >> before == edge >> before)
                histogram[bits >> SHIFT[digit] & mask]++;
        }
        for (; value > 0 && histogram[value] < wanted; value--)
            wanted -= histogram[value];
        edge |= value << SHIFT[digit];
    }
    *ties_p = wanted;
    return edge > 0 ? edge : 1;
}

struct choice {
    uint32_t edge;  /* magnitudes from here on are sent … */
    size_t ties;    /* … of this very one so many */
    size_t sent;    /* all together */
    uint32_t least; /* of them */
    uint32_t most;
};

/* Is it sent? Ask for one value after the other; `ties` counts down. */
static bool topk_takes(const struct choice *choice, uint32_t bits, size_t *ties)
{
    if (bits != choice->edge)
        return bits > choice->edge;
    return *ties > 0 && (*ties)--;
}

static struct choice topk_choose(const float *v, size_t count, size_t wanted)
{
    struct choice choice = {.least = UINT32_MAX};
    size_t ties;

    if (wanted == 0)
        return choice;
    choice.edge = topk_edge(v, count, wanted, &choice.ties);
    ties = choice.ties;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = magnitude(v[i]);

        if (!topk_takes(&choice, bits, &ties))
            continue;
        choice.sent++;
        choice.least = bits < choice.least ? bits : choice.least;
        choice.most = bits > choice.most ? bits : choice.most;
    }
    return choice;
}

/* ---- levels ---- */

struct levels {
    int count;
    float bound[MOST_LEVELS]; /* a value of a bin is below its bound; the last one has none */
    float value[MOST_LEVELS];
};

static int topk_bin(const struct levels *levels, float size)
{
    int low = 0, high = levels->count - 1;

    while (low < high) {
        int middle = (low + high) / 2;

        if (size < levels->bound[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void topk_make_levels(const struct choice *choice, const float *v, size_t count,
                             struct levels *levels)
{
    double sum[MOST_LEVELS] = {0}, least = of_magnitude(choice->least);
    double ratio = pow(of_magnitude(choice->most) / least, 1.0 / levels->count);
    size_t members[MOST_LEVELS] = {0}, ties = choice->ties;

    for (int i = 0; i < levels->count; i++)
        levels->bound[i] = (float)(least * pow(ratio, i + 1));
    for (size_t i = 0; i < count; i++) {
        int bin;

        if (!topk_takes(choice, magnitude(v[i]), &ties))
            continue;
        bin = topk_bin(levels, fabsf(v[i]));
        sum[bin] += fabsf(v[i]);
        members[bin]++;
    }
    for (int i = 0; i < levels->count; i++)
        levels->value[i] = members[i] > 0 ? (float)(sum[i] / (double)members[i]) : 0;
}

/* ---- bits ---- */

struct writer {
    uint8_t *at;
    uint64_t bits;
    int count; /* bits that wait, below 8 between calls */
};

static void topk_put(struct writer *w, uint32_t value, int bits)
{
    w->bits |= (uint64_t)value << w->count;
    for (w->count += bits; w->count >= 8; w->count -= 8) {
        *w->at++ = (uint8_t)w->bits;
        w->bits >>= 8;
    }
}

static void topk_put_distance(struct writer *w, size_t distance, int rice)
{
    for (size_t zeros = distance >> rice; zeros > 0;) {
        int some = zeros < 32 ? (int)zeros : 32;

        topk_put(w, 0, some);
        zeros -= (size_t)some;
    }
    topk_put(w, 1, 1);
    topk_put(w, (uint32_t)(distance & (((size_t)1 << rice) - 1)), rice);
}

struct reader {
    struct base_cursor in;
    uint8_t byte;
    int left; /* bits of it that have not been read */
};

static base_status topk_get(struct reader *r, int bits, uint32_t *value_p)
{
    base_status st = BASE_OK;

    *value_p = 0;
    for (int got = 0; got < bits;) {
        int some;

        if (r->left == 0) {
            TRY(base_cursor_u8(&r->in, &r->byte));
            r->left = 8;
        }
        some = bits - got < r->left ? bits - got : r->left;
        *value_p |= (uint32_t)(r->byte & ((1 << some) - 1)) << got;
        r->byte = (uint8_t)(r->byte >> some);
        r->left -= some;
        got += some;
    }
out:
    return st;
}

static base_status topk_get_distance(struct reader *r, int rice, size_t *distance_p)
{
    base_status st = BASE_OK;
    size_t zeros = 0;
    uint32_t bit = 0, low;

    for (;; zeros++) {
        TRY(topk_get(r, 1, &bit));
        if (bit == 1)
            break;
    }
    TRY(topk_get(r, rice, &low));
    *distance_p = zeros << rice | low;
out:
    return st;
}

/* ---- messages ---- */

/* The parameter that suits distances of this mean: ln 2 of it is their median, about. */
static int topk_rice(size_t sent, size_t count)
{
    int rice = 0;

    while (sent > 0 && rice < MOST_RICE &&
           0.69 * (double)count / (double)sent >= (double)(2ull << rice))
        rice++;
    return rice;
}

static size_t topk_head(const struct options *o)
{
    return sizeof(uint32_t) + 1 + (size_t)level_count(o) * sizeof(uint16_t);
}

/* 2^rice is above 0.34 of the mean distance, so the zeros of all distances are at most three for
 * each value. Fewer values than the most have a larger parameter, but need fewer bits together;
 * near a share of one they would need more, by less than two bits for each value of the most. */
static size_t topk_bound(const void *options, size_t count)
{
    const struct options *o = options;
    size_t most = most_values(o, count);
    size_t each = 3 + 1 + (size_t)topk_rice(most, count) + 2 + (size_t)o->bits;

    return topk_head(o) + (most * each + 7) / 8 + 1;
}

/* Writes the values that were chosen and takes them off v. */
static uint8_t *topk_write(const struct options *o, const struct choice *choice,
                           const struct levels *levels, int rice, float *v, size_t count,
                           uint8_t *bytes)
{
    struct writer w = {.at = bytes};
    size_t next = 0, ties = choice->ties;

    for (size_t i = 0; i < count; i++) {
        int bin;

        if (!topk_takes(choice, magnitude(v[i]), &ties))
            continue;
        bin = topk_bin(levels, fabsf(v[i]));
        topk_put_distance(&w, i - next, rice);
        topk_put(&w, (uint32_t)bin, (int)o->bits - 1);
        topk_put(&w, signbit(v[i]) != 0, 1);
        v[i] -= copysignf(levels->value[bin], v[i]);
        next = i + 1;
    }
    topk_put(&w, 0, 7); /* fills the last byte */
    return w.at;
}

static size_t topk_encode(const void *options, const float *x, float *residual, size_t count,
                          uint8_t *bytes)
{
    const struct options *o = options;
    struct choice choice;
    struct levels levels = {.count = level_count(o)};
    uint16_t packed[MOST_LEVELS];
    uint32_t sent;
    int rice;

    for (size_t i = 0; i < count; i++)
        residual[i] += x[i];
    choice = topk_choose(residual, count, most_values(o, count));
    if (choice.sent > 0)
        topk_make_levels(&choice, residual, count, &levels);
    coll_kernels()->pack((size_t)levels.count, levels.value, packed);
    coll_kernels()->unpack((size_t)levels.count, packed, levels.value);
    rice = topk_rice(choice.sent, count);
    sent = (uint32_t)choice.sent;
    memcpy(bytes, &sent, sizeof sent);
    bytes[sizeof sent] = (uint8_t)rice;
    memcpy(bytes + sizeof sent + 1, packed, (size_t)levels.count * sizeof *packed);
    return (size_t)(topk_write(o, &choice, &levels, rice, residual, count, bytes + topk_head(o)) -
                    bytes);
}

static base_status topk_read_levels(struct base_cursor *in, struct levels *levels)
{
    base_status st = BASE_OK;

    for (int i = 0; i < levels->count; i++) {
        uint16_t packed;

        TRY(base_cursor_le16(in, &packed));
        coll_kernels()->unpack(1, &packed, &levels->value[i]);
        if (signbit(levels->value[i]) || !isfinite(levels->value[i]))
            TRY(base_fail(BASE_ERR_DATA, "a level is %g", (double)levels->value[i]));
    }
out:
    return st;
}

static base_status topk_read_value(const struct options *o, const struct levels *levels,
                                   struct reader *r, int rice, size_t *next, float *y, size_t count)
{
    base_status st = BASE_OK;
    size_t distance = 0;
    uint32_t level = 0, sign = 0;

    TRY(topk_get_distance(r, rice, &distance));
    TRY(topk_get(r, (int)o->bits - 1, &level));
    TRY(topk_get(r, 1, &sign));
    if (distance >= count - *next)
        TRY(base_fail(BASE_ERR_DATA, "a value after the last of %zu", count));
    y[*next + distance] = sign ? -levels->value[level] : levels->value[level];
    *next += distance + 1;
out:
    return st;
}

static base_status topk_decode(const void *options, const uint8_t *bytes, size_t length, float *y,
                               size_t count)
{
    base_status st = BASE_OK;
    const struct options *o = options;
    struct levels levels = {.count = level_count(o)};
    struct reader r = {.in = base_cursor_of(bytes, length)};
    size_t next = 0;
    uint32_t sent;
    uint8_t rice;

    TRY(base_cursor_le32(&r.in, &sent));
    TRY(base_cursor_u8(&r.in, &rice));
    if (sent > most_values(o, count) || rice > MOST_RICE)
        TRY(base_fail(BASE_ERR_DATA, "%u of %zu values with parameter %d", sent, count, rice));
    TRY(topk_read_levels(&r.in, &levels));
    memset(y, 0, count * sizeof *y);
    for (uint32_t i = 0; i < sent; i++)
        TRY(topk_read_value(o, &levels, &r, rice, &next, y, count));
    if (base_cursor_left(&r.in) > 0 || r.byte != 0)
        TRY(base_fail(BASE_ERR_DATA, "bytes after the last value"));
out:
    return st;
}

#define AT(field) offsetof(struct options, field)

/* clang-format off */
static const struct base_option table[] = {
    {.name = "share", .argument = "X", .kind = BASE_REAL, .offset = AT(share), .min = 1e-6, .max = 1,
     .help = "of the values that are sent"},
    {.name = "bits", .argument = "N", .kind = BASE_INT, .offset = AT(bits), .min = 2,
     .max = MOST_BITS, .help = "of a value"},
    {0},
};
/* clang-format on */

const struct train_wire train_wire_topk = {
    .name = "topk",
    .help = "the largest values alone, about bits + 2 + log2(1/share) bits each",
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.share = 0.01, .bits = 4},
    .examples =
        (const char *const[]){"", "share=0.1/bits=2", "share=1/bits=8", "share=0.001", NULL},
    .bound = topk_bound,
    .encode = topk_encode,
    .decode = topk_decode,
};
