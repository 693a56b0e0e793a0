/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/divide.h"

#include <inttypes.h>

#include "base/mem.h"

/* ---- what one worker tells the others ---- */

static json_t *ring_cut_to_json(const struct ring_cut *cut, bool overlap)
{
    json_t *first = json_array();

    for (int i = 0; i <= cut->stages; i++)
        json_array_append_new(first, json_integer(cut->first[i]));
    return json_pack("{s:b, s:b, s:o}", "fold", cut->order == RING_FOLD, "overlap", overlap,
                     "first", first);
}

static base_status ring_cut_from_json(const json_t *object, const struct nn_graph *graph,
                                      struct ring_cut *cut)
{
    base_status st = BASE_OK;
    json_t *first = NULL;
    size_t count;
    bool good;

    TRY(base_json_array(object, "first", &first));
    count = json_array_size(first);
    good = count >= 2 && count <= (size_t)(cut->workers * RING_MAX_LAPS) + 1;
    for (size_t i = 0; good && i < count; i++) {
        json_int_t layer = json_integer_value(json_array_get(first, i));

        good = layer <= nn_graph_layers(graph) && (i == 0 ? layer == 0 : layer > cut->first[i - 1]);
        cut->first[i] = (int)layer;
    }
    if (!good || cut->first[count - 1] != nn_graph_layers(graph))
        TRY(base_fail(BASE_ERR_DATA, "the layers cannot be divided as another worker says"));
    cut->stages = (int)count - 1;
    cut->order = json_is_true(json_object_get(object, "fold")) ? RING_FOLD : RING_AROUND;
out:
    return st;
}

static base_status ring_share_cut(struct train_session *s, int source,
                                  const struct ring_options *best)
{
    base_status st = BASE_OK;
    struct ring_options *options = s->options;
    const struct ring_cut *mine = &best->chosen;
    json_t *told =
        s->team.exchange.rank == source ? ring_cut_to_json(mine, best->overlapping) : NULL;
    struct ring_cut cut = {.workers = mine->workers, .spare = mine->spare};

    TRY(train_team_tell(&s->team, source, &told));
    TRY(ring_cut_from_json(told, s->state.graph, &cut));
    options->chosen = cut;
    options->overlapping = json_is_true(json_object_get(told, "overlap"));
out:
    json_decref(told);
    return st;
}

/* A worker that has come knows nothing of how many there are. */
static base_status ring_share_pieces(struct train_session *s, int source)
{
    base_status st = BASE_OK;
    struct ring_options *options = s->options;
    int64_t pieces = options->microbatches;

    TRY(train_team_broadcast(&s->team, source, &pieces, sizeof pieces));
    if (pieces < 1 || pieces > RING_MAX_PIECES)
        TRY(base_fail(BASE_ERR_DATA, "%" PRId64 " micro-batches", pieces));
    options->microbatches = pieces;
out:
    return st;
}

/* ---- the division ---- */

static bool ring_memory_suffices(void *context, const struct ring_options *options)
{
    return train_memory_suffices(context, options);
}

/* What all have measured takes the place of estimates. */
static base_status ring_gather_costs(struct train_session *s, struct ring_profile *profile,
                                     struct ring_costs *costs, bool *measured_p)
{
    base_status st = BASE_OK;
    size_t size = (size_t)s->team.exchange.size, units = (size_t)costs->units;
    struct ring_unit *all = base_calloc(size * units, sizeof *all);

    TRY(ring_measure(s, costs, profile));
    TRY(train_team_gather(&s->team, profile->at, units * sizeof *all, all));
    *measured_p = ring_costs_measured(costs, all, (int)size);
out:
    base_free(all);
    return st;
}

/* Measurements err. The cut by estimate stays where the best one by measurement is hardly better.
 */
static void ring_prefer(const struct ring_costs *costs, const struct ring_cut *estimated,
                        struct ring_options *best)
{
    static const double WORTH = 0.98;
    struct ring_outlook of_best, of_estimated;

    if (estimated->stages != best->chosen.stages || estimated->order != best->chosen.order)
        return;
    ring_expect(costs, &best->chosen, best, &of_best);
    ring_expect(costs, estimated, best, &of_estimated);
    if (of_best.seconds > WORTH * of_estimated.seconds)
        best->chosen = *estimated;
}

/* Steps overlap where they may and there is memory for it. */
static void ring_choose_overlap(const struct train_session *s, struct ring_options *options)
{
    options->overlapping = options->overlap != RING_OVERLAP_OFF && s->job->clip == 0;
    if (options->overlap == RING_OVERLAP_AUTO && options->overlapping)
        options->overlapping = train_memory_suffices(s, options);
}

base_status ring_divide(struct train_session *s, int source, struct ring_profile *profile,
                        struct ring_outlook *outlook, bool *measured_p)
{
    base_status st = BASE_OK;
    struct ring_options *options = s->options, best;
    int workers = s->team.exchange.size;
    int64_t batch = train_session_whole(s, s->plan.batch);
    struct ring_costs costs = {0};
    struct ring_cut estimated;

    *measured_p = false;
    TRY(ring_share_pieces(s, source));
    ring_costs_estimate(s->state.graph,
                        (int)((batch + options->microbatches - 1) / options->microbatches), &costs);
    ring_costs_cut(&costs, options, workers, ring_options_laps(options),
                   ring_options_order(options), &estimated);
    if (workers > 1)
        TRY(ring_gather_costs(s, profile, &costs, measured_p));
    best = *options;
    best.chosen = estimated;
    ring_choose_overlap(s, &best);
    ring_choose_cut(&best, &costs, workers, (struct ring_fits){ring_memory_suffices, s});
    ring_prefer(&costs, &estimated, &best);
    TRY(ring_share_cut(s, source, &best));
    ring_expect(&costs, &options->chosen, options, outlook);
    train_memory_estimate(s);
out:
    ring_costs_fini(&costs);
    return st;
}
