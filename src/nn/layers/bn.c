/* SPDX-License-Identifier: MIT
 *
 * Batch normalisation over (n,H,W) of each channel, as PyTorch's BatchNorm2d and (on vectors)
 * BatchNorm1d. Sums are taken in phases; between them `reduce` may add those of other workers,
 * and the number of samples travels with the first. Gradients of weight and bias stay local: the
 * strategy combines them like all others. Padded channels have weight 0, so they stay 0.
 */
#include <math.h>

#include "nn/layer.h"
#include "nn/line.h"
#include "nn/simd/simd.h"

struct config {
    double eps, momentum;
};

/* What forward keeps for backward, C = padded channels: (C) mean, (C) 1/deviation, then the
 * number of samples of all workers. */
struct kept {
    float *mean, *inverse, *samples;
};

static base_status parse(struct nn_line *line, void *config)
{
    base_status st = BASE_OK;
    struct config *c = config;

    *c = (struct config){.eps = 1e-5, .momentum = 0.1};
    TRY(nn_line_opt_real(line, "eps", 1e-12, 1.0, &c->eps));
    TRY(nn_line_opt_real(line, "momentum", 0.0, 1.0, &c->momentum));
out:
    return st;
}

static base_status describe(struct nn_node *node)
{
    int c = node->in.c;

    if (node->in.flat && (node->in.h > 1 || node->in.w > 1))
        return nn_node_needs_image(node);
    node->out = node->in;
    nn_node_param(node, "weight", nn_tensor_vector(c, NN_START_ONE, 0));
    nn_node_param(node, "bias", nn_tensor_vector(c, NN_START_ZERO, 0));
    nn_node_stat(node, "running_mean", nn_tensor_vector(c, NN_START_ZERO, 0));
    nn_node_stat(node, "running_var", nn_tensor_vector(c, NN_START_ONE, 0));
    node->flops = 4.0 * (double)nn_shape_values(node->in);
    node->keep_fixed = (2 * (size_t)nn_pad8(c) + 1) * sizeof(float);
    return BASE_OK;
}

/* Scratch: (C) sums and a block for the count, then three more vectors of (C). */
static base_status open_bn(const struct nn_node *node, struct nn_open *open, void **state_p)
{
    *state_p = NULL;
    open->scratch_bytes = (4 * (size_t)nn_pad8(node->in.c) + NN_BLOCK) * sizeof(float);
    return BASE_OK;
}

static struct kept kept_of(const struct nn_pass *p)
{
    float *keep = p->keep;
    int c = nn_pad8(p->node->in.c);

    return (struct kept){keep, keep + c, keep + 2 * c};
}

static void reduce(const struct nn_pass *p, float *sums, int count)
{
    if (p->reduce.sum != NULL)
        p->reduce.sum(p->reduce.context, sums, (size_t)count);
}

/* Mean and biased variance of the batch (of all workers); the variance is left in scratch. */
static float *batch_statistics(const struct nn_pass *p, struct kept kept)
{
    int c = nn_pad8(p->node->in.c), s = p->node->in.h * p->node->in.w;
    float *sums = p->scratch, *squares = sums + c + NN_BLOCK;
    float count;

    nn_simd()->bn_sum(p->n, c / NN_BLOCK, s, p->x, sums);
    sums[c] = (float)p->n;
    reduce(p, sums, c + 1);
    *kept.samples = sums[c];
    count = sums[c] * (float)s;
    for (int i = 0; i < c; i++)
        kept.mean[i] = sums[i] / count;
    nn_simd()->bn_squares(p->n, c / NN_BLOCK, s, p->x, kept.mean, squares);
    reduce(p, squares, c);
    for (int i = 0; i < c; i++)
        squares[i] /= count;
    return squares;
}

static void update_running(const struct nn_pass *p, struct kept kept, const float *variance)
{
    const struct config *config = p->node->config;
    int c = nn_pad8(p->node->in.c);
    double count = (double)*kept.samples * p->node->in.h * p->node->in.w;
    float unbiased = (float)(count > 1 ? count / (count - 1) : 1.0);
    float rate = (float)config->momentum;

    for (int i = 0; i < c; i++) {
        p->stat[0][i] += rate * (kept.mean[i] - p->stat[0][i]);
        p->stat[1][i] += rate * (variance[i] * unbiased - p->stat[1][i]);
    }
}

static base_status forward(struct nn_pass *p)
{
    const struct config *config = p->node->config;
    int c = nn_pad8(p->node->in.c), s = p->node->in.h * p->node->in.w;
    struct kept kept = kept_of(p);
    const float *mean = p->stat[0], *variance = p->stat[1];
    float *scale, *shift;

    if (p->training) {
        variance = batch_statistics(p, kept);
        mean = kept.mean;
        update_running(p, kept, variance);
    }
    scale = p->scratch + 2 * c + NN_BLOCK; /* behind the variance */
    shift = scale + c;
    for (int i = 0; i < c; i++) {
        kept.inverse[i] = (float)(1.0 / sqrt((double)variance[i] + config->eps));
        scale[i] = p->param[0][i] * kept.inverse[i];
        shift[i] = p->param[1][i] - mean[i] * scale[i];
    }
    nn_simd()->bn_apply(p->n, c / NN_BLOCK, s, p->x, scale, shift, p->y);
    return BASE_OK;
}

/* With M values a channel and v = 1/deviation:
 * dx = weight v (dy - Σdy/M - (x - mean) v² Σdy(x - mean)/M) */
static base_status backward(struct nn_pass *p)
{
    int c = nn_pad8(p->node->in.c), s = p->node->in.h * p->node->in.w;
    struct kept kept = kept_of(p);
    float *sum_dy = p->scratch, *sum_dyx = sum_dy + c, *a = sum_dyx + c, *b = a + c;
    float count = *kept.samples * (float)s;

    nn_simd()->bn_backward_sums(p->n, c / NN_BLOCK, s, p->x, kept.mean, p->dy, sum_dy, sum_dyx);
    for (int i = 0; i < c; i++) {
        p->dparam[0][i] = sum_dyx[i] * kept.inverse[i];
        p->dparam[1][i] = sum_dy[i];
    }
    if (p->dx == NULL)
        return BASE_OK;
    reduce(p, p->scratch, 2 * c);
    for (int i = 0; i < c; i++) {
        a[i] = p->param[0][i] * kept.inverse[i];
        b[i] = -a[i] * kept.inverse[i] * kept.inverse[i] * sum_dyx[i] / count;
        sum_dy[i] = -a[i] * sum_dy[i] / count - b[i] * kept.mean[i];
    }
    nn_simd()->bn_backward(p->n, c / NN_BLOCK, s, p->x, p->dy, a, b, sum_dy, p->dx);
    return BASE_OK;
}

const struct nn_layer nn_layer_bn = {
    .name = "bn",
    .help = "batch normalisation with running statistics",
    .usage = "bn [eps=1e-5] [momentum=0.1]",
    .examples = (const char *const[]){"input 3x4x4\nbn\nrelu\ndense 3\nmse",
                                      "input 9x3x2\nconv 10 1x1\nbn eps=1e-3\ndense 3\nmse",
                                      "input 6x1x1\ndense 9\nbn\ndense 3\nmse", NULL},
    .config_size = sizeof(struct config),
    .parse = parse,
    .describe = describe,
    .open = open_bn,
    .forward = forward,
    .backward = backward,
    .needs_x = true,
    .in_place = true,
};
