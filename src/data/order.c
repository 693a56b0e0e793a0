/* SPDX-License-Identifier: MIT
 *
 * The order of an epoch: a permutation that depends on (seed, epoch) alone, so that every worker
 * computes the same one and none sends it.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/loader.h"

static int by_key(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The j-th of the n samples of a class gets a place drawn from [j/n, (j+1)/n): sorted by place,
 * every stretch of the epoch holds each class in its share, give or take two samples. */
static void balance(const struct data_set *set, enum data_part part, const struct base_rng *rng,
                    uint32_t *order)
{
    const struct data_info *info = data_describe(set);
    uint32_t count = info->count[part];
    uint32_t *sizes = base_calloc((size_t)info->classes, sizeof *sizes);
    uint32_t *seen = base_calloc((size_t)info->classes, sizeof *seen);
    uint64_t *keys = base_calloc(count, sizeof *keys); /* place << 32 | sample */

    for (uint32_t i = 0; i < count; i++)
        sizes[data_label(set, part, i)]++;
    for (uint32_t i = 0; i < count; i++) {
        int32_t label = data_label(set, part, order[i]);
        uint64_t place = (uint64_t)seen[label]++ << 32 | base_rng_u32(rng, i);

        keys[i] = place / sizes[label] << 32 | order[i];
    }
    qsort(keys, count, sizeof *keys, by_key);
    for (uint32_t i = 0; i < count; i++)
        order[i] = (uint32_t)keys[i];
    base_free(sizes);
    base_free(seen);
    base_free(keys);
}

void data_order(const struct data_set *set, enum data_part part, uint64_t seed, uint32_t epoch,
                bool balanced, uint32_t *order)
{
    uint32_t count = data_describe(set)->count[part];
    struct base_rng shuffle = base_rng_of(seed, BASE_STREAM_SHUFFLE, 0, epoch, 0);
    struct base_rng place = base_rng_of(seed, BASE_STREAM_SHUFFLE, 1, epoch, 0);

    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    base_rng_shuffle(&shuffle, order, count);
    if (balanced)
        balance(set, part, &place, order);
}
