/* SPDX-License-Identifier: MIT
 *
 * The operations as they are called: arguments are checked and put into a `struct coll_call`, which
 * an algorithm runs. A rank alone and an operation on nothing return at once.
 */
#include "coll/coll_private.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

const char *const coll_kind_names[COLL_KINDS] = {
    [COLL_BROADCAST] = "broadcast",   [COLL_GATHER] = "gather",
    [COLL_SCATTER] = "scatter",       [COLL_REDUCE_SCATTER] = "reduce-scatter",
    [COLL_ALL_GATHER] = "all-gather", [COLL_ALL_REDUCE] = "all-reduce",
    [COLL_BARRIER] = "barrier",
};

const char *const coll_wire_names[] = {[COLL_FP32] = "fp32", [COLL_BF16] = "bf16", NULL};

static const struct coll_sum plain_sum = {.scale = NULL, .wire = COLL_FP32};

static size_t stage_chunks(int size)
{
    size_t chunks = 2 * ((size_t)size - 1) + COLL_WINDOW;

    return chunks < 2 * COLL_WINDOW ? 2 * COLL_WINDOW : chunks;
}

void coll_memory(int size, int locals, uint64_t *own_p, uint64_t *shared_p)
{
    *own_p = size > 1 ? stage_chunks(size) * COLL_CHUNK : 0;
    *shared_p = locals > 1 ? ((uint64_t)locals + 1) * 2 * coll_local_half() : 0;
}

static base_status open_group(struct coll *c)
{
    base_status st = BASE_OK;
    size_t n = (size_t)c->world.size;

    c->flows = base_calloc(2 * n, sizeof *c->flows);
    TRY(base_tensor(stage_chunks(c->world.size), COLL_CHUNK, "messages of collectives", &c->stage));
    TRY(coll_find_teams(c));
    /* Where ranks take turns, a second barrier costs more than sums done twice. */
    c->small = c->crowded ? 8 << 10 : 1 << 10;
    if (c->locals.size > 1)
        TRY(coll_local_open(c));
    TRY(coll_cost_measure(c));
out:
    return st;
}

struct coll *coll_new(struct comm_group *group, int size, int me)
{
    struct coll *c = base_calloc(1, sizeof *c);
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);

    c->group = group;
    c->whole = c;
    c->patience = 60;
    c->cache = cache > 0 ? (size_t)cache : 8u << 20;
    c->world.size = size;
    c->world.me = me;
    for (int i = 0; i < size; i++)
        c->world.rank[i] = c->group_rank[i] = i;
    c->locals = c->leaders = c->world;
    return c;
}

base_status coll_connect(struct coll *c, const char *forced)
{
    base_status st = BASE_OK;

    if (comm_group_engine(c->group) != NULL)
        TRY(base_fail(BASE_ERR_INTERNAL, "coll_open while an engine has the group"));
    if (c->world.size > 1)
        TRY(open_group(c));
    TRY(coll_choose_open(c, forced));
out:
    return st;
}

base_status coll_open(struct comm_group *group, const char *forced, struct coll **coll_p)
{
    base_status st = BASE_OK;
    struct coll *c = coll_new(group, comm_group_size(group), comm_group_rank(group));

    *coll_p = NULL;
    c->numbers = 1;
    TRY(coll_connect(c, forced));
    *coll_p = c;
    c = NULL;
out:
    coll_close(c);
    return st;
}

void coll_close(struct coll *c)
{
    if (c == NULL)
        return;
    coll_async_close(c);
    coll_part_forget(c);
    coll_choose_close(c);
    coll_local_close(c->local);
    comm_barrier_close(&c->barrier);
    base_free(c->stage);
    base_free(c->flows);
    base_free(c);
}

struct comm_group *coll_group(const struct coll *c)
{
    return c->group;
}

void coll_patience(struct coll *c, double seconds)
{
    c->patience = seconds;
}

double coll_deadline(const struct coll *c)
{
    return base_now() + c->patience;
}

int coll_size(const struct coll *c)
{
    return c->world.size;
}

int coll_rank(const struct coll *c)
{
    return c->world.me;
}

int coll_locals(const struct coll *c)
{
    return c->locals.size;
}

const struct comm_member *coll_member(const struct coll *c, int rank)
{
    return &comm_group_view(c->group)->members[c->group_rank[rank]];
}

bool coll_shares(const struct coll *c)
{
    return c->locals.size == c->world.size;
}

float coll_scale_of(const struct coll_call *call, int rank)
{
    return call->sum->scale != NULL ? call->sum->scale[rank] : 1.0f;
}

/* A rank that has left the group writes nothing more into memory it shares: the last operation may
 * still succeed for the others, who then read what it brought. */
base_status coll_begin(struct coll *c, struct coll_call *call)
{
    base_status st = comm_group_ended(c->group);

    if (st != BASE_OK)
        return st;
    call->tag = coll_tag(c, (int)call->kind, c->sequence++);
    call->deadline = coll_deadline(c);
    return BASE_OK;
}

base_status coll_run(struct coll *c, struct coll_call *call)
{
    base_status st = coll_begin(c, call);

    return st == BASE_OK ? coll_choose(c, call)->run(c, call) : st;
}

struct operation {
    struct coll *c;
    struct coll_call *call;
};

static base_status run(void *context)
{
    struct operation *op = context;

    return coll_run(op->c, op->call);
}

/* Runs the operation, unless nothing moves between ranks: there is one rank, or no byte. */
static base_status begin(struct coll *c, struct coll_call *call)
{
    if (c->world.size == 1 && call->sum != NULL && call->sum->scale != NULL)
        coll_scale(call->count, call->sum->scale[0], call->x);
    if (c->world.size == 1 || (call->count == 0 && call->kind != COLL_BARRIER))
        return BASE_OK;
    return coll_perform(c, run, &(struct operation){c, call});
}

base_status coll_broadcast(struct coll *c, int root, void *bytes, size_t count)
{
    struct coll_call call = {.kind = COLL_BROADCAST, .root = root, .out = bytes, .count = count};

    return begin(c, &call);
}

base_status coll_gather(struct coll *c, int root, const void *mine, size_t count, void *all)
{
    struct coll_call call = {
        .kind = COLL_GATHER, .root = root, .in = mine, .out = all, .count = count};

    if (c->world.me == root && count > 0)
        memcpy((uint8_t *)all + count * (size_t)root, mine, count);
    return begin(c, &call);
}

base_status coll_scatter(struct coll *c, int root, const void *all, size_t count, void *mine)
{
    struct coll_call call = {
        .kind = COLL_SCATTER, .root = root, .in = all, .out = mine, .count = count};

    if (c->world.me == root && count > 0)
        memcpy(mine, (const uint8_t *)all + count * (size_t)root, count);
    return begin(c, &call);
}

base_status coll_all_gather(struct coll *c, const void *mine, size_t count, void *all)
{
    struct coll_call call = {.kind = COLL_ALL_GATHER, .out = all, .count = count};

    if (count > 0)
        memcpy((uint8_t *)all + count * (size_t)c->world.me, mine, count);
    return begin(c, &call);
}

static struct coll_call reduction(struct coll *c, enum coll_kind kind, float *x, size_t count,
                                  const struct coll_sum *sum)
{
    struct coll_call call = {.kind = kind,
                             .x = x,
                             .count = count,
                             .sum = sum != NULL ? sum : &plain_sum,
                             .in_place = true,
                             .result = x};

    call.space = coll_space_find(c, x, count, &call.offset);
    return call;
}

base_status coll_reduce_scatter(struct coll *c, float *x, size_t count, const struct coll_sum *sum)
{
    struct coll_call call = reduction(c, COLL_REDUCE_SCATTER, x, count, sum);

    return begin(c, &call);
}

base_status coll_all_gather_slices(struct coll *c, float *x, size_t count)
{
    struct coll_call call = {.kind = COLL_ALL_GATHER, .x = x, .count = count};

    call.space = coll_space_find(c, x, count, &call.offset);
    return begin(c, &call);
}

base_status coll_all_reduce(struct coll *c, float *x, size_t count, const struct coll_sum *sum)
{
    struct coll_call call = reduction(c, COLL_ALL_REDUCE, x, count, sum);

    return begin(c, &call);
}

base_status coll_barrier(struct coll *c)
{
    struct coll_call call = {.kind = COLL_BARRIER};

    return begin(c, &call);
}

base_status coll_space_call(struct coll_space *space, size_t offset, size_t count,
                            const struct coll_sum *sum, struct coll_call *call_p)
{
    float *x = coll_space_mine(space) + offset;

    if (offset > space->floats || count > space->floats - offset)
        return base_fail(BASE_ERR_INTERNAL, "[%zu, %zu + %zu) is not inside a space of %zu floats",
                         offset, offset, count, space->floats);
    *call_p = (struct coll_call){.kind = COLL_ALL_REDUCE,
                                 .x = x,
                                 .count = count,
                                 .space = space->memory == NULL ? space : NULL,
                                 .offset = offset,
                                 .sum = sum != NULL ? sum : &plain_sum,
                                 .result = x};
    return BASE_OK;
}

base_status coll_space_all_reduce(struct coll *c, struct coll_space *space, size_t offset,
                                  size_t count, const struct coll_sum *sum, float **result_p)
{
    base_status st = BASE_OK;
    struct coll_call call;

    *result_p = NULL;
    TRY(coll_space_call(space, offset, count, sum, &call));
    TRY(begin(c, &call));
    *result_p = call.result;
out:
    return st;
}
