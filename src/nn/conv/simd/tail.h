/* SPDX-License-Identifier: MIT
 *
 * The tail of a forward-only convolution (nn/conv/conv.h): what is added, cut and pooled between
 * the sums and memory, while the sums are in the caches. A NaN passes.
 */
#ifndef NN_CONV_SIMD_TAIL_H
#define NN_CONV_SIMD_TAIL_H

#include "nn/conv/form.h"

/* Where a rectangle of h x w outputs of one channel block goes; rows are `…_row` floats
 * apart, columns of `from` from_column, of the others 8. */
struct nn_rectangle {
    int h, w;
    const float *from;
    size_t from_row, from_column;
    nn_v8 bias;
    const float *add; /* or NULL */
    size_t add_row;
    float *to; /* of the pooled rectangle with a pool */
    size_t to_row;
    bool relu;
};

/* a where a > b or is no number, else b */
NN_INLINE nn_v8 nn_larger(nn_v8 a, nn_v8 b)
{
    union {
        nn_v8 whole;
        nn_lanes part[8 / NN_LANES];
    } x = {a}, y = {b};

#pragma GCC unroll 2
    for (int i = 0; i < 8 / NN_LANES; i++) {
        const nn_masks below = x.part[i] < y.part[i];

        x.part[i] = (nn_lanes)((below & (nn_masks)y.part[i]) | (~below & (nn_masks)x.part[i]));
    }
    return x.whole;
}

NN_INLINE nn_v8 nn_tail_at(const struct nn_rectangle *r, int i, int j)
{
    nn_v8 value = r->bias + nn_load(r->from + (size_t)i * r->from_row + (size_t)j * r->from_column);

    if (r->add)
        value += nn_load(r->add + (size_t)i * r->add_row + (size_t)j * 8);
    return r->relu ? nn_larger(value, (nn_v8){0}) : value;
}

/* `to` may be `from`. */
NN_INLINE void nn_tail_store(const struct nn_rectangle *r)
{
    for (int i = 0; i < r->h; i++)
        for (int j = 0; j < r->w; j++)
            nn_store(r->to + (size_t)i * r->to_row + (size_t)j * 8, nn_tail_at(r, i, j));
}

/* h and w even */
NN_INLINE void nn_tail_pool(const struct nn_rectangle *r)
{
    for (int i = 0; i < r->h; i += 2)
        for (int j = 0; j < r->w; j += 2) {
            const nn_v8 above = nn_larger(nn_tail_at(r, i, j), nn_tail_at(r, i, j + 1));
            const nn_v8 below = nn_larger(nn_tail_at(r, i + 1, j), nn_tail_at(r, i + 1, j + 1));

            nn_store(r->to + (size_t)(i / 2) * r->to_row + (size_t)j * 4, nn_larger(above, below));
        }
}

#endif
