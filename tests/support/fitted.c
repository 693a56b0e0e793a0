/* SPDX-License-Identifier: MIT */
#include "support/fitted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "nn/net.h"
#include "nn/optimiser.h"
#include "nn/threads.h"
#include "recsys/ncf.h"

/* ---- a model that is trained by batches: as a network, with few frills ---- */

enum { BATCH = 32, EPOCHS = 15 };

/* The network's weights become the buffers of the fit, which have the same names. */
static void export(const struct nn_graph *graph, const float *weights, struct recsys_fit *fit)
{
    assert_int_equal(nn_graph_params(graph), fit->buffer_count);
    for (int i = 0; i < fit->buffer_count; i++) {
        const struct nn_tensor *t = nn_graph_param(graph, (size_t)i);

        assert_string_equal(t->name, fit->buffers[i].name);
        assert_int_equal(t->values, (size_t)fit->buffers[i].rows * fit->buffers[i].width);
        nn_tensor_export(t, weights + t->offset, fit->buffers[i].at);
    }
}

static struct nn_graph *graph_of(const struct recsys_fit *fit)
{
    char *text = recsys_ncf_text(fit);
    struct nn_graph *graph = NULL;

    if (nn_graph_new(text, "ncf", (struct nn_shape){0}, 0, &graph) != BASE_OK)
        fail_msg("%s: %s", text, base_message());
    base_free(text);
    return graph;
}

/* Ratings of batch b: every `batches`-th one from b on. */
static int fill(const struct recsys_fit *fit, uint64_t b, uint64_t batches, float *x, float *y)
{
    const struct recsys_rows *rows = fit->by_user;
    int n = 0;

    for (uint32_t u = 0; u < rows->rows; u++)
        for (uint64_t k = rows->start[u]; k < rows->start[u + 1]; k++) {
            if (k % batches != b)
                continue;
            x[2 * n] = (float)u;
            x[2 * n + 1] = (float)rows->column[k];
            y[n++] = recsys_value(fit->scale, rows, k) - fit->mean;
        }
    return n;
}

static void train_network(struct recsys_fit *fit, int epochs)
{
    struct nn_graph *graph = graph_of(fit);
    const struct nn_setup setup = {.n_max = BATCH, .training = true};
    const uint64_t batches = (fit->by_user->count + BATCH - 1) / BATCH;
    const size_t floats = nn_graph_weight_floats(graph);
    const struct nn_optimiser *adam = NULL;
    float *slots[2] = {base_calloc(floats, sizeof(float)), base_calloc(floats, sizeof(float))};
    float x[2 * BATCH], y[BATCH];
    struct nn_hyper hyper = {.lr = 0.01,
                             .weight_decay = 1e-3,
                             .beta1 = 0.9,
                             .beta2 = 0.999,
                             .epsilon = 1e-8,
                             .gradient_scale = 1,
                             .lazy = true};
    struct nn_net *net = NULL;

    nn_threads_set(1); /* small batches: threads would spend their time in waiting for each other */
    assert_int_equal(nn_optimiser_find("adam", &adam), BASE_OK);
    assert_int_equal(nn_net_new(graph, &setup, &net), BASE_OK);
    nn_graph_start(graph, fit->seed, nn_net_weights(net), nn_net_statistics(net));
    for (uint64_t step = 0; step < batches * (uint64_t)epochs; step++) {
        const uint32_t ids[BATCH] = {0};
        const struct nn_batch batch = {.n = fill(fit, step % batches, batches, x, y),
                                       .x = x,
                                       .samples = {.targets = y, .ids = ids, .seed = step}};
        struct nn_outcome outcome;

        hyper.step = step + 1;
        assert_int_equal(nn_net_forward(net, &batch, true, &outcome), BASE_OK);
        assert_int_equal(nn_net_backward(net, 1.0f / (float)batch.n, (struct nn_ready){0}),
                         BASE_OK);
        adam->update(&hyper, &(struct nn_update){.count = floats,
                                                 .gradient = nn_net_gradients(net),
                                                 .weight_in = nn_net_weights(net),
                                                 .weight_out = nn_net_weights(net),
                                                 .slot_in = {slots[0], slots[1]},
                                                 .slot_out = {slots[0], slots[1]}});
    }
    export(graph, nn_net_weights(net), fit);
    nn_net_free(net);
    nn_graph_free(graph);
    base_free(slots[0]);
    base_free(slots[1]);
}

static base_status open_network(const struct recsys_setup *setup, struct recsys_fit **fit_p)
{
    base_status st = BASE_OK;

    TRY(recsys_fit_open(setup, fit_p));
    TRY(base_tensor((*fit_p)->floats, sizeof(float), "a rating model", &(*fit_p)->memory));
    recsys_fit_place(*fit_p, (*fit_p)->memory);
    train_network(*fit_p, 0);
out:
    return st;
}

void fitted_open(struct fitted *f, const struct rated *rated, const char *model,
                 const char *options, int threads, uint64_t seed)
{
    char *text = base_format("%s:%s", model, options);
    struct recsys_setup setup = {.scale = &rated->scale, .by_user = &rated->by_user, .seed = seed};

    assert_int_equal(base_team_new(threads, &f->team), BASE_OK);
    if (recsys_model_find(text, &setup.model, &f->options) != BASE_OK)
        fail_msg("%s: %s", text, base_message());
    setup.options = f->options;
    setup.team = f->team;
    setup.by_item = setup.model->by_item ? &rated->by_item : NULL;
    if ((setup.model->batches ? open_network(&setup, &f->fit) : recsys_fit_new(&setup, &f->fit)) !=
        BASE_OK)
        fail_msg("%s: %s", text, base_message());
    base_free(text);
}

void fitted_train(struct fitted *f)
{
    if (f->fit->model->batches)
        train_network(f->fit, EPOCHS);
    for (int64_t s = 0; s < f->fit->sweeps; s++)
        assert_int_equal(recsys_sweep(f->fit), BASE_OK);
}

void fitted_close(struct fitted *f)
{
    recsys_fit_free(f->fit);
    base_free(f->options);
    base_team_free(f->team);
}
