/* SPDX-License-Identifier: MIT
 *
 * What winograd.c and winograd_answer.c (who does what, where things lie) and the forms winograd4,
 * winograd2, with stride 2 winograd4s2, winograd2s2, and toeplitz2 (the arithmetic of one tile)
 * have in common.
 *
 * A form F(m,3) computes tiles of m x m outputs with α x α products:
 *     Y = Aᵀ [ (G g Gᵀ) ⊙ (Bᵀ d B) ] A
 * summed over input channels, so each of the α² positions is a matrix product over channels.
 * Backward is the adjoint of each transform. Lavin & Gray, arXiv:1509.09308.
 */
#ifndef NN_CONV_SIMD_WINOGRAD_H
#define NN_CONV_SIMD_WINOGRAD_H

#include "nn/conv/form.h"

/* Tiles of an image: the output in steps of m, partial ones at the lower and right edges. */
struct nn_tiling {
    int h, w, ho, wo; /* of input and output */
    int rows, columns;
    int top, left; /* tile (i,j) reads from input row i*m*stride - top, column j*m*stride - left */
};

/* One side of the products: position p of tile t, channel c is at p*position + t*tile + c. */
struct nn_products {
    float *at;
    size_t position, tile;
};

/* Planes are (c8,H,W,8) of one image, or a range of its channel blocks. */
struct nn_winograd_form {
    int m, positions;
    int halo; /* input rows a tile reads above its outputs, with padding 1 */
    int sum;  /* the position whose row of A is all ones: Σ of a tile of dY */
    void (*input)(const struct nn_tiling *t, int c8, const float *x, struct nn_products v);
    void (*output)(const struct nn_tiling *t, int c8, struct nn_products m, const float *b,
                   float *y);
    /* The same through a tail, of the tiles below the first `above` rows of tiles; y and tail->add
     * begin where these do. */
    void (*answer)(const struct nn_tiling *t, int above, int c8, struct nn_products m,
                   const float *b, const struct nn_conv_tail *tail, float *y);
    void (*output_back)(const struct nn_tiling *t, int c8, const float *dy, struct nn_products m);
    void (*input_back)(const struct nn_tiling *t, int c8, struct nn_products v, float *dx);
    /* w [3][3][8][8] -> u [positions, `position` apart][8][8], and back (adding to dw). */
    void (*weights)(const float *w, size_t position, float *u);
    void (*weights_back)(const float *du, size_t position, bool add, float *dw);
};

size_t NN_LEVEL(winograd_scratch)(const struct nn_winograd_form *form,
                                  const struct nn_conv_shape *shape, int threads);
base_status NN_LEVEL(winograd_forward)(const struct nn_winograd_form *form,
                                       const struct nn_conv_work *work, int n, const float *x,
                                       const float *w, const float *b, float *y, float *scratch);
base_status NN_LEVEL(winograd_backward)(const struct nn_winograd_form *form,
                                        const struct nn_conv_work *work, int n, const float *x,
                                        const float *dy, const float *w, float *dw, float *db,
                                        float *dx, float *scratch);

/* With weights prepared once: winograd_answer.c. */
size_t NN_LEVEL(winograd_answer_scratch)(const struct nn_winograd_form *form,
                                         const struct nn_conv_shape *shape, int threads);
size_t NN_LEVEL(winograd_prepared_floats)(const struct nn_winograd_form *form,
                                          const struct nn_conv_shape *shape);
void NN_LEVEL(winograd_prepare)(const struct nn_winograd_form *form,
                                const struct nn_conv_shape *shape, const float *w, float *prepared);
base_status NN_LEVEL(winograd_answer)(const struct nn_winograd_form *form,
                                      const struct nn_conv_work *work, struct base_team *team,
                                      int n, const float *x, const float *prepared, const float *b,
                                      const struct nn_conv_tail *tail, float *y, float *scratch);

#endif
