/* SPDX-License-Identifier: MIT
 *
 * What a file in nn/conv/kernels/ provides: `const struct nn_conv nn_conv_NAME`, a way to compute
 * convolutions. All candidates read and write the same layouts (nn/shape.h, nn/tensor.h), so any
 * can be chosen for any layer it serves. Takes every n from 1 to n_max.
 */
#ifndef NN_CONV_CONV_H
#define NN_CONV_CONV_H

#include "base/status.h"
#include "nn/shape.h"
#include "nn/simd/simd.h"

struct nn_conv_shape {
    struct nn_shape in, out;
    int kernel[2], stride[2], pad[2], groups;
    bool bias;
    int n_max;
    bool training, want_dx;
    bool prepared; /* `answer` is called, with prepared weights, and nothing else */
};

/* What becomes of an output before it is stored, in this order. */
struct nn_conv_tail {
    const float *add; /* (n) x out; or NULL */
    bool relu;
    bool pool; /* maxpool 2x2: out.h and out.w are even, y is (n,O,HO/2,WO/2) */
};

struct nn_conv {
    const char *name, *help;
    double share; /* of the nominal multiplications that it does: 1 without a trick */
    bool (*serves)(const struct nn_conv_shape *shape);
    /* Estimated seconds of one thread for n_max samples: the forward and, when the shape says
     * training, the backward. It is arithmetic on the shape and the CPU level alone, so that all
     * machines of a level choose alike. NULL: only --kernels and --tune take this candidate. */
    double (*cost)(const struct nn_conv_shape *shape, enum nn_level level);
    /* scratch_bytes_p: memory it wants during calls; the caller passes it (64-byte aligned). */
    base_status (*open)(const struct nn_conv_shape *shape, size_t *scratch_bytes_p, void **state_p);
    void (*close)(void *state); /* accepts NULL */
    /* y (n,O,HO,WO) = x (n,I,H,W) * w + b; b NULL without bias. */
    base_status (*forward)(void *state, int n, const float *x, const float *w, const float *b,
                           float *y, void *scratch);
    /* dw and db (NULL without bias) from x and dy; dx from dy and w, unless it is NULL. */
    base_status (*backward)(void *state, int n, const float *x, const float *dy, const float *w,
                            float *dw, float *db, float *dx, void *scratch);
    /* With a ReLU behind it, where that costs nothing; both or neither (NULL). y is cut at 0; dy
     * counts where y > 0. Nobody wants dx. */
    base_status (*forward_relu)(void *state, int n, const float *x, const float *w, const float *b,
                                float *y, void *scratch);
    base_status (*backward_relu)(void *state, int n, const float *x, const float *y,
                                 const float *dy, float *dw, float *db, void *scratch);
    /* For models that only answer (nn/infer.h): weights in the form that the kernel reads, made
     * once and then shared by all states of this shape. All of these or none (NULL). A candidate
     * without `forward` serves nothing else. */
    size_t (*prepared_floats)(const struct nn_conv_shape *shape);
    void (*prepare)(const struct nn_conv_shape *shape, const float *w, float *prepared);
    /* How often one prepared weight is used for one image: what the choice of a kernel goes by. */
    int (*uses)(const struct nn_conv_shape *shape);
    /* By the threads of `team`: as many as nn_threads() said when the state was opened. */
    base_status (*answer)(void *state, struct base_team *team, int n, const float *x,
                          const float *prepared, const float *b, const struct nn_conv_tail *tail,
                          float *y, void *scratch);
    /* Which implementation serves; for the log. */
    const char *(*implementation)(const void *state);
};

extern const struct nn_conv *const nn_conv_registry[];
extern const size_t nn_conv_count;

/* The candidate by name (error lists the known), or the reference when name is NULL. */
base_status nn_conv_choose(const char *name, const struct nn_conv_shape *shape,
                           const struct nn_conv **conv_p);

/* "64x16x16 128x16x16 k3x3 s1x1 p1x1 g1 bias n64 train dx"; base_free. */
char *nn_conv_shape_text(const struct nn_conv_shape *shape);

/* The candidate that serves every shape, and that the results of the others are compared with. */
const struct nn_conv *nn_conv_reference(void);

/* The candidate of the least estimated cost among those that serve; the reference unless another
 * is cheaper. */
const struct nn_conv *nn_conv_cheapest(const struct nn_conv_shape *shape, enum nn_level level);

#endif
