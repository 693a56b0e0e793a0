/* SPDX-License-Identifier: MIT
 *
 * Spaces: the locals' buffers one after the other, then the result, in one piece of shared memory.
 * A rank that shares with no other has its own buffer and no result.
 */
#include "coll/coll_private.h"

#include "base/mem.h"

enum { PAD = 48 }; /* floats between buffers: not all at the same place in the caches */

base_status coll_space_open(struct coll *c, const char *key, size_t floats,
                            struct coll_space **space_p)
{
    base_status st = BASE_OK;
    struct coll_space *space = base_calloc(1, sizeof *space);
    char name[64];
    size_t bytes;

    *space_p = NULL;
    space->coll = c;
    space->floats = floats;
    TRY(base_add(floats, PAD + 15, &space->stride));
    space->stride -= space->stride % 16;
    if (c->local == NULL) {
        TRY(base_tensor(space->stride, sizeof(float), "a space", &space->memory));
    } else {
        TRY(base_mul(space->stride * sizeof(float), (size_t)c->locals.size + 1, &bytes));
        if (snprintf(name, sizeof name, "space/%s", key) >= (int)sizeof name)
            TRY(base_fail(BASE_ERR_INTERNAL, "the key '%s' of a space is too long", key));
        TRY(coll_share(c, name, bytes, &space->shared));
    }
    space->next = c->spaces;
    c->spaces = *space_p = space;
    space = NULL;
out:
    coll_space_close(space);
    return st;
}

void coll_space_close(struct coll_space *space)
{
    struct coll_space **link;

    if (space == NULL)
        return;
    for (link = &space->coll->spaces; *link != NULL; link = &(*link)->next)
        if (*link == space) {
            *link = space->next;
            break;
        }
    comm_shared_close(&space->shared);
    base_free(space->memory);
    base_free(space);
}

static float *buffer(struct coll_space *space, int member)
{
    return (float *)space->shared.at + (size_t)member * space->stride;
}

float *coll_space_mine(struct coll_space *space)
{
    return space->memory ? space->memory : buffer(space, space->coll->locals.me);
}

float *coll_space_of(struct coll_space *space, int rank)
{
    int member = coll_team_find(&space->coll->locals, rank);

    if (member < 0)
        return NULL;
    return space->memory ? space->memory : buffer(space, member);
}

float *coll_space_result(struct coll_space *space)
{
    return space->memory ? NULL : buffer(space, space->coll->locals.size);
}

struct coll_space *coll_space_find(struct coll *c, const float *x, size_t count, size_t *offset_p)
{
    for (struct coll_space *space = c->spaces; space != NULL; space = space->next) {
        uintptr_t from = (uintptr_t)coll_space_mine(space), at = (uintptr_t)x;

        if (space->memory == NULL && at >= from &&
            at + count * sizeof *x <= from + space->floats * sizeof *x) {
            *offset_p = (at - from) / sizeof *x;
            return space;
        }
    }
    return NULL;
}

void coll_space_sources(struct coll_space *space, size_t offset, const float **sources)
{
    for (int i = 0; i < space->coll->locals.size; i++)
        sources[i] = buffer(space, i) + offset;
}

void coll_space_sum(struct coll_space *space, size_t offset, size_t count, float *y)
{
    const float *sources[COMM_MAX_WORKERS];

    coll_space_sources(space, offset, sources);
    coll_kernels()->sum(count, space->coll->locals.size, sources, NULL, 1, &y, false);
}
