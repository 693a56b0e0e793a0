/* SPDX-License-Identifier: MIT
 *
 * Which rows are whose under strategy rotate: a worker has those of its share of the ratings, with
 * replicas=2 also those of the worker before it, and all that travels.
 */
#ifndef TRAIN_STRATEGIES_ROTATE_PLACE_H
#define TRAIN_STRATEGIES_ROTATE_PLACE_H

#include "train/strategy.h"

struct rotate_options {
    int64_t replicas;
};

/* Where the rows of the worker of that rank begin; of rank `size`: where all end. */
uint32_t rotate_begin(const struct train_stays *stays, const struct train_shares *shares, int rank);

/* As in struct train_strategy. */
void rotate_place(const struct train_placing *placing, int rank, struct train_holds *wanted);
void rotate_memory(const struct train_memory_question *question, struct train_memory *memory);

#endif
