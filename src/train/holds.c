/* SPDX-License-Identifier: MIT */
#include "train/holds.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

int train_version_compare(struct train_version a, struct train_version b)
{
    if (a.step != b.step)
        return a.step < b.step ? -1 : 1;
    return a.epoch == b.epoch ? 0 : a.epoch < b.epoch ? -1 : 1;
}

bool train_holds_valid(const struct train_holds *holds, const uint64_t size[TRAIN_GROUPS])
{
    if (holds->count > TRAIN_MAX_HOLDS)
        return false;
    for (uint32_t i = 0; i < holds->count; i++) {
        const struct train_hold *h = &holds->at[i];

        if (h->group >= TRAIN_GROUPS || h->from > size[h->group] ||
            h->count > size[h->group] - h->from)
            return false;
    }
    return true;
}

bool train_hold_serves(const struct train_hold *h, struct train_version version)
{
    return train_version_compare(h->version, version) == 0 ||
           (h->group != TRAIN_STATISTICS && h->version.step == version.step);
}

/* Of which holds a range may be: of the very version, or of any that serves it. */
enum kind { EXACT, SERVING };

/* The end of a hold of this group and version that contains `at`; 0: the worker has none. */
static uint64_t held_until(const struct train_holds *holds, uint32_t group,
                           struct train_version version, uint64_t at, enum kind kind)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < holds->count; i++) {
        const struct train_hold *h = &holds->at[i];

        if (h->group == group && h->from <= at && at < h->from + h->count &&
            h->from + h->count > end &&
            (kind == EXACT ? train_version_compare(h->version, version) == 0
                           : train_hold_serves(h, version)))
            end = h->from + h->count;
    }
    return end;
}

static bool covers(const struct train_holds *held, int workers, uint32_t group, uint64_t size,
                   struct train_version version)
{
    uint64_t at = 0;

    while (at < size) {
        uint64_t end = 0;

        for (int rank = 0; rank < workers; rank++) {
            uint64_t until = held_until(&held[rank], group, version, at, SERVING);

            if (until > end)
                end = until;
        }
        if (end == 0)
            return false;
        at = end;
    }
    return true;
}

/* The newest version of any hold that is older than `than`; false: there is none. */
static bool next_older(const struct train_holds *held, int workers, struct train_version than,
                       struct train_version *version_p)
{
    bool any = false;

    for (int rank = 0; rank < workers; rank++) {
        for (uint32_t i = 0; i < held[rank].count; i++) {
            struct train_version v = held[rank].at[i].version;

            if (train_version_compare(v, than) < 0 &&
                (!any || train_version_compare(v, *version_p) > 0)) {
                *version_p = v;
                any = true;
            }
        }
    }
    return any;
}

bool train_holds_committed(const struct train_holds *held, int workers,
                           const uint64_t size[TRAIN_GROUPS], struct train_version *version_p)
{
    struct train_version version = {INT64_MAX, INT64_MAX};

    while (next_older(held, workers, version, &version)) {
        uint32_t group = 0;

        while (group < TRAIN_GROUPS && covers(held, workers, group, size[group], version))
            group++;
        if (group == TRAIN_GROUPS) {
            *version_p = version;
            return true;
        }
    }
    return false;
}

struct list {
    struct train_transfer *at;
    size_t count, room;
};

static void add(struct list *list, struct train_transfer transfer)
{
    if (list->count == list->room) {
        list->room = list->room == 0 ? 16 : 2 * list->room;
        list->at = base_realloc(list->at, list->room, sizeof *list->at);
    }
    list->at[list->count++] = transfer;
}

/* Where the worker's own holds of this version begin next after `at`, `end` at the latest. */
static uint64_t lacks_until(const struct train_holds *holds, uint32_t group,
                            struct train_version version, uint64_t at, uint64_t end)
{
    for (uint32_t i = 0; i < holds->count; i++) {
        const struct train_hold *h = &holds->at[i];

        if (h->group == group && train_version_compare(h->version, version) == 0 && h->count > 0 &&
            h->from > at && h->from < end)
            end = h->from;
    }
    return end;
}

/* The lowest rank that has float `at`; the number of workers: none has. */
static int find_source(const struct train_holds *held, int workers, uint32_t group,
                       struct train_version version, uint64_t at, enum kind kind, uint64_t *until_p)
{
    int source = 0;

    while (source < workers &&
           (*until_p = held_until(&held[source], group, version, at, kind)) == 0)
        source++;
    return source;
}

/* The rest of one wanted hold from `at` on: what the target has is skipped, what it lacks comes
 * from the lowest rank that has its first float, at the very version where any has. */
static void fill(const struct train_holds *held, int workers, int target,
                 const struct train_hold *wanted, struct train_version version, struct list *list)
{
    uint64_t at = wanted->from, end = wanted->from + wanted->count;

    while (at < end) {
        uint64_t own = held_until(&held[target], wanted->group, version, at, EXACT), until = 0;
        int source = find_source(held, workers, wanted->group, version, at, EXACT, &until);

        if (source == workers) {
            own = held_until(&held[target], wanted->group, version, at, SERVING);
            source = find_source(held, workers, wanted->group, version, at, SERVING, &until);
        }
        if (own > 0) {
            at = own;
            continue;
        }
        assert(source < workers); /* the version is covered */
        until = lacks_until(&held[target], wanted->group, version, at, until < end ? until : end);
        add(list, (struct train_transfer){.source = source,
                                          .target = target,
                                          .group = (enum train_group)wanted->group,
                                          .from = at,
                                          .count = until - at});
        at = until;
    }
}

size_t train_holds_transfers(const struct train_holds *held, const struct train_holds *wanted,
                             int workers, struct train_version version,
                             struct train_transfer **transfers_p)
{
    struct list list = {0};

    for (int target = 0; target < workers; target++)
        for (uint32_t i = 0; i < wanted[target].count; i++)
            fill(held, workers, target, &wanted[target].at[i], version, &list);
    *transfers_p = list.at;
    return list.count;
}
