/* SPDX-License-Identifier: MIT */
#include "sim/counting.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/net.h"
#include "sim/hosts.h"
#include "sim/rotating.h"

/* Of this worker, in session->work. */
struct counting {
    struct sim_rotating rotating; /* first: of the task that sweeps */
    struct data_info info;
    struct nn_graph *graph;
    uint32_t *order, *ids;
    int64_t epoch;        /* of the order */
    struct taken *blocks; /* that `take` gave, first to last; NULL: shares are served … */
    bool takes;           /* … unless all blocks are used up */
};

struct taken {
    struct taken *next;
    uint32_t count, at, batch;
    uint32_t ids[];
};

enum { CLASSES = 8 };

struct sim_counting sim_counting;

static void make_order(int64_t seed, int64_t epoch, uint32_t count, uint32_t *order)
{
    struct base_rng rng = base_rng_of((uint64_t)seed, BASE_STREAM_SHUFFLE, 0, (uint32_t)epoch, 0);

    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    base_rng_shuffle(&rng, order, count);
}

void sim_counting_check(const struct train_job *job, const struct train_position *position,
                        const float *weights, bool exact, const char *where)
{
    uint32_t count = sim_counting.count[DATA_TRAIN];
    uint32_t *order = base_calloc(count, sizeof *order);
    float most = exact ? 0 : 0.01f;

    make_order(job->seed, position->epoch, count, order);
    for (uint32_t i = 0; i < count; i++) {
        float times = (float)(position->epoch + (i < position->cursor));

        if (isnan(weights[order[i]]))
            continue;
        sim_check(fabsf(weights[order[i]] - times) <= most,
                  "%s: at step %" PRId64 " (epoch %" PRId64 ", cursor %" PRId64
                  ") sample %u is %g times in the weights and not %g",
                  where, position->step, position->epoch, position->cursor, order[i],
                  (double)weights[order[i]], (double)times);
    }
    base_free(order);
}

/* Between the rounds of local-sgd and downpour each worker has weights of its own; an update of ps
 * by a block is of that block's mean gradient, which is rounded. */
static bool is_exact(const struct train_session *s)
{
    return strcmp(s->strategy->name, "local-sgd") != 0 &&
           strcmp(s->strategy->name, "downpour") != 0 && strcmp(s->strategy->name, "ps") != 0;
}

/* The weights that this worker holds, NAN for the others; base_free. */
static float *own_weights(const struct train_session *s)
{
    float *weights = base_calloc(s->state.floats, sizeof *weights);

    for (size_t i = 0; i < s->state.floats; i++)
        weights[i] = NAN;
    train_state_get(&s->state, TRAIN_WEIGHTS, 0, 0, s->state.floats, weights);
    return weights;
}

/* A leg was left half-way: so many samples after the cursor are in the weights, too. They are taken
 * out here, and the rest is checked as ever. */
static void take_out_ahead(const struct train_session *s, float *weights, const char *where)
{
    const struct train_position *p = &s->state.position;
    uint32_t count = s->count[DATA_TRAIN];
    uint32_t *order = base_calloc(count, sizeof *order);
    int64_t found = 0;
    bool whole = true;

    make_order(s->job->seed, p->epoch, count, order);
    for (int64_t i = p->cursor; i < count; i++) {
        float *weight = &weights[order[i]];

        whole &= !isnan(*weight);
        if (*weight > (float)p->epoch + 0.5f) {
            *weight -= 1;
            found++;
        }
    }
    sim_check(!whole || found == s->state.ahead,
              "%s: %" PRId64 " samples after the cursor are in the weights and not %" PRId64, where,
              found, s->state.ahead);
    base_free(order);
}

void sim_counting_check_state(const struct train_session *s, const char *where)
{
    float *weights = own_weights(s);

    if (s->state.ahead > 0)
        take_out_ahead(s, weights, where);
    sim_counting_check(s->job, &s->state.position, weights, is_exact(s), where);
    base_free(weights);
}

/* ---- data and model ---- */

static base_status counting_open(struct train_session *s)
{
    static char *names[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    struct counting *c = s->work;

    c->info = (struct data_info){.name = (char *)(uintptr_t)s->job->data,
                                 .format = "counting",
                                 .channels = 1,
                                 .height = (int)sim_counting.count[DATA_TRAIN] / CLASSES,
                                 .width = 1,
                                 .classes = CLASSES,
                                 .class_names = names,
                                 .deviation = {1}};
    memcpy(c->info.count, sim_counting.count, sizeof c->info.count);
    memcpy(s->count, sim_counting.count, sizeof s->count);
    s->own_samples = s->count[DATA_TRAIN];
    snprintf(c->info.digest, sizeof c->info.digest, "%064d", 7);
    s->digest = c->info.digest;
    s->data_names = c->info.names;
    c->order = base_calloc(s->count[DATA_TRAIN], sizeof *c->order);
    c->ids = base_calloc(s->count[DATA_TRAIN], sizeof *c->ids);
    c->epoch = -1;
    sim_rotating_init(&c->rotating, s->count[DATA_TRAIN]);
    return BASE_OK;
}

/* The last weights that a worker had go to its notes. */
static void keep_notes(const struct train_session *s)
{
    struct sim_worker *me = sim_worker_self();
    struct train_state *notes;
    float *weights;

    if (!s->whole)
        return;
    if (me->notes == NULL) {
        me->notes = notes = base_calloc(1, sizeof *notes);
        notes->weights = base_calloc(s->count[DATA_TRAIN], sizeof(float));
    }
    notes = me->notes;
    notes->position = s->state.position;
    weights = own_weights(s);
    memcpy(notes->weights, weights, s->count[DATA_TRAIN] * sizeof(float));
    base_free(weights);
}

static void counting_discard(struct train_session *s)
{
    struct counting *c = s->work;

    keep_notes(s);
    train_state_fini(&s->state);
    nn_graph_free(c->graph);
    c->graph = NULL;
}

static void forget_blocks(struct counting *c)
{
    while (c->blocks != NULL) {
        struct taken *block = c->blocks;

        c->blocks = block->next;
        base_free(block);
    }
    c->takes = false;
}

static void counting_close(struct train_session *s)
{
    struct counting *c = s->work;

    counting_discard(s);
    forget_blocks(c);
    sim_rotating_fini(&c->rotating);
    base_free(c->order);
    base_free(c->ids);
}

static base_status counting_describe(struct train_session *s, const char *text)
{
    base_status st = BASE_OK;
    struct counting *c = s->work;
    const struct nn_optimiser *optimiser = NULL;
    struct nn_shape input = {.c = 1, .h = c->info.height, .w = 1};
    char *own = base_format("input 1x%dx1\nclasses %d\ndense classes\n", c->info.height, CLASSES);

    TRY(nn_graph_new(text != NULL ? text : own, "counting", input, CLASSES, &c->graph));
    TRY(nn_optimiser_find(s->job->optimiser, &optimiser));
    TRY(train_state_describe(&s->state, c->graph, optimiser));
out:
    base_free(own);
    return st;
}

static const char *counting_text(const struct train_session *s)
{
    return nn_graph_text(((const struct counting *)s->work)->graph);
}

static base_status counting_start(struct train_session *s)
{
    train_state_clear(&s->state);
    return BASE_OK;
}

static base_status counting_tune(struct train_session *s, const char *wished)
{
    (void)wished;
    s->kernels = base_strdup("");
    return BASE_OK;
}

static base_status counting_fit(struct train_session *s)
{
    forget_blocks(s->work);
    return BASE_OK;
}

/* ---- a batch ---- */

static int32_t counting_order(struct train_session *s, int64_t epoch, uint32_t *ids,
                              int32_t *classes)
{
    make_order(s->job->seed, epoch, s->count[DATA_TRAIN], ids);
    for (uint32_t i = 0; classes != NULL && i < s->count[DATA_TRAIN]; i++)
        classes[i] = (int32_t)ids[i] % CLASSES;
    return CLASSES;
}

static base_status counting_take(struct train_session *s, const struct train_block *block)
{
    struct counting *c = s->work;
    struct taken **last = &c->blocks;

    if (block == NULL) {
        forget_blocks(c);
        return BASE_OK;
    }
    c->takes = true;
    while (*last != NULL)
        last = &(*last)->next;
    if (block->count == 0)
        return BASE_OK;
    *last = base_calloc(1, sizeof **last + block->count * sizeof *block->ids);
    (*last)->count = (uint32_t)block->count;
    (*last)->batch = block->batch;
    if (block->ids == NULL && c->epoch != block->epoch)
        make_order(s->job->seed, block->epoch, s->count[DATA_TRAIN], c->order);
    if (block->ids == NULL)
        c->epoch = block->epoch;
    memcpy((*last)->ids, block->ids != NULL ? block->ids : c->order + block->from,
           block->count * sizeof *block->ids);
    return BASE_OK;
}

static void next_of_block(struct counting *c, struct data_batch *batch_p)
{
    struct taken *block = c->blocks;
    uint32_t count;

    *batch_p = (struct data_batch){0};
    if (block == NULL)
        return;
    count = block->count - block->at < block->batch ? block->count - block->at : block->batch;
    memcpy(c->ids, block->ids + block->at, count * sizeof *c->ids);
    *batch_p = (struct data_batch){.count = count, .whole = count, .ids = c->ids};
    block->at += count;
    if (block->at == block->count) {
        c->blocks = block->next;
        base_free(block);
    }
}

static base_status counting_next(struct train_session *s, struct data_batch *batch_p)
{
    struct counting *c = s->work;
    const struct train_position *p = &s->state.position;
    uint32_t whole = (uint32_t)s->plan.batch, left = s->count[DATA_TRAIN] - (uint32_t)p->cursor;
    uint32_t first, count;

    sim_worker_self()->knows = true;
    if (c->takes) {
        next_of_block(c, batch_p);
        return BASE_OK;
    }
    if (is_exact(s))
        sim_counting_check_state(s, "the next batch");
    if (c->epoch != p->epoch)
        make_order(s->job->seed, p->epoch, s->count[DATA_TRAIN], c->order);
    c->epoch = p->epoch;
    whole = left < whole ? left : whole;
    data_share_of(train_strategy_share(s), whole, &first, &count);
    memcpy(c->ids, c->order + p->cursor + first, count * sizeof *c->ids);
    *batch_p = (struct data_batch){.count = count, .whole = whole, .ids = c->ids};
    return BASE_OK;
}

void sim_counting_compute(double samples)
{
    base_sleep_until(base_now() + samples * sim_counting.seconds * sim_worker_self()->slowness);
}

/* The range [from, to) of the gradients is complete. */
static void tell_strategy(struct train_session *s, size_t from, size_t to)
{
    if (s->strategy->ready != NULL)
        s->strategy->ready(&s->team.exchange, TRAIN_HEAD + from, to - from);
}

/* A pass over a model that is lent: it is one group. What is gathered are the weights of all. */
static base_status borrow_all(struct train_session *s, const struct train_lends *lends,
                              const struct data_batch *b, bool backward)
{
    base_status st = BASE_OK;
    struct nn_loan loan = {.next = -1, .backward = backward};

    TRY(lends->borrow(s, &loan));
    if (lends->weights)
        sim_counting_check(s->job, &s->state.position, loan.weights, true, "lent weights");
    if (backward)
        memset(loan.gradients, 0, s->state.floats * sizeof *loan.gradients);
    for (uint32_t i = 0; backward && i < b->count; i++)
        loan.gradients[b->ids[i]] = -1.0f / (float)b->whole;
    sim_counting_compute(b->count / 2.0);
    TRY(lends->give_back(s, &loan, true));
out:
    return st;
}

static base_status compute_lent(struct train_session *s, const struct train_lends *lends,
                                const struct data_batch *b)
{
    base_status st = BASE_OK;

    if (lends->weights)
        TRY(borrow_all(s, lends, b, false));
    TRY(borrow_all(s, lends, b, true));
out:
    return st;
}

static base_status counting_compute(struct train_session *s, const struct data_batch *b,
                                    struct train_outcome *outcome)
{
    enum { LAYERS = 3 };
    const struct train_lends lends = train_strategy_lends(s->strategy, s->options);
    float *gradients = s->team.exchange.mine + TRAIN_HEAD;
    size_t floats = s->state.floats;

    *outcome = (struct train_outcome){.loss_sum = b->count, .correct = b->count, .seen = b->count};
    if (lends.gradients)
        return compute_lent(s, &lends, b);
    memset(gradients, 0, floats * sizeof *gradients);
    for (uint32_t i = 0; i < b->count; i++)
        gradients[b->ids[i]] = -1.0f / (float)b->whole;
    for (size_t layer = LAYERS; layer-- > 0;) {
        sim_counting_compute((double)b->count / LAYERS);
        tell_strategy(s, layer * floats / LAYERS, (layer + 1) * floats / LAYERS);
    }
    return BASE_OK;
}

/* With the bug, a step that failed has happened after all. */
static void counting_undo(struct train_session *s)
{
    const struct counting *c = s->work;
    uint32_t first, count;

    data_share_of(train_strategy_share(s), (uint32_t)s->plan.batch, &first, &count);
    for (uint32_t i = 0; sim_network.bug == SIM_DOUBLE_COUNT && i < count; i++) {
        float *weight = train_state_at(&s->state, TRAIN_WEIGHTS, 0, c->ids[i], 1);

        if (weight != NULL)
            *weight += 1;
    }
}

static base_status counting_unite(struct train_session *s)
{
    float nothing[4] = {0};

    return train_team_mean(&s->team, nothing, 4, s->samples);
}

/* ---- scores ---- */

static size_t counting_score_count(const struct train_session *s)
{
    (void)s;
    return TRAIN_SCORE_OWN;
}

static base_status counting_score(struct train_session *s, enum data_part part,
                                  struct data_share share, double *score)
{
    const struct train_lends lends = train_strategy_lends(s->strategy, s->options);
    base_status st = BASE_OK;
    uint32_t first, count;

    sim_counting_check_state(s, "an evaluation");
    if (lends.weights)
        TRY(borrow_all(s, &lends, &(struct data_batch){0}, false));
    data_share_of(share, s->count[part], &first, &count);
    sim_counting_compute(count / 3.0);
    score[TRAIN_SCORE_COUNT] = score[TRAIN_SCORE_CORRECT] = count;
    score[TRAIN_SCORE_LOSS] = count * 0.5;
out:
    return st;
}

static void counting_score_text(const struct train_session *s, const double *score,
                                struct base_str *text)
{
    (void)s;
    base_str_add(text, "%g samples\n", score[TRAIN_SCORE_COUNT]);
}

static json_t *counting_score_json(const struct train_session *s, const double *score)
{
    (void)s;
    return json_pack("{s:f}", "samples", score[TRAIN_SCORE_COUNT]);
}

static const struct train_grade *counting_grade(const struct train_session *s)
{
    static const struct train_grade accuracy = {.key = "accuracy",
                                                .title = "accuracy",
                                                .scale = 100,
                                                .decimals = 2,
                                                .unit = " %",
                                                .counted = true};

    (void)s;
    return &accuracy;
}

/* Every sample of a part is scored once. */
static double counting_graded(const struct train_session *s, const double *score)
{
    bool whole = false;

    for (int part = DATA_TEST; part < DATA_PARTS; part++)
        whole |= score[TRAIN_SCORE_COUNT] == s->count[part];
    sim_check(whole, "%g samples were scored", score[TRAIN_SCORE_COUNT]);
    return train_score_mean(score, TRAIN_SCORE_CORRECT);
}

/* ---- what is told; a checkpoint is about to be written ---- */

static void counting_about(const struct train_session *s, json_t *settings,
                           struct model_about *about_p)
{
    const struct counting *c = s->work;

    sim_counting_check_state(s, "a checkpoint");
    model_about_init(about_p, nn_graph_text(c->graph), "", &c->info, settings);
}

static void counting_announce(const struct train_session *s)
{
    (void)s;
}

static const struct train_task counting = {
    .name = "network", /* as sessions look for it */
    .size = sizeof(struct counting),
    .open = counting_open,
    .close = counting_close,
    .describe = counting_describe,
    .discard = counting_discard,
    .text = counting_text,
    .start = counting_start,
    .tune = counting_tune,
    .fit = counting_fit,
    .order = counting_order,
    .take = counting_take,
    .next = counting_next,
    .compute = counting_compute,
    .undo = counting_undo,
    .unite = counting_unite,
    .score_count = counting_score_count,
    .score = counting_score,
    .score_text = counting_score_text,
    .score_json = counting_score_json,
    .grade = counting_grade,
    .graded = counting_graded,
    .about = counting_about,
    .announce = counting_announce,
};

/* ---- the same in sweeps ---- */

enum { PHASES = 2 }; /* of a sweep: each has a part of the samples, a row each */

static bool sweeping_takes(const char *model)
{
    return strcmp(model, "sweeping") == 0;
}

static bool sweeping_divides(const struct train_session *s)
{
    (void)s;
    return true;
}

static int sweeping_phases(const struct train_session *s)
{
    (void)s;
    return PHASES;
}

static uint32_t sweeping_begin(const struct train_session *s, int phase)
{
    return s->count[DATA_TRAIN] * (uint32_t)phase / PHASES;
}

static base_status sweeping_prepare(struct train_session *s, int phase, struct train_phase *p)
{
    const uint32_t from = sweeping_begin(s, phase);

    sim_worker_self()->knows = true;
    if (phase == 0)
        sim_counting_check_state(s, "the next sweep");
    *p = (struct train_phase){.rows = sweeping_begin(s, phase + 1) - from,
                              .writes = {{s->state.weights + from, 1}},
                              .write_count = 1};
    return BASE_OK;
}

static void sweeping_run(struct train_session *s, int phase, uint32_t from, uint32_t to)
{
    for (uint32_t row = from; row < to; row++)
        s->state.weights[sweeping_begin(s, phase) + row] += 1;
    sim_counting_compute(to - from);
}

static bool sweeping_settled(const struct train_session *s)
{
    (void)s;
    return true;
}

static base_status sweeping_finish(struct train_session *s)
{
    (void)s;
    return BASE_OK;
}

static int64_t sweeping_count(const struct train_session *s)
{
    return s->job->epochs;
}

static const char *sweeping_rotating(void)
{
    return "sweeping";
}

static struct train_choice sweeping_choose(const char *model, bool several)
{
    (void)model;
    (void)several;
    return (struct train_choice){"rows", "it has no batches"};
}

static const struct train_task sweeping = {
    .name = "sweeping",
    .takes = sweeping_takes,
    .choose = sweeping_choose,
    .size = sizeof(struct counting),
    .open = counting_open,
    .close = counting_close,
    .describe = counting_describe,
    .discard = counting_discard,
    .text = counting_text,
    .start = counting_start,
    .tune = counting_tune,
    .fit = counting_fit,
    .sweeps = &(const struct train_sweeps){.divides = sweeping_divides,
                                           .phases = sweeping_phases,
                                           .prepare = sweeping_prepare,
                                           .run = sweeping_run,
                                           .finish = sweeping_finish,
                                           .count = sweeping_count,
                                           .settled = sweeping_settled,
                                           .rotation = &sim_rotation,
                                           .rotating = sweeping_rotating},
    .unite = counting_unite,
    .score_count = counting_score_count,
    .score = counting_score,
    .score_text = counting_score_text,
    .score_json = counting_score_json,
    .grade = counting_grade,
    .graded = counting_graded,
    .about = counting_about,
    .announce = counting_announce,
};

/* In place of the generated registry. */
const struct train_task *const train_task_registry[] = {&counting, &sweeping, NULL};
const size_t train_task_count = 2;
