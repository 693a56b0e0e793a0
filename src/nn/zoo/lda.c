/* SPDX-License-Identifier: MIT
 *
 * Linear discriminant analysis: every class is a Gaussian around its mean, and all have the same
 * covariance S. The score of class k is then linear in x, and softmax makes probabilities of it:
 *
 *     w_k = S^-1 mean_k,   b_k = -1/2 mean_k . w_k + log(share of k)
 *
 * so a network of one `dense classes` holds the model, and the weights follow from sums over the
 * samples in one pass (nn/closed.h): of each class their number and the sum of x, of all samples
 * the lower triangle of x x^T. S is the covariance within the classes (divided by n), shrunk
 * towards a multiple of the identity: (1 - s) S + s trace(S)/F I, as in scikit-learn's
 * LinearDiscriminantAnalysis(solver="lsqr", shrinkage=s). The default s = 0.001 is enough where
 * features depend on each other, such as those of a category or pixels that never change. All sums
 * are doubles; x should be standardised, so that the difference of sums of squares keeps its
 * digits.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "nn/closed.h"
#include "nn/graph.h"
#include "nn/zoo.h"

enum { MOST_FEATURES = 4096, UNROLLED = 4 };
static const double DEFAULT_SHRINKAGE = 0.001;
/* How much more a class that has samples scores than one without any, wherever x is: the latter's
 * probability is 0, and its loss still a number. */
static const double ABSENT = 1e4;
/* Of the features' squares: less than that within the classes is rounding. */
static const double LEAST_VARIANCE = 1e-12;

/* The parts of the sums. */
struct parts {
    size_t classes, features;
    double *counts;   /* (K) */
    double *sums;     /* (K,F) */
    double *triangle; /* row i has i + 1 entries */
};

static struct parts parts_of(const struct nn_graph *graph, double *sums)
{
    size_t classes = (size_t)nn_graph_classes(graph);
    size_t features = nn_shape_values(nn_graph_input(graph));

    return (struct parts){classes, features, sums, sums + classes,
                          sums + classes + classes * features};
}

static double *row_of(double *triangle, size_t row)
{
    return triangle + row * (row + 1) / 2;
}

static base_status lda_count(const struct nn_graph *graph, size_t *count_p)
{
    size_t features = nn_shape_values(nn_graph_input(graph));
    size_t classes = (size_t)nn_graph_classes(graph);

    *count_p = 0;
    if (nn_graph_params(graph) != 2 || nn_graph_param(graph, 0)->values != classes * features)
        return base_fail(BASE_ERR_MODEL, "lda is one `dense classes`, but the model is another");
    if (features > MOST_FEATURES)
        return base_fail(BASE_ERR_MODEL,
                         "lda takes up to %d features, since it inverts their covariance; there "
                         "are %zu (smaller images: --image-size)",
                         MOST_FEATURES, features);
    *count_p = classes + classes * features + features * (features + 1) / 2;
    return BASE_OK;
}

/* ---- sums ---- */

/* row (i+1) of the triangle += sum over n samples of x_i x_j; x (n,F), n a multiple of UNROLLED. */
static void add_row(size_t i, size_t n, size_t features, const double *x, double *row)
{
    for (size_t s = 0; s < n; s += UNROLLED) {
        const double *a = x + s * features, *b = a + features, *c = b + features, *d = c + features;
        double ai = a[i], bi = b[i], ci = c[i], di = d[i];

#pragma omp simd
        for (size_t j = 0; j <= i; j++)
            row[j] += (ai * a[j] + bi * b[j]) + (ci * c[j] + di * d[j]);
    }
}

static base_status lda_add(const struct nn_graph *graph, int n, const float *x,
                           const int32_t *labels, double *sums)
{
    base_status st = BASE_OK;
    struct parts p = parts_of(graph, sums);
    /* The rest of the last four are zeros, which add nothing. */
    size_t rows = ((size_t)n + UNROLLED - 1) / UNROLLED * UNROLLED;
    double *wide = NULL;

    TRY(base_tensor(rows * p.features, sizeof *wide, "a batch in double", &wide));
    for (size_t s = 0; s < (size_t)n; s++) {
        double *to = wide + s * p.features, *sum = p.sums + (size_t)labels[s] * p.features;

        p.counts[labels[s]]++;
        for (size_t j = 0; j < p.features; j++) {
            to[j] = (double)x[s * p.features + j];
            sum[j] += to[j];
        }
    }
#pragma omp parallel for schedule(dynamic, 16)
    for (size_t i = 0; i < p.features; i++)
        add_row(i, rows, p.features, wide, row_of(p.triangle, i));
out:
    base_free(wide);
    return st;
}

/* ---- the solution ---- */

/* The triangle becomes the shrunk covariance within the classes, the sums their means. */
static base_status find_covariance(const struct parts *p, double shrinkage)
{
    double total = 0, trace = 0, squares = 0;

    for (size_t i = 0; i < p->features; i++)
        squares += row_of(p->triangle, i)[i];
    for (size_t k = 0; k < p->classes; k++)
        total += p->counts[k];
    for (size_t k = 0; k < p->classes; k++)
        for (size_t j = 0; j < p->features; j++)
            p->sums[k * p->features + j] /= fmax(1, p->counts[k]);
#pragma omp parallel for schedule(dynamic, 16)
    for (size_t i = 0; i < p->features; i++) {
        double *row = row_of(p->triangle, i);

        for (size_t k = 0; k < p->classes; k++) {
            const double *mean = p->sums + k * p->features;

            for (size_t j = 0; j <= i; j++)
                row[j] -= p->counts[k] * mean[i] * mean[j];
        }
        for (size_t j = 0; j <= i; j++)
            row[j] *= (1 - shrinkage) / total;
    }
    for (size_t i = 0; i < p->features; i++)
        trace += row_of(p->triangle, i)[i] / (1 - shrinkage);
    if (!(trace > LEAST_VARIANCE * squares / total))
        return base_fail(BASE_ERR_DATA, "no feature varies within a class, so lda has no "
                                        "covariance");
    for (size_t i = 0; i < p->features; i++)
        row_of(p->triangle, i)[i] += shrinkage * trace / (double)p->features;
    return BASE_OK;
}

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;

#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The triangle becomes L with L L^T what it was (Cholesky), column by column. */
static base_status factorise(const struct parts *p)
{
    for (size_t j = 0; j < p->features; j++) {
        double *row = row_of(p->triangle, j), before = row[j];
        double pivot = before - dot(row, row, j);

        if (!(pivot > 1e-13 * before))
            return base_fail(BASE_ERR_DATA,
                             "feature %zu follows from others, so lda cannot invert the "
                             "covariance; shrink it more, as in --model lda:0.01",
                             j);
        row[j] = sqrt(pivot);
#pragma omp parallel for if (p->features - j > 256)
        for (size_t i = j + 1; i < p->features; i++) {
            double *other = row_of(p->triangle, i);

            other[j] = (other[j] - dot(other, row, j)) / row[j];
        }
    }
    return BASE_OK;
}

/* w of mean: L L^T w = mean. */
static void solve_one(const struct parts *p, const double *mean, double *w)
{
    for (size_t i = 0; i < p->features; i++) {
        const double *row = row_of(p->triangle, i);

        w[i] = (mean[i] - dot(row, w, i)) / row[i];
    }
    for (size_t i = p->features; i-- > 0;) {
        const double *row = row_of(p->triangle, i);

        w[i] /= row[i];
        for (size_t j = 0; j < i; j++)
            w[j] -= row[j] * w[i];
    }
}

/* A class without samples scores ABSENT less than the first that has some. */
static void find_weights(const struct parts *p, float *weight, float *bias)
{
    double total = 0, *w = base_calloc(p->features, sizeof *w);
    size_t present = 0;

    for (size_t k = 0; k < p->classes; k++)
        total += p->counts[k];
    while (p->counts[present] <= 0)
        present++;
    for (size_t k = 0; k < p->classes; k++) {
        const size_t of = p->counts[k] > 0 ? k : present;
        const double *mean = p->sums + of * p->features;

        solve_one(p, mean, w);
        for (size_t j = 0; j < p->features; j++)
            weight[k * p->features + j] = (float)w[j];
        bias[k] = (float)(log(p->counts[of] / total) - 0.5 * dot(mean, w, p->features) -
                          (of == k ? 0 : ABSENT));
    }
    base_free(w);
}

static base_status read_shrinkage(const char *arguments, double *shrinkage_p)
{
    char *end = NULL;

    *shrinkage_p = DEFAULT_SHRINKAGE;
    if (arguments == NULL)
        return BASE_OK;
    *shrinkage_p = strtod(arguments, &end);
    if (end == arguments || *end != '\0' || !(*shrinkage_p >= 0 && *shrinkage_p < 1))
        return base_fail(BASE_ERR_USAGE,
                         "'lda:%s' is not lda:SHRINKAGE from 0 to below 1, such as lda:0.1",
                         arguments);
    return BASE_OK;
}

static base_status lda_solve(const struct nn_graph *graph, const char *arguments, double *sums,
                             float *weights)
{
    base_status st = BASE_OK;
    struct parts p = parts_of(graph, sums);
    const struct nn_tensor *weight = nn_graph_param(graph, 0), *bias = nn_graph_param(graph, 1);
    double shrinkage;
    float *rows = NULL, *column = NULL;

    TRY(read_shrinkage(arguments, &shrinkage));
    TRY(base_tensor(p.classes * p.features, sizeof *rows, "the discriminants", &rows));
    column = base_calloc(p.classes, sizeof *column);
    TRY(find_covariance(&p, shrinkage));
    TRY(factorise(&p));
    find_weights(&p, rows, column);
    nn_tensor_import(weight, rows, weights + weight->offset);
    nn_tensor_import(bias, column, weights + bias->offset);
out:
    base_free(rows);
    base_free(column);
    return st;
}

static base_status lda_text(const char *arguments, char **text_p)
{
    double shrinkage;
    base_status st = read_shrinkage(arguments, &shrinkage);

    *text_p = st == BASE_OK ? base_strdup("input 1x28x28\nclasses 10\ndense classes\n") : NULL;
    return st;
}

const struct nn_zoo nn_zoo_lda = {
    .name = "lda",
    .help = "linear discriminant analysis, computed in one pass; SHRINKAGE 0.001 of the covariance",
    .arguments = "SHRINKAGE",
    .optional = true,
    .text = lda_text,
    .closed = &(const struct nn_closed){.count = lda_count, .add = lda_add, .solve = lda_solve},
};
