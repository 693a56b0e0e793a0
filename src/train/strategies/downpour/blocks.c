/* SPDX-License-Identifier: MIT */
#include "train/strategies/downpour/blocks.h"

#include "base/mem.h"

const char *const train_split_names[] = {"random", "class", "equal", "local", NULL};

static uint32_t share(uint64_t index, uint64_t of, uint64_t blocks)
{
    return (uint32_t)(index * blocks / of);
}

static int32_t class_of(const struct train_division *d, uint32_t i)
{
    return d->classes != NULL ? d->classes[i] : 0;
}

typedef void visit(void *context, uint32_t sample, uint32_t block);

/* Tells the block of each sample, in the order of the epoch. Sorted by class, with the samples of a
 * class in the order of the epoch, a sample has a place among all: `equal` deals these places out
 * one by one, `class` cuts them. */
static void deal(const struct train_division *d, visit *tell, void *context)
{
    uint32_t *places = base_calloc((size_t)d->class_count + 1, sizeof *places);

    for (uint32_t i = 0; i < d->samples; i++)
        places[class_of(d, i) + 1]++;
    for (int32_t c = 0; c < d->class_count; c++)
        places[c + 1] += places[c];
    for (uint32_t i = 0; i < d->samples; i++) {
        int32_t kind = class_of(d, i);
        uint32_t place = places[kind]++, block;

        if (d->split == DOWNPOUR_SPLIT_RANDOM || d->split == DOWNPOUR_SPLIT_LOCAL)
            block = share(i, d->samples, d->blocks);
        else if (d->split == DOWNPOUR_SPLIT_EQUAL)
            block = place % d->blocks;
        else if (d->blocks <= (uint32_t)d->class_count)
            block = share((uint64_t)kind, (uint64_t)d->class_count, d->blocks);
        else
            block = share(place, d->samples, d->blocks);
        tell(context, i, block);
    }
    base_free(places);
}

static void count_sample(void *context, uint32_t sample, uint32_t block)
{
    uint32_t *counts = context;

    (void)sample;
    counts[block]++;
}

void downpour_blocks_count(const struct train_division *d, uint32_t *counts)
{
    for (uint32_t b = 0; b < d->blocks; b++)
        counts[b] = 0;
    deal(d, count_sample, counts);
}

struct picking {
    const uint32_t *order;
    uint32_t block, *next;
};

static void pick_sample(void *context, uint32_t sample, uint32_t block)
{
    struct picking *p = context;

    if (block == p->block)
        *p->next++ = p->order[sample];
}

void downpour_blocks_ids(const struct train_division *d, uint32_t block, uint32_t *ids)
{
    struct picking picking = {d->order, block, ids};

    deal(d, pick_sample, &picking);
}
