/* SPDX-License-Identifier: MIT */
#include "train/mixing.h"

#include "base/mem.h"

double *train_mixing_shares(const double *d, int count, int nearest)
{
    double *shares = base_calloc((size_t)count * (size_t)count, sizeof *shares);
    int *order = base_calloc((size_t)count, sizeof *order);

    for (int i = 0; i < count; i++) {
        train_distances_order(d, count, i, order);
        for (int k = 0; k < nearest; k++)
            shares[i * count + order[k]] = 1.0 / nearest;
    }
    base_free(order);
    return shares;
}

/* Squared distances of the mixed updates: -½ Σ_kl c_k c_l d_kl with c the difference of their
 * shares, which sums to zero. */
static double *distances_of_mixed(const double *d, const double *shares, int count)
{
    double *mixed = base_calloc((size_t)count * (size_t)count, sizeof *mixed);

    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            double sum = 0;

            for (int k = 0; k < count; k++) {
                double c = shares[i * count + k] - shares[j * count + k];

                for (int l = 0; l < count && c != 0; l++)
                    sum += c * (shares[i * count + l] - shares[j * count + l]) * d[k * count + l];
            }
            mixed[i * count + j] = mixed[j * count + i] = sum < 0 ? -sum / 2 : 0;
        }
    return mixed;
}

void train_mixing_weigh(const struct train_aggregation *a, const struct train_updates *updates,
                        const double *shares, double *weights)
{
    const int count = updates->count;
    double *of_mixed = base_calloc((size_t)count, sizeof *of_mixed);
    double *distances = distances_of_mixed(updates->distances, shares, count);

    for (int i = 0; i < count && a->rule->weigh == NULL; i++)
        of_mixed[i] = train_row_weight(&updates->rows[i]);
    if (a->rule->weigh != NULL) /* which finds zeros, as in train_aggregate */
        a->rule->weigh(a->options,
                       &(struct train_updates){updates->rows, count, distances, NULL, 0}, of_mixed);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++)
            weights[k] += a->rule->combine != NULL ? (i == k) * of_mixed[i]
                                                   : of_mixed[i] * shares[i * count + k];
    base_free(distances);
    base_free(of_mixed);
}
