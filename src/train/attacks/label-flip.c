/* SPDX-License-Identifier: MIT
 *
 * The worker trains honestly on wrong labels: class c of n becomes n - 1 - c.
 */
#include "train/attack.h"

static void label_flip_taint(const struct train_taint *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        t->labels[i] = t->info->classes - 1 - t->labels[i];
}

const struct train_attack train_attack_label_flip = {
    .name = "label-flip",
    .help = "it trains on wrong labels",
    .taint = label_flip_taint,
};
