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

/* This worker becomes the manager's, or no longer is: of N workers' changes each counts one N-th in
 * the update. */
static void change_unit(struct downpour_parcel *p, float *residual)
{
    const struct train_exchange *x = &p->team->exchange;
    bool of_update = x->rank == 0;

    if (residual != NULL && of_update != p->of_update)
        coll_scale(p->floats, of_update ? 1 / (float)x->size : (float)x->size, residual);
    p->of_update = of_update;
}

base_status downpour_parcel_open(struct downpour_parcel *p, const char *wire,
                                 struct train_team *team, float *residual, size_t floats,
                                 size_t statistics)
{
    base_status st = BASE_OK;

    p->team = team;
    p->floats = floats;
    p->statistics = statistics;
    change_unit(p, residual);
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
out:
    return st;
}

void downpour_parcel_close(struct downpour_parcel *p)
{
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

/* The weights' part, with what parcels before this one have left out. */
static size_t encode(struct downpour_parcel *p, const float *values)
{
    if (p->residual != NULL)
        memcpy(p->packed, p->counts ? p->counted : p->residual, p->floats * sizeof *p->packed);
    return train_wire_encode(&p->wiring, values, p->residual != NULL ? p->packed : NULL, p->floats,
                             p->bytes);
}

size_t downpour_parcel_pack(struct downpour_parcel *p, const float *values)
{
    size_t tail = p->statistics * sizeof *values, length = encode(p, values);

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

void downpour_parcel_commit(struct downpour_parcel *p, float *residual)
{
    if (p->counts)
        memcpy(residual, p->counted, p->floats * sizeof *residual);
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
    for (size_t i = floats; i < floats + statistics; i++)
        if (!isfinite(values[i]))
            TRY(base_fail(BASE_ERR_DATA, "a statistic that is not finite"));
out:
    return st;
}

/* ---- to all ---- */

/* Rank 0: the change since `base`. Its memory is where other workers unpack theirs: `weights`. One
 * that was packed before, and never committed, was none. */
static size_t pack_update(struct downpour_parcel *p, const float *base, float *weights)
{
    size_t length;

    for (size_t i = 0; i < p->floats; i++)
        weights[i] -= base[i];
    downpour_parcel_forget(p);
    length = encode(p, weights);
    downpour_parcel_settle(p, true);
    return length;
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
