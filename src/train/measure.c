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
    float *targets; /* of a model that predicts a number; NULL: it predicts classes */
    int batch, threads;
    double update; /* seconds of the newest step */
};

static base_status make_batch(struct train_measure *m)
{
    base_status st = BASE_OK;
    size_t n = (size_t)m->batch, values = n * nn_shape_values(nn_graph_input(m->graph));
    struct base_rng rng = base_rng_of(1, BASE_STREAM_TEST, 0, 0, 0);

    TRY(base_tensor(values, sizeof *m->x, "the batch", &m->x));
    TRY(base_tensor(n, sizeof *m->labels, "the labels", &m->labels));
    TRY(base_tensor(n, sizeof *m->ids, "the sample ids", &m->ids));
    if (nn_graph_predicts_number(m->graph))
        TRY(base_tensor(n, sizeof *m->targets, "the targets", &m->targets));
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
    base_free(m->targets);
    base_free(m->ids);
    base_free(m);
}

base_status train_measure_step(struct train_measure *m, double *seconds_p, double *loss_p)
{
    base_status st = BASE_OK;
    double began = base_now(), updates;
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

    TRY(nn_net_forward(
        m->net,
        &(struct nn_batch){.n = m->batch,
                           .x = m->x,
                           .samples = {.labels = m->targets == NULL ? m->labels : NULL,
                                       .targets = m->targets,
                                       .ids = m->ids,
                                       .epoch = (uint32_t)m->state.position.step,
                                       .seed = 1}},
        true, &outcome));
    TRY(nn_net_backward(m->net, 1.0f / (float)m->batch, (struct nn_ready){0}));
    updates = base_now();
    train_update_ranges(&update, &all, 1);
    m->update = base_now() - updates;
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

double train_measure_update(const struct train_measure *m)
{
    return m->update;
}

/* Sums of two arrays that no cache holds, as the gradients of two workers are summed. */
base_status train_measure_memory(int threads, double *rate_p)
{
    enum { FLOATS = 8 << 20, TRIES = 5 };
    base_status st = BASE_OK;
    float *a = NULL, *b = NULL;

    *rate_p = 0;
    TRY(base_tensor(FLOATS, sizeof *a, "a measurement of memory", &a));
    TRY(base_tensor(FLOATS, sizeof *b, "a measurement of memory", &b));
    for (int i = 0; i <= TRIES; i++) { /* the first one warms up */
        double began = base_now();

#pragma omp parallel for num_threads(threads)
        for (int slice = 0; slice < threads; slice++) {
            size_t from = (size_t)FLOATS * (size_t)slice / (size_t)threads,
                   to = (size_t)FLOATS * ((size_t)slice + 1) / (size_t)threads;

            nn_simd()->add(to - from, a + from, b + from, a + from);
        }
        if (i > 0)
            *rate_p = fmax(*rate_p, 3.0 * FLOATS * sizeof *a / (base_now() - began));
    }
out:
    base_free(a);
    base_free(b);
    return st;
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
