/* SPDX-License-Identifier: MIT
 *
 * Every algorithm of the registry over every transport that serves it, in groups of 1 … 5 real
 * processes (support/crew.h) and in two parts of such a group at the same time: the sums are the
 * ones of the order it says it has, bit for bit. More of parts: transports_parts_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/engine.h"
#include "support/groups.h"
#include "support/sums.h"

enum { MOST = 200000 }; /* floats */

static const size_t counts[] = {0, 1, 15, 17, 1000, 4096, 4097, 70001, MOST};
enum { COUNTS = sizeof counts / sizeof *counts };

struct room { /* what a body works with */
    struct comm_group *group;
    struct coll *whole;    /* NULL: `coll` is of all ranks; else of `ranks` */
    struct comm_view view; /* of the ranks of `coll` */
    int ranks[COMM_MAX_WORKERS];
    struct coll *coll;
    const struct coll_algorithm *algorithm; /* NULL: auto */
    float *x, *first, *want;                /* MOST each, x of size more */
    float scale[COMM_MAX_WORKERS];
    struct coll_space *space;
    int rank, size, barriers;
};

/* --- reductions ---------------------------------------------------------------------------- */

/* Largest possible difference of a sum whose terms and partial sums went over the wire as bf16. */
static float bf16_bound(const struct room *r)
{
    return (float)(r->size * r->size) * 0x1p-8f;
}

static void check_sum(const struct room *r, size_t from, size_t count, const float *got,
                      enum coll_wire wire, bool again)
{
    float *first = r->first + from;

    if (r->algorithm->order == COLL_ORDER_OTHER)
        crew_check(sums_distance(count, got, r->want + from) <= (float)r->size * 0x1p-22f);
    else if (wire == COLL_BF16)
        crew_check(sums_distance(count, got, r->want + from) <= bf16_bound(r));
    else
        crew_check(sums_same(count, got, r->want + from));
    if (again)
        crew_check(sums_same(count, got, first));
    memcpy(first, got, count * sizeof *got);
}

static void reference(struct room *r, size_t count, const float *scale)
{
    enum coll_order order = r->algorithm != NULL ? r->algorithm->order : COLL_ORDER_RANKS;

    sums_reference(order, &r->view, count, scale, r->want);
}

static void all_reduce(struct room *r, size_t count, const struct coll_sum *sum)
{
    reference(r, count, sum->scale);
    for (int again = 0; again < 2; again++) {
        sums_fill(r->rank, count, r->x);
        crew_check(coll_all_reduce(r->coll, r->x, count, sum) == BASE_OK);
        check_sum(r, 0, count, r->x, sum->wire, again);
    }
}

/* In a space: in place, and wherever the algorithm leaves it. The bits are those of private memory.
 */
static void all_reduce_in_space(struct room *r, size_t count, const struct coll_sum *sum)
{
    float *mine = coll_space_mine(r->space) + 32, *result = NULL;

    sums_fill(r->rank, count, mine);
    crew_check(coll_all_reduce(r->coll, mine, count, sum) == BASE_OK);
    check_sum(r, 0, count, mine, sum->wire, sum->wire == COLL_FP32);
    sums_fill(r->rank, count, mine);
    crew_check(coll_space_all_reduce(r->coll, r->space, 32, count, sum, &result) == BASE_OK);
    check_sum(r, 0, count, result, sum->wire, sum->wire == COLL_FP32);
    crew_check(coll_barrier(r->coll) == BASE_OK); /* no rank fills while others look */
}

static void reduce_scatter(struct room *r, float *x, size_t count, const struct coll_sum *sum)
{
    size_t from, length;

    reference(r, count, sum->scale);
    coll_slice(count, r->rank, r->size, &from, &length);
    for (int again = 0; again < 2; again++) {
        sums_fill(r->rank, count, x);
        crew_check(coll_reduce_scatter(r->coll, x, count, sum) == BASE_OK);
        check_sum(r, from, length, x + from, sum->wire, again);
    }
}

static void reductions(struct room *r, enum coll_kind kind)
{
    for (int i = 0; i < COUNTS; i++)
        for (int how = 0; how < 4; how++) {
            const struct coll_sum sum = {how & 1 ? r->scale : NULL,
                                         how & 2 ? COLL_BF16 : COLL_FP32};

            if (kind == COLL_REDUCE_SCATTER) {
                reduce_scatter(r, r->x, counts[i], &sum);
                reduce_scatter(r, coll_space_mine(r->space), counts[i], &sum);
            } else {
                all_reduce(r, counts[i], &sum);
                all_reduce_in_space(r, counts[i], &sum);
            }
        }
}

/* --- bytes --------------------------------------------------------------------------------- */

static void broadcasts(struct room *r, size_t count)
{
    for (int root = 0; root < r->size; root++) {
        sums_fill(root, count, r->want);
        sums_fill(r->rank, count, r->x);
        crew_check(coll_broadcast(r->coll, root, r->x, count * sizeof(float)) == BASE_OK);
        crew_check(sums_same(count, r->x, r->want));
    }
}

static void gathers(struct room *r, size_t count)
{
    for (int root = 0; root < r->size; root++) {
        memset(r->x, 0, (size_t)r->size * count * sizeof(float));
        sums_fill(r->rank, count, r->first);
        crew_check(coll_gather(r->coll, root, r->first, count * sizeof(float),
                               r->rank == root ? r->x : NULL) == BASE_OK);
        for (int i = 0; r->rank == root && i < r->size; i++) {
            sums_fill(i, count, r->want);
            crew_check(sums_same(count, r->x + count * (size_t)i, r->want));
        }
    }
}

static void scatters(struct room *r, size_t count)
{
    for (int root = 0; root < r->size; root++) {
        for (int i = 0; i < r->size; i++)
            sums_fill(i + root, count, r->x + count * (size_t)i);
        memset(r->first, 0, count * sizeof(float));
        crew_check(coll_scatter(r->coll, root, r->rank == root ? r->x : NULL, count * sizeof(float),
                                r->first) == BASE_OK);
        sums_fill(r->rank + root, count, r->want);
        crew_check(sums_same(count, r->first, r->want));
    }
}

static void all_gathers(struct room *r, size_t count)
{
    sums_fill(r->rank, count, r->first);
    memset(r->x, 0, (size_t)r->size * count * sizeof(float));
    crew_check(coll_all_gather(r->coll, r->first, count * sizeof(float), r->x) == BASE_OK);
    for (int i = 0; i < r->size; i++) {
        sums_fill(i, count, r->want);
        crew_check(sums_same(count, r->x + count * (size_t)i, r->want));
    }
}

static void all_gathers_slices(struct room *r, float *x, size_t count)
{
    size_t from, length;

    sums_fill(7, count, r->want);
    memset(x, 0, count * sizeof *x);
    coll_slice(count, r->rank, r->size, &from, &length);
    memcpy(x + from, r->want + from, length * sizeof *x);
    crew_check(coll_all_gather_slices(r->coll, x, count) == BASE_OK);
    crew_check(sums_same(count, x, r->want));
    crew_check(coll_barrier(r->coll) == BASE_OK);
}

static void bytes(struct room *r, enum coll_kind kind)
{
    for (int i = 0; i < COUNTS; i++) {
        if (kind == COLL_BROADCAST)
            broadcasts(r, counts[i]);
        else if (kind == COLL_GATHER)
            gathers(r, counts[i]);
        else if (kind == COLL_SCATTER)
            scatters(r, counts[i]);
        else if (kind == COLL_ALL_GATHER) {
            all_gathers(r, counts[i]);
            all_gathers_slices(r, r->x, counts[i]);
            all_gathers_slices(r, coll_space_mine(r->space), counts[i]);
        }
    }
}

static void barriers(struct room *r, struct groups_board *board)
{
    for (int i = 0; i < 200; i++) {
        int now = ++r->barriers;

        atomic_store(&board->counter[r->ranks[r->rank]], now);
        crew_check(coll_barrier(r->coll) == BASE_OK);
        for (int j = 0; j < r->size; j++)
            crew_check(atomic_load(&board->counter[r->ranks[j]]) == now);
        crew_check(coll_barrier(r->coll) == BASE_OK);
    }
}

/* --- asynchronous -------------------------------------------------------------------------- */

/* Ranges of one buffer are started in one order while the caller computes; sums and order as in
 * the synchronous form. */
static void asynchronous(struct room *r)
{
    enum { PARTS = 10, PART = MOST / PARTS };
    uint64_t ticket[PARTS];
    float *mine = coll_space_mine(r->space), *result;
    const struct coll_sum sum = {.scale = r->scale};
    volatile float computed = 0;

    crew_check(comm_engine_begin(coll_group(r->coll)) == BASE_OK);
    for (int i = PARTS - 1; i >= 0; i--) {
        sums_fill(r->rank, PART, mine + i * PART);
        crew_check(coll_start_all_reduce(r->coll, r->space, (size_t)i * PART, PART, &sum,
                                         &ticket[i]) == BASE_OK);
        for (int j = 0; j < 10000; j++)
            computed = computed + sums_value(i, (size_t)j);
    }
    crew_check(comm_wait(coll_group(r->coll), NULL, 0, groups_soon()) == BASE_ERR_INTERNAL);
    crew_check(coll_barrier(r->coll) == BASE_OK); /* goes through the engine, after the sums */
    reference(r, PART, r->scale);
    for (int i = PARTS - 1; i >= 0; i--) {
        crew_check(coll_async_wait(r->coll, ticket[i], &result) == BASE_OK);
        check_sum(r, 0, PART, result, COLL_FP32, false);
    }
    crew_check(coll_async_busy(r->coll) > 0);
    crew_check(coll_async_wait(r->coll, ticket[0] + 1, &result) == BASE_ERR_INTERNAL);
    crew_check(comm_engine_end(coll_group(r->coll)) == BASE_OK);
    crew_check(coll_start_all_reduce(r->coll, r->space, 0, 1, NULL, ticket) == BASE_ERR_INTERNAL);
}

/* --- the suite ----------------------------------------------------------------------------- */

/* The ranks first, first + step, … of the group, last one first if `reversed`. */
static void take_ranks(struct room *r, int first, int step, bool reversed)
{
    const struct comm_view *all = comm_group_view(r->group);
    int last = first + ((int)all->size - 1 - first) / step * step;

    r->size = 0;
    r->view = (struct comm_view){.number = all->number};
    for (int i = first; i < (int)all->size; i += step) {
        int rank = reversed ? last - (i - first) : i;

        if (rank == comm_group_rank(r->group))
            r->rank = r->size;
        r->view.members[r->size] = all->members[rank];
        r->ranks[r->size++] = rank;
    }
    r->view.size = (uint32_t)r->size;
}

static void enter(struct room *r, struct crew_worker *me)
{
    float total = 0;

    r->group = groups_open(me, 0);
    take_ranks(r, 0, 1, false);
    crew_check(base_tensor((size_t)r->size * MOST, sizeof *r->x, "x", &r->x) == BASE_OK);
    crew_check(base_tensor(MOST, sizeof *r->x, "first", &r->first) == BASE_OK);
    crew_check(base_tensor(MOST, sizeof *r->x, "want", &r->want) == BASE_OK);
    for (int i = 0; i < r->size; i++) /* as of unequal batches */
        total += r->scale[i] = (float)(3 + i);
    for (int i = 0; i < r->size; i++)
        r->scale[i] /= total;
}

static void leave(struct room *r)
{
    comm_group_close(r->group);
    base_free(r->want);
    base_free(r->first);
    base_free(r->x);
}

static void with_algorithm(struct room *r, struct crew_worker *me,
                           const struct coll_algorithm *algorithm)
{
    char forced[64];
    base_status st;

    snprintf(forced, sizeof forced, "%s=%s", coll_kind_names[algorithm->kind], algorithm->name);
    if (r->whole == NULL)
        st = coll_open(r->group, forced, &r->coll);
    else
        st = coll_open_part(r->whole, "part", r->ranks, r->size, forced, &r->coll);
    if (st == BASE_ERR_USAGE && strstr(base_message(), " needs "))
        return; /* does not serve this group */
    crew_check(st == BASE_OK);
    r->algorithm = algorithm;
    crew_check(coll_space_open(r->coll, "test", MOST + 32, &r->space) == BASE_OK);
    if (algorithm->kind == COLL_BARRIER)
        barriers(r, me->board);
    else if (algorithm->kind == COLL_ALL_REDUCE || algorithm->kind == COLL_REDUCE_SCATTER)
        reductions(r, algorithm->kind);
    else
        bytes(r, algorithm->kind);
    if (algorithm->kind == COLL_ALL_REDUCE)
        asynchronous(r);
    coll_space_close(r->space);
    coll_close(r->coll);
}

static void every_algorithm(struct crew_worker *me)
{
    struct room r = {0};

    enter(&r, me);
    for (size_t i = 0; i < coll_algorithm_count; i++)
        with_algorithm(&r, me, coll_algorithm_registry[i]);
    leave(&r);
}

/* Even ranks and odd ones, the latter in reverse, without regard for each other. */
static void every_algorithm_in_parts(struct crew_worker *me)
{
    struct room r = {0};

    enter(&r, me);
    crew_check(coll_open(r.group, NULL, &r.whole) == BASE_OK);
    take_ranks(&r, me->index % 2, 2, me->index % 2 != 0);
    for (size_t i = 0; i < coll_algorithm_count; i++)
        with_algorithm(&r, me, coll_algorithm_registry[i]);
    coll_close(r.whole);
    leave(&r);
}

/* Without a forced algorithm: some right one. */
static void automatic(struct crew_worker *me)
{
    const struct coll_sum sum = {0};
    struct room r = {0};

    enter(&r, me);
    crew_check(coll_open(r.group, NULL, &r.coll) == BASE_OK);
    for (int i = 0; i < COUNTS; i++) {
        reference(&r, counts[i], NULL);
        sums_fill(r.rank, counts[i], r.x);
        crew_check(coll_all_reduce(r.coll, r.x, counts[i], &sum) == BASE_OK);
        crew_check(sums_distance(counts[i], r.x, r.want) < 1e-5f);
        broadcasts(&r, counts[i]);
        gathers(&r, counts[i]);
        scatters(&r, counts[i]);
        all_gathers(&r, counts[i]);
    }
    barriers(&r, me->board);
    coll_close(r.coll);
    leave(&r);
}

static void wrong_names(struct crew_worker *me)
{
    static const char *const wrong[] = {"rung", "all-reduce=rung", "al-reduce=ring",
                                        "broadcast=halving-doubling", NULL};
    struct comm_group *group = groups_open(me, 0);
    struct coll *coll;

    for (int i = 0; wrong[i] != NULL; i++) {
        crew_check(coll_open(group, wrong[i], &coll) == BASE_ERR_USAGE);
        crew_check(coll == NULL && strstr(base_message(), "known"));
    }
    crew_check(coll_open(group, "ring broadcast=tree", &coll) == BASE_OK);
    coll_close(coll);
    crew_check(coll_open(group, "auto", &coll) == BASE_OK);
    coll_close(coll);
    comm_group_close(group);
}

static void test_algorithms(void **state)
{
    for (int workers = 1; workers <= 5; workers++)
        groups_run(*state, workers, every_algorithm);
}

static void test_parts(void **state)
{
    for (int workers = 3; workers <= 5; workers++)
        groups_run(*state, workers, every_algorithm_in_parts);
}

static void test_automatic(void **state)
{
    for (int workers = 1; workers <= 5; workers++)
        groups_run(*state, workers, automatic);
}

static void test_names(void **state)
{
    groups_run(*state, 2, wrong_names);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_automatic),
        cmocka_unit_test(test_names),
    };

    return groups_main(argc, argv, tests, sizeof tests / sizeof tests[0], NULL);
}
