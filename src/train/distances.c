/* SPDX-License-Identifier: MIT */
#include "train/distances.h"

#include <math.h>

#include "base/mem.h"

enum { BLOCK = 2048 }; /* floats of each row at a time: of 32 rows 256 KB */

static const double FAR = 1e6; /* times the distance of the half */

static double squared_distance(const float *a, const float *b, size_t floats)
{
    double sum = 0;

#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < floats; i++) {
        double difference = (double)a[i] - (double)b[i];

        sum += difference * difference;
    }
    return sum;
}

double *train_distances_new(const struct train_row *rows, int count, size_t floats)
{
    double *d = base_calloc((size_t)count * (size_t)count, sizeof *d);

    for (size_t at = 0; at < floats; at += BLOCK) {
        size_t block = floats - at < BLOCK ? floats - at : BLOCK;

        for (int i = 0; i < count; i++)
            for (int j = 0; j < i; j++)
                d[i * count + j] +=
                    squared_distance(rows[i].values + at, rows[j].values + at, block);
    }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            d[j * count + i] = d[i * count + j];
    return d;
}

double *train_squares_new(const struct train_row *rows, int count, size_t floats)
{
    double *squares = base_calloc((size_t)count, sizeof *squares);

    for (int i = 0; i < count; i++) {
        const float *x = rows[i].values;
        double sum = 0;

#pragma omp simd reduction(+ : sum)
        for (size_t k = 0; k < floats; k++)
            sum += (double)x[k] * (double)x[k];
        squares[i] = sum;
    }
    return squares;
}

/* |x_i - m|² = Σ_j w_j d_ij - ½ Σ_jk w_j w_k d_jk for m = Σ_j w_j x_j. */
void train_distances_from(const double *d, int count, const double *weights, double *from)
{
    double spread = 0;

    for (int i = 0; i < count; i++) {
        from[i] = 0;
        for (int j = 0; j < count; j++)
            from[i] += weights[j] > 0 ? weights[j] * d[i * count + j] : 0;
        spread += weights[i] > 0 ? weights[i] * from[i] : 0;
    }
    for (int i = 0; i < count; i++)
        from[i] = fmax(from[i] - spread / 2, 0);
}

void train_distances_order(const double *d, int count, int row, int *order)
{
    const double *to = d + row * count;

    for (int i = 0; i < count; i++) {
        int at = i;

        while (at > 0 && order[at - 1] != row && (i == row || to[i] < to[order[at - 1]])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
}

int train_least(const double *values, int count)
{
    int least = 0;

    for (int i = 1; i < count; i++)
        if (values[i] < values[least])
            least = i;
    return least;
}

void train_distances_begin(const struct train_updates *updates, bool *near, double *weights)
{
    const int count = updates->count, half = count / 2;
    const double *d = updates->distances;
    int *order = base_calloc((size_t)count, sizeof *order), midst;
    double least, sum = 0;

    for (int i = 0; i < count; i++) {
        train_distances_order(d, count, i, order);
        weights[i] = d[i * count + order[half]];
    }
    midst = train_least(weights, count);
    least = weights[midst];
    train_distances_order(d, count, midst, order);
    for (int k = 0; k < count; k++) {
        near[order[k]] = d[midst * count + order[k]] <= FAR * FAR * least;
        weights[order[k]] = k <= half ? train_row_weight(&updates->rows[order[k]]) : 0;
        sum += weights[order[k]];
    }
    for (int i = 0; i < count; i++)
        weights[i] /= sum;
    base_free(order);
}
