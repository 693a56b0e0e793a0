/* SPDX-License-Identifier: MIT
 *
 * What the files of `downpour` share about one worker: its options and its state. A round is begun
 * and ended by round.c; what the worker does in between, and the talk with the manager about it, is
 * work.c's.
 */
#ifndef TRAIN_STRATEGIES_DOWNPOUR_DOWNPOUR_H
#define TRAIN_STRATEGIES_DOWNPOUR_DOWNPOUR_H

#include "comm/region.h"
#include "train/momentum.h"
#include "train/strategies/downpour/line.h"
#include "train/strategies/downpour/manager.h"
#include "train/strategies/downpour/parcel.h"
#include "train/strategies/downpour/solo.h"

struct downpour_options {
    enum train_split split;
    double alpha; /* of split=dirichlet */
    int64_t push_every, fetch_every;
    double quorum, grace;
    double momentum;  /* of a worker's changes; 0: they go as they are */
    double latency;   /* seconds that every message of the talk takes longer, for studies */
    const char *wire; /* NULL: floats travel as they are */
    bool apart;
};

struct downpour {
    /* Across views. */
    struct downpour_ledger ledger; /* rank 0's */
    struct downpour_solo solo;
    struct downpour_parcel parcel;
    struct train_momentum momentum;
    int64_t rounds;       /* that were committed, as far as this worker knows */
    float *changes;       /* the state's mean of changes, while a checkpoint has another */
    double split_seconds; /* in which it has divided samples into blocks */

    /* Of a view. */
    struct train_aggregation aggregation;
    struct downpour_manager *manager; /* rank 0's */
    struct downpour_line line;        /* the others' */
    struct comm_region *region;       /* that this worker reads the centre from; or NULL */
    float *fetched;                   /* the centre, where changes are added as they come … */
    float *change;                    /* … and how it has changed, where that travels packed */
    int64_t steps;                    /* of this worker in the round */
    bool begins;                      /* no round of the view has begun */
};

/* Does this worker compute blocks? Rank 0 that manages `apart` does not. */
bool downpour_computes(const struct train_session *session);
/* An extra of the state that this worker has for itself; NULL: there is none. */
float *downpour_extra(struct train_session *session, const char *name);
/* Weights and statistics into one row. */
void downpour_fill(const struct train_session *session, float *row);

/* The workers of the view agree on the round from here to step `goal`: a new one, or one that a
 * former view has left half-way. */
base_status downpour_round_begin(struct train_session *session, int64_t goal);
/* The update is made, and all workers have it; or the round is left, as `answer` told. */
base_status downpour_round_end(struct train_session *session, const struct train_answer *answer);

/* The newest result, or push, goes to the manager of another process: `length_p` bytes at what is
 * returned, packed if a wire asks for it; `floats` of weights and statistics. */
const void *downpour_dispatch(struct downpour *downpour, size_t floats, size_t *length_p);
/* The manager has said whether it counts. */
void downpour_settle(struct downpour *downpour, bool counts, bool result);
/* Results that this worker had in the round were for a manager that is gone, or begin anew. */
void downpour_forget_settled(struct downpour *downpour);
/* Computes blocks one after the other, until the manager says that the round is over, and takes
 * leave of it. */
base_status downpour_work(struct train_session *session, struct train_answer *answer_p);

#endif
