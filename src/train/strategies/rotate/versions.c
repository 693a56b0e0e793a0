/* SPDX-License-Identifier: MIT */
#include "train/strategies/rotate/versions.h"

#include <string.h>

#include "base/mem.h"

bool rotate_versions_shared(const struct rotate_versions *v)
{
    return v->memory.at != NULL;
}

float *rotate_versions_at(const struct rotate_versions *v, const struct train_extent *range)
{
    return train_state_at(&v->next, TRAIN_WEIGHTS, 0, range->from, range->count);
}

/* ---- the worker's own memory ---- */

static base_status open_own(struct rotate_versions *v, size_t floats,
                            const struct train_state *state)
{
    base_status st = BASE_OK;
    struct train_holds held;

    v->next = *state;
    train_state_holds(state, &held);
    TRY(train_state_make_room(&v->next, TRAIN_WEIGHTS, &held));
    TRY(base_tensor(floats, sizeof(float), "bundles", &v->bundles));
    v->former = v->bundles;
out:
    return st;
}

/* ---- shared memory ---- */

static void take_pointers(struct train_state *to, const struct train_state *from)
{
    to->weights = from->weights;
    to->parts[TRAIN_WEIGHTS] = from->parts[TRAIN_WEIGHTS];
}

/* The same parts of the weights in `memory`, which has room for all of them. */
static void point(struct train_state *state, float *memory)
{
    struct train_parts *parts = &state->parts[TRAIN_WEIGHTS];
    struct train_part *at = base_calloc(parts->count, sizeof *at);

    for (size_t i = 0; i < parts->count; i++) {
        at[i] = parts->at[i];
        at[i].buffers[0] = memory + at[i].from;
    }
    parts->at = at;
    state->weights = parts->count == 0 ? memory : NULL;
}

/* Both versions, each followed by its bundles. What all workers have, rank 0 brings. The memory may
 * have been used in this view, before the workers divided rows anew. */
static base_status open_shared(struct rotate_versions *v, const struct train_exchange *x,
                               size_t floats, const struct train_extent *own,
                               const struct train_extent *rest, struct train_state *state)
{
    enum { LINE = 16 }; /* floats */

    base_status st = BASE_OK;
    const size_t weights = (state->floats + LINE - 1) / LINE * LINE;
    size_t each = 0, bytes = 0;
    float *now;

    TRY(base_add(weights, (floats + LINE - 1) / LINE * LINE, &each));
    TRY(base_mul(each, 2 * sizeof(float), &bytes));
    TRY(coll_share(x->coll, "versions", bytes, &v->memory));
    now = v->memory.at;
    train_state_get(state, TRAIN_WEIGHTS, 0, own->from, own->count, now + own->from);
    if (x->rank == 0) {
        train_state_get(state, TRAIN_WEIGHTS, 0, rest->from, rest->count, now + rest->from);
        memset(now + weights, 0, floats * sizeof(float));
        memset(now + each + weights, 0, floats * sizeof(float));
    }
    TRY(coll_barrier(x->coll));
    v->home = v->next = *state;
    point(state, now);
    point(&v->next, now + each);
    v->bundles = now + each + weights;
    v->former = now + weights;
out:
    if (st != BASE_OK)
        comm_shared_close(&v->memory);
    return st;
}

/* What this worker is to have comes from the shared memory, also rows of another worker. */
static void close_shared(struct rotate_versions *v, struct train_state *state)
{
    const struct train_parts *parts = &state->parts[TRAIN_WEIGHTS];

    if (state->weights != NULL)
        memcpy(v->home.weights, state->weights, state->floats * sizeof(float));
    for (size_t i = 0; i < parts->count; i++)
        memcpy(v->home.parts[TRAIN_WEIGHTS].at[i].buffers[0], parts->at[i].buffers[0],
               parts->at[i].count * sizeof(float));
    base_free(parts->at);
    base_free(v->next.parts[TRAIN_WEIGHTS].at);
    take_pointers(state, &v->home);
    comm_shared_close(&v->memory);
}

/* ---- either ---- */

base_status rotate_versions_open(struct rotate_versions *v, const struct train_exchange *x,
                                 size_t floats, const struct train_extent *own,
                                 const struct train_extent *rest, struct train_state *state)
{
    *v = (struct rotate_versions){0};
    return x->one_host ? open_shared(v, x, floats, own, rest, state) : open_own(v, floats, state);
}

void rotate_versions_close(struct rotate_versions *v, struct train_state *state)
{
    if (rotate_versions_shared(v)) {
        close_shared(v, state);
    } else {
        train_state_drop(&v->next, TRAIN_WEIGHTS);
        base_free(v->bundles);
    }
    *v = (struct rotate_versions){0};
}

void rotate_versions_swap(struct rotate_versions *v, struct train_state *state)
{
    const struct train_state before = *state;
    float *bundles = v->bundles;

    take_pointers(state, &v->next);
    take_pointers(&v->next, &before);
    v->bundles = v->former;
    v->former = bundles;
}
