/* SPDX-License-Identifier: MIT
 *
 * The robust all-reduce: a rule of train/aggregator.h makes one vector of those of all workers, as
 * a server would that has them whole, without a server. Every worker owns a slice (coll_slice). It
 * gets that slice of all workers' vectors, makes that slice of the result and sends it to all.
 * Rules by coordinates are exact on slices; those by distances need the squared distances between
 * whole vectors, which are sums of those between slices.
 *
 * An owner could return anything. So nothing here passes through a third worker, and in each step:
 *
 *   promise  every worker tells all others digests of its vector, block by block (BLOCKS a slice),
 *            and the digest of a secret number
 *   rows     every owner gets its slice of all vectors, and compares them with the digests
 *   parts    every owner tells the distances in each block of its slice; their sum weighs the rows
 *   results  every owner tells its slice of the result
 *   echo     every worker tells digests of what each worker has told it, and its secret number. All
 *            secret numbers together say which block of each slice is checked, by which worker: no
 *            owner can know it before it has answered
 *   rows of a block to its checker, which computes it again
 *   verdict  every checker says whether the block is right, or a row that came is not the promised
 *            one
 *   show     where one says no: the rows of that block, from all to all, and each worker finds out
 *            whether a row is not the promised one, the owner has lied, or the checker has. Where
 *            all rows and the result are right, one worker may have misled the checker: that is no
 *            fault of the checker, and the block is checked
 *
 * What a worker finds is a `blame`; the caller tells it to the coordinator, which believes a
 * majority (cluster/worker.h). The result of a step with a blame is not to be used.
 *
 * Workers that all share the memory of one host could write into each other's anyway: they trust
 * each other, read each other's vectors where these are, and nothing is checked.
 */
#ifndef TRAIN_ROBUST_H
#define TRAIN_ROBUST_H

#include "train/aggregator.h"
#include "train/attack.h"
#include "train/team.h"

enum {
    TRAIN_ROBUST_BLOCKS = 6,  /* of a slice; one is checked in each step: 1/12 more bytes */
    TRAIN_ROBUST_DIGEST = 16, /* bytes of a SHA-256 that travel */
};

struct train_robust_setup {
    struct train_team *team;
    struct train_aggregation *aggregation; /* its rule does not judge, trust or believe */
    const struct train_attackers *attackers;
    const char *name;         /* of its memory */
    struct coll_space *space; /* this worker's vector is in it … */
    size_t offset, floats;    /* … here */
};

struct train_blame {
    int rank; /* -1: none */
    char why[128];
};

struct train_robust { /* zeros: closed */
    struct train_robust_setup setup;
    int rank, size;
    bool trusting;              /* all share memory */
    uint8_t secret[32];         /* of which the secret numbers are made */
    size_t longest;             /* floats of a slice, at most */
    struct coll_space *results; /* `result` is in it */
    float *rows;                /* (size, longest): this owner's slice of the vectors that came */
    float *shown;               /* (size + 1, longest block): of a block that is checked */
    uint8_t *promises, *echoes; /* by rank */
    double *parts;              /* (size, blocks, pairs): by owner, distances and squares */
    double *distances, *squares;

    /* One step. */
    int64_t step;
    float *x;                               /* this worker's */
    struct train_row row[COMM_MAX_WORKERS]; /* workers that have samples, in the order of ranks … */
    int rank_of[COMM_MAX_WORKERS], count;   /* … and their ranks */
    float weights[COMM_MAX_WORKERS];        /* what the rows count for */
    float *result;                          /* whole */
    float heads[COMM_MAX_WORKERS * TRAIN_HEAD];
    struct train_blame blame;
};

/* All that the setup points to outlives it. Collective. */
base_status train_robust_open(struct train_robust *robust, const struct train_robust_setup *setup);
void train_robust_close(struct train_robust *robust); /* accepts zeros */
/* Bytes that a worker of so many needs for vectors of `floats`. */
double train_robust_memory(double floats, int workers);

/* One step: `result` from the workers' vectors, which stay as they are; values that are not finite
 * count as zeros. `samples` (size): of which each worker's vector is the mean; 0: it has none.
 * `head` (TRAIN_HEAD) of every worker comes into `heads`. */
base_status train_robust_run(struct train_robust *robust, int64_t step, const uint32_t *samples,
                             const float *head);

#endif
