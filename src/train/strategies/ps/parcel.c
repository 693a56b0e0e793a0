/* SPDX-License-Identifier: MIT */
#include "train/strategies/ps/parcel.h"

#include <string.h>

#include "base/mem.h"
#include "coll/kernels.h"

/* ---- a view ---- */

static void close_view(struct ps_parcel *p)
{
    train_wiring_fini(&p->wiring);
    base_free(p->bytes);
    p->bytes = NULL;
}

base_status ps_parcel_open(struct ps_parcel *p, const char *wire, const struct train_session *s,
                           struct ps_seats seats)
{
    base_status st = BASE_OK;
    struct train_slice slices[2];
    size_t room = 0;

    close_view(p);
    p->floats = s->state.floats;
    p->seats = seats;
    p->shared = false;
    if (train_wire_is_lossy(wire) && p->residual == NULL) {
        TRY(base_tensor(p->floats, sizeof(float), "a residual", &p->residual));
        TRY(base_tensor(p->floats, sizeof(float), "the next residual", &p->next));
        p->unit = 1;
    }
    if (wire == NULL || s->team.exchange.size == 1)
        goto out;
    TRY(train_wire_find(wire, &p->wiring));
    for (int i = 0; i < seats.servers; i++) {
        ps_server_slices(p->floats, i, seats.servers, slices);
        p->from[i] = room;
        room += train_wire_bound(&p->wiring, slices[0].count);
    }
    TRY(base_tensor(room, 1, "packed gradients", &p->bytes));
out:
    return st;
}

void ps_parcel_fini(struct ps_parcel *p)
{
    close_view(p);
    base_free(p->residual);
    base_free(p->next);
    *p = (struct ps_parcel){0};
}

bool ps_parcel_packs(const struct ps_parcel *p)
{
    return p->bytes != NULL;
}

double ps_parcel_ratio(const char *wire, double floats)
{
    struct train_wiring wiring = {0};
    double ratio = 1;

    if (wire != NULL && floats >= 1 && train_wire_find(wire, &wiring) == BASE_OK)
        ratio = (double)train_wire_bound(&wiring, (size_t)floats) / (floats * sizeof(float));
    train_wiring_fini(&wiring);
    return ratio;
}

/* ---- a push ---- */

void ps_parcel_pack(struct ps_parcel *p, int owner, const float *gradients, double unit)
{
    struct train_slice slices[2];
    size_t from, count;
    float *next = NULL;

    ps_server_slices(p->floats, owner, p->seats.servers, slices);
    from = slices[0].from;
    count = slices[0].count;
    if (p->residual != NULL) {
        next = p->next + from;
        memcpy(next, p->residual + from, count * sizeof *next);
        if (unit != p->unit)
            coll_scale(count, (float)(p->unit / unit), next);
        p->next_unit = unit;
    }
    p->length[owner] =
        train_wire_encode(&p->wiring, gradients + from, next, count, p->bytes + p->from[owner]);
}

void ps_parcel_settle(struct ps_parcel *p, bool counts)
{
    float *before = p->residual;

    if (!counts || before == NULL || !ps_parcel_packs(p))
        return;
    p->residual = p->next;
    p->next = before;
    p->unit = p->next_unit;
}

/* ---- in the state ---- */

/* Where the state has the residual of a slice. */
static float *in_state(struct train_session *s, const struct train_slice *slice)
{
    float **extra = train_state_extra(&s->state, PS_PARCEL_RESIDUAL);

    return train_state_at(&s->state, TRAIN_SLOTS, (int)(extra - s->state.slots), slice->from,
                          slice->count);
}

/* The slices whose residual this worker has in the state. */
static int held_slices(const struct ps_parcel *p, const struct train_session *s,
                       struct train_slice slices[2])
{
    int rank = s->team.exchange.rank;

    return rank < p->seats.servers ? ps_server_slices(p->floats, rank, p->seats.servers, slices)
                                   : 0;
}

static bool has_some(const struct ps_parcel *p, struct train_session *s)
{
    struct train_slice slices[2];
    int count = held_slices(p, s, slices);
    bool some = false;

    for (int i = 0; i < count; i++) {
        const float *at = in_state(s, &slices[i]);

        for (size_t k = 0; k < slices[i].count; k++)
            some |= at[k] != 0;
    }
    return some;
}

static void clear_state(const struct ps_parcel *p, struct train_session *s)
{
    struct train_slice slices[2];
    int count = held_slices(p, s, slices);

    for (int i = 0; i < count; i++)
        if (slices[i].count > 0)
            memset(in_state(s, &slices[i]), 0, slices[i].count * sizeof(float));
}

/* Of what the state has each worker gets the same part; processes that only serve get none. */
static base_status divide(struct ps_parcel *p, struct train_session *s)
{
    base_status st = BASE_OK;
    const struct train_exchange *x = &s->team.exchange;
    struct train_slice slices[2];

    for (int i = 0; i < p->seats.servers; i++) {
        ps_server_slices(p->floats, i, p->seats.servers, slices);
        if (slices[0].count == 0)
            continue;
        if (x->rank == i)
            memcpy(p->residual + slices[0].from, in_state(s, &slices[0]),
                   slices[0].count * sizeof(float));
        TRY(train_team_broadcast(&s->team, i, p->residual + slices[0].from,
                                 slices[0].count * sizeof(float)));
        train_fault_nth(&s->fault, "divide", i, s->state.position.step + 1);
    }
    coll_scale(p->floats,
               x->rank < p->seats.first_worker ? 0 : 1 / (float)(x->size - p->seats.first_worker),
               p->residual);
    clear_state(p, s);
out:
    return st;
}

base_status ps_parcel_begin(struct ps_parcel *p, struct train_session *s)
{
    base_status st = BASE_OK;
    uint8_t mine[2], all[COMM_MAX_WORKERS][2];
    bool any_begun = false, any_some = false;

    if (p->residual == NULL || p->shared)
        goto out;
    mine[0] = p->begun;
    mine[1] = has_some(p, s);
    TRY(train_team_gather(&s->team, mine, sizeof mine, all));
    for (int i = 0; i < s->team.exchange.size; i++) {
        any_begun |= all[i][0] != 0;
        any_some |= all[i][1] != 0;
    }
    if (!p->begun) {
        memset(p->residual, 0, p->floats * sizeof *p->residual);
        p->unit = 1;
    }
    if (!any_begun && any_some)
        TRY(divide(p, s));
    p->begun = p->shared = true;
out:
    return st;
}

/* Where this worker holds the residual depends on the view that was lost: all that it holds. */
void ps_parcel_miss(struct ps_parcel *p, struct train_session *s)
{
    float **extra = train_state_extra(&s->state, PS_PARCEL_RESIDUAL);

    if (extra == NULL || p->next == NULL || p->begun)
        return;
    memset(p->next, 0, p->floats * sizeof *p->next);
    train_state_put(&s->state, TRAIN_SLOTS, (int)(extra - s->state.slots), 0, p->floats, p->next);
}

/* Adds what worker `source` lacks to what this server has of it in the state. */
static base_status collect(struct ps_parcel *p, struct train_session *s, int source, float *mine)
{
    base_status st = BASE_OK;
    int rank = s->team.exchange.rank, count = 0, kept;
    struct train_message messages[2 * COMM_MAX_WORKERS];
    struct train_slice slices[2];

    for (int i = 0; i < p->seats.servers; i++) {
        kept = ps_server_slices(p->floats, i, p->seats.servers, slices);
        for (int k = 0; k < kept; k++)
            if (i != source && slices[k].count > 0 && (rank == source || rank == i))
                messages[count++] =
                    (struct train_message){.peer = rank == source ? i : source,
                                           .sends = rank == source,
                                           .at = (rank == source ? mine : p->next) + slices[k].from,
                                           .count = slices[k].count};
    }
    TRY(train_team_pass(&s->team, messages, (size_t)count));
    kept = held_slices(p, s, slices);
    for (int k = 0; k < kept; k++)
        coll_add(slices[k].count, (rank == source ? mine : p->next) + slices[k].from, 1,
                 in_state(s, &slices[k]));
out:
    return st;
}

/* In the order of ranks, so that both servers of a slice have the same bits. What this worker sends
 * is where its gradients were. */
base_status ps_parcel_saving(struct ps_parcel *p, struct train_session *s)
{
    base_status st = BASE_OK;
    float *mine = s->team.exchange.mine + TRAIN_HEAD;

    if (p->residual == NULL)
        goto out;
    TRY(ps_parcel_begin(p, s)); /* of a view without a leg */
    memcpy(mine, p->residual, p->floats * sizeof *mine);
    coll_scale(p->floats, (float)p->unit, mine);
    for (int source = 0; source < s->team.exchange.size; source++)
        TRY(collect(p, s, source, mine));
out:
    return st;
}

void ps_parcel_saved(const struct ps_parcel *p, struct train_session *s)
{
    if (p->residual != NULL && p->begun)
        clear_state(p, s);
}

void ps_parcel_give_up(struct ps_parcel *p, struct train_session *s)
{
    float **extra = train_state_extra(&s->state, PS_PARCEL_RESIDUAL);

    if (extra != NULL && p->residual != NULL && p->begun) {
        coll_scale(p->floats, (float)p->unit, p->residual);
        train_state_put(&s->state, TRAIN_SLOTS, (int)(extra - s->state.slots), 0, p->floats,
                        p->residual);
    }
    p->begun = false;
}
