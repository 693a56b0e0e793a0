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
    bool crop; /* a random part of each image, scaled; for formats that can */
};

/* One worker's share of every batch. Workers have weights; `from` is the sum of the weights of the
 * workers before this one, `to` the same with its own, `total` the sum of all. Zeros: alone. */
struct data_share {
    uint32_t from, to, total;
};

/* The share of a batch of `whole` samples: [first, first + count). Neighbours' shares touch. A
 * share may be empty where there are more workers than samples. */
void data_share_of(struct data_share share, uint32_t whole, uint32_t *first_p, uint32_t *count_p);
/* The most samples that data_share_of gives this share of any batch of up to `whole`. */
uint32_t data_share_most(struct data_share share, uint32_t whole);

struct data_batch {
    uint32_t count;        /* of this share */
    uint32_t whole;        /* of all shares; 0 at the end */
    uint32_t epoch;        /* whose augmentation the samples have */
    const float *x;        /* (count,C,H,W), normalised; of a table (count,features) */
    const int32_t *labels; /* (count) */
    const float *numbers;  /* (count) to be predicted, standardised; NULL: labels are */
    const uint32_t *ids;   /* (count) sample indices in their part */
    char *const *bad;      /* (count) NULL, or why the sample cannot be read (tolerant loaders) */
};

struct data_loader;

/* `batch`: samples of all shares together. */
base_status data_loader_new(const struct data_set *set, enum data_part part, uint32_t batch,
                            struct data_share share, uint64_t seed, struct data_augment augment,
                            struct data_loader **loader_p);
/* Bytes of a loader whose shares have up to `most` samples. */
uint64_t data_loader_memory(const struct data_info *info, uint32_t most);
void data_loader_free(struct data_loader *loader); /* accepts NULL; stops the thread */

/* From now on a sample that cannot be read does not end its batch: it is zeros, and `bad` tells. */
void data_loader_tolerate(struct data_loader *loader);

/* Starts on `count` samples (of all shares), in this order; cancels what was under way. `ids` must
 * stay valid until the next begin or free. */
base_status data_loader_begin(struct data_loader *loader, uint32_t epoch, const uint32_t *ids,
                              size_t count);

/* Adds `count` samples after what is to be loaded already, in batches of `batch` that this loader
 * has whole; a batch holds no samples of two calls. `ids` is copied. `batch` is at most the
 * loader's largest share. */
base_status data_loader_queue(struct data_loader *loader, uint32_t epoch, const uint32_t *ids,
                              size_t count, uint32_t batch);

/* This share of the next batch (the last may be short), valid until the next call. */
base_status data_loader_next(struct data_loader *loader, struct data_batch *batch_p);

#endif
