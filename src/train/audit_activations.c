/* SPDX-License-Identifier: MIT
 *
 * What a network makes of every training sample before its last layer with weights. A layer of many
 * outputs is projected at random: distances stay nearly what they were, and covariances small.
 */
#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/loader.h"
#include "model/model.h"
#include "train/audit_private.h"
#include "train/evaluate.h"

struct reading {
    struct nn_net *net;
    int layer, features; /* whose output; what is kept of it */
    size_t values;       /* of that output */
    float *output;       /* (values) of a sample */
    float *x;            /* (count,features) */
};

/* The layer that feeds the last one with weights. */
static base_status find_layer(const struct nn_graph *graph, int *layer_p)
{
    int last = nn_graph_layers(graph) - 1;

    while (last > 0 && nn_graph_node(graph, last)->params == 0)
        last--;
    *layer_p = last - 1;
    if (last == 0)
        return base_fail(BASE_ERR_USAGE, "the network has one layer with weights, and so no "
                                         "activations that an audit could look at");
    return BASE_OK;
}

/* Each feature is the sum of all values with signs that follow from their places. */
static void project(const struct reading *r, float *to)
{
    for (int f = 0; f < r->features; f++) {
        double sum = 0;
        uint64_t bits = 0;

        for (size_t i = 0; i < r->values; i++, bits >>= 1) {
            if (i % 64 == 0)
                bits = base_rng_mix(base_rng_mix((uint64_t)f + 1) + i);
            sum += (bits & 1) != 0 ? (double)r->output[i] : -(double)r->output[i];
        }
        to[f] = (float)(sum / sqrt((double)r->values));
    }
}

static base_status read_batch(void *context, const struct data_batch *b, struct train_tally *tally)
{
    base_status st = BASE_OK;
    struct reading *r = context;
    struct nn_outcome outcome;

    (void)tally;
    TRY(nn_net_forward(r->net, &(struct nn_batch){.n = (int)b->count, .x = b->x}, false, &outcome));
    for (uint32_t i = 0; i < b->count; i++) {
        float *to = r->x + (size_t)b->ids[i] * (size_t)r->features;

        if (r->output == NULL) {
            TRY(nn_net_output(r->net, r->layer, (int)i, to));
            continue;
        }
        TRY(nn_net_output(r->net, r->layer, (int)i, r->output));
        project(r, to);
    }
out:
    return st;
}

base_status audit_activations(const struct model *model, const struct data_set *set, int batch,
                              float **x_p, int *features_p)
{
    base_status st = BASE_OK;
    struct reading r = {0};
    struct train_clock clock;

    *x_p = NULL;
    TRY(find_layer(model->graph, &r.layer));
    r.values = nn_shape_values(nn_graph_node(model->graph, r.layer)->out);
    r.features = r.values > AUDIT_FEATURES ? AUDIT_FEATURES : (int)r.values;
    if (r.values > AUDIT_FEATURES)
        TRY(base_tensor(r.values, sizeof *r.output, "activations", &r.output));
    TRY(base_tensor((size_t)data_describe(set)->count[DATA_TRAIN] * (size_t)r.features, sizeof *r.x,
                    "activations of all samples", &r.x));
    TRY(nn_net_new(model->graph,
                   &(struct nn_setup){.n_max = batch,
                                      .weights = model->weights.weights,
                                      .statistics = model->weights.statistics,
                                      .keep_outputs = true},
                   &r.net));
    train_clock_start(&clock);
    TRY(train_evaluate_by((struct train_pass){read_batch, &r}, set, DATA_TRAIN,
                          (struct data_share){0}, batch, false, NULL, &clock, NULL));
    *x_p = r.x;
    *features_p = r.features;
    r.x = NULL;
out:
    nn_net_free(r.net);
    base_free(r.output);
    base_free(r.x);
    return st;
}
