/* SPDX-License-Identifier: MIT */
#include "train/measure.h"

#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/conv/kernelplan.h"
#include "nn/simd/simd.h"
#include "nn/threads.h"
#include "nn/zoo.h"
#include "train/state.h"
#include "train/update.h"

struct train_measure {
    struct nn_graph *graph;
    struct train_state state;
    struct nn_net *net;
    char *kernels;
    float *x;
    int32_t *labels;
    uint32_t *ids;
    int batch, threads;
};

static base_status make_batch(struct train_measure *m)
{
    base_status st = BASE_OK;
    size_t n = (size_t)m->batch, values = n * nn_shape_values(nn_graph_input(m->graph));
    struct base_rng rng = base_rng_of(1, BASE_STREAM_TEST, 0, 0, 0);

    TRY(base_tensor(values, sizeof *m->x, "the batch", &m->x));
    TRY(base_tensor(n, sizeof *m->labels, "the labels", &m->labels));
    TRY(base_tensor(n, sizeof *m->ids, "the sample ids", &m->ids));
    for (size_t i = 0; i < values; i++)
        m->x[i] = 2 * base_rng_unit(base_rng_u32(&rng, (uint32_t)i)) - 1;
    for (size_t i = 0; i < n; i++) {
        m->ids[i] = (uint32_t)i;
        m->labels[i] =
            (int32_t)(base_rng_u32(&rng, (uint32_t)i) % (uint32_t)nn_graph_classes(m->graph));
    }
out:
    return st;
}

static base_status make_network(struct train_measure *m, const struct train_measure_setup *setup)
{
    base_status st = BASE_OK;
    const struct nn_optimiser *sgd = NULL;
    struct nn_setup net = {.n_max = m->batch, .training = true};

    TRY(nn_optimiser_find("sgd", &sgd));
    TRY(train_state_init(&m->state, m->graph, sgd));
    nn_graph_start(m->graph, 1, m->state.weights, m->state.statistics);
    TRY(nn_kernelplan_make(m->graph, &net, (struct nn_kernelplan_wish){setup->kernels, setup->tune},
                           &m->kernels));
    net.kernels = m->kernels;
    net.weights = m->state.weights;
    net.statistics = m->state.statistics;
    TRY(nn_net_new(m->graph, &net, &m->net));
out:
    return st;
}

base_status train_measure_new(const struct train_measure_setup *setup,
                              struct train_measure **measure_p)
{
    base_status st = BASE_OK;
    struct train_measure *m = base_calloc(1, sizeof *m);
    char *text = NULL;

    *measure_p = NULL;
    m->batch = setup->batch;
    m->threads = nn_threads_set(setup->threads);
    TRY(nn_model_text(setup->model, &text));
    TRY(nn_graph_new(text, setup->model, setup->input, setup->classes, &m->graph));
    TRY(make_network(m, setup));
    TRY(make_batch(m));
    *measure_p = m;
    m = NULL;
out:
    base_free(text);
    train_measure_free(m);
    return st;
}

void train_measure_free(struct train_measure *m)
{
    if (m == NULL)
        return;
    nn_net_free(m->net);
    train_state_fini(&m->state);
    nn_graph_free(m->graph);
    base_free(m->kernels);
    base_free(m->x);
    base_free(m->labels);
    base_free(m->ids);
    base_free(m);
}

base_status train_measure_step(struct train_measure *m, double *seconds_p, double *loss_p)
{
    base_status st = BASE_OK;
    double began = base_now();
    struct nn_outcome outcome;
    struct train_range all = {TRAIN_HEAD, m->state.floats, nn_net_gradients(m->net)};
    struct train_update update = {
        .weights = m->state.weights,
        .slots = {m->state.slots[0], m->state.slots[1]},
        .optimiser = m->state.optimiser,
        .hyper = {.lr = 0.01,
                  .momentum = 0.9,
                  .weight_decay = 1e-4,
                  .gradient_scale = 1,
                  .step = (uint64_t)++m->state.position.step},
    };

    TRY(nn_net_forward(m->net,
                       &(struct nn_batch){.n = m->batch,
                                          .x = m->x,
                                          .samples = {.labels = m->labels,
                                                      .ids = m->ids,
                                                      .epoch = (uint32_t)m->state.position.step,
                                                      .seed = 1}},
                       true, &outcome));
    TRY(nn_net_backward(m->net, 1.0f / (float)m->batch, (struct nn_ready){0}));
    train_update_ranges(&update, &all, 1);
    *seconds_p = base_now() - began;
    *loss_p = outcome.loss_sum / m->batch;
out:
    return st;
}

const struct nn_graph *train_measure_graph(const struct train_measure *m)
{
    return m->graph;
}

struct nn_net *train_measure_net(struct train_measure *m)
{
    return m->net;
}

int train_measure_threads(const struct train_measure *m)
{
    return m->threads;
}

double train_measure_peak(int threads)
{
    enum { TRIES = 9 };
    const long rounds = 1000000;
    double best = 0;

    for (int i = 0; i < TRIES; i++) {
        double began = base_now(), flops = nn_simd()->fma(rounds, threads);

        best = fmax(best, flops / (base_now() - began));
    }
    return best;
}
