/* SPDX-License-Identifier: MIT */
#include "sim/counting.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "nn/net.h"
#include "sim/hosts.h"
#include "sim/sweeping.h"

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

/* ---- data and model ---- */

struct nn_shape sim_counting_input(void)
{
    return (struct nn_shape){.c = 1, .h = (int)sim_counting.count[DATA_TRAIN] / CLASSES, .w = 1};
}

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

static void counting_discard(struct train_session *s)
{
    struct counting *c = s->work;

    sim_counting_note(s);
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
    char *own = base_format("input 1x%dx1\nclasses %d\ndense classes\n", c->info.height, CLASSES);

    TRY(nn_graph_new(text != NULL ? text : own, "counting", sim_counting_input(), CLASSES,
                     &c->graph));
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
    sim_counting_order(s->job->seed, epoch, ids);
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
        sim_counting_order(s->job->seed, block->epoch, c->order);
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
    if (sim_counting_is_exact(s))
        sim_counting_check_state(s, "the next batch");
    if (c->epoch != p->epoch)
        sim_counting_order(s->job->seed, p->epoch, c->order);
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

/* What both tasks of this file have. */
#define COUNTING_MODEL                                                                             \
    .size = sizeof(struct counting), .open = counting_open, .close = counting_close,               \
    .describe = counting_describe, .discard = counting_discard, .text = counting_text,             \
    .start = counting_start, .tune = counting_tune, .fit = counting_fit, .unite = counting_unite,  \
    .score_count = counting_score_count, .score = counting_score,                                  \
    .score_text = counting_score_text, .score_json = counting_score_json, .grade = counting_grade, \
    .graded = counting_graded, .about = counting_about, .announce = counting_announce

const struct train_task sim_task_counting = {
    .name = "network", /* as sessions look for it */
    COUNTING_MODEL,
    .order = counting_order,
    .take = counting_take,
    .next = counting_next,
    .compute = counting_compute,
    .undo = counting_undo,
};

const struct train_task sim_task_sweeping = {
    .name = "sweeping",
    .takes = sim_sweeping_takes,
    .choose = sim_sweeping_choose,
    COUNTING_MODEL,
    .sweeps = &sim_sweeps,
};
