/* SPDX-License-Identifier: MIT
 *
 * Convolutions of nn/simd at one CPU level, as the candidates of nn/conv/kernels use them
 * (nn/conv/own.h). They keep no state between calls: everything lives in the scratch, which is
 * laid out from shape and threads each time. `threads` is how many run; results do not depend on
 * it.
 */
#ifndef NN_CONV_SIMD_CONV_H
#define NN_CONV_SIMD_CONV_H

#include "nn/conv/conv.h"

enum { NN_DIRECT_TAPS = 256 }; /* most taps times channels of `direct` */

/* Winograd forms work on blocks of images: */
enum {
    NN_WINOGRAD_FLOATS = 1 << 20, /* of V and dM of a block: they stay in L3, */
    NN_WINOGRAD_TILES = 64, /* but so many tiles at least pay for a transform of the weights */
};

/* Row length of c8 channel blocks: no long power of two, whose rows would fall into one set. */
static inline size_t nn_winograd_row(int c8)
{
    const size_t row = (size_t)c8 * 8;

    return row % 128 == 0 ? row + 16 : row;
}

/* The fewest blocks that n images of so many tiles can go in. */
static inline int nn_winograd_blocks(int positions, int tiles, int i8, int o8, int n)
{
    const size_t image =
        (size_t)positions * (size_t)tiles * (nn_winograd_row(i8) + nn_winograd_row(o8));
    const int most = (int)(NN_WINOGRAD_FLOATS / image);
    const int least = (NN_WINOGRAD_TILES + tiles - 1) / tiles, room = most > least ? most : least;

    return (n + room - 1) / room;
}

struct nn_simd_conv {
    /* Bytes of scratch for up to shape->n_max samples. */
    size_t (*scratch)(const struct nn_conv_shape *shape, int threads);
    /* y (n,O,HO,WO) = x (n,I,H,W) * w + b; b may be NULL. */
    void (*forward)(const struct nn_conv_shape *shape, int threads, int n, const float *x,
                    const float *w, const float *b, float *y, float *scratch);
    /* dw, db (or NULL), dx (or NULL) from x, w and dy. */
    void (*backward)(const struct nn_conv_shape *shape, int threads, int n, const float *x,
                     const float *dy, const float *w, float *dw, float *db, float *dx,
                     float *scratch);
    /* With a ReLU behind it, as in nn/conv/conv.h, or NULL. */
    void (*forward_relu)(const struct nn_conv_shape *shape, int threads, int n, const float *x,
                         const float *w, const float *b, float *y, float *scratch);
    void (*backward_relu)(const struct nn_conv_shape *shape, int threads, int n, const float *x,
                          const float *y, const float *dy, float *dw, float *db, float *scratch);
    /* Forward only, with prepared weights, as in nn/conv/conv.h; all or none (NULL). scratch knows
     * from shape->prepared that this is what it is for. */
    size_t (*prepared_floats)(const struct nn_conv_shape *shape);
    void (*prepare)(const struct nn_conv_shape *shape, const float *w, float *prepared);
    void (*answer)(const struct nn_conv_shape *shape, struct base_team *team, int n, const float *x,
                   const float *prepared, const float *b, const struct nn_conv_tail *tail, float *y,
                   float *scratch);
};

#endif
