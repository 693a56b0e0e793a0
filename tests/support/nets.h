/* SPDX-License-Identifier: MIT
 *
 * Models and batches for tests: graphs from text or zoo names, random samples that are the same
 * in every run.
 */
#ifndef SUPPORT_NETS_H
#define SUPPORT_NETS_H

#include "nn/net.h"

/* Fails the test when the text does not parse. */
struct nn_graph *support_graph(const char *text);
struct nn_graph *support_zoo(const char *model);

/* A batch whose memory is owned by it: x uniform in [-1, 1), labels and ids. */
struct support_batch {
    struct nn_batch batch;
    float *x;
    int32_t *labels;
    uint32_t *ids;
};
void support_batch_init(struct support_batch *b, const struct nn_graph *graph, int n,
                        uint32_t number);
void support_batch_fini(struct support_batch *b);

/* Copies values forward over a cut, or gradients back over it. */
void support_carry(struct nn_net *left, struct nn_net *right, int n, bool back);

/* Fails the test when a and b are further apart than `tolerance`. */
void support_near(double a, double b, double tolerance);

/* Uniform in [-1, 1), the same for the same `number`. */
void support_fill(float *values, size_t count, uint32_t number);

#endif
