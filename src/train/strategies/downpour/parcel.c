/* SPDX-License-Identifier: MIT */
#include "train/strategies/downpour/parcel.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "coll/kernels.h"

/* ---- a view ---- */

bool downpour_parcel_packs(const struct downpour_parcel *p)
{
    return p->wiring.wire != NULL;
}

size_t downpour_parcel_bound(const struct train_wiring *wiring, size_t floats, size_t statistics)
{
    return train_wire_bound(wiring, floats) + statistics * sizeof(float);
}

/* The manager's residual is of the mean of N workers' changes; outside a view it is as if it was
 * one of theirs, of which each counts one N-th. */
static void scale_residual(const struct downpour_parcel *p, float scale)
{
    if (p->residual != NULL && p->team->exchange.rank == 0)
        coll_scale(p->floats, scale, p->residual);
}

base_status downpour_parcel_open(struct downpour_parcel *p, const char *wire,
                                 struct train_team *team, float *residual, size_t floats,
                                 size_t statistics)
{
    base_status st = BASE_OK;

    p->team = team;
    p->floats = floats;
    p->statistics = statistics;
    if (wire == NULL)
        return BASE_OK;
    TRY(train_wire_find(wire, &p->wiring));
    TRY(base_tensor(downpour_parcel_bound(&p->wiring, floats, statistics), 1, "a packed change",
                    &p->bytes));
    if (residual != NULL && p->counted == NULL)
        TRY(base_tensor(floats, sizeof(float), "a residual", &p->counted));
    if (residual != NULL && p->packed == NULL)
        TRY(base_tensor(floats, sizeof(float), "a residual", &p->packed));
    p->residual = residual;
    scale_residual(p, 1 / (float)team->exchange.size);
out:
    return st;
}

void downpour_parcel_close(struct downpour_parcel *p)
{
    if (p->residual != NULL)
        scale_residual(p, (float)p->team->exchange.size);
    train_wiring_fini(&p->wiring);
    base_free(p->bytes);
    p->bytes = NULL;
    p->residual = NULL;
}

void downpour_parcel_fini(struct downpour_parcel *p)
{
    downpour_parcel_close(p);
    base_free(p->counted);
    base_free(p->packed);
    *p = (struct downpour_parcel){0};
}

/* ---- to the manager ---- */

size_t downpour_parcel_pack(struct downpour_parcel *p, const float *values)
{
    size_t tail = p->statistics * sizeof *values, length;

    if (p->residual != NULL)
        memcpy(p->packed, p->counts ? p->counted : p->residual, p->floats * sizeof *p->packed);
    length = train_wire_encode(&p->wiring, values, p->residual != NULL ? p->packed : NULL,
                               p->floats, p->bytes);
    memcpy(p->bytes + length, values + p->floats, tail);
    return length + tail;
}

void downpour_parcel_settle(struct downpour_parcel *p, bool counts)
{
    float *packed = p->packed;

    if (!counts || p->residual == NULL)
        return;
    p->packed = p->counted;
    p->counted = packed;
    p->counts = true;
}

void downpour_parcel_forget(struct downpour_parcel *p)
{
    p->counts = false;
}

void downpour_parcel_commit(struct downpour_parcel *p)
{
    if (p->counts)
        memcpy(p->residual, p->counted, p->floats * sizeof *p->residual);
    p->counts = false;
}

base_status downpour_parcel_unpack(const struct train_wiring *wiring, const uint8_t *bytes,
                                   size_t length, float *values, size_t floats, size_t statistics)
{
    base_status st = BASE_OK;
    size_t tail = statistics * sizeof *values;

    if (length < tail)
        TRY(base_fail(BASE_ERR_DATA, "a result of %zu bytes", length));
    TRY(train_wire_decode(wiring, bytes, length - tail, values, floats));
    memcpy(values + floats, bytes + length - tail, tail);
out:
    return st;
}

/* ---- to all ---- */

/* Rank 0: the change since `base`. Its memory is where other workers unpack theirs: `weights`. */
static size_t pack_update(struct downpour_parcel *p, const float *base, float *weights)
{
    for (size_t i = 0; i < p->floats; i++)
        weights[i] -= base[i];
    return train_wire_encode(&p->wiring, weights, p->residual, p->floats, p->bytes);
}

base_status downpour_parcel_share(struct downpour_parcel *p, const float *base, float *weights)
{
    base_status st = BASE_OK;
    const struct train_exchange *x = &p->team->exchange;
    size_t most = train_wire_bound(&p->wiring, p->floats);
    uint64_t length = x->rank == 0 ? pack_update(p, base, weights) : 0;

    TRY(train_team_broadcast(p->team, 0, &length, sizeof length));
    if (length > most)
        TRY(base_fail(BASE_ERR_DATA, "the manager's update has %llu bytes, at most %zu make sense",
                      (unsigned long long)length, most));
    TRY(train_team_broadcast(p->team, 0, p->bytes, length));
    TRY(base_prefix(train_wire_decode(&p->wiring, p->bytes, length, weights, p->floats),
                    "the manager's update"));
    for (size_t i = 0; i < p->floats; i++)
        weights[i] += base[i];
    if (x->rank == 0)
        p->pulled += (int64_t)length * (x->size - 1);
out:
    return st;
}
