/* SPDX-License-Identifier: MIT
 *
 * What a worker needs for its share of the batch: the kernel plan, once; network, gradients and
 * loader, anew with every view.
 */
#include "base/mem.h"
#include "nn/tune.h"
#include "train/train_private.h"

static void sum_statistics(void *context, float *sums, size_t count)
{
    train_team_sum(context, sums, count);
}

/* The longest vector that batch-norm sums over workers: two a channel, or one and a count. */
static size_t most_sums(const struct train_session *s)
{
    size_t most = 0;

    for (size_t i = 0; s->job->sync_bn && i < nn_graph_stats(s->graph); i++)
        if (2 * nn_graph_stat(s->graph, i)->floats > most)
            most = 2 * nn_graph_stat(s->graph, i)->floats;
    return most;
}

static struct nn_setup describe_network(struct train_session *s)
{
    struct nn_reduce reduce = {s->job->sync_bn ? sum_statistics : NULL, &s->team};

    return (struct nn_setup){.n_max = s->piece,
                             .training = true,
                             .weights = s->state.weights,
                             .statistics = s->state.statistics,
                             .kernels = s->kernels,
                             .reduce = reduce,
                             .apart = s->job->record.count > 0};
}

/* The largest share of a batch, and the pieces it is computed in. */
static void cut_batch(struct train_session *s)
{
    int64_t count = s->info->count[DATA_TRAIN], size = s->team.exchange.size;
    int64_t share = ((s->batch < count ? s->batch : count) + size - 1) / size;

    s->piece = (int)((share + s->job->accumulate - 1) / s->job->accumulate);
}

base_status train_session_tune(struct train_session *s, const char *wish)
{
    struct nn_setup setup;
    char *cache = nn_tune_cache();
    base_status st;

    cut_batch(s);
    setup = describe_network(s);
    st = nn_tune(s->graph, &setup, wish, cache, &s->kernels);
    base_free(cache);
    return st;
}

static base_status build_network(struct train_session *s)
{
    base_status st = BASE_OK;
    struct nn_setup setup = describe_network(s);

    setup.gradients = s->team.exchange.mine + TRAIN_HEAD;
    if (s->net != NULL && s->piece <= s->net_piece) {
        nn_net_gradients_at(s->net, setup.gradients);
        nn_net_weights_at(s->net, setup.weights);
        return BASE_OK;
    }
    train_record_free(s->record);
    s->record = NULL;
    nn_net_free(s->net);
    s->net = NULL;
    TRY(nn_net_new(s->graph, &setup, &s->net));
    s->net_piece = s->piece;
    if (s->events != NULL)
        TRY(train_record_new(s->net, s->graph, &s->job->record, s->events, &s->record));
out:
    return st;
}

static base_status build_loader(struct train_session *s)
{
    const struct train_job *job = s->job;
    uint32_t count = s->info->count[DATA_TRAIN];
    struct data_share share = {(uint32_t)s->team.exchange.rank, (uint32_t)s->team.exchange.size};

    data_loader_free(s->loader);
    s->loader = NULL;
    return data_loader_new(s->set, DATA_TRAIN, s->batch < count ? (uint32_t)s->batch : count, share,
                           (uint64_t)job->seed,
                           (struct data_augment){.pad = (int)job->pad, .flip = job->flip},
                           &s->loader);
}

base_status train_session_fit(struct train_session *s)
{
    base_status st = BASE_OK;

    cut_batch(s);
    TRY(train_team_begin(&s->team, s->strategy, s->options, s->state.floats, most_sums(s)));
    TRY(build_network(s));
    TRY(build_loader(s));
    if (s->job->accumulate > 1 && s->accumulated == NULL)
        TRY(base_tensor(s->state.floats, sizeof(float), "accumulated gradients", &s->accumulated));
    if (s->order == NULL)
        s->order = base_calloc(s->info->count[DATA_TRAIN], sizeof *s->order);
out:
    return st;
}
