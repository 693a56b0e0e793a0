/* SPDX-License-Identifier: MIT */
#include "train/carry.h"

#include <string.h>

#include "base/mem.h"

struct messages {
    struct train_message *at;
    size_t count, room;
};

static void add_message(struct messages *list, struct train_message message)
{
    if (list->count == list->room) {
        list->room = list->room == 0 ? 16 : 2 * list->room;
        list->at = base_realloc(list->at, list->room, sizeof *list->at);
    }
    list->at[list->count++] = message;
}

/* ---- entering ---- */

/* What this worker has of `version` and wants, from its old memory into the new. */
static void keep_own(const struct train_holds *held, struct train_version version,
                     const struct train_state *from, const struct train_state *to)
{
    for (uint32_t i = 0; i < held->count; i++) {
        const struct train_hold *h = &held->at[i];
        enum train_group group = (enum train_group)h->group;

        if (group == TRAIN_STATISTICS || !train_hold_serves(h, version))
            continue;
        for (int b = 0; b < train_state_buffers(from, group); b++) {
            const float *old = train_state_at(from, group, b, h->from, h->count);
            const float *now = train_state_at(to, group, b, h->from, h->count);

            if (old != now)
                train_state_put(to, group, b, h->from, h->count, old);
        }
    }
}

static float *place_of(const struct train_state *state, float *statistics,
                       const struct train_transfer *t, int buffer)
{
    if (t->group == TRAIN_STATISTICS && statistics != NULL)
        return statistics + t->from;
    return train_state_at(state, t->group, buffer, t->from, t->count);
}

/* Do all other workers lack this very range? Their transfers follow each other in no list of
 * several holds, so all are looked at. */
static bool is_for_all(const struct train_transfer *list, size_t count, size_t index, int size)
{
    const struct train_transfer *t = &list[index];
    int targets = 0;

    for (size_t i = 0; i < count; i++)
        targets += list[i].source == t->source && list[i].group == t->group &&
                   list[i].from == t->from && list[i].count == t->count;
    return size > 2 && targets == size - 1;
}

static bool is_first(const struct train_transfer *list, size_t index)
{
    const struct train_transfer *t = &list[index];

    for (size_t i = 0; i < index; i++)
        if (list[i].source == t->source && list[i].group == t->group && list[i].from == t->from &&
            list[i].count == t->count)
            return false;
    return true;
}

struct missing {
    struct train_team *team;
    const struct train_state *from, *to;
    float *statistics;
    struct train_transfer *list;
    size_t count;
};

/* Ranges that one worker has and all others lack. */
static base_status broadcast_missing(const struct missing *m)
{
    base_status st = BASE_OK;
    int rank = m->team->exchange.rank;

    for (size_t i = 0; i < m->count; i++) {
        const struct train_transfer *t = &m->list[i];
        bool gives = t->source == rank;

        if (!is_for_all(m->list, m->count, i, m->team->exchange.size) || !is_first(m->list, i))
            continue;
        for (int b = 0; b < train_state_buffers(m->from, t->group); b++)
            TRY(train_team_broadcast(
                m->team, t->source,
                place_of(gives ? m->from : m->to, gives ? NULL : m->statistics, t, b),
                t->count * sizeof(float)));
    }
out:
    return st;
}

static base_status pass_missing(const struct missing *m)
{
    struct messages messages = {0};
    int rank = m->team->exchange.rank;
    base_status st;

    for (size_t i = 0; i < m->count; i++) {
        const struct train_transfer *t = &m->list[i];
        bool gives = t->source == rank;

        if ((!gives && t->target != rank) ||
            is_for_all(m->list, m->count, i, m->team->exchange.size))
            continue;
        for (int b = 0; b < train_state_buffers(m->from, t->group); b++)
            add_message(&messages,
                        (struct train_message){.peer = gives ? t->target : t->source,
                                               .sends = gives,
                                               .at = place_of(gives ? m->from : m->to,
                                                              gives ? NULL : m->statistics, t, b),
                                               .count = t->count});
    }
    st = train_team_pass(m->team, messages.at, messages.count);
    base_free(messages.at);
    return st;
}

base_status train_carry_missing(struct train_team *team, const struct train_holds *held,
                                const struct train_holds *wanted, struct train_version version,
                                const struct train_state *from, const struct train_state *to,
                                float *statistics)
{
    base_status st = BASE_OK;
    struct missing m = {.team = team, .from = from, .to = to, .statistics = statistics};

    keep_own(&held[team->exchange.rank], version, from, to);
    m.count = train_holds_transfers(held, wanted, team->exchange.size, version, &m.list);
    TRY(broadcast_missing(&m));
    TRY(pass_missing(&m));
out:
    base_free(m.list);
    return st;
}

/* ---- tensor by tensor ---- */

/* Floats [from, from + count) of a buffer of the weights (slot -1) or of a slot. */
struct range {
    int32_t slot, ends; /* ends: no range, but the end of a load; … */
    uint64_t from, count;
    uint32_t good, reserved; /* … that went well or not */
};

static enum train_group group_of(const struct range *r)
{
    return r->slot < 0 ? TRAIN_WEIGHTS : TRAIN_SLOTS;
}

static int buffer_of(const struct range *r)
{
    return r->slot < 0 ? 0 : r->slot;
}

/* What a place has in common with the range; base_free. */
static struct train_holds *holds_in(const struct train_holds *place, const struct range *r)
{
    struct train_holds *in = base_calloc(1, sizeof *in);

    for (uint32_t i = 0; i < place->count; i++) {
        const struct train_hold *h = &place->at[i];
        uint64_t begin = h->from > r->from ? h->from : r->from;
        uint64_t end =
            h->from + h->count < r->from + r->count ? h->from + h->count : r->from + r->count;

        if (h->group == group_of(r) && end > begin)
            in->at[in->count++] =
                (struct train_hold){.group = h->group, .from = begin, .count = end - begin};
    }
    return in;
}

/* The leader gets the range into its room, or finds it in its own memory. */
static base_status fetch(struct train_carry *c, const struct range *r, const float **memory_p)
{
    struct train_holds *wanted = base_calloc((size_t)c->team->exchange.size, sizeof *wanted);
    int rank = c->team->exchange.rank;
    struct train_transfer *list;
    struct messages messages = {0};
    size_t count;
    base_status st;

    wanted[c->leader].at[wanted[c->leader].count++] =
        (struct train_hold){.group = group_of(r), .from = r->from, .count = r->count};
    count = train_holds_transfers(c->places, wanted, c->team->exchange.size,
                                  (struct train_version){0}, &list);
    for (size_t i = 0; i < count; i++) {
        const struct train_transfer *t = &list[i];

        if (rank == c->leader)
            add_message(&messages, (struct train_message){t->source, false,
                                                          c->room + (t->from - r->from), t->count});
        else if (rank == t->source)
            add_message(&messages,
                        (struct train_message){
                            c->leader, true,
                            train_state_at(c->state, t->group, buffer_of(r), t->from, t->count),
                            t->count});
    }
    st = train_team_pass(c->team, messages.at, messages.count);
    if (rank == c->leader) {
        *memory_p = train_state_at(c->state, group_of(r), buffer_of(r), r->from, r->count);
        if (*memory_p == NULL) {
            train_state_get(c->state, group_of(r), buffer_of(r), r->from, r->count, c->room);
            *memory_p = c->room;
        }
    }
    base_free(messages.at);
    base_free(list);
    base_free(wanted);
    return st;
}

static base_status carry_bring(void *context, int slot, size_t from, size_t count,
                               const float **memory_p)
{
    return fetch(context, &(struct range){.slot = slot, .from = from, .count = count}, memory_p);
}

base_status train_carry_serve_save(struct train_carry *c)
{
    base_status st = BASE_OK;
    const struct train_state *state = c->state;
    const float *memory; /* the leader's alone */

    for (int slot = -1; slot < train_state_buffers(state, TRAIN_SLOTS); slot++)
        for (size_t i = 0; i < state->tensor_count; i++)
            TRY(carry_bring(c, slot, state->tensors[i].from, state->tensors[i].count, &memory));
out:
    return st;
}

static bool all_have_all(const struct train_carry *c, const struct range *r)
{
    bool all = true;

    for (int rank = 0; all && rank < c->team->exchange.size; rank++) {
        struct train_holds *in = holds_in(&c->places[rank], r);

        all = in->count == 1 && in->at[0].count == r->count;
        base_free(in);
    }
    return all;
}

/* The leader's `memory` goes to the workers that hold some of the range. */
static base_status deliver(struct train_carry *c, const struct range *r, float *memory)
{
    int rank = c->team->exchange.rank;
    struct messages messages = {0};
    base_status st = BASE_OK;

    if (rank == c->leader)
        train_state_put(c->state, group_of(r), buffer_of(r), r->from, r->count, memory);
    if (all_have_all(c, r))
        return train_team_broadcast(
            c->team, c->leader,
            rank == c->leader
                ? memory
                : train_state_at(c->state, group_of(r), buffer_of(r), r->from, r->count),
            r->count * sizeof(float));
    for (int target = 0; target < c->team->exchange.size; target++) {
        struct train_holds *in = holds_in(&c->places[target], r);

        for (uint32_t i = 0; i < in->count && target != c->leader; i++) {
            const struct train_hold *h = &in->at[i];

            if (rank == c->leader)
                add_message(&messages, (struct train_message){
                                           target, true, memory + (h->from - r->from), h->count});
            else if (rank == target)
                add_message(&messages,
                            (struct train_message){c->leader, false,
                                                   train_state_at(c->state, group_of(r),
                                                                  buffer_of(r), h->from, h->count),
                                                   h->count});
        }
        base_free(in);
    }
    st = train_team_pass(c->team, messages.at, messages.count);
    base_free(messages.at);
    return st;
}

static base_status carry_take(void *context, int slot, size_t from, size_t count,
                              const float *memory)
{
    struct train_carry *c = context;
    struct range r = {.slot = slot, .from = from, .count = count};
    base_status st = BASE_OK;

    TRY(train_team_broadcast(c->team, c->leader, &r, sizeof r));
    TRY(deliver(c, &r, (float *)(uintptr_t)memory));
out:
    return st;
}

base_status train_carry_loaded(struct train_carry *c, bool *good)
{
    base_status st = BASE_OK;
    struct range r = {.ends = 1, .good = *good};

    if (c->team->exchange.size == 1)
        return BASE_OK;
    for (;;) {
        TRY(train_team_broadcast(c->team, c->leader, &r, sizeof r));
        if (r.ends)
            break;
        TRY(deliver(c, &r, NULL));
    }
    *good = r.good != 0;
    TRY(train_team_broadcast(c->team, c->leader, c->state->statistics,
                             c->state->stat_floats * sizeof(float)));
    TRY(train_team_broadcast(c->team, c->leader, c->state->tracked,
                             c->state->stats * sizeof *c->state->tracked));
out:
    return st;
}

base_status train_carry_begin(struct train_carry *c, struct train_team *team,
                              struct train_state *state, const struct train_holds *places,
                              int leader)
{
    size_t most = 1;

    *c = (struct train_carry){team,   state,
                              places, leader,
                              NULL,   {.bring = carry_bring, .take = carry_take, .context = c}};
    if (team->exchange.rank != leader || train_state_is_whole(state))
        return BASE_OK;
    for (size_t i = 0; i < state->tensor_count; i++)
        most = state->tensors[i].count > most ? state->tensors[i].count : most;
    return base_tensor(most, sizeof(float), "a tensor of other workers", &c->room);
}

void train_carry_end(struct train_carry *c)
{
    base_free(c->room);
    *c = (struct train_carry){0};
}

const struct model_carrier *train_carry_leader(const struct train_carry *c)
{
    return c->team->exchange.size > 1 ? &c->carrier : NULL;
}
