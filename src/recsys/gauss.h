/* SPDX-License-Identifier: MIT
 *
 * Small dense algebra and random draws in double precision: the parts of sampling that are done
 * once a sweep or once a row, and one user's equations.
 */
#ifndef RECSYS_GAUSS_H
#define RECSYS_GAUSS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

/* a (d,d), lower half: a = L Lᵀ in place. False: a is not positive definite. */
bool recsys_cholesky(double *a, int d);
void recsys_forward(const double *factor, int d, double *x);  /* x = L⁻¹ x */
void recsys_backward(const double *factor, int d, double *x); /* x = L⁻ᵀ x */
void recsys_solve(const double *factor, int d, double *x);    /* x = (L Lᵀ)⁻¹ x */
/* One more of the equations <x,z> = y of a least square z: a (d,d) += weight x xᵀ, its lower half,
 * and b (d) += target x. The target is the weight times y. */
void recsys_add_equation(double *a, double *b, int d, const double *x, double weight,
                         double target);
double recsys_product(const double *a, const double *b, int d);

/* Numbers one after the other from one place of the counter. */
struct recsys_draws {
    struct base_rng rng;
    uint32_t at;
};

struct recsys_draws recsys_draws_of(uint64_t seed, uint32_t what, uint32_t sweep, uint32_t row);
double recsys_draw_unit(struct recsys_draws *draws); /* 0 < u < 1 */
double recsys_draw_normal(struct recsys_draws *draws);
double recsys_draw_gamma(struct recsys_draws *draws, double shape); /* of rate 1 */

/* The standard normal distribution, and its inverse (0 < p < 1). */
double recsys_phi(double x);
double recsys_phi_inverse(double p);

/* count standard normals (recsys_kernels.normals) of a row; room for count rounded up to 16. */
void recsys_row_normals(uint64_t seed, uint32_t what, uint32_t sweep, uint32_t row, int count,
                        float *z);

#endif
