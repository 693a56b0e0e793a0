/* SPDX-License-Identifier: MIT
 *
 * Order of an epoch, and batches made ready in the background: a thread decodes, augments and
 * normalises the next batches while the current one is computed. What a sample looks like
 * depends on (seed, epoch, sample id) alone, never on the batch or the worker it is in.
 */
#ifndef DATA_LOADER_H
#define DATA_LOADER_H

#include "data/dataset.h"

/* The order of one epoch: `order` gets data count[part] sample indices. `balanced`: every window
 * of consecutive samples has each class in nearly its share of the whole part. */
void data_order(const struct data_set *set, enum data_part part, uint64_t seed, uint32_t epoch,
                bool balanced, uint32_t *order);

struct data_augment {
    int pad;   /* zero-pad by this much on each side, then crop at a random place */
    bool flip; /* left to right, every second time */
};

struct data_batch {
    uint32_t count;
    const float *x;        /* (count,C,H,W), normalised */
    const int32_t *labels; /* (count) */
    const uint32_t *ids;   /* (count) sample indices in their part */
};

struct data_loader;

base_status data_loader_new(const struct data_set *set, enum data_part part, uint32_t batch,
                            uint64_t seed, struct data_augment augment,
                            struct data_loader **loader_p);
void data_loader_free(struct data_loader *loader); /* accepts NULL; stops the thread */

/* Starts on `count` samples, in this order; cancels what was under way. `ids` must stay valid
 * until the next begin or free. */
base_status data_loader_begin(struct data_loader *loader, uint32_t epoch, const uint32_t *ids,
                              size_t count);

/* The next batch (the last may be short), valid until the next call; count 0 at the end. */
base_status data_loader_next(struct data_loader *loader, struct data_batch *batch_p);

#endif
