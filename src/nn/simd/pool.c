/* SPDX-License-Identifier: MIT
 *
 * Pooling over x (n,C8,H,W,8) to y (n,C8,HO,WO,8). A window is clipped to the image, so padding
 * costs nothing and never wins. Parallel over the (n,C8) planes, which share nothing.
 */
#include <string.h>

#include "nn/simd/simd_private.h"

/* One axis of a window: rows (or columns) from `begin` to `end` of the image; `skip` of the
 * window lie before the image. */
struct span {
    int begin, end, skip;
};

NN_INLINE struct span span_of(int out, int kernel, int stride, int pad, int size)
{
    const int start = out * stride - pad;
    const int end = start + kernel < size ? start + kernel : size;

    return start < 0 ? (struct span){0, end, -start} : (struct span){start, end, 0};
}

NN_INLINE struct span row_of(const struct nn_pool_shape *s, int out)
{
    return span_of(out, s->kernel[0], s->stride[0], s->pad[0], s->h);
}

NN_INLINE struct span column_of(const struct nn_pool_shape *s, int out)
{
    return span_of(out, s->kernel[1], s->stride[1], s->pad[1], s->w);
}

/* Offset of vector (row, column) in a plane of the given width. */
NN_INLINE size_t at(int row, int column, int width)
{
    return ((size_t)row * (size_t)width + (size_t)column) * 8;
}

static size_t plane_in(const struct nn_pool_shape *s)
{
    return at(s->h, 0, s->w);
}

static size_t plane_out(const struct nn_pool_shape *s)
{
    return at(s->ho, 0, s->wo);
}

/* PyTorch's rule: the first largest wins, and a NaN beats everything. */
NN_INLINE void max_lanes(const struct nn_pool_shape *s, struct span r, struct span c,
                         const float *x, float *y, uint8_t *argmax)
{
    const int first = r.skip * s->kernel[1] + c.skip;
    nn_masks best = (nn_masks) * (const nn_lanes_at *)(x + at(r.begin, c.begin, s->w));
    nn_masks where = (nn_masks){0} + first;

    for (int row = r.begin; row < r.end; row++)
        for (int column = c.begin; column < c.end; column++) {
            const int offset = first + (row - r.begin) * s->kernel[1] + (column - c.begin);
            const nn_lanes value = *(const nn_lanes_at *)(x + at(row, column, s->w));
            const nn_masks wins = (value > (nn_lanes)best) | (value != value);

            best = (wins & (nn_masks)value) | (~wins & best);
            where = (wins & offset) | (~wins & where);
        }
    *(nn_lanes_at *)y = (nn_lanes)best;
    nn_bytes_store(argmax, where);
}

/* x (n,C8,H,W,8) -> y, argmax (n,C8,HO,WO,8) */
void NN_LEVEL(maxpool)(int n, const struct nn_pool_shape *shape, const float *x, float *y,
                       uint8_t *argmax)
{
    const struct nn_pool_shape s = *shape;
    const size_t planes = (size_t)n * (size_t)s.c8;

#pragma omp parallel for schedule(static) if (planes * plane_in(&s) > NN_SMALL)
    for (size_t p = 0; p < planes; p++) {
        const float *from = x + p * plane_in(&s);
        const size_t to = p * plane_out(&s);

        for (int row = 0; row < s.ho; row++)
            for (int column = 0; column < s.wo; column++)
                for (size_t lane = 0; lane < 8; lane += NN_LANES)
                    max_lanes(&s, row_of(&s, row), column_of(&s, column), from + lane,
                              y + to + at(row, column, s.wo) + lane,
                              argmax + to + at(row, column, s.wo) + lane);
    }
}

NN_INLINE void max_lanes_backward(const struct nn_pool_shape *s, struct span r, struct span c,
                                  const float *dy, const uint8_t *argmax, float *dx)
{
    const nn_masks where = nn_bytes_load(argmax);
    const nn_masks grad = (nn_masks) * (const nn_lanes_at *)dy;
    const int first = r.skip * s->kernel[1] + c.skip;

    for (int row = r.begin; row < r.end; row++)
        for (int column = c.begin; column < c.end; column++) {
            const int offset = first + (row - r.begin) * s->kernel[1] + (column - c.begin);

            *(nn_lanes_at *)(dx + at(row, column, s->w)) += (nn_lanes)((where == offset) & grad);
        }
}

/* dy, argmax (n,C8,HO,WO,8) -> dx (n,C8,H,W,8) */
void NN_LEVEL(maxpool_backward)(int n, const struct nn_pool_shape *shape, const float *dy,
                                const uint8_t *argmax, float *dx)
{
    const struct nn_pool_shape s = *shape;
    const size_t planes = (size_t)n * (size_t)s.c8;

#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < planes; p++) {
        const size_t from = p * plane_out(&s);
        float *to = dx + p * plane_in(&s);

        memset(to, 0, plane_in(&s) * sizeof *to);
        for (int row = 0; row < s.ho; row++)
            for (int column = 0; column < s.wo; column++)
                for (size_t lane = 0; lane < 8; lane += NN_LANES)
                    max_lanes_backward(&s, row_of(&s, row), column_of(&s, column),
                                       dy + from + at(row, column, s.wo) + lane,
                                       argmax + from + at(row, column, s.wo) + lane, to + lane);
    }
}

NN_INLINE nn_v8 window_sum(const struct nn_pool_shape *s, struct span r, struct span c,
                           const float *x)
{
    nn_v8 total = {0};

    for (int row = r.begin; row < r.end; row++) {
        nn_v8 sum = {0}; /* row by row, so that a global average of a large image stays exact */

        for (int column = c.begin; column < c.end; column++)
            sum += nn_load(x + at(row, column, s->w));
        total += sum;
    }
    return total;
}

/* x (n,C8,H,W,8) -> y (n,C8,HO,WO,8) */
void NN_LEVEL(avgpool)(int n, const struct nn_pool_shape *shape, const float *x, float *y)
{
    const struct nn_pool_shape s = *shape;
    const size_t planes = (size_t)n * (size_t)s.c8;
    const float share = 1.0f / (float)(s.kernel[0] * s.kernel[1]);

#pragma omp parallel for schedule(static) if (planes * plane_in(&s) > NN_SMALL)
    for (size_t p = 0; p < planes; p++) {
        const float *from = x + p * plane_in(&s);
        float *to = y + p * plane_out(&s);

        for (int row = 0; row < s.ho; row++)
            for (int column = 0; column < s.wo; column++)
                nn_store(to + at(row, column, s.wo),
                         window_sum(&s, row_of(&s, row), column_of(&s, column), from) * share);
    }
}

/* dy (n,C8,HO,WO,8) -> dx (n,C8,H,W,8) */
void NN_LEVEL(avgpool_backward)(int n, const struct nn_pool_shape *shape, const float *dy,
                                float *dx)
{
    const struct nn_pool_shape s = *shape;
    const size_t planes = (size_t)n * (size_t)s.c8;
    const float share = 1.0f / (float)(s.kernel[0] * s.kernel[1]);

#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < planes; p++) {
        const float *from = dy + p * plane_out(&s);
        float *to = dx + p * plane_in(&s);

        memset(to, 0, plane_in(&s) * sizeof *to);
        for (int out = 0; out < s.ho * s.wo; out++) {
            const struct span r = row_of(&s, out / s.wo), c = column_of(&s, out % s.wo);
            const nn_v8 grad = nn_load(from + (size_t)out * 8) * share;

            for (int row = r.begin; row < r.end; row++)
                for (int column = c.begin; column < c.end; column++) {
                    float *cell = to + at(row, column, s.w);

                    nn_store(cell, nn_load(cell) + grad);
                }
        }
    }
}
