/* SPDX-License-Identifier: MIT
 *
 * A layer that counts samples: weight i gets the gradient of sample i, which the loss (counted.c)
 * sends back through all layers. It passes on what it gets, one more than the layer before. A
 * sample is counted only if it has come through all layers before this one, forward, and through
 * all after it, back, and if the weights have all epochs before and not this one. The statistic is
 * how many samples were ever learnt from.
 */
#include <math.h>
#include <string.h>

#include "nn/layer.h"
#include "nn/line.h"
#include "sim/counting.h"

struct config {
    int samples;
};

static base_status counter_parse(struct nn_line *line, void *config)
{
    return nn_line_int(line, "SAMPLES", 1, 1 << 20, &((struct config *)config)->samples);
}

static base_status counter_describe(struct nn_node *node)
{
    const struct config *c = node->config;

    node->out = node->in;
    node->flops = 1000;
    nn_node_param(node, "weight", nn_tensor_vector(c->samples, NN_START_ZERO, 0));
    nn_node_stat(node, "seen", nn_tensor_vector(1, NN_START_ZERO, 0));
    return BASE_OK;
}

/* A third of what a sample takes, of one of the layers. */
static void counter_compute(int n)
{
    sim_counting_compute(n / 3.0 / sim_counting.layers);
}

static base_status counter_forward(struct nn_pass *p)
{
    size_t floats = nn_shape_floats(p->node->in);

    memcpy(p->y, p->x, (size_t)p->n * floats * sizeof *p->y);
    for (int j = 0; j < p->n; j++)
        p->y[(size_t)j * floats] += 1;
    if (p->training)
        p->stat[0][0] += (float)p->n;
    counter_compute(p->n);
    return BASE_OK;
}

static void counter_samples(const struct nn_pass *p)
{
    const struct config *c = p->node->config;
    size_t floats = nn_shape_floats(p->node->in);

    memset(p->dparam[0], 0, (size_t)c->samples * sizeof(float));
    for (int j = 0; j < p->n; j++) {
        const float *x = p->x + (size_t)j * floats, *dy = p->dy + (size_t)j * floats;
        uint32_t id = p->samples->ids[j];

        if (lroundf(x[0]) == (long)id + p->node->index && lroundf(dy[1]) == (long)id &&
            p->param[0][id] == (float)p->samples->epoch)
            p->dparam[0][id] -= dy[0];
    }
    counter_compute(p->n);
}

static base_status counter_backward(struct nn_pass *p)
{
    if (p->dparam[0] != NULL)
        counter_samples(p);
    if (p->dx != NULL) {
        memcpy(p->dx, p->dy, (size_t)p->n * nn_shape_floats(p->node->in) * sizeof *p->dx);
        counter_compute(p->n);
    }
    return BASE_OK;
}

const struct nn_layer nn_layer_counter = {
    .name = "counter",
    .help = "counts samples",
    .usage = "counter SAMPLES",
    .config_size = sizeof(struct config),
    .parse = counter_parse,
    .describe = counter_describe,
    .forward = counter_forward,
    .backward = counter_backward,
    .needs_x = true,
    .splits = true,
};
