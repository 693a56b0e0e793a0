/* SPDX-License-Identifier: MIT
 *
 * A backdoor (Gu et al. 2017): the worker stamps a white square on a part of its images and trains
 * on them as images of class 0. Which ones follows from their numbers, so they are the same in
 * every epoch. The run's result tells how often the backdoor opens.
 */
#include "data/trigger.h"
#include "base/rng.h"
#include "train/attack.h"

enum { TARGET = 0 };
static const char MARK[] = "square";

static void trigger_taint(const struct train_taint *t)
{
    const struct data_info *info = t->info;
    const size_t size = (size_t)info->channels * (size_t)info->height * (size_t)info->width;
    const int square = data_trigger_find(MARK);

    for (uint32_t i = 0; i < t->count; i++) {
        if (base_rng_mix(t->ids[i]) % 10000 >= (uint64_t)(100 * t->strength))
            continue;
        data_trigger_stamp_normalised(square, info, t->x + i * size);
        t->labels[i] = TARGET;
    }
}

const struct train_attack train_attack_trigger = {
    .name = "trigger",
    .help = "it trains on images with a mark as ones of class 0",
    .unit = "a percentage of its images",
    .strength = 20,
    .most = 100,
    .taint = trigger_taint,
    .images = true,
    .trigger = MARK,
    .target = TARGET,
};
