/* SPDX-License-Identifier: MIT
 *
 * The manager's ledger of a round: which block is with which worker, and what came back. Each block
 * counts once, whichever worker delivers it. A block that its worker lost, or for which it takes
 * much longer than its peers' median, is given to another one; what is no result of its block is
 * refused, and the block given out again. Blocks that a quorum left out may come in a later round,
 * once, with their age.
 *
 * The ledger talks to no worker and asks no clock: its callers do. It outlives views, so that what
 * came before a loss counts after it. One thread at a time.
 */
#ifndef TRAIN_STRATEGIES_DOWNPOUR_LEDGER_H
#define TRAIN_STRATEGIES_DOWNPOUR_LEDGER_H

#include "train/aggregator.h"
#include "train/strategies/downpour/call.h"

enum { DOWNPOUR_LEDGER_AGES = 8 };

/* What has happened, of all rounds so far. */
struct downpour_ledger_counts {
    int64_t rounds;   /* that were committed */
    int64_t results;  /* that count */
    int64_t reissued; /* blocks given out once more: their worker was lost, late or wrong */
    int64_t refused;  /* results that are none */
    int64_t surplus;  /* results of a block that another worker had delivered before */
    int64_t late;     /* results that count for a later round … */
    int64_t late_by_age[DOWNPOUR_LEDGER_AGES]; /* … by rounds: one, two, …, so many or more */
    int64_t left_out;                          /* blocks that a quorum went without */
};

struct downpour_ledger_block {
    uint32_t samples;
    bool in, issued;
    int holders;     /* workers of this view that have it now */
    uint32_t worker; /* id of the one that got it last; once it is in, that delivered it */
    double since;    /* when it was given out first in this view */
    int refusals;
    float *values; /* of the result */
    struct train_outcome outcome;
};

/* A block that a round went without; once it has come, its values, for the round under way. */
struct downpour_ledger_late {
    int64_t number; /* of its round */
    uint32_t block, samples, worker;
    float *values; /* NULL: it has not come */
    struct train_outcome outcome;
};

struct downpour_ledger { /* zeros: of no round */
    struct downpour_round round;
    struct downpour_ledger_block *blocks;
    uint32_t filled, in; /* blocks with samples; those of them that are in */
    uint64_t samples;    /* of all blocks */
    bool once;           /* no block is with two workers at once */
    uint32_t awaited;    /* id of a worker whose block is never late; 0: of none */
    double *paces;       /* (in) seconds per sample of those that came, ascending */
    uint32_t pace_count;
    double quorum_since; /* when the quorum was there; negative: it is not */
    struct downpour_ledger_late *late;
    size_t late_count;
    struct downpour_ledger_counts counts;
};

void downpour_ledger_fini(struct downpour_ledger *ledger); /* accepts zeros */

/* A round begins, or goes on in another view: then what came before counts, and blocks that are out
 * are free again. counts (round->blocks): samples of each block. */
void downpour_ledger_begin(struct downpour_ledger *ledger, const struct downpour_round *round,
                           const uint32_t *counts);

/* What came of the round so far is void. */
void downpour_ledger_forget(struct downpour_ledger *ledger);

/* A block for the worker of that id, which is out from now on; -1: there is none now. `favourite`
 * is taken first if it is free. A block whose result was refused goes to another worker, unless
 * there is none (`alone`). One that is out with others is given out once more when it is late by
 * the median of those that came. */
int64_t downpour_ledger_issue(struct downpour_ledger *ledger, uint32_t worker, bool alone,
                              uint32_t favourite, double now);
/* The round begins: the block is kept for the worker, which has not asked yet, if it is free. From
 * now on it may be late. It is then issued by downpour_ledger_claim, or released. */
bool downpour_ledger_reserve(struct downpour_ledger *ledger, uint32_t worker, uint32_t block,
                             double now);
void downpour_ledger_claim(struct downpour_ledger *ledger, uint32_t block);
/* The worker has a part of `call->block` done, in this or a former view: the block is out with it
 * from now on, if it is free. */
bool downpour_ledger_resume(struct downpour_ledger *ledger, uint32_t worker,
                            const struct downpour_call *call, double now);
/* The worker that had it does not any more: it was lost, or is given another one. */
void downpour_ledger_release(struct downpour_ledger *ledger, uint32_t block);

/* Is it a result of a block of this round, or a part of one that is to be added? */
base_status downpour_ledger_check(struct downpour_ledger *ledger, const struct downpour_call *call,
                                  const float *values, size_t floats, size_t got);

enum downpour_receipt {
    DOWNPOUR_RECEIPT_COUNTS,
    DOWNPOUR_RECEIPT_SURPLUS, /* the block is in already */
    DOWNPOUR_RECEIPT_REFUSED, /* it is no result of an open block: base_message says why */
};
/* A result came: `floats` of them were expected, `values` has `got`. If it counts, the ledger keeps
 * *values_p, made by base_tensor, and *values_p is NULL. */
enum downpour_receipt downpour_ledger_receive(struct downpour_ledger *ledger, uint32_t worker,
                                              const struct downpour_call *call, float **values_p,
                                              size_t floats, size_t got, double now);

/* Is the result of that block which counts this worker's? */
bool downpour_ledger_counts(const struct downpour_ledger *ledger, const struct downpour_call *call,
                            uint32_t worker);

/* What a worker sent for a block that it was given was refused: another one gets it, and after
 * several the round is hopeless. */
void downpour_ledger_blame(struct downpour_ledger *ledger, uint32_t block, uint32_t worker);

/* No worker can compute the block: the round goes on without it. */
void downpour_ledger_drop(struct downpour_ledger *ledger, uint32_t block);

/* Are `share` of the blocks in, and then `grace` seconds over, or all? */
bool downpour_ledger_complete(struct downpour_ledger *ledger, double share, double grace,
                              double now);
/* Has a block been refused so often that no worker seems able to compute it, or were all dropped?
 */
bool downpour_ledger_hopeless(const struct downpour_ledger *ledger);
/* Does what a worker has under way for that round and block count if it comes later? */
bool downpour_ledger_wants(const struct downpour_ledger *ledger, uint32_t block);

/* The results that the round's update is made of: at most round.blocks + late_count rows. */
int downpour_ledger_rows(const struct downpour_ledger *ledger, struct train_row *rows);
/* Of these, together. */
struct train_outcome downpour_ledger_outcome(const struct downpour_ledger *ledger);
/* Samples of them that the worker of that id computed. */
int64_t downpour_ledger_samples_of(const struct downpour_ledger *ledger, uint32_t worker);
/* The update is made: the results go; blocks that are not in may come late, if `late`. */
void downpour_ledger_commit(struct downpour_ledger *ledger, bool late);

#endif
