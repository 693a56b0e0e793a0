/* SPDX-License-Identifier: MIT
 *
 * The mean of all updates, each by the samples that it was computed from. A late one, which began
 * with older weights, counts for 1/(1 + age) of that.
 */
#include "train/aggregator.h"

const struct train_aggregator train_aggregator_average = {
    .name = "average",
    .help = "the mean of all updates, by their samples",
};
