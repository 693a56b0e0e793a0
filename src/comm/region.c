/* SPDX-License-Identifier: MIT
 *
 * The words of a copy are read and written as relaxed atomics, its version with fences around them
 * (Boehm, "Can seqlocks get along with programming language memory models?", 2012): a reader that
 * sees a word of a later version also sees that the copy's version has changed. A version is never
 * used twice, so it is the sequence number as well.
 */
#include "comm/region.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm_private.h"
#include "comm/futex.h"

typedef _Atomic uint64_t word;

enum { WORD = sizeof(word), LINE = 64 };

struct head {
    /* A futex: the number of versions published. The newest is in copy turn % 2. */
    _Alignas(LINE) _Atomic uint32_t turn;
    _Atomic uint32_t sleepers; /* on `turn` */
    _Atomic uint32_t writer;   /* the writer's rank + 1; 0: none yet */
    struct {
        _Alignas(LINE) _Atomic uint64_t version; /* 0: empty, or being written */
    } copies[2];
};

struct comm_region {
    struct comm_endpoint *endpoint;
    uint32_t view;
    int rank;
    struct comm_shared shared;
    struct head *head;
    word *copies[2];
    size_t bytes;
};

base_status comm_region_open(struct comm_group *group, const char *key, size_t bytes,
                             struct comm_region **region_p)
{
    struct comm_region *region = base_calloc(1, sizeof *region);
    base_status st = BASE_OK;
    size_t copy, total;
    char name[64];

    *region_p = NULL;
    region->endpoint = group->endpoint;
    region->view = group->view.number;
    region->rank = group->rank;
    region->bytes = bytes;
    if (group->endpoint->setup.host == NULL)
        TRY(base_fail(BASE_ERR_INTERNAL, "region '%s' needs a host with shared memory", key));
    if (snprintf(name, sizeof name, "view/%u/region/%s", region->view, key) >= (int)sizeof name)
        TRY(base_fail(BASE_ERR_INTERNAL, "the key '%s' of a region is too long", key));
    TRY(base_add(bytes, LINE - 1, &copy));
    copy -= copy % LINE;
    TRY(base_mul(copy, 2, &total));
    TRY(base_add(total, sizeof(struct head), &total));
    TRY(comm_shared_open(group->endpoint, name, total, &region->shared));
    region->head = region->shared.at;
    region->copies[0] = (word *)(region->head + 1);
    region->copies[1] = region->copies[0] + copy / WORD;
    *region_p = region;
    region = NULL;
out:
    comm_region_close(region);
    return st;
}

void comm_region_close(struct comm_region *region)
{
    if (region == NULL)
        return;
    comm_shared_close(&region->shared);
    base_free(region);
}

/* --- the writer ---------------------------------------------------------------------------- */

/* The loop and the tail each have their own variable for a word: a shared one would go through the
 * stack, at half the speed. */
static void copy_in(word *to, const uint8_t *from, size_t count)
{
    size_t words = count / WORD;

    for (size_t i = 0; i < words; i++) {
        uint64_t value;

        memcpy(&value, from + i * WORD, WORD);
        atomic_store_explicit(&to[i], value, memory_order_relaxed);
    }
    if (count % WORD > 0) {
        uint64_t value = 0;

        memcpy(&value, from + words * WORD, count % WORD);
        atomic_store_explicit(&to[words], value, memory_order_relaxed);
    }
}

base_status comm_region_publish(struct comm_region *region, uint64_t version, const void *bytes)
{
    struct head *head = region->head;
    uint32_t writer = 0, me = (uint32_t)region->rank + 1;
    uint32_t turn = atomic_load_explicit(&head->turn, memory_order_relaxed);
    _Atomic uint64_t *last = &head->copies[turn % 2].version;
    _Atomic uint64_t *next = &head->copies[(turn + 1) % 2].version;

    if (!atomic_compare_exchange_strong(&head->writer, &writer, me) && writer != me)
        return base_fail(BASE_ERR_INTERNAL, "rank %d publishes in a region of rank %u",
                         region->rank, writer - 1);
    if (version <= atomic_load_explicit(last, memory_order_relaxed))
        return base_fail(BASE_ERR_INTERNAL, "version %llu of a region comes after version %llu",
                         (unsigned long long)version, (unsigned long long)atomic_load(last));
    atomic_store_explicit(next, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* a reader that sees a new word sees the 0, too */
    copy_in(region->copies[(turn + 1) % 2], bytes, region->bytes);
    atomic_store_explicit(next, version, memory_order_release);
    atomic_store(&head->turn, turn + 1);
    if (atomic_load(&head->sleepers) != 0)
        comm_futex_wake(&head->turn);
    return BASE_OK;
}

/* --- readers ------------------------------------------------------------------------------- */

static uint64_t load(const word *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

/* Of the first and the last word only a part may be wanted. */
static void copy_out(const word *from, size_t offset, size_t count, uint8_t *to)
{
    size_t skip = offset % WORD, part = WORD - skip < count ? WORD - skip : count, words;

    from += offset / WORD;
    if (skip != 0) {
        uint64_t value = load(from++);

        memcpy(to, (const uint8_t *)&value + skip, part);
        to += part;
        count -= part;
    }
    words = count / WORD;
    for (size_t i = 0; i < words; i++) {
        uint64_t value = load(&from[i]);

        memcpy(to + i * WORD, &value, WORD);
    }
    if (count % WORD > 0) {
        uint64_t value = load(&from[words]);

        memcpy(to + words * WORD, &value, count % WORD);
    }
}

/* Finds the newest copy and its version, 0: none yet. If the writer is in that copy again already,
 * two versions later, then there is a newer one and the search goes on. */
static uint64_t find_newest(const struct head *head, uint32_t *copy_p)
{
    for (;;) {
        uint32_t turn = atomic_load(&head->turn);
        uint64_t version =
            atomic_load_explicit(&head->copies[turn % 2].version, memory_order_acquire);

        *copy_p = turn % 2;
        if (version != 0 || turn == 0)
            return version;
    }
}

uint64_t comm_region_version(const struct comm_region *region)
{
    uint32_t copy;

    return find_newest(region->head, &copy);
}

base_status comm_region_read(const struct comm_region *region, size_t offset, size_t count,
                             void *bytes, double deadline, uint64_t *version_p)
{
    const struct head *head = region->head;
    uint64_t version;
    uint32_t copy;

    *version_p = 0;
    if (offset > region->bytes || count > region->bytes - offset)
        return base_fail(BASE_ERR_INTERNAL, "[%zu, %zu + %zu) is not inside a region of %zu bytes",
                         offset, offset, count, region->bytes);
    do {
        version = find_newest(head, &copy);
        if (version == 0)
            return BASE_OK;
        copy_out(region->copies[copy], offset, count, bytes);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&head->copies[copy].version, memory_order_relaxed) == version) {
            *version_p = version;
            return BASE_OK;
        }
    } while (base_now() < deadline);
    return base_fail(BASE_ERR_TIMEOUT, "versions of a region come faster than it can be read");
}

/* As comm_group_check, but for any thread: another thread may be using the group. */
static base_status check_view(const struct comm_region *region)
{
    uint32_t id;

    if (atomic_load(&region->endpoint->cancelled))
        return base_fail(BASE_ERR_INTERRUPTED, "the job ends");
    if ((id = comm_endpoint_last_lost(region->endpoint, region->view)) != 0)
        return base_fail(BASE_ERR_PEER_LOST, "worker %u was lost from view %u", id, region->view);
    return BASE_OK;
}

static base_status sleep_newer(struct comm_region *region, uint64_t version, double deadline,
                               uint64_t *newest_p)
{
    struct head *head = region->head;
    _Atomic uint32_t *alarm = comm_host_alarm_word(region->endpoint->setup.host);
    base_status st = BASE_OK;

    atomic_fetch_add(&head->sleepers, 1);
    for (;;) {
        uint32_t alarm_seen = atomic_load(alarm), turn = atomic_load(&head->turn);

        if ((*newest_p = comm_region_version(region)) > version)
            break;
        TRY(check_view(region));
        if (base_now() >= deadline)
            TRY(base_fail(BASE_ERR_TIMEOUT, "view %u: no version after %llu was published in time",
                          region->view, (unsigned long long)version));
        comm_futex_wait((struct comm_futex[]){{&head->turn, turn}, {alarm, alarm_seen}}, 2,
                        deadline);
    }
out:
    atomic_fetch_sub(&head->sleepers, 1);
    return st;
}

base_status comm_region_wait(struct comm_region *region, uint64_t version, double deadline,
                             uint64_t *newest_p)
{
    struct comm_linger linger = comm_linger_of(comm_host_alarm_word(region->endpoint->setup.host));

    do {
        if ((*newest_p = comm_region_version(region)) > version)
            return BASE_OK;
    } while (comm_linger(&linger));
    return sleep_newer(region, version, deadline, newest_p);
}
