/* SPDX-License-Identifier: MIT
 *
 * Gradients that are zeros but for the rows which a batch touches: those of embeddings
 * (nn_tensor.sparse). In place of all rows every worker sends the ones that it has touched to all
 * others, and each worker adds them in the order of ranks. That is the sum of whole gradients in
 * the order of ranks, to the bit, over any transport.
 *
 * All messages are of one length, with room for as many rows of a tensor as the largest share has
 * samples, so that no lengths travel before them. Where whole gradients are fewer bytes while
 * shares are even, these travel.
 */
#ifndef TRAIN_TOUCHED_H
#define TRAIN_TOUCHED_H

#include "base/status.h"
#include "nn/graph.h"

struct train_exchange;
struct train_session;
struct train_shares;

enum { TRAIN_MAX_TABLES = 8 };

/* A tensor whose gradient is rows. */
struct train_table {
    size_t offset, width; /* of its first row in the gradients; floats of a row */
    uint32_t rows;
    uint32_t room; /* rows of it in a message */
};

struct train_touched {
    struct train_table tables[TRAIN_MAX_TABLES];
    int count;
    size_t floats;     /* so many of the gradients, the first, travel as rows; 0: none do */
    size_t message;    /* floats of a worker's message */
    float *mine, *all; /* messages: this worker's, all workers'; NULL: only planned */
    const struct train_shares *shares; /* of the view, as they are now … */
    uint32_t whole;                    /* … of batches of so many samples */
};

/* What travels as rows where `workers` divide batches and no share has more than `share` samples.
 * Pure arithmetic, the same on every worker. */
void train_touched_plan(const struct nn_graph *graph, int workers, uint32_t share,
                        struct train_touched *plan_p);
/* The same where no share has more than `share` samples from now on. */
void train_touched_room(struct train_touched *touched, uint32_t share);
/* Bytes that a worker allocates for it. */
double train_touched_memory(const struct train_touched *plan, int workers);

/* For this view: a plan, and memory for its messages; session->team.exchange then has it. */
base_status train_touched_open(struct train_touched *touched, struct train_session *session);
void train_touched_close(struct train_touched *touched); /* accepts zeros */

/* Moves the rows that are not zeros out of `gradients` into a message. */
base_status train_touched_pack(const struct train_touched *touched, float *gradients,
                               float *message);
/* Adds the rows of a message of worker `rank`; BASE_ERR_DATA where it has rows that are none. */
base_status train_touched_add(const struct train_touched *touched, int rank, const float *message,
                              float *gradients);
/* Collective: the first `floats` of the exchange's gradients become their sum over all workers. */
base_status train_touched_sum(struct train_touched *touched, struct train_exchange *x);

#endif
