/* SPDX-License-Identifier: MIT
 *
 * What a file in nn/conv/forms/ provides: `const struct nn_conv NN_LEVEL(conv_NAME)`, a form: one
 * way to compute convolutions. The file is compiled once for each CPU level, so every level has its
 * own description of every form; a process uses those of its level. All forms read and write the
 * same layouts (nn/shape.h, nn/tensor.h). Those that serve a shape are its candidates, and any of
 * them may compute it.
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

/* A form at work on one shape (nn_conv_work_init). Every n from 1 to n_max may be computed. */
struct nn_conv_work {
    const struct nn_conv *conv;
    struct nn_conv_shape shape;
    int threads;          /* that compute, and that the scratch memory is made for */
    size_t scratch_bytes; /* memory that calls want; the caller passes it, 64-byte aligned */
    void *state;          /* of a form that has an `open` */
};

struct nn_conv {
    const char *name, *help;
    double share; /* of the nominal multiplications that it does: 1 without a trick */
    bool (*serves)(const struct nn_conv_shape *shape);
    /* Estimated seconds of one thread for n_max samples (nn/conv/cost.h): the forward and, when the
     * shape says training, the backward. It is arithmetic on the shape and the CPU level alone, so
     * that all machines of a level choose alike. NULL: only --kernels and --tune take this form. */
    double (*cost)(const struct nn_conv_shape *shape, enum base_cpu_level level);
    /* Bytes of scratch memory. NULL: none, or `open` says how many. */
    size_t (*scratch)(const struct nn_conv_shape *shape, int threads);
    /* For a form that keeps something between calls: sets the work's state and scratch_bytes. Both
     * or neither (NULL). */
    base_status (*open)(struct nn_conv_work *work);
    void (*close)(void *state); /* accepts NULL */
    /* y (n,O,HO,WO) = x (n,I,H,W) * w + b; b NULL without bias. */
    base_status (*forward)(const struct nn_conv_work *work, int n, const float *x, const float *w,
                           const float *b, float *y, void *scratch);
    /* dw and db (NULL without bias) from x and dy, unless dw is NULL; dx from dy and w, unless it
     * is NULL. In two calls they have the bits of one. */
    base_status (*backward)(const struct nn_conv_work *work, int n, const float *x, const float *dy,
                            const float *w, float *dw, float *db, float *dx, void *scratch);
    /* The same followed by a ReLU, where that costs nothing; both or neither (NULL). y is cut at 0;
     * dy counts where y > 0. There is no dx. */
    base_status (*forward_relu)(const struct nn_conv_work *work, int n, const float *x,
                                const float *w, const float *b, float *y, void *scratch);
    base_status (*backward_relu)(const struct nn_conv_work *work, int n, const float *x,
                                 const float *y, const float *dy, float *dw, float *db,
                                 void *scratch);
    /* For models that only answer (nn/infer.h): weights in the order that the form reads, made once
     * and then shared by all works on this shape. All of these or none (NULL). A form without
     * `forward` serves nothing else. */
    size_t (*prepared_floats)(const struct nn_conv_shape *shape);
    void (*prepare)(const struct nn_conv_shape *shape, const float *w, float *prepared);
    /* How often one prepared weight is used for one image: what the choice of a form goes by. */
    int (*uses)(const struct nn_conv_shape *shape);
    /* By the threads of `team`: as many as the work's. */
    base_status (*answer)(const struct nn_conv_work *work, struct base_team *team, int n,
                          const float *x, const float *prepared, const float *b,
                          const struct nn_conv_tail *tail, float *y, void *scratch);
    /* Which code of a library computes; NULL: its own. */
    const char *(*implementation)(const struct nn_conv_work *work);
};

/* The forms of this process's level, sorted by name; a NULL follows the last one. */
const struct nn_conv *const *nn_conv_registry(void);
size_t nn_conv_count(void);

/* Those of the portable level: every level has the same names, and a table of options wants them at
 * compile time. */
extern const struct nn_conv *const nn_portable_conv_registry[];

/* The work of a form on a shape that it serves, by nn_threads() threads. nn_conv_work_fini accepts
 * zeros and what a failed init leaves. */
base_status nn_conv_work_init(struct nn_conv_work *work, const struct nn_conv *conv,
                              const struct nn_conv_shape *shape);
void nn_conv_work_fini(struct nn_conv_work *work);

/* The form by name (error lists the known), or the reference when name is NULL. */
base_status nn_conv_choose(const char *name, const struct nn_conv_shape *shape,
                           const struct nn_conv **conv_p);

/* "64x16x16 128x16x16 k3x3 s1x1 p1x1 g1 bias n64 train dx"; base_free. */
char *nn_conv_shape_text(const struct nn_conv_shape *shape);

/* The form that serves every shape, and that the results of the others are compared with. */
const struct nn_conv *nn_conv_reference(void);

/* The candidate of the least estimated cost; the reference unless another is cheaper. */
const struct nn_conv *nn_conv_cheapest(const struct nn_conv_shape *shape,
                                       enum base_cpu_level level);

#endif
