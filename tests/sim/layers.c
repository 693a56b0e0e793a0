/* SPDX-License-Identifier: MIT
 *
 * The task of networks as it is (train/tasks/network.c), with a source of samples that are numbers
 * and a model of layers that count (sim/layers/): for strategies that divide the layers. Networks,
 * loader, stages, messages, replicas and healing are the real ones. Weights are checked when
 * a view or an epoch begins, an evaluation or a checkpoint; statistics where all have the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/format.h"
#include "sim/counting.h"
#include "sim/hosts.h"
#include "train/strategies/ring/cut.h"
#include "train/tasks/network/network.h"

enum { CLASSES = 2 };

/* Workers of views that were entered since the last batch, for layers_check_return. */
struct met {
    uint32_t ids[SIM_MAX_WORKERS];
    int count, views;
    int first; /* of them were in the first of these views, in the order of ranks */
};

/* Of this worker, in session->work. */
struct layers {
    struct network network; /* comes first: to tasks/network.c it is the work */
    struct met met;
    int64_t step, lost_steps; /* as they were at the last batch */
};

static bool layers_takes(const char *model)
{
    return strcmp(model, "layers") == 0;
}

/* ---- samples ---- */

/* Labels of all parts. */
struct numbers {
    int32_t labels[UINT8_MAX + 1];
};

static base_status numbers_pixels(const void *state, enum data_part part, uint32_t index,
                                  uint8_t *pixels)
{
    (void)state;
    (void)part;
    memset(pixels, 0, CLASSES);
    pixels[0] = (uint8_t)index;
    return BASE_OK;
}

static void numbers_close(void *state)
{
    base_free(state);
}

static const struct data_format numbers = {
    .name = "numbers", .pixels = numbers_pixels, .close = numbers_close};

static base_status layers_open(struct train_session *s)
{
    base_status st = BASE_OK;
    struct layers *l = s->work;
    struct numbers *state = base_calloc(1, sizeof *state);
    uint32_t id = train_team_id(&s->team);
    struct data_set *set = NULL;
    struct data_source source = {.state = state,
                                 .channels = CLASSES,
                                 .height = 1,
                                 .width = 1,
                                 .classes = CLASSES,
                                 .has_statistics = true};

    for (int i = 0; i <= UINT8_MAX; i++)
        state->labels[i] = i % CLASSES;
    for (int part = DATA_TRAIN; part <= DATA_TEST; part++) {
        source.count[part] = sim_counting.count[part];
        source.labels[part] = state->labels;
    }
    for (int i = 0; i < CLASSES; i++)
        source.deviation[i] = 1 / 255.0f; /* a sample's first value is its number */
    snprintf(source.digest, sizeof source.digest, "%064d", 7);
    TRY(data_open_source(s->job->data, &numbers, &source, &(struct data_options){0}, &set));
    TRY(train_samples_adopt(&l->network.samples, s->job, set));
    network_opened(s);
    s->digest = l->network.info->digest;
    s->data_names = l->network.info->names;
    s->fault = sim_counting.fault;
    s->fault.armed = id >= sim_counting.victim && id - sim_counting.victim < sim_counting.victims;
out:
    return st;
}

/* ---- model ---- */

static base_status layers_describe(struct train_session *s, const char *text)
{
    struct base_str own = {0};
    base_status st;

    base_str_add(&own, "input %dx1x1\nclasses %d\n", CLASSES, CLASSES);
    for (int i = 0; i < sim_counting.layers; i++)
        base_str_add(&own, "counter %u\n", sim_counting.count[DATA_TRAIN]);
    base_str_add(&own, "counted\n");
    st = network_describe(s, text != NULL ? text : own.text);
    base_str_fini(&own);
    return st;
}

static void layers_discard(struct train_session *s)
{
    sim_counting_note(s);
    network_discard(s);
}

static void layers_close(struct train_session *s)
{
    layers_discard(s);
    train_samples_close(&((struct layers *)s->work)->network.samples);
}

static const char *layers_text(const struct train_session *s)
{
    return nn_graph_text(((const struct layers *)s->work)->network.graph);
}

/* ---- what must hold ---- */

static bool layers_is_member(const struct comm_view *view, uint32_t id)
{
    for (uint32_t i = 0; i < view->size; i++)
        if (view->members[i].id == id)
            return true;
    return false;
}

static void layers_meet(struct train_session *s)
{
    struct met *met = &((struct layers *)s->work)->met;
    const struct comm_view *view = &s->team.view;

    met->views++;
    for (uint32_t i = 0; i < view->size; i++) {
        bool known = false;

        for (int j = 0; j < met->count; j++)
            known |= met->ids[j] == view->members[i].id;
        if (!known)
            met->ids[met->count++] = view->members[i].id;
    }
    if (met->views == 1)
        met->first = met->count;
}

/* What one lost worker may cost. With replicas of each step none that counts; where steps overlap
 * the newest one in the weights does not count yet. */
static bool layers_may_lose(const struct train_session *s, int64_t steps, int64_t told)
{
    const struct ring_options *options = s->options;
    int64_t every = ring_options_every(options);

    if (every != 1)
        return every == 0 || steps <= every;
    return told == 0 && steps <= (options->overlap != RING_OVERLAP_OFF);
}

/* Are the worker of that rank in the first of the views and `count` - 1 after it lost? */
static bool layers_lost(const struct train_session *s, int rank, int count)
{
    const struct met *met = &((const struct layers *)s->work)->met;
    bool lost = true;

    for (int i = 0; i < count; i++)
        lost &= !layers_is_member(&s->team.view, met->ids[(rank + i) % met->first]);
    return lost;
}

/* A worker that has been at a later step has gone back. With replicas it takes the loss of all
 * workers that have a stage, `copies` neighbours, to go back farther than one lost worker makes all
 * go. Between two views their ranks say who that is; where more views have passed, any that were
 * lost may have been neighbours in one of them, or a view was so small that there were fewer
 * copies.
 */
static void layers_check_return(const struct train_session *s)
{
    const struct layers *l = s->work;
    int64_t told = s->lost_steps - l->lost_steps;
    int copies = ring_options_copies(s->options, l->met.first), gone = 0, runs = 0;

    for (int i = 0; i < l->met.count; i++)
        gone += !layers_is_member(&s->team.view, l->met.ids[i]);
    for (int rank = 0; rank < l->met.first; rank++)
        runs += layers_lost(s, rank, copies);
    sim_check(layers_may_lose(s, l->step - s->state.position.step, told) ||
                  (gone > 1 && (runs > 0 || l->met.views > 2)),
              "all go back from step %" PRId64 " to step %" PRId64 ", by %" PRId64
              " that count, though of %d workers %d are lost, %d with the %d after it",
              l->step, s->state.position.step, told, l->met.count, gone, runs, copies - 1);
}

/* What the next check compares with. */
static void layers_note(struct train_session *s)
{
    struct layers *l = s->work;

    l->step = s->state.position.step;
    l->lost_steps = s->lost_steps;
    l->met = (struct met){0};
    layers_meet(s);
}

/* Every layer has learnt from every sample before the position. */
static void layers_check_statistics(const struct train_session *s, const char *where)
{
    const struct train_position *p = &s->state.position;
    int64_t samples = p->epoch * s->count[DATA_TRAIN] + p->cursor;

    for (size_t i = 0; i < nn_graph_stats(s->state.graph); i++) {
        float seen = s->state.statistics[nn_graph_stat(s->state.graph, i)->offset];

        sim_check(seen == (float)samples,
                  "%s: layer %zu has learnt from %g samples at step %" PRId64 " and not %" PRId64,
                  where, i, (double)seen, p->step, samples);
    }
}

static base_status layers_fit(struct train_session *s)
{
    layers_meet(s);
    return network_fit(s);
}

static base_status layers_next(struct train_session *s, struct data_batch *batch_p)
{
    const struct layers *l = s->work;
    struct sim_worker *self = sim_worker_self();

    if (self->knows) /* not of the time before it came */
        layers_check_return(s);
    self->knows = true;
    if (l->met.views > 1 || s->state.position.cursor == 0) /* within a leg replicas are late */
        sim_counting_check_state(s, "the next batch");
    layers_note(s);
    return network_next(s, batch_p);
}

static base_status layers_score(struct train_session *s, enum data_part part,
                                struct data_share share, double *score)
{
    sim_counting_check_state(s, "an evaluation");
    layers_check_statistics(s, "an evaluation");
    return network_score(s, part, share, score);
}

static void layers_about(const struct train_session *s, json_t *settings,
                         struct model_about *about_p)
{
    const struct layers *l = s->work;

    sim_counting_check_state(s, "a checkpoint");
    layers_check_statistics(s, "a checkpoint");
    model_about_init(about_p, layers_text(s), "", l->network.info, settings);
}

static void layers_announce(const struct train_session *s)
{
    (void)s;
}

const struct train_task sim_task_layers = {
    .name = "layers",
    .takes = layers_takes,
    .size = sizeof(struct layers),
    .open = layers_open,
    .close = layers_close,
    .describe = layers_describe,
    .discard = layers_discard,
    .text = layers_text,
    .sizes = network_sizes,
    .start = network_start,
    .tune = network_tune,
    .fit = layers_fit,
    .order = network_order,
    .take = network_take,
    .next = layers_next,
    .compute = network_compute,
    .undo = network_undo,
    .unite = network_unite,
    .score_count = network_score_count,
    .score = layers_score,
    .score_text = network_score_text,
    .score_json = network_score_json,
    .grade = network_grade,
    .graded = network_graded,
    .about = layers_about,
    .announce = layers_announce,
};
