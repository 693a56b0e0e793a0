/* SPDX-License-Identifier: MIT
 *
 * Weights and gradients of a model that no worker has as a whole, lent to its network group by
 * group (nn/net.h). Weights are gathered from the owners of their slices into a pool of memory
 * (train/pool.h), those of the next group while this one computes. Gradients are written into the
 * pool and reduced to the workers that keep their slices, while the next group computes; the bits
 * of the sums are those of an all-reduce of all gradients. The engine of the group does both.
 *
 * A worker alone has everything: it lends what is in memory. Gathers and sums are collective:
 * all workers make the same passes over their networks.
 */
#ifndef TRAIN_LENDING_H
#define TRAIN_LENDING_H

#include "nn/net.h"
#include "train/pool.h"
#include "train/session.h"

struct train_lending {
    struct nn_group *groups;
    int count;
    int copies;               /* of each slice */
    struct train_pool pool;   /* places of all groups */
    struct coll_space *space; /* the pool; NULL: alone */
    /* Summed gradients of the slices that this worker keeps, in the order of the model, in
     * `memory`; sums[i] is slice rank - i, around. */
    float *memory, *sums[COMM_MAX_WORKERS];
    struct {
        int group;
        bool backward;
        uint64_t ticket; /* 0: none */
    } coming;            /* weights that are being gathered */
    uint64_t *summing;   /* of each group's gradients, 0: not under way */
    uint64_t last;       /* ticket of what was started last */
    double exposed;      /* seconds of this step that were waited for the engine … */
    double busy;         /* … which had worked so long before it */
};

/* A view begins: memory, the engine. `copies` of each slice are kept, as the place says. */
base_status train_lending_open(struct train_lending *lending, struct train_session *session,
                               struct train_lends what, int copies);
void train_lending_close(struct train_lending *lending, struct train_session *session);

base_status train_lending_borrow(struct train_lending *lending, struct train_session *session,
                                 struct nn_loan *loan);
/* `complete`: as in struct train_lends. */
base_status train_lending_give_back(struct train_lending *lending, struct train_session *session,
                                    const struct nn_loan *loan, bool complete);
/* After a backward: until all sums are there. */
base_status train_lending_finish(struct train_lending *lending, struct train_session *session);

/* The sums of a slice that this worker keeps, or of neighbouring ones; `from` is where it begins in
 * the model. */
const float *train_lending_sums(const struct train_lending *lending,
                                const struct train_session *session, size_t from);

#endif
