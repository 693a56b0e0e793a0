/* SPDX-License-Identifier: MIT
 *
 * The data of a training: the set that the job names, and this worker's share of one batch after
 * the other, in the order of each epoch.
 */
#ifndef TRAIN_SAMPLES_H
#define TRAIN_SAMPLES_H

#include "base/str.h"
#include "data/loader.h"
#include "train/job.h"
#include "train/task.h"

struct train_samples { /* zeros: nothing is open */
    struct data_set *set;
    const struct data_info *info;
    struct data_loader *loader;
    uint32_t *order;                /* of the epoch that the loader is in … */
    int64_t order_epoch;            /* … which is this one; -1: none yet */
    int64_t epoch, cursor;          /* where the loader goes on; epoch -1: nowhere */
    char excluded[BASE_SHA256_HEX]; /* digest of the index of --exclude; "": none */
    bool blocks; /* the loader serves blocks that were given out, and no shares */
};

/* Opens the set as the job says, and refuses settings that do not go with it. */
base_status train_samples_open(struct train_samples *samples, const struct train_job *job);
/* The same for a set that is open already. Takes it over, on failure, too. */
base_status train_samples_adopt(struct train_samples *samples, const struct train_job *job,
                                struct data_set *set);
void train_samples_close(struct train_samples *samples); /* accepts zeros */

/* From now on batches are of `batch` samples, of which this worker gets its share. */
base_status train_samples_begin(struct train_samples *samples, const struct train_job *job,
                                uint32_t batch, struct data_share share);
/* This share of the batch at `cursor` of an epoch. The loader works ahead; it starts anew where
 * that is not what it expects. After a `take`: the next batch of a block. */
base_status train_samples_next(struct train_samples *samples, const struct train_job *job,
                               int64_t epoch, int64_t cursor, struct data_batch *batch_p);

/* From now on `next` serves the samples of blocks (train/task.h); NULL: shares again. */
base_status train_samples_take(struct train_samples *samples, const struct train_job *job,
                               const struct train_block *block);

/* What a sample is and what is predicted: "3x32x32, 10 classes", "4 features, target 'kind' of 3
 * classes". */
void train_samples_shape(const struct train_samples *samples, struct base_str *text);
/* "iris.csv: 120 training, 30 test samples of …" */
void train_samples_text(const struct train_samples *samples, const char *name,
                        struct base_str *text);

#endif
