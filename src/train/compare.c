/* SPDX-License-Identifier: MIT
 *
 * Every range of the state that several workers hold must be the same on all of them, bit for bit.
 * The boundaries of all holds cut a group into ranges that a worker has as a whole or not at all;
 * of each that it has, it tells the checksum.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "train/session.h"

static const uint64_t HELD = (uint64_t)1 << 32; /* beside a checksum of 32 bits */

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The boundaries of all workers' holds of a group, ascending; base_free. */
static uint64_t *cut(const struct train_holds *places, int workers, enum train_group group,
                     size_t *count_p)
{
    uint64_t *cuts = base_calloc((size_t)workers * TRAIN_MAX_HOLDS * 2, sizeof *cuts);
    size_t all = 0, count = 0;

    for (int rank = 0; rank < workers; rank++)
        for (uint32_t i = 0; i < places[rank].count; i++) {
            const struct train_hold *h = &places[rank].at[i];

            if (h->group != group)
                continue;
            cuts[all++] = h->from;
            cuts[all++] = h->from + h->count;
        }
    qsort(cuts, all, sizeof *cuts, by_value);
    for (size_t i = 0; i < all; i++)
        if (count == 0 || cuts[i] != cuts[count - 1])
            cuts[count++] = cuts[i];
    *count_p = count;
    return cuts;
}

/* 0: this worker does not hold the range. */
static uint64_t checksum(const struct train_state *state, enum train_group group, size_t from,
                         size_t count)
{
    uint32_t crc = 0;

    for (int b = 0; b < train_state_buffers(state, group); b++) {
        const float *at = train_state_at(state, group, b, from, count);

        if (at == NULL)
            return 0;
        crc = base_crc32c(crc, at, count * sizeof *at);
    }
    return HELD | crc;
}

static base_status judge(const struct train_session *s, enum train_group group, const uint64_t *all,
                         size_t ranges)
{
    const struct comm_member *members = s->team.view.members;

    for (size_t range = 0; range < ranges; range++) {
        int first = -1;

        for (int rank = 0; rank < s->team.exchange.size; rank++) {
            uint64_t sum = all[(size_t)rank * ranges + range];

            if (sum == 0)
                continue;
            if (first < 0)
                first = rank;
            if (sum != all[(size_t)first * ranges + range])
                return base_fail(BASE_ERR_INTERNAL,
                                 "%s after step %" PRId64 " differ between worker %u (%08" PRIx32
                                 ") and %u (%08" PRIx32 ")",
                                 group == TRAIN_WEIGHTS ? "the weights" : "the optimiser's states",
                                 s->state.position.step, members[first].id,
                                 (uint32_t)all[(size_t)first * ranges + range], members[rank].id,
                                 (uint32_t)sum);
        }
    }
    return BASE_OK;
}

static base_status compare_group(struct train_session *s, const struct train_holds *places,
                                 enum train_group group)
{
    base_status st = BASE_OK;
    size_t count, size = (size_t)s->team.exchange.size, ranges;
    uint64_t *cuts = cut(places, s->team.exchange.size, group, &count), *mine, *all;

    while (group == TRAIN_WEIGHTS && count > 1 && cuts[count - 2] >= s->state.compared)
        count--;
    if (group == TRAIN_WEIGHTS && count > 0 && cuts[count - 1] > s->state.compared)
        cuts[count - 1] = s->state.compared;
    ranges = count > 0 ? count - 1 : 0;
    mine = base_calloc(ranges, sizeof *mine);
    all = base_calloc(ranges * size, sizeof *all);
    for (size_t i = 0; i < ranges; i++)
        mine[i] = checksum(&s->state, group, cuts[i], cuts[i + 1] - cuts[i]);
    if (ranges > 0)
        TRY(train_team_gather(&s->team, mine, ranges * sizeof *mine, all));
    TRY(judge(s, group, all, ranges));
out:
    base_free(cuts);
    base_free(mine);
    base_free(all);
    return st;
}

/* Where every worker has everything, the weights alone are compared: slots that differ make
 * weights that do, one step later. */
base_status train_session_compare(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_holds *places = NULL;

    if (s->team.exchange.size == 1)
        return BASE_OK;
    places = train_session_places(s);
    TRY(compare_group(s, places, TRAIN_WEIGHTS));
    if (s->strategy->place != NULL && s->state.optimiser->slots > 0)
        TRY(compare_group(s, places, TRAIN_SLOTS));
out:
    base_free(places);
    return st;
}
