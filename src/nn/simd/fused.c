/* SPDX-License-Identifier: MIT
 *
 * Batch-norm, ReLU and 2x2 max-pooling in one pass each way, and the sums that the batch-norm's
 * backward needs, over x (n,C8,S,8) or (n,C8,H,W,8). What is between the layers is computed again
 * from x or from a byte an output, never stored. The results are those of the kernels one by one,
 * to the bit: sums are taken in the same order (sums.h), a NaN passes forward, the first largest
 * wins, and no gradient goes back where y is not above 0.
 */
#include "nn/simd/sums.h"

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

/* Where lanes `block` … of sample i begin, with planes of `size` floats. */
NN_INLINE size_t place(int c8, size_t size, int i, int block)
{
    return ((size_t)i * (size_t)c8 + (size_t)block / 8) * size + (size_t)block % 8;
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
            const size_t at = place(c8, size, i, block);
            const nn_lanes factor = nn_lanes_load(scale + block);
            const nn_lanes offset = nn_lanes_load(shift + block);

            for (size_t j = at; j < at + size; j += 8)
                nn_lanes_store(y + j, relu(nn_lanes_load(x + j) * factor + offset));
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
        const nn_lanes factor = nn_lanes_load(scale + block);
        const nn_lanes offset = nn_lanes_load(shift + block);
        const nn_lanes centre = nn_lanes_load(mean + block);
        struct nn_sums sums = {0};

        for (int i = 0; i < n; i++) {
            const size_t at = place(c8, size, i, block);

            for (size_t j = 0; j < size; j += 16) {
                for (size_t odd = 0; odd < 2 && j + odd * 8 < size; odd++) {
                    const nn_lanes value = nn_lanes_load(x + at + j + odd * 8);
                    const nn_masks alive = value * factor + offset > 0;

                    nn_sums_add(&sums, (int)odd, only(alive, nn_lanes_load(dy + at + j + odd * 8)),
                                value - centre);
                }
                nn_sums_added(&sums);
            }
            nn_sums_flush(&sums);
        }
        nn_sums_store(sums.total, sum_dy + block);
        nn_sums_store(sums.total_2, sum_dyx + block);
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
            const size_t at = place(c8, size, i, block);
            const nn_lanes factor = nn_lanes_load(scale + block);
            const nn_lanes offset = nn_lanes_load(shift + block);
            const nn_lanes vb = nn_lanes_load(b + block), vc = nn_lanes_load(c + block);

            for (size_t j = at; j < at + size; j += 8) {
                const nn_lanes value = nn_lanes_load(x + j);
                const nn_lanes grad = only(value * factor + offset > 0, nn_lanes_load(dy + j));

                nn_lanes_store(dx + j, factor * grad + (vb * value + vc));
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

/* The window below, two lines of memory: the hardware does not see that two rows at once are a
 * stream. After the last row it is the next plane, at the very end memory that belongs to no
 * tensor, which a prefetch may name. */
NN_INLINE void prefetch_below(const float *window, int w)
{
    const uintptr_t row = (size_t)w * 8 * sizeof *window;

    __builtin_prefetch((const void *)((uintptr_t)window + 2 * row));
    __builtin_prefetch((const void *)((uintptr_t)window + 3 * row));
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

    nn_lanes_store(y, relu(best.value));
    nn_bytes_store(argmax, (alive & best.where) | (~alive & NN_POOL_DEAD));
}

/* x (n,C8,H,W,8) -> y, argmax (n,C8,H/2,W/2,8); scale, shift (C8*8) */
void NN_LEVEL(bn_relu_pool)(int n, int c8, int h, int w, const float *x, const float *scale,
                            const float *shift, float *y, uint8_t *argmax)
{
    const size_t size = (size_t)h * (size_t)w * 8;

#pragma omp parallel for collapse(2) schedule(static)
    for (int i = 0; i < n; i++)
        for (int block = 0; block < c8 * 8; block += NN_LANES) {
            const nn_lanes factor = nn_lanes_load(scale + block);
            const nn_lanes offset = nn_lanes_load(shift + block);
            size_t to = place(c8, size / 4, i, block);

            for (int row = 0; row < h / 2; row++)
                for (int column = 0; column < w / 2; column++, to += 8) {
                    const float *from = x + place(c8, size, i, block) + window(row, column, w);
                    nn_lanes value[4];

                    prefetch_below(from, w);
                    for (int k = 0; k < 4; k++)
                        value[k] = nn_lanes_load(from + corner(k, w)) * factor + offset;
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
        const nn_lanes centre = nn_lanes_load(mean + block);
        struct nn_sums sums = {0};

        for (int i = 0; i < n; i++) {
            const float *from = x + place(c8, size, i, block);

            for (int row = 0; row < h; row++) {
                const size_t at = place(c8, size / 4, i, block) + pooled(row / 2, w);

                for (size_t j = at; j < at + pooled(1, w); j += 8, from += 16) {
                    const nn_masks where = nn_bytes_load(argmax + j);
                    const nn_lanes grad = nn_lanes_load(dy + j);

                    for (int odd = 0; odd < 2; odd++)
                        nn_sums_add(&sums, odd, only(where == row % 2 * 2 + odd, grad),
                                    nn_lanes_load(from + odd * 8) - centre);
                    nn_sums_added(&sums);
                }
            }
            nn_sums_flush(&sums);
        }
        nn_sums_store(sums.total, sum_dy + block);
        nn_sums_store(sums.total_2, sum_dyx + block);
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
            const nn_lanes va = nn_lanes_load(scale + block), vb = nn_lanes_load(b + block),
                           vc = nn_lanes_load(c + block);
            size_t at = place(c8, size, i, block);

            for (int row = 0; row < h; row++) {
                const size_t from = place(c8, size / 4, i, block) + pooled(row / 2, w);

                for (size_t j = from; j < from + pooled(1, w); j += 8)
                    for (int odd = 0; odd < 2; odd++, at += 8) {
                        const nn_lanes grad = only(nn_bytes_load(argmax + j) == row % 2 * 2 + odd,
                                                   nn_lanes_load(dy + j));

                        nn_lanes_store(dx + at, va * grad + (vb * nn_lanes_load(x + at) + vc));
                    }
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

                    prefetch_below(from, w);
                    for (int k = 0; k < 4; k++)
                        value[k] = nn_lanes_load(from + corner(k, w));
                    pool(value, y + to, argmax + to);
                }
        }
}

/* dy, argmax (planes,H/2,W/2,8) -> dx (planes,H,W,8) */
void NN_LEVEL(relu_pool_backward)(size_t planes, int h, int w, float scale, const float *dy,
                                  const uint8_t *argmax, float *dx)
{
    const size_t size = (size_t)h * (size_t)w * 8;

#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < planes; p++)
        for (size_t lane = 0; lane < 8; lane += NN_LANES) {
            float *to = dx + p * size + lane;

            for (int row = 0; row < h; row++) {
                const size_t from = p * (size / 4) + pooled(row / 2, w) + lane;

                for (size_t j = from; j < from + pooled(1, w); j += 8)
                    for (int odd = 0; odd < 2; odd++, to += 8)
                        nn_lanes_store(to, only(nn_bytes_load(argmax + j) == row % 2 * 2 + odd,
                                                scale * nn_lanes_load(dy + j)));
            }
        }
}
