/* SPDX-License-Identifier: MIT
 *
 * What a worker's gradients travel as under `ps:wire=…`: every server's slice in a wire format
 * (train/wire.h). A slice is packed once, and both servers that keep it get these bytes, so they
 * have the same bits. Weights travel as floats.
 *
 * What a format leaves out is the worker's *residual*, which the next push carries along (error
 * feedback). A push that does not count was never sent: it came too late, was refused, or was lost
 * with a view; the residual is then that of before it. A residual is in the unit of the push that
 * left it: an update is by (samples of a block)/(samples of a step) of a block's gradients, but by
 * all of those of a share.
 *
 * Every worker keeps its own residual from view to view. One that joins begins with zeros, one that
 * is lost takes its own along. In the state there is room for one, an extra that servers hold as
 * the optimiser's slots: it is zeros, but for two times. A checkpoint has the sum of all residuals,
 * in the unit of a share, and so has a state that was read from one, until the workers have divided
 * it among themselves. One thread.
 */
#ifndef TRAIN_STRATEGIES_PS_PARCEL_H
#define TRAIN_STRATEGIES_PS_PARCEL_H

#include "train/session.h"
#include "train/strategies/ps/server.h"
#include "train/wire.h"

/* The name of the extra (train/strategy.h). */
#define PS_PARCEL_RESIDUAL "strategy.push_residual"

struct ps_parcel { /* zeros: floats travel as they are */
    struct train_wiring wiring;
    size_t floats; /* of all weights */
    struct ps_seats seats;
    uint8_t *bytes; /* the slice of every server, each with room for the most that it can take */
    size_t from[COMM_MAX_WORKERS], length[COMM_MAX_WORKERS]; /* of each in the bytes */

    /* Across views; NULL: the format is exact. */
    float *residual, *next; /* by all pushes that count; by the newest, too */
    double unit, next_unit; /* of them; of a share: 1 */
    bool begun;             /* the residual is this worker's own … */
    bool shared;            /* … and the workers of this view know that */
};

/* A view begins. `wire`: NULL: there is none. Alone nothing is packed. */
base_status ps_parcel_open(struct ps_parcel *parcel, const char *wire,
                           const struct train_session *session, struct ps_seats seats);
void ps_parcel_fini(struct ps_parcel *parcel); /* accepts zeros */

bool ps_parcel_packs(const struct ps_parcel *parcel);
/* Bytes of a push for one byte of gradients, at most. */
double ps_parcel_ratio(const char *wire, double floats);

/* Packs the slice of server `owner`, of all gradients. A push is every slice once, with the same
 * unit. */
void ps_parcel_pack(struct ps_parcel *parcel, int owner, const float *gradients, double unit);
/* Whether the newest push counts is known. */
void ps_parcel_settle(struct ps_parcel *parcel, bool counts);

/* Collective, in a view's first leg: workers that have read a checkpoint together divide its
 * residual; one that has joined others begins with zeros. */
base_status ps_parcel_begin(struct ps_parcel *parcel, struct train_session *session);
/* Others have divided it, and this worker did not come so far: it goes without. */
void ps_parcel_miss(struct ps_parcel *parcel, struct train_session *session);
/* Collective, before a checkpoint: servers have the sum of all residuals in the state. */
base_status ps_parcel_saving(struct ps_parcel *parcel, struct train_session *session);
void ps_parcel_saved(const struct ps_parcel *parcel, struct train_session *session);
/* All workers go back to a checkpoint, or this one alone saves what it has: its residual becomes
 * that of the state, as far as it holds such. */
void ps_parcel_give_up(struct ps_parcel *parcel, struct train_session *session);

#endif
