/* SPDX-License-Identifier: MIT
 *
 * The model's state in memory that all workers of one host share, for an update that they make
 * together: two copies of weights and optimiser slots. All workers compute with one of them. The
 * update reads that one and writes the other, each worker a slice, straight from the gradients of
 * all workers; then the copies change places. So no gradient is summed twice, no weight is updated
 * twice, and a worker that is lost in the middle leaves the copy in use as it was.
 */
#ifndef TRAIN_COPIES_H
#define TRAIN_COPIES_H

#include "comm/endpoint.h"
#include "train/state.h"
#include "train/update.h"

struct train_copies { /* zeros: not in use */
    struct comm_shared shared;
    size_t stride; /* floats from one buffer to the next */
    int current;
    /* Of each block of this worker's slice: may the copies differ? A lazy update leaves a block
     * alone that has no gradient, once both copies have what it is. */
    bool *differ;
    float *home[1 + NN_MAX_SLOTS]; /* the worker's own buffers, their pages given back meanwhile */
};

/* Bytes of both copies of a model whose weights take `weights`, with `slots` slots. */
double train_copies_bytes(double weights, int slots);
/* Moves the state, which is the same for all workers of the view, into the copies. */
base_status train_copies_open(struct train_copies *copies, const struct train_exchange *x,
                              struct train_state *state);
/* Moves it back into the worker's own memory. Accepts zeros. */
void train_copies_close(struct train_copies *copies, struct train_state *state);

/* The gradients of all workers are complete: writes this worker's slice of the other copy. */
void train_copies_write(const struct train_copies *copies, struct train_exchange *x,
                        const struct train_update *update, const struct train_state *state);
/* Once all slices are there `state` becomes the other copy; when that fails it is what it was. */
base_status train_copies_turn(struct train_copies *copies, struct train_exchange *x,
                              struct train_state *state);

#endif
