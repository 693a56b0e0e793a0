/* SPDX-License-Identifier: MIT
 *
 * The worker trains honestly on wrong labels: class c of n becomes n - 1 - c.
 */
#include "train/attack.h"

static void label_flip_label(uint32_t count, int32_t classes, const int32_t *labels, int32_t *y)
{
    for (uint32_t i = 0; i < count; i++)
        y[i] = classes - 1 - labels[i];
}

const struct train_attack train_attack_label_flip = {
    .name = "label-flip",
    .help = "it trains on wrong labels",
    .label = label_flip_label,
};
