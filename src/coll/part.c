/* SPDX-License-Identifier: MIT
 *
 * Collectives of some ranks of a group. Messages of all of them go through one channel, so every
 * tag says which `struct coll` it is of: a number below 64, the whole being 0. The ranks of a part
 * agree about the number when they open it: the first that is free for all of them. So no two parts
 * that have a rank in common have the same number; disjoint ones may, who never hear of each other.
 * Before there is a number, a digest of key and ranks stands in the tags: ranks that do not open
 * the same part get an error at the first message. Digest and number together name the memory of a
 * part: two of the same key and ranks, both open, have nothing in common.
 */
#include <stdio.h>
#include <string.h>

#include "coll/coll_private.h"

enum { NUMBERS = 64, NUMBER_AT = 22, KIND_AT = 28 };

uint32_t coll_tag(const struct coll *c, int kind, uint32_t sequence)
{
    _Static_assert(COLL_KINDS < 8, "transports carry 31 bits of a tag");
    return (uint32_t)kind << KIND_AT | c->mark | (sequence & ((1U << NUMBER_AT) - 1));
}

base_status coll_part_number(struct coll *c, uint64_t used)
{
    uint32_t number = 0;

    while (number < NUMBERS && (used >> number & 1) != 0)
        number++;
    if (number == NUMBERS)
        return base_fail(BASE_ERR_INTERNAL, "its ranks are in %d other parts, which is the most",
                         NUMBERS - 1);
    c->number = number;
    c->mark = number << NUMBER_AT;
    snprintf(c->prefix, sizeof c->prefix, "%016llx.%u/", (unsigned long long)c->digest, number);
    c->whole->numbers |= UINT64_C(1) << number;
    return BASE_OK;
}

void coll_part_forget(struct coll *c)
{
    if (c->number > 0)
        c->whole->numbers &= ~(UINT64_C(1) << c->number);
}

static uint64_t fnv1a(uint64_t sum, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < count; i++)
        sum = (sum ^ at[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Ranks of the group, and what is derived from them and the key. */
static void identify(struct coll *part, const struct coll *of, const char *key, const int *ranks)
{
    uint64_t sum = fnv1a(UINT64_C(0xcbf29ce484222325), key, strlen(key));

    for (int i = 0; i < part->world.size; i++)
        part->group_rank[i] = of->group_rank[ranks[i]];
    sum = fnv1a(sum, part->group_rank, (size_t)part->world.size * sizeof *part->group_rank);
    part->mark = (uint32_t)(sum >> 32) & ((1U << KIND_AT) - 1);
    part->digest = sum;
}

/* *me_p: which of `ranks` this one is. */
static base_status check_ranks(const struct coll *c, const int *ranks, int count, int *me_p)
{
    *me_p = -1;
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= c->world.size)
            return base_fail(BASE_ERR_INTERNAL, "rank %d is none of 0 … %d", ranks[i],
                             c->world.size - 1);
        for (int j = 0; j < i; j++)
            if (ranks[j] == ranks[i])
                return base_fail(BASE_ERR_INTERNAL, "rank %d is named twice", ranks[i]);
        if (ranks[i] == c->world.me)
            *me_p = i;
    }
    if (*me_p < 0)
        return base_fail(BASE_ERR_INTERNAL, "rank %d is not among them", c->world.me);
    return BASE_OK;
}

base_status coll_open_part(struct coll *c, const char *key, const int *ranks, int count,
                           const char *forced, struct coll **part_p)
{
    struct coll *part = NULL;
    base_status st = BASE_OK;
    int me;

    *part_p = NULL;
    TRY(check_ranks(c, ranks, count, &me));
    part = coll_new(c->group, count, me);
    part->whole = c->whole;
    part->patience = c->patience;
    identify(part, c, key, ranks);
    TRY(coll_connect(part, forced));
    *part_p = part;
    part = NULL;
out:
    coll_close(part);
    return base_prefix(st, "collectives '%s' of %d ranks", key, count);
}
