/* SPDX-License-Identifier: MIT
 *
 * Where the activations of a class spread oddly: robust whitening, principal directions, and orders
 * along them. Small dense algebra in double precision.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "recsys/gauss.h"
#include "train/audit_private.h"

void audit_covariance(const double *x, const uint32_t *rows, uint32_t count, int features,
                      const double *centre, double *covariance)
{
    const size_t d = (size_t)features;
    double *row = base_calloc(d, sizeof *row);

    memset(covariance, 0, d * d * sizeof *covariance);
    for (uint32_t i = 0; i < count; i++) {
        const double *from = x + (rows != NULL ? rows[i] : i) * d;

        for (size_t a = 0; a < d; a++)
            row[a] = from[a] - (centre != NULL ? centre[a] : 0);
        for (size_t a = 0; a < d; a++)
            for (size_t b = 0; b <= a; b++)
                covariance[a * d + b] += row[a] * row[b];
    }
    for (size_t a = 0; a < d; a++)
        for (size_t b = 0; b <= a; b++)
            covariance[a * d + b] = covariance[b * d + a] = covariance[a * d + b] / (count + 1e-9);
    base_free(row);
}

static void mean_of(const double *x, const uint32_t *rows, uint32_t count, size_t d, double *mean)
{
    memset(mean, 0, d * sizeof *mean);
    for (uint32_t i = 0; i < count; i++)
        for (size_t a = 0; a < d; a++)
            mean[a] += x[rows[i] * d + a] / count;
}

struct ranked {
    double value;
    uint32_t index;
};

static int by_value(const void *a, const void *b) /* the largest first */
{
    const struct ranked *x = a, *y = b;

    return x->value != y->value ? (x->value < y->value) - (x->value > y->value)
                                : (x->index > y->index) - (x->index < y->index);
}

static void sort_by(struct ranked *list, uint32_t count, uint32_t *order)
{
    qsort(list, count, sizeof *list, by_value);
    for (uint32_t i = 0; i < count; i++)
        order[i] = list[i].index;
}

/* The covariance leans on the common one as far as the class is small, and is kept away from being
 * singular; its factor in place. */
static base_status factorise(double *covariance, const double *common, uint32_t count, int features)
{
    const size_t d = (size_t)features;
    const double own = count / (count + 2.0 * features);
    double trace = 0;

    for (size_t i = 0; i < d * d; i++)
        covariance[i] = own * covariance[i] + (1 - own) * common[i];
    for (size_t a = 0; a < d; a++)
        trace += covariance[a * d + a];
    for (size_t a = 0; a < d; a++)
        covariance[a * d + a] += 1e-3 * trace / features + 1e-30;
    if (!recsys_cholesky(covariance, features))
        return base_fail(BASE_ERR_DATA, "the activations of a class are not finite");
    return BASE_OK;
}

/* white = factor^-1 (x - centre), and the points by their distance, the nearest last. */
static void whiten(struct audit_points *p, const double *x, uint32_t *order)
{
    const size_t d = (size_t)p->features;
    struct ranked *far = base_calloc(p->count, sizeof *far);

    for (uint32_t i = 0; i < p->count; i++) {
        double *z = p->white + i * d;

        for (size_t a = 0; a < d; a++)
            z[a] = x[i * d + a] - p->centre[a];
        recsys_forward(p->factor, p->features, z);
        far[i] = (struct ranked){recsys_product(z, z, p->features), i};
    }
    sort_by(far, p->count, order);
    base_free(far);
}

base_status audit_points_make(const float *x, const uint32_t *ids, uint32_t count, int features,
                              const double *common, struct audit_points *p)
{
    enum { ROUNDS = 3 };
    base_status st = BASE_OK;
    const size_t d = (size_t)features;
    uint32_t *order = base_calloc(count, sizeof *order), left_out = 0;

    *p = (struct audit_points){.count = count, .features = features};
    p->factor = base_calloc(d * d, sizeof *p->factor);
    p->centre = base_calloc(d, sizeof *p->centre);
    TRY(base_tensor(count * d, sizeof *p->raw, "activations of a class", &p->raw));
    TRY(base_tensor(count * d, sizeof *p->white, "activations of a class", &p->white));
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
        for (size_t a = 0; a < d; a++)
            p->raw[i * d + a] = (double)x[ids[i] * d + a];
    }
    for (int round = 0; round < ROUNDS; round++) { /* each without the farthest tenth */
        mean_of(p->raw, order + left_out, count - left_out, d, p->centre);
        audit_covariance(p->raw, order + left_out, count - left_out, features, p->centre,
                         p->factor);
        TRY(factorise(p->factor, common, count, features));
        whiten(p, p->raw, order);
        left_out = count / 10;
    }
    for (uint32_t i = 0; i < count; i++)
        for (size_t a = 0; a < d; a++)
            p->raw[i * d + a] -= p->centre[a];
out:
    base_free(order);
    return st;
}

void audit_points_fini(struct audit_points *p)
{
    base_free(p->raw);
    base_free(p->white);
    base_free(p->factor);
    base_free(p->centre);
    *p = (struct audit_points){0};
}

/* Rows of v (k,d) become orthonormal. */
static void orthonormalise(double *v, int k, int d)
{
    for (int i = 0; i < k; i++) {
        double *row = v + (size_t)i * (size_t)d, length;

        for (int j = 0; j < i; j++) {
            const double *other = v + (size_t)j * (size_t)d;
            const double along = recsys_product(row, other, d);

            for (int a = 0; a < d; a++)
                row[a] -= along * other[a];
        }
        length = sqrt(recsys_product(row, row, d)) + 1e-300;
        for (int a = 0; a < d; a++)
            row[a] /= length;
    }
}

double audit_leading(const double *covariance, int d, int k, double *v)
{
    enum { ROUNDS = 40 };
    const size_t size = (size_t)k * (size_t)d;
    double *next = base_calloc(size, sizeof *next), value = 0;

    for (size_t i = 0; i < size; i++)
        v[i] = (double)(base_rng_mix(i + 1) >> 11) * 0x1p-53 - 0.5;
    orthonormalise(v, k, d);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < k; i++)
            for (int a = 0; a < d; a++)
                next[(size_t)i * (size_t)d + (size_t)a] = recsys_product(
                    covariance + (size_t)a * (size_t)d, v + (size_t)i * (size_t)d, d);
        value = recsys_product(next, v, d);
        memcpy(v, next, size * sizeof *v);
        orthonormalise(v, k, d);
    }
    base_free(next);
    return value;
}

void audit_order(const struct audit_points *p, bool white, const double *direction, uint32_t *order)
{
    const double *x = white ? p->white : p->raw;
    struct ranked *list = base_calloc(p->count, sizeof *list);

    for (uint32_t i = 0; i < p->count; i++)
        list[i] = (struct ranked){
            recsys_product(x + (size_t)i * (size_t)p->features, direction, p->features), i};
    sort_by(list, p->count, order);
    base_free(list);
}
