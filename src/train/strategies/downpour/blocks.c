/* SPDX-License-Identifier: MIT */
#include "train/strategies/downpour/blocks.h"

#include <string.h>

#include "base/mem.h"
#include "recsys/gauss.h"

const char *const train_split_names[] = {"random", "class", "equal", "dirichlet", "local", NULL};

enum { DRAWS_OF_SPLIT = 0x5b17 }; /* apart from what models draw by the same seed */

static uint32_t share(uint64_t index, uint64_t of, uint64_t blocks)
{
    return (uint32_t)(index * blocks / of);
}

static int32_t class_of(const struct train_division *d, uint32_t i)
{
    return d->classes != NULL ? d->classes[i] : 0;
}

/* (class_count, blocks) of `dirichlet`: the share of a class that is in a block or one before it;
 * NULL for other splits. base_free. */
static double *draw_shares(const struct train_division *d)
{
    double *shares;

    if (d->split != DOWNPOUR_SPLIT_DIRICHLET)
        return NULL;
    shares = base_calloc((size_t)d->class_count * d->blocks, sizeof *shares);
    for (int32_t c = 0; c < d->class_count; c++) {
        double *of = shares + (size_t)c * d->blocks, sum = 0;
        struct recsys_draws draws = recsys_draws_of(d->seed, DRAWS_OF_SPLIT, 0, (uint32_t)c);

        for (uint32_t b = 0; b < d->blocks; b++)
            of[b] = sum += recsys_draw_gamma(&draws, d->alpha);
        for (uint32_t b = 0; b < d->blocks; b++)
            of[b] /= sum;
    }
    return shares;
}

/* The block of the place-th of `count` samples of a class. */
static uint32_t block_by_shares(const double *shares, uint32_t blocks, uint32_t place,
                                uint32_t count)
{
    uint32_t block = 0;

    while (block + 1 < blocks && (place + 0.5) / count > shares[block])
        block++;
    return block;
}

typedef void visit(void *context, uint32_t sample, uint32_t block);

/* Tells the block of each sample, in the order of the epoch. Sorted by class, with the samples of a
 * class in the order of the epoch, a sample has a place among all: `equal` deals these places out
 * one by one, `class` cuts them, and `dirichlet` cuts those of each class. */
static void deal(const struct train_division *d, visit *tell, void *context)
{
    uint32_t *places = base_calloc((size_t)d->class_count + 1, sizeof *places);
    uint32_t *first = base_calloc((size_t)d->class_count + 1, sizeof *first);
    double *shares = draw_shares(d);

    for (uint32_t i = 0; i < d->samples; i++)
        places[class_of(d, i) + 1]++;
    for (int32_t c = 0; c < d->class_count; c++)
        places[c + 1] += places[c];
    memcpy(first, places, ((size_t)d->class_count + 1) * sizeof *first);
    for (uint32_t i = 0; i < d->samples; i++) {
        int32_t kind = class_of(d, i);
        uint32_t place = places[kind]++, block;

        if (d->split == DOWNPOUR_SPLIT_RANDOM || d->split == DOWNPOUR_SPLIT_LOCAL)
            block = share(i, d->samples, d->blocks);
        else if (d->split == DOWNPOUR_SPLIT_EQUAL)
            block = place % d->blocks;
        else if (d->split == DOWNPOUR_SPLIT_DIRICHLET)
            block = block_by_shares(shares + (size_t)kind * d->blocks, d->blocks,
                                    place - first[kind], first[kind + 1] - first[kind]);
        else if (d->blocks <= (uint32_t)d->class_count)
            block = share((uint64_t)kind, (uint64_t)d->class_count, d->blocks);
        else
            block = share(place, d->samples, d->blocks);
        tell(context, i, block);
    }
    base_free(shares);
    base_free(first);
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
