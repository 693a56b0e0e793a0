/* SPDX-License-Identifier: MIT
 *
 * Regions inside one process: a thread that writes and some that read, so that the thread sanitizer
 * sees both sides; and what is refused. Processes and losses: conform/transports_regions_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/region.h"
#include "support/groups.h"
#include "support/versions.h"

enum { READERS = 3, BYTES = 100003 };

static const struct groups_way shm = {.name = "shm", .transport = "shm", .hosts = 1};

/* --- threads ------------------------------------------------------------------------------- */

struct scene {
    struct comm_region *region;
    uint64_t last; /* version */
    _Atomic int index;
};

static void *read_on(void *argument)
{
    struct scene *s = argument;
    uint32_t reader = (uint32_t)atomic_fetch_add(&s->index, 1);

    versions_follow(s->region, BYTES, s->last, reader);
    return NULL;
}

static void threads(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    struct scene s = {.last = groups_brief() ? 2000 : 20000};
    pthread_t readers[READERS];

    crew_check(comm_region_open(group, "threads", BYTES, &s.region) == BASE_OK);
    for (int i = 0; i < READERS; i++)
        crew_check(pthread_create(&readers[i], NULL, read_on, &s) == 0);
    versions_publish(s.region, BYTES, s.last);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    comm_region_close(s.region);
    comm_group_close(group);
}

static void test_threads(void **state)
{
    (void)state;
    groups_run(&shm, 1, threads);
}

/* --- one thread ---------------------------------------------------------------------------- */

/* The pattern tells a version that was torn at any byte, so that the tests above can fail. */
static void test_pattern(void **state)
{
    uint8_t bytes[100], other[100];

    (void)state;
    versions_fill(bytes, 0, sizeof bytes, 7);
    versions_fill(other, 0, sizeof other, 8);
    assert_true(versions_is(bytes, 0, sizeof bytes, 7));
    assert_false(versions_is(bytes, 0, sizeof bytes, 8));
    for (size_t i = 0; i < sizeof bytes; i++) {
        uint8_t torn[100];

        assert_true(versions_is(bytes + i, i, sizeof bytes - i, 7));
        memcpy(torn, bytes, sizeof torn);
        torn[i] = other[i];
        assert_false(versions_is(torn, 0, sizeof torn, 7));
    }
}

/* Every part of a small region, at every offset. */
static void every_part(struct crew_worker *me)
{
    enum { SMALL = 41 };
    struct comm_group *group = groups_open(me, 0);
    struct comm_region *region;
    uint8_t bytes[SMALL], got[SMALL + 1];
    uint64_t version;

    crew_check(comm_region_open(group, "parts", SMALL, &region) == BASE_OK);
    for (uint64_t v = 1; v <= 3; v++) {
        versions_fill(bytes, 0, SMALL, v);
        crew_check(comm_region_publish(region, v, bytes) == BASE_OK);
        for (size_t from = 0; from <= SMALL; from++)
            for (size_t count = 0; count <= SMALL - from; count++) {
                memset(got, 0xaa, sizeof got);
                crew_check(comm_region_read(region, from, count, got, 0, &version) == BASE_OK);
                crew_check(version == v && versions_is(got, from, count, v));
                crew_check(got[count] == 0xaa);
            }
    }
    comm_region_close(region);
    comm_group_close(group);
}

static void test_parts(void **state)
{
    (void)state;
    groups_run(&shm, 1, every_part);
}

static void refusals(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    struct comm_region *region, *other;
    uint64_t version = 9;
    uint8_t bytes[16] = {1}, clean[16] = {1};
    double start = base_now();

    crew_check(comm_region_open(group, "refusals", 16, &region) == BASE_OK);
    crew_check(comm_region_open(group, "refusals", 1600, &other) == BASE_ERR_DATA && !other);
    crew_check(comm_region_open(group, "a-key-that-is-longer-than-all-names-of-shared-memory-are",
                                1, &other) == BASE_ERR_INTERNAL);
    crew_check(comm_region_open(group, "huge", SIZE_MAX - 63, &other) == BASE_ERR_MEMORY);
    crew_check(comm_region_version(region) == 0);
    crew_check(comm_region_read(region, 0, 16, bytes, groups_soon(), &version) == BASE_OK);
    crew_check(version == 0 && memcmp(bytes, clean, 16) == 0);
    crew_check(comm_region_read(region, 8, 9, bytes, groups_soon(), &version) == BASE_ERR_INTERNAL);
    crew_check(comm_region_read(region, SIZE_MAX, 2, bytes, groups_soon(), &version) ==
               BASE_ERR_INTERNAL);
    crew_check(comm_region_publish(region, 0, bytes) == BASE_ERR_INTERNAL);
    crew_check(comm_region_publish(region, 5, bytes) == BASE_OK);
    crew_check(comm_region_publish(region, 5, bytes) == BASE_ERR_INTERNAL);
    crew_check(comm_region_publish(region, 4, bytes) == BASE_ERR_INTERNAL);
    crew_check(comm_region_wait(region, 4, 0, &version) == BASE_OK && version == 5);
    start = base_now();
    crew_check(comm_region_wait(region, 5, start + 0.05, &version) == BASE_ERR_TIMEOUT);
    crew_check(base_now() >= start + 0.05);
    crew_check(comm_group_ended(group) == BASE_OK); /* time that is up voids nothing */
    crew_check(comm_region_publish(region, UINT64_MAX, bytes) == BASE_OK);
    crew_check(comm_region_wait(region, 5, INFINITY, &version) == BASE_OK && version == UINT64_MAX);
    comm_region_close(region);
    comm_region_close(NULL);
    comm_group_close(group);
}

static void test_refusals(void **state)
{
    (void)state;
    groups_run(&shm, 1, refusals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
