/* SPDX-License-Identifier: MIT
 *
 * The shared memory of a host, by key, kept by its agent: the first worker to ask decides its size,
 * each gets a descriptor of the same zeroed memory. Keys "view/N/…" are forgotten once no worker of
 * the host is in view N or an older one, and then refused: a worker that asked later would get
 * other memory than its peers have. The memory goes with its last map.
 */
#ifndef CLUSTER_REGIONS_H
#define CLUSTER_REGIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct cluster_regions { /* starts as zeros */
    struct cluster_region *first;
    uint32_t oldest; /* the oldest view whose memory is kept */
};

/* The table still owns the descriptor. */
base_status cluster_regions_get(struct cluster_regions *regions, const char *key, uint64_t bytes,
                                int *fd_p);
void cluster_regions_forget(struct cluster_regions *regions, uint32_t oldest_view);
void cluster_regions_fini(struct cluster_regions *regions);

#endif
