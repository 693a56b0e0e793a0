/* SPDX-License-Identifier: MIT
 *
 * What changes of weights travel as under `downpour:wire=…`: a *parcel* is the change of the
 * weights in a wire format (train/wire.h), then that of the statistics as floats. It carries the
 * sender's residual along, and what the format leaves out becomes the next one (error feedback).
 *
 * A worker's residual is an extra of the state, and changes when a round is committed, by the
 * parcels that count in it. A parcel that the manager has no use for was never sent: its change is
 * in the model by another worker's, or not at all. Packed again, after a lost view, it has the same
 * bytes. The worker beside the manager hands its change over as it is, so rank 0's residual serves
 * the way back: it has what the update of all lacks, in the unit of that update, and changes in the
 * same way. From view to view a residual stays as it is, unless its worker begins or ends to
 * manage. What a checkpoint has is in the unit of a worker's change. One thread.
 */
#ifndef TRAIN_STRATEGIES_DOWNPOUR_PARCEL_H
#define TRAIN_STRATEGIES_DOWNPOUR_PARCEL_H

#include "train/team.h"
#include "train/wire.h"

struct downpour_parcel { /* zeros: floats travel as they are */
    struct train_wiring wiring;
    struct train_team *team;
    size_t floats, statistics; /* of weights and of statistics */
    float *residual;           /* the state's; NULL: the format is exact */
    uint8_t *bytes;

    /* Across views. */
    float *counted; /* the residual by the parcels of this round that count, while `counts` */
    float *packed;  /* the residual if the newest parcel counts, too */
    bool counts;
    bool of_update; /* the residual is in the unit of the update of all: this worker was rank 0 */
    int64_t pushed, pulled; /* bytes that it sent to the manager's process, or as that one to all */
};

/* A view begins. `wire`: NULL: nothing is packed. */
base_status downpour_parcel_open(struct downpour_parcel *parcel, const char *wire,
                                 struct train_team *team, float *residual, size_t floats,
                                 size_t statistics);
void downpour_parcel_close(struct downpour_parcel *parcel); /* the view ends; accepts half-opened */
void downpour_parcel_fini(struct downpour_parcel *parcel);  /* all of it goes */

/* Is anything packed? */
bool downpour_parcel_packs(const struct downpour_parcel *parcel);
/* The most bytes of one, for memory and messages. */
size_t downpour_parcel_bound(const struct train_wiring *wiring, size_t floats, size_t statistics);

/* Packs values, (floats + statistics), into parcel->bytes; returns their number. */
size_t downpour_parcel_pack(struct downpour_parcel *parcel, const float *values);
/* Does the newest parcel count? Until it is settled another one packed takes its place. */
void downpour_parcel_settle(struct downpour_parcel *parcel, bool counts);
/* The manager has none of the parcels that counted in the round. */
void downpour_parcel_forget(struct downpour_parcel *parcel);
/* The round is committed; `residual` is the state's. Also between views, where this worker gets to
 * know by another's state that the round which it left half-way was committed. */
void downpour_parcel_commit(struct downpour_parcel *parcel, float *residual);

/* Bytes from outside: anything but a parcel of finite values is BASE_ERR_DATA. */
base_status downpour_parcel_unpack(const struct train_wiring *wiring, const uint8_t *bytes,
                                   size_t length, float *values, size_t floats, size_t statistics);

/* Collective: rank 0's weights, as their change since `base`, to all; every worker, rank 0 too, has
 * then `base` and what can be unpacked. It is rank 0's parcel of the round, and counts. After a
 * failure the weights are undefined. */
base_status downpour_parcel_share(struct downpour_parcel *parcel, const float *base,
                                  float *weights);

#endif
