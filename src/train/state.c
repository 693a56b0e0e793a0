/* SPDX-License-Identifier: MIT
 *
 * The state in memory: whole buffers or parts of them. state_file.c has its way into checkpoints.
 */
#include "train/state.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "nn/simd/simd.h"

base_status train_state_describe(struct train_state *state, const struct nn_graph *graph,
                                 const struct nn_optimiser *optimiser)
{
    *state = (struct train_state){.graph = graph,
                                  .optimiser = optimiser,
                                  .floats = nn_graph_weight_floats(graph),
                                  .compared = nn_graph_weight_floats(graph),
                                  .stat_floats = nn_graph_stat_floats(graph),
                                  .stats = nn_graph_stats(graph),
                                  .parameters = nn_graph_parameters(graph),
                                  .tensor_count = nn_graph_params(graph)};
    state->position.best_validation = -1;
    state->tensors = base_calloc(state->tensor_count, sizeof *state->tensors);
    for (size_t i = 0; i < state->tensor_count; i++)
        state->tensors[i] = (struct train_extent){nn_graph_param(graph, i)->offset,
                                                  nn_graph_param(graph, i)->floats};
    state->tracked = base_calloc(state->stats, sizeof *state->tracked);
    return base_tensor(state->stat_floats, sizeof(float), "the running statistics",
                       &state->statistics);
}

base_status train_state_describe_tensors(struct train_state *state,
                                         const struct train_extent *tensors, size_t count,
                                         size_t floats)
{
    static const struct nn_optimiser none = {.name = "none"};

    *state = (struct train_state){
        .optimiser = &none, .floats = floats, .compared = floats, .tensor_count = count};
    state->position.best_validation = -1;
    state->tensors = base_calloc(count, sizeof *state->tensors);
    for (size_t i = 0; i < count; i++) {
        state->tensors[i] = tensors[i];
        state->parameters += tensors[i].count;
    }
    state->tracked = base_calloc(0, sizeof *state->tracked);
    return base_tensor(0, sizeof(float), "the running statistics", &state->statistics);
}

base_status train_state_init(struct train_state *state, const struct nn_graph *graph,
                             const struct nn_optimiser *optimiser)
{
    base_status st = BASE_OK;

    TRY(train_state_describe(state, graph, optimiser));
    TRY(train_state_make_room(state, TRAIN_WEIGHTS, NULL));
    TRY(train_state_make_room(state, TRAIN_SLOTS, NULL));
out:
    return st;
}

void train_state_fini(struct train_state *state)
{
    train_state_drop(state, TRAIN_WEIGHTS);
    train_state_drop(state, TRAIN_SLOTS);
    base_free(state->statistics);
    base_free(state->tracked);
    base_free(state->tensors);
    *state = (struct train_state){0};
}

int train_state_buffers(const struct train_state *state, enum train_group group)
{
    int extras = 0;

    if (group != TRAIN_SLOTS)
        return 1;
    while (state->extras != NULL && state->extras[extras] != NULL)
        extras++;
    return state->optimiser->slots + extras;
}

void train_state_sizes(const struct train_state *state, uint64_t size[TRAIN_GROUPS])
{
    size[TRAIN_WEIGHTS] = state->floats;
    size[TRAIN_SLOTS] = train_state_buffers(state, TRAIN_SLOTS) > 0 ? state->floats : 0;
    size[TRAIN_STATISTICS] = state->stat_floats;
}

struct train_version train_state_version(const struct train_state *state)
{
    return (struct train_version){state->position.step, state->position.epoch};
}

/* ---- memory ---- */

/* The whole buffers of a group: as many pointers as it has buffers. */
static float **whole_of(struct train_state *state, enum train_group group)
{
    return group == TRAIN_WEIGHTS ? &state->weights
           : group == TRAIN_SLOTS ? state->slots
                                  : &state->statistics;
}

static float *const *whole_in(const struct train_state *state, enum train_group group)
{
    return group == TRAIN_WEIGHTS ? &state->weights
           : group == TRAIN_SLOTS ? state->slots
                                  : &state->statistics;
}

/* The next range of `group` in `wanted` from *index on; false: there is none. NULL: everything. */
static bool next_wanted(const struct train_state *state, enum train_group group,
                        const struct train_holds *wanted, uint32_t *index, struct train_part *part)
{
    uint32_t count = wanted != NULL ? wanted->count : 1;

    *part = (struct train_part){0, state->floats, {NULL}};
    while (wanted != NULL && *index < count && wanted->at[*index].group != group)
        ++*index;
    if (*index >= count)
        return false;
    if (wanted != NULL)
        *part = (struct train_part){wanted->at[*index].from, wanted->at[*index].count, {NULL}};
    ++*index;
    return true;
}

static bool is_everything(const struct train_state *state, const struct train_part *part)
{
    return part->from == 0 && part->count == state->floats;
}

static base_status make_buffers(const struct train_state *state, enum train_group group,
                                size_t floats, float **buffers)
{
    base_status st = BASE_OK;
    const char *what = group == TRAIN_SLOTS ? "the optimiser's state" : "the weights";

    for (int i = 0; i < train_state_buffers(state, group); i++)
        TRY(base_tensor(floats, sizeof(float), what, &buffers[i]));
out:
    return st;
}

static void forget(struct train_state *state, enum train_group group)
{
    float **whole = whole_of(state, group);

    for (int i = 0; i < train_state_buffers(state, group); i++)
        whole[i] = NULL;
    state->parts[group] = (struct train_parts){0};
}

base_status train_state_make_room(struct train_state *state, enum train_group group,
                                  const struct train_holds *wanted)
{
    base_status st = BASE_OK;
    struct train_state made = *state;
    struct train_parts *parts = &made.parts[group];
    struct train_part part;

    forget(&made, group);
    for (uint32_t i = 0; next_wanted(state, group, wanted, &i, &part);) {
        if (is_everything(state, &part)) {
            TRY(make_buffers(state, group, part.count, whole_of(&made, group)));
            continue;
        }
        parts->at = base_realloc(parts->at, parts->count + 1, sizeof *parts->at);
        parts->at[parts->count++] = part;
        TRY(make_buffers(state, group, part.count, parts->at[parts->count - 1].buffers));
    }
    *state = made;
out:
    if (st != BASE_OK)
        train_state_drop(&made, group);
    return st;
}

void train_state_drop(struct train_state *state, enum train_group group)
{
    struct train_parts *parts = &state->parts[group];

    if (state->optimiser == NULL)
        return;
    for (int i = 0; i < train_state_buffers(state, group); i++) {
        base_free(whole_of(state, group)[i]);
        for (size_t p = 0; p < parts->count; p++)
            base_free(parts->at[p].buffers[i]);
    }
    base_free(parts->at);
    forget(state, group);
}

bool train_state_fits(const struct train_state *state, enum train_group group,
                      const struct train_holds *wanted)
{
    struct train_part part;
    size_t seen = 0;

    if (train_state_buffers(state, group) == 0)
        return true;
    for (uint32_t i = 0; next_wanted(state, group, wanted, &i, &part);) {
        const struct train_parts *parts = &state->parts[group];

        if (is_everything(state, &part))
            return whole_in(state, group)[0] != NULL;
        if (seen == parts->count || parts->at[seen].from != part.from ||
            parts->at[seen].count != part.count)
            return false;
        seen++;
    }
    return seen == state->parts[group].count && whole_in(state, group)[0] == NULL;
}

float *train_state_at(const struct train_state *state, enum train_group group, int buffer,
                      size_t from, size_t count)
{
    const struct train_parts *parts = &state->parts[group];
    float *whole = whole_in(state, group)[buffer];

    if (whole != NULL)
        return whole + from;
    for (size_t i = 0; i < parts->count; i++) {
        const struct train_part *part = &parts->at[i];

        if (from >= part->from && from + count <= part->from + part->count)
            return part->buffers[buffer] + (from - part->from);
    }
    return NULL;
}

/* ---- copies ---- */

/* What [from, from + count) and [other, other + length) have in common. */
static size_t overlap(size_t from, size_t count, size_t other, size_t length, size_t *begin_p)
{
    size_t end = from + count < other + length ? from + count : other + length;

    *begin_p = from > other ? from : other;
    return end > *begin_p ? end - *begin_p : 0;
}

/* One of `in` and `out` is NULL. */
static void copy(const struct train_state *state, enum train_group group, int buffer, size_t from,
                 size_t count, const float *in, float *out)
{
    const struct train_parts *parts = &state->parts[group];
    struct train_part whole = {0, from + count, {NULL}};
    bool has_whole = whole_in(state, group)[buffer] != NULL;

    whole.buffers[buffer] = whole_in(state, group)[buffer];
    for (size_t i = 0; i < (has_whole ? 1 : parts->count); i++) {
        const struct train_part *part = has_whole ? &whole : &parts->at[i];
        size_t begin, shared = overlap(from, count, part->from, part->count, &begin);
        float *held = part->buffers[buffer] + (begin - part->from);

        if (shared > 0 && in != NULL)
            memcpy(held, in + (begin - from), shared * sizeof(float));
        else if (shared > 0 && out != NULL)
            memcpy(out + (begin - from), held, shared * sizeof(float));
    }
}

void train_state_put(const struct train_state *state, enum train_group group, int buffer,
                     size_t from, size_t count, const float *floats)
{
    copy(state, group, buffer, from, count, floats, NULL);
}

void train_state_get(const struct train_state *state, enum train_group group, int buffer,
                     size_t from, size_t count, float *floats)
{
    copy(state, group, buffer, from, count, NULL, floats);
}

/* ---- values ---- */

static void clear_group(struct train_state *state, enum train_group group)
{
    const struct train_parts *parts = &state->parts[group];

    for (int i = 0; i < train_state_buffers(state, group); i++) {
        float *whole = whole_in(state, group)[i];

        if (whole != NULL)
            memset(whole, 0, state->floats * sizeof(float));
        for (size_t p = 0; p < parts->count; p++)
            memset(parts->at[p].buffers[i], 0, parts->at[p].count * sizeof(float));
    }
}

void train_state_clear(struct train_state *state)
{
    clear_group(state, TRAIN_WEIGHTS);
    clear_group(state, TRAIN_SLOTS);
    memset(state->statistics, 0, state->stat_floats * sizeof(float));
    memset(state->tracked, 0, state->stats * sizeof *state->tracked);
}

base_status train_state_start(struct train_state *state, uint64_t seed)
{
    base_status st = BASE_OK;
    const struct nn_graph *graph = state->graph;
    size_t most = 1;
    float *room = NULL;

    train_state_clear(state);
    for (size_t i = 0; i < nn_graph_params(graph); i++)
        most = nn_graph_param(graph, i)->floats > most ? nn_graph_param(graph, i)->floats : most;
    TRY(base_tensor(most, sizeof(float), "a tensor that starts", &room));
    for (size_t i = 0; i < nn_graph_params(graph); i++) {
        const struct nn_tensor *t = nn_graph_param(graph, i);

        nn_tensor_start(t, seed, (uint32_t)i, room);
        train_state_put(state, TRAIN_WEIGHTS, 0, t->offset, t->floats, room);
    }
    for (size_t i = 0; i < nn_graph_stats(graph); i++) {
        const struct nn_tensor *t = nn_graph_stat(graph, i);

        nn_tensor_start(t, seed, (uint32_t)i, state->statistics + t->offset);
    }
out:
    base_free(room);
    return st;
}

bool train_state_finite(const struct train_state *state)
{
    const struct train_parts *parts = &state->parts[TRAIN_WEIGHTS];
    double squares = 0;

    if (state->weights != NULL)
        return isfinite(nn_simd()->square_sum(state->floats, state->weights));
    for (size_t i = 0; i < parts->count; i++)
        squares += nn_simd()->square_sum(parts->at[i].count, parts->at[i].buffers[0]);
    return isfinite(squares);
}

/* ---- what is held ---- */

float **train_state_extra(struct train_state *s, const char *name)
{
    for (int i = 0; s->extras != NULL && s->extras[i] != NULL; i++)
        if (strcmp(s->extras[i], name) == 0)
            return &s->slots[s->optimiser->slots + i];
    return NULL;
}

bool train_state_is_whole(const struct train_state *state)
{
    return state->weights != NULL &&
           (train_state_buffers(state, TRAIN_SLOTS) == 0 || state->slots[0] != NULL);
}

static void add_hold(struct train_holds *holds, enum train_group group, size_t from, size_t count,
                     struct train_version version)
{
    holds->at[holds->count++] =
        (struct train_hold){.group = group, .from = from, .count = count, .version = version};
}

void train_state_holds(const struct train_state *state, struct train_holds *holds)
{
    struct train_version version = train_state_version(state);
    uint64_t size[TRAIN_GROUPS];

    *holds = state->claims;
    if (holds->count > 0)
        return;
    train_state_sizes(state, size);
    for (int group = 0; group < TRAIN_GROUPS; group++) {
        const struct train_parts *parts = &state->parts[group];

        if (whole_in(state, (enum train_group)group)[0] != NULL)
            add_hold(holds, (enum train_group)group, 0, size[group], version);
        for (size_t i = 0; i < parts->count; i++)
            add_hold(holds, (enum train_group)group, parts->at[i].from, parts->at[i].count,
                     version);
    }
}
