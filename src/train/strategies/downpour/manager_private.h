/* SPDX-License-Identifier: MIT
 *
 * Shared by the manager's two files. Every rank has a *desk*: what its worker does, by what the
 * manager knows. desks.c has what is booked there and answered; manager.c the thread that hears
 * workers, the worker beside it, and the manager's life.
 */
#ifndef TRAIN_STRATEGIES_DOWNPOUR_MANAGER_PRIVATE_H
#define TRAIN_STRATEGIES_DOWNPOUR_MANAGER_PRIVATE_H

#include "base/thread.h"
#include "comm/engine.h"
#include "comm/region.h"
#include "train/strategies/downpour/manager.h"

enum { ANSWERS = 4 }; /* to one worker on their way: of a block, of a wait, of the round's end */

struct said {
    uint8_t bytes[TRAIN_ANSWER_BYTES];
    struct comm_task task;
    bool used;
};

struct desk {
    enum { DESK_SILENT, DESK_WAITS, DESK_COMPUTES, DESK_GONE } state;
    bool holds;    /* `block` is out with this worker … */
    bool reserved; /* … which does not know it yet */
    bool added;    /* a part of the block is in the centre already */
    uint32_t block;
    bool counts;   /* the newest result or push of this worker does */
    bool told;     /* that the round is over */
    double waited; /* since this moment without a word from the manager */

    /* Of a worker in another process. */
    uint8_t bytes[DOWNPOUR_CALL_BYTES];
    struct downpour_call call; /* whose values are on their way */
    float *values;             /* room for them */
    float *fetched; /* a copy of the centre, on its way; of a wiring, what the worker knows of it */
    uint8_t *coming, *going; /* of a wiring: values that come, and weights on their way */
    struct comm_task fetch;
    bool values_come;
    struct comm_task heard;
    struct said said[ANSWERS];
};

struct downpour_manager {
    struct train_team *team;
    struct downpour_ledger *ledger;
    struct train_rules rules;
    size_t floats, statistics;
    float *change, *rest; /* of a wiring: room to pack the centre's change */
    int64_t sent;
    struct comm_engine *engine; /* NULL: there is no other worker */
    float *centre;
    struct comm_region *region; /* of the centre; NULL: no worker of this host reads it */
    uint64_t version;
    struct desk desks[COMM_MAX_WORKERS];
    int size, workers; /* of the view; those that compute */
    int rounds;        /* that have begun in this view */

    struct base_mutex lock;
    struct base_signal moved;  /* the desk of rank 0 was served, or the round has failed */
    struct train_answer local; /* for rank 0, while `answered` */
    bool answered;
    bool over;
    double over_since;
    enum train_ending ending;
    base_status failure;
    char *message;
    char *refusal;  /* of the last result that was none; NULL: there was none */
    bool abandoned; /* the thread is to end */
    struct base_thread thread;
    bool has_thread;
};

uint32_t downpour_manager_id(const struct downpour_manager *manager, int rank);

/* All of these with the lock. */

/* The round cannot go on; the first failure is the one that is told. */
void downpour_manager_fail(struct downpour_manager *manager, base_status st);
/* A word to the worker of that rank. */
void downpour_desks_answer(struct downpour_manager *manager, int rank,
                           const struct train_answer *answer);
/* A call is there; values as of downpour_ledger_receive. */
void downpour_desks_book(struct downpour_manager *manager, int rank,
                         const struct downpour_call *call, float **values_p, size_t got,
                         double now);
/* What no message tells: is the round over? All desks are served then: a worker that waits gets a
 * block if there is one, and one that does not know that the round is over is told. */
void downpour_desks_serve(struct downpour_manager *manager, double now);
/* The centre has changed, or the round begins: workers of this host can read it. */
void downpour_desks_publish(struct downpour_manager *manager);

#endif
