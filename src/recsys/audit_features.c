/* SPDX-License-Identifier: MIT
 *
 * The parts of an audit that are plain algebra: principal components of sparse rows, robust
 * standard scores, a Poisson tail. All in double precision.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/audit.h"
#include "recsys/gauss.h"

/* ---- principal components ---- */

enum { ITERATIONS = 30, DRAWS_OF_AUDIT = 0xa0d };

/* v (columns,k): orthonormal columns by Gram and Schmidt, twice for the sake of rounding. */
static void orthonormalise(double *v, uint32_t columns, size_t k)
{
    for (size_t j = 0; j < k; j++)
        for (int pass = 0; pass < 2; pass++) {
            double norm = 0;

            for (size_t i = 0; i < j; i++) {
                double product = 0;

                for (uint32_t c = 0; c < columns; c++)
                    product += v[c * k + i] * v[c * k + j];
                for (uint32_t c = 0; c < columns; c++)
                    v[c * k + j] -= product * v[c * k + i];
            }
            for (uint32_t c = 0; c < columns; c++)
                norm += v[c * k + j] * v[c * k + j];
            norm = norm > 0 ? 1 / sqrt(norm) : 0;
            for (uint32_t c = 0; c < columns; c++)
                v[c * k + j] *= norm;
        }
}

/* y (k): a row, scaled to length 1, in the directions v (columns,k). */
static void project(const struct recsys_rows *rows, uint32_t row, const double *v, size_t k,
                    double *y)
{
    const uint64_t from = rows->start[row], to = rows->start[row + 1];
    const double scale = to > from ? 1 / sqrt((double)(to - from)) : 0;

    memset(y, 0, k * sizeof *y);
    for (uint64_t at = from; at < to; at++)
        for (size_t j = 0; j < k; j++)
            y[j] += scale * v[rows->column[at] * k + j];
}

/* next (columns,k) = Bᵀ B v, where B has the rows, scaled to length 1. */
static void iterate(const struct recsys_rows *rows, const double *v, size_t k, double *next)
{
    double y[RECSYS_AUDIT_COMPONENTS];

    memset(next, 0, rows->columns * k * sizeof *next);
    for (uint32_t r = 0; r < rows->rows; r++) {
        const double count = (double)(rows->start[r + 1] - rows->start[r]);

        project(rows, r, v, k, y);
        for (uint64_t at = rows->start[r]; at < rows->start[r + 1]; at++)
            for (size_t j = 0; j < k; j++)
                next[rows->column[at] * k + j] += y[j] / sqrt(count);
    }
}

base_status recsys_explained(const struct recsys_rows *rows, int components, double *explained)
{
    base_status st = BASE_OK;
    struct recsys_draws draws = recsys_draws_of(1, DRAWS_OF_AUDIT, 0, 0);
    const size_t k = (size_t)components, values = rows->columns * k;
    double *v = NULL, *next = NULL, *former, y[RECSYS_AUDIT_COMPONENTS];

    TRY(base_tensor(values, sizeof *v, "principal components", &v));
    TRY(base_tensor(values, sizeof *next, "principal components", &next));
    for (size_t i = 0; i < values; i++)
        v[i] = recsys_draw_normal(&draws);
    for (int i = 0; i < ITERATIONS; i++) {
        orthonormalise(v, rows->columns, k);
        iterate(rows, v, k, next);
        former = v;
        v = next;
        next = former;
    }
    orthonormalise(v, rows->columns, k);
    for (uint32_t r = 0; r < rows->rows; r++) {
        project(rows, r, v, k, y);
        explained[r] = recsys_product(y, y, components);
    }
out:
    base_free(v);
    base_free(next);
    return st;
}

/* ---- standard scores ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_of(double *values, uint32_t count) /* which it sorts */
{
    qsort(values, count, sizeof *values, by_value);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

base_status recsys_standardise(const uint32_t *order, uint32_t count, uint32_t reach,
                               double *values)
{
    static const double OF_NORMAL = 1.4826; /* deviation of a normal, of its median distance */
    base_status st = BASE_OK;
    const uint32_t width = 2 * reach + 1 < count ? 2 * reach + 1 : count;
    double *around = NULL, *scores = NULL;

    TRY(base_tensor(width, sizeof *around, "scores", &around));
    TRY(base_tensor(count, sizeof *scores, "scores", &scores));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = i < reach ? 0 : i - reach;
        double median, spread;

        from = from + width > count ? count - width : from;
        for (uint32_t j = 0; j < width; j++)
            around[j] = values[order[from + j]];
        median = median_of(around, width);
        for (uint32_t j = 0; j < width; j++)
            around[j] = fabs(around[j] - median);
        spread = OF_NORMAL * median_of(around, width);
        scores[i] = spread > 0 ? (values[order[i]] - median) / spread : 0;
    }
    for (uint32_t i = 0; i < count; i++)
        values[order[i]] = scores[i];
out:
    base_free(around);
    base_free(scores);
    return st;
}

/* ---- chance ---- */

double recsys_poisson_tail(double mean, uint32_t count)
{
    double term = 1, sum = 0;

    if (count <= mean)
        return 0; /* no surprise, and nothing to be exact about */
    /* P(X >= n) = P(X = n) (1 + m/(n+1) + m²/((n+1)(n+2)) + …), which falls fast for n > m. */
    for (uint32_t i = 1; term > 1e-12 * sum && i < 100000; i++) {
        sum += term;
        term *= mean / (count + i);
    }
    return count * log(mean) - mean - lgamma(count + 1.0) + log(sum);
}
