/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "train/closed.h"
#include "train/pool.h"
#include "train/tasks/network/network.h"
#include "train/touched.h"

/* The largest tensor, in bytes. */
static double network_largest(const struct nn_graph *graph)
{
    size_t most = 0;

    for (size_t i = 0; i < nn_graph_params(graph); i++)
        if (nn_graph_param(graph, i)->values > most)
            most = nn_graph_param(graph, i)->values;
    return (double)most * sizeof(float);
}

/* Room to lend groups of layers, in bytes: their gradients, or weights, too. */
static double network_lent(const struct nn_graph *graph, bool weights)
{
    int count = 0;
    struct nn_group *groups = nn_graph_groups(graph, 0, nn_graph_layers(graph), &count);
    size_t *floats = base_calloc((size_t)count, sizeof *floats);
    struct train_pool pool;
    double bytes;

    for (int i = 0; i < count; i++)
        floats[i] = groups[i].weights.count;
    train_pool_plan(&pool, floats, count, weights, true);
    bytes = (double)pool.floats * sizeof(float);
    train_pool_fini(&pool);
    base_free(floats);
    base_free(groups);
    return bytes;
}

base_status network_sizes(const struct train_session *s, int workers, int64_t batch,
                          int64_t accumulate, struct train_sizes *sizes_p)
{
    base_status st = BASE_OK;
    const struct network *n = s->work;
    const struct train_job *job = s->job;
    uint32_t whole = train_session_whole(s, batch);
    uint32_t share = data_share_most((struct data_share){0, 1, (uint32_t)workers}, whole);
    int samples = (int)((share + accumulate - 1) / accumulate);
    struct nn_setup setup = {.n_max = samples, .training = true, .apart = job->record.count > 0};
    const struct nn_optimiser *optimiser = NULL;
    struct nn_memory memory;
    struct train_touched touched;
    uint64_t batches = data_loader_memory(n->info, share);

    TRY(nn_optimiser_find(job->optimiser, &optimiser));
    TRY(nn_net_memory(n->graph, &setup, &memory));
    if (job->test || job->validation > 0 ||
        n->recorded != NULL) /* its loader works beside that of the training */
        batches += data_loader_memory(
            n->info, (uint32_t)(s->strategy->stages != NULL ? samples * accumulate : samples));
    train_touched_plan(n->graph, workers, share, &touched);
    *sizes_p = (struct train_sizes){
        .weights = (double)memory.weights,
        .slots = optimiser->slots,
        .statistics = (double)memory.statistics,
        .activations = (double)memory.activations + (double)memory.scratch +
                       (double)nn_closed_memory(n->closed, n->graph, (int)whole),
        .batches = (double)batches + sizeof(uint32_t) * (double)s->count[DATA_TRAIN],
        .tensor = network_largest(n->graph),
        .lent = {network_lent(n->graph, false), network_lent(n->graph, true)},
        .rows = {.weights = (double)touched.floats * sizeof(float),
                 .message = (double)touched.message * sizeof(float),
                 .memory = train_touched_memory(&touched, workers)},
        .samples = samples,
        .graph = n->graph,
    };
out:
    return st;
}
