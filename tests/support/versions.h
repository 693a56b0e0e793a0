/* SPDX-License-Identifier: MIT
 *
 * What writers and readers of a region (comm/region.h) do in tests: every byte tells its place and
 * its version, so that a copy of two versions is seen.
 */
#ifndef SUPPORT_VERSIONS_H
#define SUPPORT_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/region.h"

/* Bytes [offset, offset + count) of a version. */
void versions_fill(uint8_t *bytes, size_t offset, size_t count, uint64_t version);
bool versions_is(const uint8_t *bytes, size_t offset, size_t count, uint64_t version);

/* Publishes versions 1 … last of `bytes` bytes as fast as it can. */
void versions_publish(struct comm_region *region, size_t bytes, uint64_t last);
/* Reads all or a part of the newest version again and again and checks it, until `last` was seen;
 * waits for newer ones now and then. */
void versions_follow(struct comm_region *region, size_t bytes, uint64_t last, uint32_t reader);

#endif
