/* SPDX-License-Identifier: MIT
 *
 * A region: bytes, such as weights, that one worker publishes again and again and the others of its
 * host read without a message. It has two copies in shared memory of the view, each under a
 * sequence lock: the writer fills the older one and never waits for readers; a reader takes the
 * newer one, or any part of it, and tries again if the writer has come around to that copy
 * meanwhile. What it gets is of one version, whole. A writer that dies while it writes leaves the
 * other copy as it was.
 *
 * Any thread may read and wait, also while another one has the group; the writer is one thread.
 */
#ifndef COMM_REGION_H
#define COMM_REGION_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "comm/group.h"

struct comm_region;

/* Workers of this host that open the same key of a view have the same region; they need not do so
 * at the same time. Needs shared memory (COMM_CAN_SHARE between them). Close it before the group.
 */
base_status comm_region_open(struct comm_group *group, const char *key, size_t bytes,
                             struct comm_region **region_p);
void comm_region_close(struct comm_region *region); /* accepts NULL */

/* Publishes all bytes of the region as `version`, which must be larger than the one before. The
 * first rank to publish is the writer from then on. */
base_status comm_region_publish(struct comm_region *region, uint64_t version, const void *bytes);

/* The newest version; 0: none yet. */
uint64_t comm_region_version(const struct comm_region *region);

/* Copies [offset, offset + count) of the newest version; version 0: there is none, and nothing was
 * copied. BASE_ERR_TIMEOUT: until the deadline the writer was always faster than the reader. */
base_status comm_region_read(const struct comm_region *region, size_t offset, size_t count,
                             void *bytes, double deadline, uint64_t *version_p);

/* Waits until there is a version newer than `version`. Other ends are those of any wait
 * (comm/group.h), except that a timeout does not make the group void: nothing was under way. */
base_status comm_region_wait(struct comm_region *region, uint64_t version, double deadline,
                             uint64_t *newest_p);

#endif
