/* SPDX-License-Identifier: MIT
 *
 * Batch normalisation without its passes over the activations: nn/batchnorm.h. Sums are taken in
 * phases; between them `reduce` may add those of other workers, and the number of samples travels
 * with the first. Gradients of weight and bias stay local: the strategy combines them like all
 * others. Padded channels have weight 0, so they stay 0.
 */
#include "nn/batchnorm.h"

#include <math.h>
#include <string.h>

#include "nn/simd/simd.h"

/* What forward keeps for backward: (C) mean, (C) 1/deviation, the samples of all workers. */
struct kept {
    float *mean, *inverse, *samples;
};

static int channels(const struct nn_pass *p)
{
    return nn_pad8(p->node->in.c);
}

static int area(const struct nn_pass *p)
{
    return p->node->in.h * p->node->in.w;
}

static struct kept kept_of(const struct nn_pass *p)
{
    float *keep = p->keep;
    int c = channels(p);

    return (struct kept){keep, keep + c, keep + 2 * c};
}

size_t nn_bn_kept_bytes(const struct nn_node *node)
{
    return (2 * (size_t)nn_pad8(node->in.c) + 1) * sizeof(float);
}

base_status nn_bn_open(const struct nn_node *node, struct nn_open *open, void **state_p)
{
    *state_p = NULL;
    open->scratch_bytes = (5 * (size_t)nn_pad8(node->in.c) + NN_BLOCK) * sizeof(float);
    return BASE_OK;
}

/* Scratch: two vectors of sums, in the forward with the count after the first; then the rest. */
static struct nn_bn vectors(const struct nn_pass *p)
{
    int c = channels(p);
    float *rest = p->scratch + 2 * c + NN_BLOCK;

    return (struct nn_bn){
        .mean = kept_of(p).mean,
        .scale = rest,
        .shift = rest + c,
        .sum_dy = p->scratch,
        .sum_dyx = p->scratch + c,
        .b = rest + 2 * c,
        .c = p->scratch, /* takes the place of sum_dy */
    };
}

static void reduce(const struct nn_pass *p, float *sums, int count)
{
    if (p->reduce.sum != NULL)
        p->reduce.sum(p->reduce.context, sums, (size_t)count);
}

/* Mean and biased variance of the batch (of all workers); the variance is left in scratch. The
 * kernel's squares are around the mean of this worker's samples. */
static const float *batch_statistics(const struct nn_pass *p, struct kept kept)
{
    int c = channels(p);
    float *sums = p->scratch, *squares = sums + c + NN_BLOCK;
    float here = (float)p->n * (float)area(p), count;

    if (p->n > 0)
        nn_simd()->bn_moments(p->n, c / NN_BLOCK, area(p), p->x, sums, squares);
    else
        memset(sums, 0, (2 * (size_t)c + NN_BLOCK) * sizeof *sums);
    for (int i = 0; i < c; i++)
        kept.mean[i] = p->n > 0 ? sums[i] / here : 0;
    sums[c] = (float)p->n;
    reduce(p, sums, c + 1);
    *kept.samples = sums[c];
    count = sums[c] * (float)area(p);
    for (int i = 0; i < c; i++) {
        float mean = sums[i] / count, off = kept.mean[i] - mean;

        squares[i] += here * off * off;
        kept.mean[i] = mean;
    }
    reduce(p, squares, c);
    for (int i = 0; i < c; i++)
        squares[i] /= count;
    return squares;
}

static void update_running(const struct nn_pass *p, struct kept kept, const float *variance)
{
    const struct nn_bn_config *config = p->node->config;
    double count = (double)*kept.samples * area(p);
    float unbiased = (float)(count > 1 ? count / (count - 1) : 1.0);
    float rate = (float)config->momentum;

    for (int i = 0; i < channels(p); i++) {
        p->stat[0][i] += rate * (kept.mean[i] - p->stat[0][i]);
        p->stat[1][i] += rate * (variance[i] * unbiased - p->stat[1][i]);
    }
}

static void fill_affine(const struct nn_pass *p, const float *mean, const struct nn_bn *bn)
{
    const float *inverse = kept_of(p).inverse;

    for (int i = 0; i < channels(p); i++) {
        bn->scale[i] = p->param[0][i] * inverse[i];
        bn->shift[i] = p->param[1][i] - mean[i] * bn->scale[i];
    }
}

struct nn_bn nn_bn_forward(const struct nn_pass *p)
{
    const struct nn_bn_config *config = p->node->config;
    struct nn_bn bn = vectors(p);
    struct kept kept = kept_of(p);
    const float *mean = p->stat[0], *variance = p->stat[1];

    if (p->training) {
        variance = batch_statistics(p, kept);
        mean = kept.mean;
        update_running(p, kept, variance);
    }
    for (int i = 0; i < channels(p); i++)
        kept.inverse[i] = (float)(1.0 / sqrt((double)variance[i] + config->eps));
    fill_affine(p, mean, &bn);
    return bn;
}

struct nn_bn nn_bn_backward(const struct nn_pass *p)
{
    struct nn_bn bn = vectors(p);

    fill_affine(p, bn.mean, &bn);
    return bn;
}

/* With M values a channel and v = 1/deviation:
 * dx = weight v (dy - Σdy/M - (x - mean) v² Σdy(x - mean)/M) */
void nn_bn_finish(const struct nn_pass *p, const struct nn_bn *bn)
{
    struct kept kept = kept_of(p);
    float count = *kept.samples * (float)area(p);

    for (int i = 0; i < channels(p); i++) {
        p->dparam[0][i] = bn->sum_dyx[i] * kept.inverse[i];
        p->dparam[1][i] = bn->sum_dy[i];
    }
    if (p->dx == NULL)
        return;
    reduce(p, bn->sum_dy, 2 * channels(p));
    for (int i = 0; i < channels(p); i++) {
        bn->b[i] = -bn->scale[i] * kept.inverse[i] * kept.inverse[i] * bn->sum_dyx[i] / count;
        bn->c[i] = -bn->scale[i] * bn->sum_dy[i] / count - bn->b[i] * bn->mean[i];
    }
}
