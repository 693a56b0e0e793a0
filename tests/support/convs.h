/* SPDX-License-Identifier: MIT
 *
 * Convolutions to be tested: shapes, buffers full of numbers, and what a plain fp64 loop makes of
 * them.
 */
#ifndef SUPPORT_CONVS_H
#define SUPPORT_CONVS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nn/conv/conv.h"

enum { CONVS_GUARD = 64 /* bytes after the scratch */, CONVS_MAX_CANDIDATES = 16 };
#define CONVS_TOLERANCE 1e-5

struct convs_case {
    int i, h, w, o, kernel[2], stride[2], pad[2], groups, n_max;
    bool planar, bias;
};

/* Awkward shapes; and convolutions of vgg11 and resnet18: long sums over many channels. */
extern const struct convs_case convs_grid[], convs_known[];
extern const size_t convs_grid_count, convs_known_count;
/* To train with it; no dx is wanted of the network's input, which alone is planar. */
struct nn_conv_shape convs_shape(const struct convs_case *c);

struct convs_buffers {
    size_t xs, ys, ws, os; /* floats of x, y (n_max samples), w, b */
    float *x, *y, *w, *b, *dx, *dy, *dw, *db;
    double *y_ref, *dx_ref, *dw_ref, *db_ref;
    char *scratch;
    size_t scratch_bytes;
};

void *convs_zeros(size_t count, size_t size);                          /* base_free */
struct convs_buffers convs_buffers_new(const struct nn_conv_shape *s); /* x, dy, w and b filled */
void convs_buffers_free(struct convs_buffers *b);
void convs_take_scratch(struct convs_buffers *b, size_t bytes); /* and a guard after it */
void convs_spoil(size_t count, float *memory);                  /* with sevens */

/* Adds sample j to the reference, after those before it. */
void convs_reference(const struct nn_conv_shape *s, int j, struct convs_buffers *b);

double convs_norm(size_t count, const double *values); /* L2 */
double convs_distance(size_t count, const float *got, const double *want);
/* L2 error relative to the reference, over all memory: its padding is zero and is asked to be
 * exactly that. */
double convs_compare(size_t count, const float *got, const double *want);
/* Padding channels (c … pad8) of n samples are exactly zero. */
void convs_assert_padding(const struct nn_shape *s, int n, const float *memory);
/* Memory that no canonical weight lies in is exactly zero. */
void convs_assert_weight_padding(const struct nn_conv_shape *s, const float *dw);

/* A candidate at work on a shape, and the largest error of its results. */
struct convs_work {
    struct nn_conv_work work;
    double worst;
};

/* All that serve the shape, at most CONVS_MAX_CANDIDATES; how many. */
size_t convs_open(const struct nn_conv_shape *s, struct convs_work *work);

#endif
