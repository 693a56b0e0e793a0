/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of rating models in plain vector C, compiled once for each CPU level
 * (CMakeLists.txt) and chosen at run time. Every function runs on the calling thread and adds in a
 * fixed order. A *row* is k floats of one user or item, k a multiple of 8 up to RECSYS_MAX_K. Rows,
 * panels and triangles are aligned to 32 bytes, as base_tensor gives them.
 *
 * A symmetric k x k matrix is kept as a *triangle*: the 8x8 tiles of its upper half, one row of
 * tiles after the other. Eight such systems are solved at once, one in each *lane* of a vector;
 * their factors are the lower half, row by row, as vectors of eight lanes.
 */
#ifndef RECSYS_KERNELS_H
#define RECSYS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu_level.h"

enum { RECSYS_LANES = 8, RECSYS_MAX_K = 128, RECSYS_MAX_PANEL = 128 };

/* Ratings of a panel: gathered rows of 8 to 16 KB, which stay in the first cache. */
static inline int recsys_panel(int k)
{
    return k <= 32 ? 128 : k <= 64 ? 64 : 32;
}

static inline size_t recsys_triangle_floats(int k)
{
    return (size_t)(k / 8) * (size_t)(k / 8 + 1) / 2 * 64;
}

static inline size_t recsys_lower_floats(int k)
{
    return (size_t)k * (size_t)(k + 1) / 2 * RECSYS_LANES;
}

/* Element (i, j), i <= j, of a triangle. */
static inline size_t recsys_triangle_at(int k, int i, int j)
{
    const int tiles = k / 8, a = i / 8, b = j / 8;

    return (size_t)(a * tiles - a * (a - 1) / 2 + b - a) * 64 + (size_t)(i % 8 * 8 + j % 8);
}

/* Rows that are needed next; they are fetched into the cache meanwhile. */
struct recsys_ahead {
    const float *rows;
    const uint32_t *index;
    int count;
};

/* What a row of one side sees of n of its ratings: the rows of the others, with the columns of
 * biases put right. The last two columns are for biases. */
struct recsys_pack {
    int k, n;
    int own;               /* column of this side's bias: it gets a one */
    int other_own;         /* column in which the other side has its bias */
    const float *rows;     /* of the other side */
    const uint32_t *index; /* [n] */
    const float *more;     /* rows of a third side, whose bias is in column k-1; or NULL */
    const uint32_t *more_index;
    const float *weight; /* [n] square roots of weights, or NULL: ones */
};

/* Ratings of one user in one group of items. */
struct recsys_run {
    uint32_t user, count;
};

/* Ratings of users in one group of items, for a pass of stochastic gradient steps. A user's
 * ratings are padded to a multiple of eight with code 0 and a row of zeros. */
struct recsys_cell {
    const struct recsys_run *runs;
    const uint16_t *item; /* rows in the group; 32 readable entries follow the last */
    const uint8_t *code;  /* a rating is code * scale + offset */
    uint32_t run_count;
};

struct recsys_sgd {
    int k;
    float rate, scale, offset;
    bool absolute;           /* the loss is |e|, not e² */
    const float *decay;      /* [count of a run] (1 - rate * l2)^count */
    const float *bias_decay; /* the same for biases */
    float *users, *items;    /* of all users; of the group */
};

struct recsys_kernels {

    float (*dot)(int k, const float *a, const float *b);
    /* triangle += panelᵀ panel; panel (n,k). `next` or NULL. */
    void (*syrk)(int k, const float *panel, int n, float *triangle,
                 const struct recsys_ahead *next);
    /* Fills panel (n,k) and takes from y [n] what the other sides' biases and products explain. */
    void (*pack)(const struct recsys_pack *pack, float *panel, float *y);
    /* sum (k) += panelᵀ y; returns Σ y². */
    double (*project)(int k, const float *panel, const float *y, int n, float *sum);
    /* xᵀ A x of the triangle A. */
    float (*quadratic)(int k, const float *triangle, const float *x);

    /* lower = prior + scale * triangle for eight triangles, one after the other; prior (k,k) */
    void (*lanes_gather)(int k, const float *triangles, const float *prior, const float *scale,
                         float *lower);
    /* In place; the diagonal of the factor holds reciprocals. */
    void (*lanes_cholesky)(int k, float *lower);
    /* x (k,8) := L⁻ᵀ (L⁻¹ x + noise): with noise NULL the solution, with standard normals (k,8) a
     * draw from the normal distribution of that mean and precision. */
    void (*lanes_solve)(int k, const float *lower, float *x, const float *noise);

    /* count (a multiple of 16) standard normals from as many random words, which are consumed. */
    void (*normals)(int count, const uint32_t *words, float *z);

    /* panel (n,k) = the rows of that index. */
    void (*gather)(int k, const float *rows, const uint32_t *index, int n, float *panel);
    /* out (k) += Σ_j (c_j - w_j (y_j · v)) y_j over the rows y_j of a panel (n,k), n a multiple of
     * 4. With c NULL: += Σ_j w_j (y_j · v) y_j. */
    void (*weigh)(int k, const float *panel, int n, const float *w, const float *c, const float *v,
                  float *out);

    /* Draws the eight numbers of y: y ~ N((s + c2 y) / c, noise / sqrt(c)) with s = Σ share[r] R_r
     * over the rows `index` of R (n,8), c = c2 + precision, c2 = Σ share². Then R_r gets back what
     * y lost. */
    void (*site)(const uint32_t *index, size_t count, const float *share, float precision,
                 const float *noise, float *rest, float *y);

    void (*sgd)(const struct recsys_sgd *sgd, const struct recsys_cell *cell);
};

const struct recsys_kernels *recsys_kernels(void); /* of this process's level */
const struct recsys_kernels *recsys_kernels_of(enum base_cpu_level level);

#endif
