/* SPDX-License-Identifier: MIT
 *
 * Shapes and the two activation layouts. Inside a network every activation of a sample is
 * nChw8c: [C/8][H][W][8], channels padded to a multiple of 8 with zeros (of values and of
 * gradients: every layer keeps them zero, so padding never reaches a weight or a sum). Only the
 * network's input may be planar, [C][H][W]: what `conv` and `dense` take as their first layer.
 */
#ifndef NN_SHAPE_H
#define NN_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

enum { NN_BLOCK = 8 };

struct nn_shape {
    int c, h, w;
    bool planar; /* [C][H][W] instead of [C/8][H][W][8] */
    bool flat;   /* `flatten` was here: read as a vector of c*h*w, memory unchanged */
};

static inline int nn_pad8(int channels)
{
    return (channels + NN_BLOCK - 1) / NN_BLOCK * NN_BLOCK;
}

/* Floats of one sample in memory, padding included. */
static inline size_t nn_shape_floats(struct nn_shape s)
{
    return (size_t)(s.planar ? s.c : nn_pad8(s.c)) * (size_t)s.h * (size_t)s.w;
}

/* Values of one sample, padding excluded. */
static inline size_t nn_shape_values(struct nn_shape s)
{
    return (size_t)s.c * (size_t)s.h * (size_t)s.w;
}

/* Where value (c,h,w) of a sample is in its memory. */
static inline size_t nn_shape_at(struct nn_shape s, int c, int h, int w)
{
    if (s.planar)
        return ((size_t)c * (size_t)s.h + (size_t)h) * (size_t)s.w + (size_t)w;
    return (((size_t)(c / NN_BLOCK) * (size_t)s.h + (size_t)h) * (size_t)s.w + (size_t)w) *
               NN_BLOCK +
           (size_t)(c % NN_BLOCK);
}

#endif
