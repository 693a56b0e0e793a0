/* SPDX-License-Identifier: MIT
 *
 * TensorBoard's event files: FOLDER/tensorboard/scalars/ and, where there are any, histograms/
 * beside it, so that loading curves does not wait for histograms. A file is a sequence of records
 * (TFRecord: length, masked CRC32C, protocol buffer, masked CRC32C). They are written by a thread
 * (base/spool.h); adding a point allocates nothing and makes no system call. One thread's.
 */
#ifndef TRAIN_TENSORBOARD_H
#define TRAIN_TENSORBOARD_H

#include <stdint.h>

#include "base/status.h"

struct train_tensorboard;

struct train_scalar {
    const char *tag; /* "loss/train" */
    double value;    /* one that is not finite is left out */
};

struct train_histogram {
    double low, high, sum, squares;
    uint64_t count;
    const uint64_t *bins; /* of equal width from low to high */
    int bin_count;
};

/* New files of a run that has made `step` steps: points of later ones that older files have are
 * declared void. */
base_status train_tensorboard_open(const char *folder, int64_t step,
                                   struct train_tensorboard **board_p);
/* Accepts NULL, as the functions below do. What could not be written is a warning. */
void train_tensorboard_close(struct train_tensorboard *board);

void train_tensorboard_scalars(struct train_tensorboard *board, int64_t step,
                               const struct train_scalar *scalars, int count);
void train_tensorboard_histogram(struct train_tensorboard *board, int64_t step, const char *tag,
                                 const struct train_histogram *histogram);
/* What was added so far is in the files, or closing will tell why not. */
void train_tensorboard_flush(struct train_tensorboard *board);
/* Steps after this one come again. */
void train_tensorboard_back(struct train_tensorboard *board, int64_t step);

#endif
