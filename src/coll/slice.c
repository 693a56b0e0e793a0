/* SPDX-License-Identifier: MIT
 *
 * How buffers are divided between ranks, and operations into phases.
 */
#include "coll/coll_private.h"

enum { UNIT = COLL_UNIT / sizeof(float) };

void coll_slice(size_t count, int rank, int size, size_t *offset_p, size_t *count_p)
{
    size_t units = count / UNIT + (count % UNIT != 0), n = (size_t)size, r = (size_t)rank;
    size_t from = (units / n * r + units % n * r / n) * UNIT;
    size_t to = (units / n * (r + 1) + units % n * (r + 1) / n) * UNIT;

    from = from < count ? from : count;
    to = to < count ? to : count;
    *offset_p = from;
    *count_p = to - from;
}

size_t coll_longest_slice(size_t count, int size)
{
    size_t longest = 0;

    for (int rank = 0; rank < size; rank++) {
        size_t offset, values;

        coll_slice(count, rank, size, &offset, &values);
        longest = values > longest ? values : longest;
    }
    return longest;
}

int coll_team_find(const struct coll_team *team, int rank)
{
    for (int i = 0; i < team->size; i++)
        if (team->rank[i] == rank)
            return i;
    return -1;
}

unsigned coll_phases_of(enum coll_kind kind)
{
    static const unsigned phases[COLL_KINDS] = {
        [COLL_REDUCE_SCATTER] = COLL_PHASE_REDUCE,
        [COLL_ALL_GATHER] = COLL_PHASE_GATHER,
        [COLL_ALL_REDUCE] = COLL_PHASE_REDUCE | COLL_PHASE_GATHER,
    };

    return phases[kind];
}

void coll_blocks_of(const struct coll_call *call, const struct coll_team *team,
                    struct coll_blocks *blocks_p)
{
    blocks_p->base = call->x != NULL ? (uint8_t *)call->x : call->out;
    for (int i = 0; i < team->size; i++) {
        size_t offset = call->count * (size_t)i, count = call->count;

        if (call->x != NULL) {
            coll_slice(call->count, i, team->size, &offset, &count);
            offset *= sizeof *call->x;
            count *= sizeof *call->x;
        }
        blocks_p->offset[i] = offset;
        blocks_p->bytes[i] = count;
    }
}
