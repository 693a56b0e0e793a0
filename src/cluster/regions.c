/* SPDX-License-Identifier: MIT */
#include "cluster/regions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

struct cluster_region {
    char *key;
    uint64_t bytes;
    uint32_t view; /* the view it ends with; 0: none */
    int fd;
    struct cluster_region *next;
};

static uint32_t view_of(const char *key)
{
    unsigned view = 0;

    return sscanf(key, "view/%u/", &view) == 1 ? view : 0;
}

static base_status make(struct cluster_regions *regions, const char *key, uint64_t bytes)
{
    struct cluster_region *r;
    int fd = memfd_create(key, MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        base_status st = base_fail(BASE_ERR_MEMORY, "cannot make %llu bytes of shared memory: %m",
                                   (unsigned long long)bytes);

        if (fd >= 0)
            close(fd);
        return st;
    }
    r = base_calloc(1, sizeof *r);
    *r = (struct cluster_region){base_strdup(key), bytes, view_of(key), fd, regions->first};
    regions->first = r;
    return BASE_OK;
}

base_status cluster_regions_get(struct cluster_regions *regions, const char *key, uint64_t bytes,
                                int *fd_p)
{
    base_status st = BASE_OK;
    uint32_t view = view_of(key);
    const struct cluster_region *r = regions->first;

    *fd_p = -1;
    if (view != 0 && view < regions->oldest)
        TRY(base_fail(BASE_ERR_PEER_LOST, "shared memory %s is of a view that is over", key));
    while (r != NULL && strcmp(r->key, key) != 0)
        r = r->next;
    if (r == NULL) {
        TRY(make(regions, key, bytes));
        r = regions->first;
    }
    if (r->bytes != bytes)
        TRY(base_fail(BASE_ERR_DATA, "shared memory %s has %llu bytes, not %llu", key,
                      (unsigned long long)r->bytes, (unsigned long long)bytes));
    *fd_p = r->fd;
out:
    return st;
}

static void drop(struct cluster_region **at)
{
    struct cluster_region *r = *at;

    *at = r->next;
    close(r->fd);
    base_free(r->key);
    base_free(r);
}

void cluster_regions_forget(struct cluster_regions *regions, uint32_t oldest_view)
{
    if (oldest_view <= regions->oldest) /* told by a worker that was late to say where it is */
        return;
    regions->oldest = oldest_view;
    for (struct cluster_region **at = &regions->first; *at != NULL;)
        if ((*at)->view != 0 && (*at)->view < oldest_view)
            drop(at);
        else
            at = &(*at)->next;
}

void cluster_regions_fini(struct cluster_regions *regions)
{
    while (regions->first != NULL)
        drop(&regions->first);
}
