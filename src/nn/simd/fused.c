/* SPDX-License-Identifier: MIT
 *
 * Batch-norm, ReLU and 2x2 max-pooling in one pass each way, and the sums that the batch-norm's
 * backward needs, over x (n,C8,S,8) or (n,C8,H,W,8). What is between the layers is computed again
 * from x or from a byte an output, never stored. The results are those of the kernels one by one,
 * to the bit, so every sum is taken in the order of batchnorm.c: one thread a block of channels,
 * runs of a plane in fp32 by two accumulators, their totals in double. A NaN passes forward, the
 * first largest wins, and no gradient goes back where y is not above 0.
 */
#include "nn/simd/simd_private.h"

enum {
    RUN = 64, /* vectors summed in fp32, as in batchnorm.c */
    DEAD = 4, /* argmax of a window without a value above 0 */
};

typedef double wide __attribute__((vector_size(8 * NN_LANES)));

NN_INLINE nn_lanes load(const float *from)
{
    return *(const nn_lanes_at *)from;
}

NN_INLINE void store(float *to, nn_lanes value)
{
    *(nn_lanes_at *)to = value;
}

NN_INLINE nn_lanes choose(nn_masks yes, nn_lanes a, nn_lanes b)
{
    return (nn_lanes)((yes & (nn_masks)a) | (~yes & (nn_masks)b));
}

NN_INLINE nn_lanes only(nn_masks where, nn_lanes value)
{
    return (nn_lanes)(where & (nn_masks)value);
}

NN_INLINE nn_lanes relu(nn_lanes value)
{
    return only(~(value < 0), value);
}

/* Two sums of one block of channels on their way from fp32 to double. */
struct sums {
    nn_lanes part[2], part_x[2]; /* of vectors at even and at odd places of a plane */
    wide total, total_x;
    int count;
};

NN_INLINE void flush(struct sums *s)
{
    s->total += __builtin_convertvector(s->part[0] + s->part[1], wide);
    s->total_x += __builtin_convertvector(s->part_x[0] + s->part_x[1], wide);
    for (int odd = 0; odd < 2; odd++)
        s->part[odd] = s->part_x[odd] = (nn_lanes){0};
    s->count = 0;
}

NN_INLINE void add(struct sums *s, int odd, nn_lanes grad, nn_lanes from_mean)
{
    s->part[odd] += grad;
    s->part_x[odd] += grad * from_mean;
}

NN_INLINE void added_two(struct sums *s)
{
    s->count += 2;
    if (s->count == RUN)
        flush(s);
}

NN_INLINE void keep(const struct sums *s, float *sum_dy, float *sum_dyx)
{
    store(sum_dy, __builtin_convertvector(s->total, nn_lanes));
    store(sum_dyx, __builtin_convertvector(s->total_x, nn_lanes));
}

/* ---- batch-norm and ReLU ---- */

/* x, y (n,C8,S,8); scale, shift (C8*8) */
void NN_LEVEL(bn_relu)(int n, int c8, int s, const float *x, const float *scale, const float *shift,
                       float *y)
{
    const size_t size = (size_t)s * 8;

#pragma omp parallel for collapse(2) schedule(static)
    for (int i = 0; i < n; i++)
        for (int block = 0; block < c8 * 8; block += NN_LANES) {
            const size_t at =
                ((size_t)i * (size_t)c8 + (size_t)block / 8) * size + (size_t)block % 8;
            const nn_lanes factor = load(scale + block), offset = load(shift + block);

            for (size_t j = at; j < at + size; j += 8)
                store(y + j, relu(load(x + j) * factor + offset));
        }
}

/* x, dy (n,C8,S,8); mean, scale, shift, sum_dy, sum_dyx (C8*8) */
void NN_LEVEL(bn_relu_sums)(int n, int c8, int s, const float *x, const float *mean,
                            const float *scale, const float *shift, const float *dy, float *sum_dy,
                            float *sum_dyx)
{
    const size_t size = (size_t)s * 8;

#pragma omp parallel for schedule(static)
    for (int block = 0; block < c8 * 8; block += NN_LANES) {
        const nn_lanes factor = load(scale + block), offset = load(shift + block);
        const nn_lanes centre = load(mean + block);
        struct sums sums = {0};

        for (int i = 0; i < n; i++) {
            const size_t at =
                ((size_t)i * (size_t)c8 + (size_t)block / 8) * size + (size_t)block % 8;

            for (size_t j = 0; j < size; j += 16) {
                for (size_t odd = 0; odd < 2 && j + odd * 8 < size; odd++) {
                    const nn_lanes value = load(x + at + j + odd * 8);
                    const nn_masks alive = value * factor + offset > 0;

                    add(&sums, (int)odd, only(alive, load(dy + at + j + odd * 8)), value - centre);
                }
                added_two(&sums);
            }
            flush(&sums);
        }
        keep(&sums, sum_dy + block, sum_dyx + block);
    }
}

/* x, dy, dx (n,C8,S,8); scale, shift, b, c (C8*8) */
void NN_LEVEL(bn_relu_backward)(int n, int c8, int s, const float *x, const float *dy,
                                const float *scale, const float *shift, const float *b,
                                const float *c, float *dx)
{
    const size_t size = (size_t)s * 8;

#pragma omp parallel for collapse(2) schedule(static)
    for (int i = 0; i < n; i++)
        for (int block = 0; block < c8 * 8; block += NN_LANES) {
            const size_t at =
                ((size_t)i * (size_t)c8 + (size_t)block / 8) * size + (size_t)block % 8;
            const nn_lanes factor = load(scale + block), offset = load(shift + block);
            const nn_lanes vb = load(b + block), vc = load(c + block);

            for (size_t j = at; j < at + size; j += 8) {
                const nn_lanes value = load(x + j);
                const nn_lanes grad = only(value * factor + offset > 0, load(dy + j));

                store(dx + j, factor * grad + (vb * value + vc));
            }
        }
}

/* ---- and max-pooling ---- */

/* Offset of window (row, column), the first of its four vectors, in a plane of width w. */
NN_INLINE size_t window(int row, int column, int w)
{
    return (2 * (size_t)row * (size_t)w + 2 * (size_t)column) * 8;
}

/* Offset of vector k of a window from its first. */
NN_INLINE size_t corner(int k, int w)
{
    return ((size_t)(k / 2) * (size_t)w + (size_t)(k % 2)) * 8;
}

/* Offset of a row of outputs. */
NN_INLINE size_t pooled(int row, int w)
{
    return (size_t)row * (size_t)(w / 2) * 8;
}

/* The larger of two with where it is; a NaN beats everything. */
struct best {
    nn_lanes value;
    nn_masks where;
};

NN_INLINE struct best larger(struct best a, struct best b)
{
    const nn_masks wins = (b.value > a.value) | (b.value != b.value);

    return (struct best){choose(wins, b.value, a.value), (wins & b.where) | (~wins & a.where)};
}

/* One window; ReLU commutes with the maximum. */
NN_INLINE void pool(const nn_lanes value[4], float *y, uint8_t *argmax)
{
    const struct best top =
        larger((struct best){value[0], (nn_masks){0}}, (struct best){value[1], (nn_masks){0} + 1});
    const struct best bottom = larger((struct best){value[2], (nn_masks){0} + 2},
                                      (struct best){value[3], (nn_masks){0} + 3});
    const struct best best = larger(top, bottom);
    const nn_masks alive = best.value > 0;

    store(y, relu(best.value));
    *(nn_bytes_at *)argmax =
        __builtin_convertvector((alive & best.where) | (~alive & DEAD), nn_bytes);
}

NN_INLINE nn_masks where_of(const uint8_t *argmax)
{
    return __builtin_convertvector(*(const nn_bytes_at *)argmax, nn_masks);
}

/* x (n,C8,H,W,8) -> y, argmax (n,C8,H/2,W/2,8); scale, shift (C8*8) */
void NN_LEVEL(bn_relu_pool)(int n, int c8, int h, int w, const float *x, const float *scale,
                            const float *shift, float *y, uint8_t *argmax)
{
    const size_t size = (size_t)h * (size_t)w * 8;

#pragma omp parallel for collapse(2) schedule(static)
    for (int i = 0; i < n; i++)
        for (int block = 0; block < c8 * 8; block += NN_LANES) {
            const size_t plane = (size_t)i * (size_t)c8 + (size_t)block / 8;
            const nn_lanes factor = load(scale + block), offset = load(shift + block);
            size_t to = plane * (size / 4) + (size_t)block % 8;

            for (int row = 0; row < h / 2; row++)
                for (int column = 0; column < w / 2; column++, to += 8) {
                    const float *from =
                        x + plane * size + window(row, column, w) + (size_t)block % 8;
                    nn_lanes value[4];

                    for (int k = 0; k < 4; k++)
                        value[k] = load(from + corner(k, w)) * factor + offset;
                    pool(value, y + to, argmax + to);
                }
        }
}

/* x (n,C8,H,W,8); dy, argmax (n,C8,H/2,W/2,8); mean, sum_dy, sum_dyx (C8*8) */
void NN_LEVEL(bn_relu_pool_sums)(int n, int c8, int h, int w, const float *x, const float *mean,
                                 const float *dy, const uint8_t *argmax, float *sum_dy,
                                 float *sum_dyx)
{
    const size_t size = (size_t)h * (size_t)w * 8;

#pragma omp parallel for schedule(static)
    for (int block = 0; block < c8 * 8; block += NN_LANES) {
        const nn_lanes centre = load(mean + block);
        struct sums sums = {0};

        for (int i = 0; i < n; i++) {
            const size_t plane = (size_t)i * (size_t)c8 + (size_t)block / 8;
            const float *from = x + plane * size + (size_t)block % 8;

            for (int row = 0; row < h; row++) {
                const size_t at = plane * (size / 4) + pooled(row / 2, w) + (size_t)block % 8;

                for (size_t j = at; j < at + pooled(1, w); j += 8, from += 16) {
                    const nn_masks where = where_of(argmax + j);
                    const nn_lanes grad = load(dy + j);

                    for (int odd = 0; odd < 2; odd++)
                        add(&sums, odd, only(where == row % 2 * 2 + odd, grad),
                            load(from + odd * 8) - centre);
                    added_two(&sums);
                }
            }
            flush(&sums);
        }
        keep(&sums, sum_dy + block, sum_dyx + block);
    }
}

/* x, dx (n,C8,H,W,8); dy, argmax (n,C8,H/2,W/2,8); scale, b, c (C8*8) */
void NN_LEVEL(bn_relu_pool_backward)(int n, int c8, int h, int w, const float *x, const float *dy,
                                     const uint8_t *argmax, const float *scale, const float *b,
                                     const float *c, float *dx)
{
    const size_t size = (size_t)h * (size_t)w * 8;

#pragma omp parallel for collapse(2) schedule(static)
    for (int i = 0; i < n; i++)
        for (int block = 0; block < c8 * 8; block += NN_LANES) {
            const size_t plane = (size_t)i * (size_t)c8 + (size_t)block / 8;
            const nn_lanes va = load(scale + block), vb = load(b + block), vc = load(c + block);
            size_t from = plane * (size / 4) + (size_t)block % 8;

            for (int row = 0; row < h / 2; row++)
                for (int column = 0; column < w / 2; column++, from += 8) {
                    const size_t at = plane * size + window(row, column, w) + (size_t)block % 8;
                    const nn_masks where = where_of(argmax + from);
                    const nn_lanes grad = load(dy + from);

                    for (int k = 0; k < 4; k++)
                        store(dx + at + corner(k, w), va * only(where == k, grad) +
                                                          (vb * load(x + at + corner(k, w)) + vc));
                }
        }
}

/* x (planes,H,W,8) -> y, argmax (planes,H/2,W/2,8) */
void NN_LEVEL(relu_pool)(size_t planes, int h, int w, const float *x, float *y, uint8_t *argmax)
{
    const size_t size = (size_t)h * (size_t)w * 8;

#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < planes; p++)
        for (size_t lane = 0; lane < 8; lane += NN_LANES) {
            size_t to = p * (size / 4) + lane;

            for (int row = 0; row < h / 2; row++)
                for (int column = 0; column < w / 2; column++, to += 8) {
                    const float *from = x + p * size + window(row, column, w) + lane;
                    nn_lanes value[4];

                    for (int k = 0; k < 4; k++)
                        value[k] = load(from + corner(k, w));
                    pool(value, y + to, argmax + to);
                }
        }
}

/* dy, argmax (planes,H/2,W/2,8) -> dx (planes,H,W,8) */
void NN_LEVEL(relu_pool_backward)(size_t planes, int h, int w, const float *dy,
                                  const uint8_t *argmax, float *dx)
{
    const size_t size = (size_t)h * (size_t)w * 8;

#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < planes; p++)
        for (size_t lane = 0; lane < 8; lane += NN_LANES) {
            size_t from = p * (size / 4) + lane;

            for (int row = 0; row < h / 2; row++)
                for (int column = 0; column < w / 2; column++, from += 8) {
                    float *to = dx + p * size + window(row, column, w) + lane;
                    const nn_masks where = where_of(argmax + from);
                    const nn_lanes grad = load(dy + from);

                    for (int k = 0; k < 4; k++)
                        store(to + corner(k, w), only(where == k, grad));
                }
        }
}
