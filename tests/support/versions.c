/* SPDX-License-Identifier: MIT */
#include "support/versions.h"

#include "base/mem.h"
#include "base/rng.h"
#include "support/groups.h"

/* Neighbouring versions differ in every byte. */
static uint8_t value(size_t at, uint64_t version)
{
    return (uint8_t)(at * 167 + (at >> 8) * 13 + version * 89);
}

void versions_fill(uint8_t *bytes, size_t offset, size_t count, uint64_t version)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = value(offset + i, version);
}

bool versions_is(const uint8_t *bytes, size_t offset, size_t count, uint64_t version)
{
    bool same = true;

    for (size_t i = 0; i < count; i++)
        same &= bytes[i] == value(offset + i, version);
    return same;
}

void versions_publish(struct comm_region *region, size_t bytes, uint64_t last)
{
    uint8_t *patterns[256]; /* a byte is of the version modulo 256 */

    for (uint64_t v = 0; v < 256; v++) {
        patterns[v] = base_calloc(bytes, 1);
        versions_fill(patterns[v], 0, bytes, v);
    }
    for (uint64_t v = 1; v <= last; v++)
        crew_check(comm_region_publish(region, v, patterns[v % 256]) == BASE_OK);
    for (int v = 0; v < 256; v++)
        base_free(patterns[v]);
}

void versions_follow(struct comm_region *region, size_t bytes, uint64_t last, uint32_t reader)
{
    const struct base_rng rng = base_rng_of(reader, BASE_STREAM_TEST, 3, 0, 0);
    uint8_t *got = base_calloc(bytes, 1);
    uint64_t seen = 0, version;

    for (uint32_t turn = 0; seen < last; turn++) {
        size_t offset = base_rng_u32(&rng, 2 * turn) % bytes;
        size_t count = base_rng_u32(&rng, 2 * turn + 1) % (bytes - offset);

        if (turn % 4 == 0) { /* all of it */
            offset = 0;
            count = bytes;
        }
        if (turn % 8 == 7) {
            crew_check(comm_region_wait(region, seen, groups_soon(), &version) == BASE_OK);
            crew_check(version > seen);
        }
        crew_check(comm_region_read(region, offset, count, got, groups_soon(), &version) ==
                   BASE_OK);
        crew_check(version >= seen && version <= last);
        crew_check(version == 0 || versions_is(got, offset, count, version));
        seen = version;
    }
    base_free(got);
}
