/* SPDX-License-Identifier: MIT
 *
 * A model with a closed form: its weights follow from sums over the training samples, which are
 * gathered in one pass, and no step is taken. The sums of several workers are added, so that each
 * of them looks at its share of the samples alone. A file of nn/zoo/ brings it (nn/zoo.h).
 */
#ifndef NN_CLOSED_H
#define NN_CLOSED_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct nn_graph;

struct nn_closed {
    /* The number of sums; fails if the model would be too large. */
    base_status (*count)(const struct nn_graph *graph, size_t *count_p);
    /* Adds n samples, x (n,C,H,W), to the sums, which are zeros at first. */
    base_status (*add)(const struct nn_graph *graph, int n, const float *x, const int32_t *labels,
                       double *sums);
    /* Computes the graph's weight buffer from the sums over all samples, which it may overwrite.
     * `arguments` are those in the model's name, or NULL. */
    base_status (*solve)(const struct nn_graph *graph, const char *arguments, double *sums,
                         float *weights);
};

/* The bytes that solving takes beside the network's own: the sums, n samples in double, the
 * solution. 0 if `closed` is NULL or the model would be too large. */
uint64_t nn_closed_memory(const struct nn_closed *closed, const struct nn_graph *graph, int n);

#endif
