/* SPDX-License-Identifier: MIT
 *
 * A network that classifies samples of a data set or predicts a number of each: src/nn on
 * src/data. Every worker has the whole model, and its gradients go into the exchange's memory,
 * where the strategy sums them; or the strategy has stages, and computes them itself.
 */
#include <string.h>

#include "base/cpu_level.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/model.h"
#include "nn/conv/kernelplan.h"
#include "nn/simd/simd.h"
#include "nn/zoo.h"
#include "train/closed.h"
#include "train/tasks/network/network.h"

/* ---- data and model ---- */

void network_opened(struct train_session *s)
{
    struct network *n = s->work;
    struct base_str shape = {0};

    n->info = n->samples.info;
    memcpy(s->count, n->info->count, sizeof s->count);
    s->own_samples = n->info->count[DATA_TRAIN];
    train_samples_shape(&n->samples, &shape);
    s->shape = base_crc32c(0, shape.text, strlen(shape.text));
    base_str_fini(&shape);
}

static base_status network_open(struct train_session *s)
{
    base_status st = BASE_OK;
    struct network *n = s->work;

    TRY(train_samples_open(&n->samples, s->job));
    network_opened(s);
    s->digest = n->info->digest;
    s->excluded = n->samples.excluded;
    s->data_names = n->info->names;
    s->data_path = n->info->path;
out:
    return st;
}

void network_discard(struct train_session *s)
{
    struct network *n = s->work;

    train_record_free(s->journal.record);
    s->journal.record = NULL;
    nn_net_free(n->net);
    if (n->stages != NULL)
        n->stages->discard(s);
    base_free(n->statistics_before);
    base_free(n->tracked_before);
    base_free(n->accumulated);
    base_free(n->groups);
    base_free(n->recorded);
    train_state_fini(&s->state);
    nn_graph_free(n->graph);
    n->net = NULL;
    n->statistics_before = n->accumulated = NULL;
    n->tracked_before = NULL;
    n->groups = NULL;
    n->recorded = NULL;
    n->graph = NULL;
}

static void network_close(struct train_session *s)
{
    struct network *n = s->work;

    network_discard(s);
    train_samples_close(&n->samples);
}

static base_status network_describe_graph(struct network *n, const struct train_job *job,
                                          const char *text)
{
    const struct data_info *info = n->info;
    struct nn_shape input = {.c = info->channels, .h = info->height, .w = info->width};
    base_status st = nn_graph_new(text, job->model, input, info->classes, &n->graph);
    char *message = NULL;
    struct base_str shape = {0};

    if (st == BASE_OK && data_is_regression(info) && !nn_graph_predicts_number(n->graph))
        st = base_fail(BASE_ERR_MODEL,
                       "%s ends in a loss of classes; end it with `dense classes` and `mse`",
                       job->model);
    if (st == BASE_OK)
        return st;
    message = base_strdup(base_message());
    train_samples_shape(&n->samples, &shape);
    st = base_fail(st, "%s (the data is %s: %s)", message, job->data, shape.text);
    base_str_fini(&shape);
    base_free(message);
    return st;
}

static uint32_t network_whole_batch(const struct train_session *s)
{
    return train_session_whole(s, s->plan.batch);
}

struct data_share network_share(const struct train_session *s)
{
    struct data_share share = train_strategy_share(s);

    if (s->strategy->stages != NULL && share.total > 0)
        share = (struct data_share){0, share.total, share.total};
    return share;
}

/* The largest share of a batch, cut into --accumulate pieces, or as many as the strategy has. */
static void network_cut_batch(struct train_session *s)
{
    struct network *n = s->work;
    int64_t share = data_share_most(network_share(s), network_whole_batch(s));
    int64_t pieces = n->stages != NULL ? n->stages->pieces(s->options) : s->job->accumulate;

    n->piece = (int)((share + pieces - 1) / pieces);
}

/* Is the model one of the zoo that is computed in one step? */
static base_status network_find_closed(struct train_session *s)
{
    struct network *n = s->work;
    const struct nn_zoo *zoo = nn_zoo_find(s->job->model, &n->arguments);
    size_t sums;

    n->closed = zoo != NULL ? zoo->closed : NULL;
    s->closed = n->closed != NULL;
    if (s->closed && data_is_regression(n->info))
        return base_fail(BASE_ERR_USAGE,
                         "%s tells classes apart, but the target '%s' is a number; mlp:0x0 is a "
                         "linear model of it",
                         zoo->name, n->info->class_names[0]);
    if (s->closed && (n->lends.borrow != NULL || n->stages != NULL))
        return base_fail(BASE_ERR_USAGE,
                         "%s is computed in one step, for which a worker needs all of it; strategy "
                         "%s divides it here, --strategy ddp does not",
                         zoo->name, s->strategy->name);
    return s->closed ? n->closed->count(n->graph, &sums) : BASE_OK;
}

base_status network_describe(struct train_session *s, const char *text)
{
    base_status st = BASE_OK;
    struct network *n = s->work;
    const struct nn_optimiser *optimiser = NULL;
    char *zoo = NULL;
    int groups;

    TRY(train_strategy_suits(s->strategy, s->options, s->options, s->job));
    n->stages = s->strategy->stages;
    if (text == NULL)
        TRY(nn_model_text(s->job->model, &zoo));
    TRY(network_describe_graph(n, s->job, text != NULL ? text : zoo));
    TRY(train_attackers_check(&s->attackers, n->info));
    n->lends = train_strategy_lends(s->strategy, s->options);
    TRY(network_find_closed(s));
    TRY(nn_optimiser_find(s->job->optimiser, &optimiser));
    TRY(network_record_choose(s));
    train_memory_choose(s, s->strategy, s->options);
    network_cut_batch(s);
    TRY(train_memory_check(s));
    TRY(train_state_describe(&s->state, n->graph, optimiser));
    TRY(base_tensor(nn_graph_stat_floats(n->graph), sizeof(float), "statistics",
                    &n->statistics_before));
    n->tracked_before = base_calloc(nn_graph_stats(n->graph), sizeof *n->tracked_before);
    n->groups = nn_graph_groups(n->graph, 0, nn_graph_layers(n->graph), &groups);
out:
    base_free(zoo);
    return st;
}

static base_status network_survey(struct train_session *s)
{
    base_status st = BASE_OK;
    struct network *n = s->work;
    char *text = NULL;

    TRY(nn_model_text(s->job->model, &text));
    TRY(network_describe_graph(n, s->job, text));
    TRY(network_find_closed(s));
out:
    base_free(text);
    return st;
}

static const char *network_text(const struct train_session *s)
{
    return nn_graph_text(((const struct network *)s->work)->graph);
}

base_status network_start(struct train_session *s)
{
    return train_state_start(&s->state, (uint64_t)s->job->seed);
}

/* ---- memory for a share ---- */

static void network_sum_statistics(void *context, float *sums, size_t count)
{
    train_team_sum(context, sums, count);
}

static base_status network_await(void *context, size_t offset, size_t count)
{
    struct train_session *s = context;
    struct network *n = s->work;

    train_fault_nth(&s->fault, "await", ++n->awaits, s->team.exchange.step);
    return s->strategy->await(s, offset, count);
}

static struct nn_setup network_describe_net(struct train_session *s)
{
    const struct network *n = s->work;
    struct nn_reduce reduce = {s->job->sync_bn ? network_sum_statistics : NULL, &s->team};

    return (struct nn_setup){.n_max = n->piece,
                             .training = true,
                             .weights = n->lends.weights ? NULL : s->state.weights,
                             .statistics = s->state.statistics,
                             .lender = {.weights = n->lends.weights,
                                        .gradients = n->lends.gradients,
                                        .borrow = n->lends.borrow ? network_borrow : NULL,
                                        .give_back = network_give_back,
                                        .context = s},
                             .await = {s->strategy->await != NULL ? network_await : NULL, s},
                             .kernels = s->kernels,
                             .reduce = reduce,
                             .apart = s->job->record.count > 0};
}

base_status network_tune(struct train_session *s, const char *wished)
{
    const struct network *n = s->work;
    const struct nn_setup setup = network_describe_net(s);

    return nn_kernelplan_make(n->graph, &setup, (struct nn_kernelplan_wish){wished, s->job->tune},
                              &s->kernels);
}

static base_status network_fit_net(struct train_session *s)
{
    base_status st = BASE_OK;
    struct network *n = s->work;
    struct nn_setup setup = network_describe_net(s);

    if (!n->lends.gradients)
        setup.gradients = s->team.exchange.mine + TRAIN_HEAD;
    if (n->net != NULL && n->piece <= n->net_piece) {
        if (!n->lends.gradients)
            nn_net_gradients_at(n->net, setup.gradients);
        return BASE_OK;
    }
    train_record_free(s->journal.record);
    s->journal.record = NULL;
    nn_net_free(n->net);
    n->net = NULL;
    TRY(nn_net_new(n->graph, &setup, &n->net));
    n->net_piece = n->piece;
    n->weights = setup.weights;
    TRY(train_record_new(n->net, n->graph, &s->job->record, &s->journal.events, &s->journal.board,
                         &s->journal.record));
out:
    return st;
}

base_status network_fit(struct train_session *s)
{
    base_status st = BASE_OK;
    struct network *n = s->work;

    network_cut_batch(s);
    if (n->net != NULL && n->piece > n->net_piece)
        train_memory_warn(s);
    TRY(n->stages != NULL ? n->stages->fit(s, n->piece) : network_fit_net(s));
    n->before = 0;
    TRY(train_samples_begin(&n->samples, s->job, network_whole_batch(s), network_share(s)));
    if (s->job->accumulate > 1 && n->accumulated == NULL)
        TRY(base_tensor(s->state.floats, sizeof(float), "accumulated gradients", &n->accumulated));
out:
    return st;
}

/* ---- a batch ---- */

int32_t network_order(struct train_session *s, int64_t epoch, uint32_t *ids, int32_t *classes)
{
    const struct network *n = s->work;
    bool numbers = data_is_regression(n->info);

    data_order(n->samples.set, DATA_TRAIN, (uint64_t)s->job->seed, (uint32_t)epoch,
               s->job->balanced, ids);
    for (uint32_t i = 0; classes != NULL && i < s->own_samples; i++)
        classes[i] = numbers ? 0 : data_label(n->samples.set, DATA_TRAIN, ids[i]);
    return numbers ? 1 : n->info->classes;
}

base_status network_take(struct train_session *s, const struct train_block *block)
{
    return train_samples_take(&((struct network *)s->work)->samples, s->job, block);
}

base_status network_next(struct train_session *s, struct data_batch *batch_p)
{
    struct network *n = s->work;
    const struct train_position *p = &s->state.position;
    base_status st = train_samples_next(&n->samples, s->job, p->epoch, p->cursor, batch_p);

    s->data_failed = st != BASE_OK;
    return st == BASE_OK ? train_attackers_taint(&s->attackers, n->info, batch_p) : st;
}

static void network_tell_strategy(void *context, size_t offset, size_t count)
{
    struct train_session *s = context;
    struct network *n = s->work;

    if (s->strategy->ready != NULL)
        s->strategy->ready(&s->team.exchange, TRAIN_HEAD + offset, count);
    train_fault_nth(&s->fault, "backward", ++n->ranges_ready, s->team.exchange.step);
}

static void network_add_piece(struct train_session *s, bool first, bool last)
{
    struct network *n = s->work;
    float *gradients = s->team.exchange.mine + TRAIN_HEAD;

    if (first && !last)
        memcpy(n->accumulated, gradients, s->state.floats * sizeof(float));
    else if (!first)
        nn_simd()->add(s->state.floats, n->accumulated, gradients,
                       last ? gradients : n->accumulated);
}

static void network_keep_statistics(struct train_session *s)
{
    struct network *n = s->work;

    memcpy(n->statistics_before, s->state.statistics,
           nn_graph_stat_floats(n->graph) * sizeof(float));
    memcpy(n->tracked_before, s->state.tracked,
           nn_graph_stats(n->graph) * sizeof *n->tracked_before);
    n->before = s->team.exchange.step;
}

void network_undo(struct train_session *s)
{
    struct network *n = s->work;

    if (n->before != s->team.exchange.step)
        return; /* the step did not come so far */
    memcpy(s->state.statistics, n->statistics_before,
           nn_graph_stat_floats(n->graph) * sizeof(float));
    memcpy(s->state.tracked, n->tracked_before,
           nn_graph_stats(n->graph) * sizeof *n->tracked_before);
}

/* The state may have moved: into memory that workers share, or from one copy to the other. */
void network_find_weights(struct train_session *s)
{
    struct network *n = s->work;

    if (n->weights != s->state.weights && !n->lends.weights)
        nn_net_weights_at(n->net, s->state.weights);
    n->weights = s->state.weights;
}

/* Like PyTorch: each forward moves the running statistics. */
static void network_track(struct train_session *s, int64_t forwards)
{
    for (size_t i = 0; i < nn_graph_stats(s->state.graph); i++)
        s->state.tracked[i] += forwards;
}

/* Samples [at, at + count) of the batch. */
static base_status network_compute_piece(struct train_session *s, const struct data_batch *b,
                                         uint32_t at, uint32_t count, struct nn_ready ready,
                                         struct train_outcome *outcome)
{
    base_status st = BASE_OK;
    struct network *n = s->work;
    size_t sample = (size_t)n->info->channels * (size_t)n->info->height * (size_t)n->info->width;
    struct nn_outcome o;
    struct nn_batch piece = {
        .n = (int)count,
        .x = b->x + at * sample,
        .samples = {.labels = b->numbers == NULL ? b->labels + at : NULL,
                    .targets = b->numbers != NULL ? b->numbers + at : NULL,
                    .ids = b->ids + at,
                    .epoch = b->epoch,
                    .seed = (uint64_t)s->job->seed},
    };

    TRY(nn_net_forward(n->net, &piece, true, &o));
    train_fault_at(&s->fault, "forward", s->team.exchange.step);
    network_track(s, count > 0 || s->job->sync_bn);
    outcome->loss_sum += o.loss_sum;
    outcome->correct += o.correct;
    TRY(nn_net_backward(n->net, 1.0f / (float)b->whole, ready));
out:
    return st;
}

/* Pieces of this worker's share. What is lent all workers gather and sum together, so that each
 * makes as many passes as the one with the most samples. */
static uint32_t network_pieces(const struct train_session *s, const struct data_batch *b)
{
    const struct network *n = s->work;
    uint32_t most = (uint32_t)n->piece, samples = b->count;

    if (n->lends.borrow != NULL)
        samples = data_share_most(network_share(s), b->whole);
    if (samples == 0 && s->job->sync_bn) /* the others wait for this worker's sums */
        return 1;
    return samples / most + (samples % most != 0);
}

base_status network_compute(struct train_session *s, const struct data_batch *b,
                            struct train_outcome *outcome)
{
    struct network *n = s->work;
    uint32_t most = (uint32_t)n->piece, pieces = network_pieces(s, b), at = 0;
    /* With several pieces only their sum is a gradient that a strategy may use. */
    struct nn_ready ready =
        pieces <= 1 ? (struct nn_ready){network_tell_strategy, s} : (struct nn_ready){0};
    base_status st = BASE_OK;

    network_keep_statistics(s);
    if (n->stages != NULL) {
        network_track(s, pieces);
        return n->stages->compute(s, b, outcome);
    }
    network_find_weights(s);
    n->ranges_ready = n->loans = n->awaits = 0;
    if (b->count == 0) /* more workers than samples */
        memset(s->team.exchange.mine, 0, s->team.exchange.floats * sizeof(float));
    for (uint32_t i = 0; i < pieces; i++, at += n->has) {
        n->begins = i == 0;
        n->ends = i == pieces - 1;
        n->has = b->count - at < most ? b->count - at : most;
        TRY(network_compute_piece(s, b, at, n->has, ready, outcome));
        if (!n->lends.gradients)
            network_add_piece(s, n->begins, n->ends);
    }
    TRY(s->team.failure);
    outcome->seen = b->count;
out:
    return st;
}

static base_status network_solve(struct train_session *s)
{
    const struct network *n = s->work;

    return train_closed_leg(s, n->closed, n->arguments, n->samples.set, network_whole_batch(s));
}

/* Workers may have computed different numbers of batches, and some processes none: the most counts.
 */
static base_status network_unite_tracked(struct train_session *s)
{
    base_status st = BASE_OK;
    size_t count = nn_graph_stats(((struct network *)s->work)->graph);
    size_t size = (size_t)s->team.exchange.size;
    int64_t *all = base_calloc(size * count, sizeof *all);

    if (count > 0)
        TRY(train_team_gather(&s->team, s->state.tracked, count * sizeof *all, all));
    for (size_t i = 0; i < size * count; i++)
        if (all[i] > s->state.tracked[i % count])
            s->state.tracked[i % count] = all[i];
out:
    base_free(all);
    return st;
}

/* Every worker's running statistics are of its own samples; from here on they are of all. */
base_status network_unite(struct train_session *s)
{
    base_status st = BASE_OK;
    struct network *n = s->work;
    size_t count = nn_graph_stat_floats(n->graph);

    if (s->job->sync_bn)
        return BASE_OK;
    memcpy(n->statistics_before, s->state.statistics, count * sizeof(float));
    n->before = 0; /* the buffer is used for something else */
    TRY(train_team_mean(&s->team, n->statistics_before, count, s->samples - n->united_samples));
    n->united_samples = s->samples;
    memcpy(s->state.statistics, n->statistics_before, count * sizeof(float));
    TRY(network_unite_tracked(s));
out:
    return st;
}

/* ---- what is told ---- */

static void network_about(const struct train_session *s, json_t *settings,
                          struct model_about *about_p)
{
    const struct network *n = s->work;

    model_about_init(about_p, nn_graph_text(n->graph),
                     n->net != NULL ? nn_net_kernels(n->net) : s->kernels, n->info, settings);
}

static void network_announce(const struct train_session *s)
{
    const struct network *n = s->work;
    struct base_str text = {0};

    data_warn(n->samples.set);
    train_samples_text(&n->samples, s->job->data, &text);
    base_info("%s: %llu parameters, %sFLOP a sample; %s", s->job->model,
              (unsigned long long)nn_graph_parameters(n->graph),
              base_scaled(nn_graph_flops(n->graph)).text, text.text);
    base_str_fini(&text);
    if (s->closed)
        base_info("%s is computed from sums over the samples, in one pass; --epochs, --lr and the "
                  "like change nothing",
                  s->job->model);
    base_info("run %s, %d thread%s, %s kernels", s->run.path, s->threads, base_plural(s->threads),
              base_cpu_level_name(base_cpu_level()));
}

const struct train_task train_task_network = {
    .name = "network",
    .help = "a network that classifies samples or predicts numbers",
    .size = sizeof(struct network),
    .uses = TRAIN_USE_STEPS | TRAIN_USE_SAMPLES,
    .open = network_open,
    .close = network_close,
    .describe = network_describe,
    .survey = network_survey,
    .discard = network_discard,
    .text = network_text,
    .sizes = network_sizes,
    .start = network_start,
    .tune = network_tune,
    .fit = network_fit,
    .order = network_order,
    .take = network_take,
    .next = network_next,
    .compute = network_compute,
    .undo = network_undo,
    .solve = network_solve,
    .unite = network_unite,
    .score_count = network_score_count,
    .score = network_score,
    .score_text = network_score_text,
    .score_json = network_score_json,
    .result = network_result,
    .grade = network_grade,
    .graded = network_graded,
    .about = network_about,
    .record = network_record,
    .announce = network_announce,
};
