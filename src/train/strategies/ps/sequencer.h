/* SPDX-License-Identifier: MIT
 *
 * Decides for the workers of a parameter server who computes which samples, and in which order
 * their pushes come into the weights: a log of entries, each with one push or several. It is the
 * part of server 0 that knows no messages and no weights. Pure arithmetic, one thread.
 *
 *   bsp   an entry has the pushes of all workers, or without the `backup` slowest of them, whose
 *         samples are issued again: rounds, in which every worker computes with the same weights
 *   asp   an entry is one push; a worker that is done gets the next block at once
 *   ssp   the same, but a worker is never more than `staleness` blocks ahead of the slowest one
 *         (Ho et al. 2013): at clock c it reads all updates of every worker up to c - staleness - 1
 *
 * A worker's life: it asks, is granted a block (or told that the leg is over), pushes, and its push
 * becomes part of an entry, upon which it asks again. A push may be refused as rubbish: its block
 * then goes to a worker from which that block was not refused before. While that
 * is the lowest free block, the worker that failed at it waits. Under ssp it holds no other one
 * back meanwhile, and goes on within the bound: its clock counts blocks that it could not make.
 * There is no hope left when all workers were refused the same block, or the newest push of every
 * worker was refused.
 */
#ifndef TRAIN_STRATEGIES_PS_SEQUENCER_H
#define TRAIN_STRATEGIES_PS_SEQUENCER_H

#include "train/strategies/ps/ledger.h"

enum train_consistency { TRAIN_BSP, TRAIN_SSP, TRAIN_ASP };
extern const char *const train_consistency_names[]; /* NULL-ended */

enum train_work {
    TRAIN_ABSENT,
    TRAIN_ASKS,
    TRAIN_WORKS,
    TRAIN_PUSHED,
    TRAIN_REFUSED, /* its push was; the round of bsp goes on without it */
    TRAIN_LEFT
};

struct train_rules {
    enum train_consistency consistency;
    int64_t staleness, backup;
};

struct ps_sequencer {
    struct train_rules rules;
    int workers;
    int first_worker; /* its rank, from which on workers are counted: others only serve */
    int64_t batch;    /* samples of a step */
    int64_t first;    /* sample with which the leg begins; a multiple of the batch */
    uint64_t number;  /* of the newest entry */
    uint64_t durable; /* entries up to here would survive the loss of a server */
    int64_t round;    /* of bsp … */
    bool begun;       /* … in which a worker has been granted something, and … */
    bool shares; /* … workers get their shares of one batch, as synchronous strategies do … */
    struct train_span whole; /* … which is this one */
    bool ending;             /* no step is begun any more */
    struct ps_ledger ledger;
    struct {
        enum train_work work;
        int64_t clock;  /* pushes that are in the log, or that others need not wait for */
        uint64_t entry; /* the one with its newest push */
        int64_t round;
        struct train_span block;
        bool shared;  /* the block is its share of `whole`, and may have no samples */
        bool refused; /* its newest push was */
    } of[COMM_MAX_WORKERS];
    struct {
        int64_t from;     /* first sample of a block that was refused and is not done … */
        uint64_t workers; /* … from these: bits */
    } refusals[COMM_MAX_WORKERS];
    int refusal_count;
    bool hopeless;
};

/* Fill in rules, workers and first_worker before. `done`: spans above `first` that are in the
 * weights already. */
void ps_sequencer_init(struct ps_sequencer *sequencer, int64_t batch, int64_t first, int64_t end,
                       const struct train_span *done, int done_count);

void ps_sequencer_ask(struct ps_sequencer *sequencer, int worker);
/* Its block is computed, and its push is everywhere it has to be. */
void ps_sequencer_push(struct ps_sequencer *sequencer, int worker);
/* Its push is rubbish. Under bsp the round goes on without it, and makes no entry if no sample is
 * left in it. */
void ps_sequencer_refuse(struct ps_sequencer *sequencer, int worker);
/* No step is begun any more: what is issued is finished, up to the end of a step. */
void ps_sequencer_end(struct ps_sequencer *sequencer);

/* The next entry, if one can be made: its workers in ascending order; their number. 0: none yet. */
int ps_sequencer_entry(struct ps_sequencer *sequencer, int workers[COMM_MAX_WORKERS]);

enum train_grant { TRAIN_GRANT_NONE, TRAIN_GRANT_BLOCK, TRAIN_GRANT_OVER };
/* A worker that can go on now, and with what: `of[*worker_p].block`. */
enum train_grant ps_sequencer_grant(struct ps_sequencer *sequencer, int *worker_p);

/* Samples of an update, as planned: the unit in which updates are counted. */
int64_t ps_sequencer_unit(const struct ps_sequencer *sequencer);

#endif
