/* SPDX-License-Identifier: MIT
 *
 * Vectors that are divided between ranks (coll/owned.c), over every transport, in groups of 1 … 5
 * real processes and in parts of them: a range of one is reduced to the ranks that keep it with the
 * bits of every all-reduce there is, and gathered from its owners; ranges begin and end around the
 * bounds of slices. A lost rank ends both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "comm/engine.h"
#include "support/groups.h"
#include "support/sums.h"

enum { MOST = 200000, BEFORE = 48, COPIES = 3 };

static const size_t wholes[] = {1, 16, 33, 1000, 70001, MOST};
enum { WHOLES = sizeof wholes / sizeof *wholes };

struct room {
    struct comm_view view; /* of the ranks of `coll` */
    struct coll *coll;
    struct coll_space *space;
    int rank, size, copies;
    size_t whole;
    float *want, *mine;                   /* (whole): the sums; what this rank is an owner of */
    float *kept[COPIES];                  /* (whole) each, more than a slice needs */
    size_t begin[COPIES], length[COPIES]; /* of the slices that are kept */
};

static int slice_at(const struct room *r, int copy)
{
    return (r->rank + r->size - copy) % r->size;
}

/* Starts one operation with floats [from, from + count) of this rank's values in the space. */
static void reduce(struct room *r, size_t from, size_t count, uint64_t *ticket_p)
{
    const struct coll_owned range = {r->whole, from, count, r->copies};
    float *x = coll_space_mine(r->space) + BEFORE;

    for (size_t i = 0; i < count; i++)
        x[i] = sums_value(r->rank, from + i);
    crew_check(coll_start_reduce_owned(r->coll, r->space, BEFORE, &range, r->kept, ticket_p) ==
               BASE_OK);
}

/* What was reduced came to where it belongs, and nothing else was touched. */
static void check_kept(struct room *r, size_t from, size_t count)
{
    for (int copy = 0; copy < r->copies; copy++) {
        float *kept = r->kept[copy];

        for (size_t i = 0; i < r->length[copy]; i++) {
            size_t at = r->begin[copy] + i;
            bool inside = at >= from && at < from + count;

            crew_check(inside ? sums_same(1, kept + i, r->want + at) : kept[i] == 7.0f);
            kept[i] = 7.0f;
        }
        crew_check(kept[r->length[copy]] == 7.0f);
    }
}

static void check_gathered(struct room *r, size_t from, size_t count)
{
    const struct coll_owned range = {r->whole, from, count, r->copies};
    float *x = coll_space_mine(r->space) + BEFORE, *result;
    uint64_t ticket;

    memset(x, 0, (count + 1) * sizeof *x);
    crew_check(coll_start_gather_owned(r->coll, r->space, BEFORE, &range, r->mine, &ticket) ==
               BASE_OK);
    crew_check(coll_async_wait(r->coll, ticket, &result) == BASE_OK);
    for (size_t i = 0; i < count; i++)
        crew_check(x[i] == sums_value(9, from + i));
    crew_check(x[count] == 0);
}

static void one_range(struct room *r, size_t from, size_t to)
{
    uint64_t ticket;
    float *result;

    if (to > r->whole || from > to)
        return;
    reduce(r, from, to - from, &ticket);
    crew_check(coll_async_wait(r->coll, ticket, &result) == BASE_OK);
    check_kept(r, from, to - from);
    check_gathered(r, from, to - from);
}

static void ranges(struct room *r)
{
    one_range(r, 0, r->whole);
    one_range(r, r->whole, r->whole);
    for (int slice = 0; slice < r->size; slice++) {
        size_t begin, length;

        coll_slice(r->whole, slice, r->size, &begin, &length);
        one_range(r, begin, begin + length);
        one_range(r, begin > 16 ? begin - 16 : 0, begin + 1);
        one_range(r, begin + length / 2, begin + length + length / 2);
        one_range(r, begin + 1, r->whole);
    }
}

/* All ranges of the vector, one after the other, with all of them under way at once. */
static void streamed(struct room *r)
{
    enum { PIECE = 5000 };
    uint64_t ticket = 0;
    float *result, *x = coll_space_mine(r->space) + BEFORE;

    sums_fill(r->rank, r->whole, x);
    for (size_t from = 0; from < r->whole; from += PIECE) {
        size_t left = r->whole - from;
        const struct coll_owned range = {r->whole, from, left < PIECE ? left : PIECE, r->copies};

        crew_check(coll_start_reduce_owned(r->coll, r->space, BEFORE + from, &range, r->kept,
                                           &ticket) == BASE_OK);
    }
    crew_check(coll_async_wait(r->coll, ticket, &result) == BASE_OK);
    check_kept(r, 0, r->whole);
}

static void prepare(struct room *r, const struct coll_algorithm *a, size_t whole, int copies)
{
    r->whole = whole;
    r->copies = copies;
    sums_reference(a->order, &r->view, whole, NULL, r->want);
    for (int copy = 0; copy < copies; copy++) {
        coll_slice(whole, slice_at(r, copy), r->size, &r->begin[copy], &r->length[copy]);
        for (size_t i = 0; i <= r->length[copy]; i++)
            r->kept[copy][i] = 7.0f;
    }
    for (size_t i = 0; i < r->length[0]; i++)
        r->mine[i] = sums_value(9, r->begin[0] + i);
}

static void with_algorithm(struct room *r, struct comm_group *group, struct coll *whole,
                           const int *ranks, const struct coll_algorithm *a)
{
    char forced[64];
    base_status st;

    snprintf(forced, sizeof forced, "all-reduce=%s", a->name);
    st = whole == NULL ? coll_open(group, forced, &r->coll)
                       : coll_open_part(whole, "part", ranks, r->size, forced, &r->coll);
    if (st == BASE_ERR_USAGE && strstr(base_message(), " needs "))
        return; /* does not serve this group */
    crew_check(st == BASE_OK);
    crew_check(coll_space_open(r->coll, "owned", MOST + 2 * BEFORE, &r->space) == BASE_OK);
    crew_check(comm_engine_begin(group) == BASE_OK);
    for (int i = 0; i < WHOLES; i++)
        for (int copies = 1; copies <= COPIES && copies <= r->size; copies++) {
            if (groups_brief() && wholes[i] == MOST)
                continue;
            prepare(r, a, wholes[i], copies);
            ranges(r);
            streamed(r);
        }
    crew_check(comm_engine_end(group) == BASE_OK);
    coll_space_close(r->space);
    coll_close(r->coll);
}

static void every_order(struct room *r, struct comm_group *group, struct coll *whole,
                        const int *ranks)
{
    crew_check(base_tensor(MOST, sizeof(float), "want", &r->want) == BASE_OK);
    crew_check(base_tensor(MOST, sizeof(float), "mine", &r->mine) == BASE_OK);
    for (int i = 0; i < COPIES; i++)
        crew_check(base_tensor(MOST + 1, sizeof(float), "kept", &r->kept[i]) == BASE_OK);
    for (size_t i = 0; i < coll_algorithm_count; i++)
        if (coll_algorithm_registry[i]->kind == COLL_ALL_REDUCE)
            with_algorithm(r, group, whole, ranks, coll_algorithm_registry[i]);
    for (int i = 0; i < COPIES; i++)
        base_free(r->kept[i]);
    base_free(r->mine);
    base_free(r->want);
}

static void of_all(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    struct room r = {.view = *comm_group_view(group),
                     .rank = comm_group_rank(group),
                     .size = comm_group_size(group)};

    every_order(&r, group, NULL, NULL);
    comm_group_close(group);
}

/* All but rank 0, last one first. */
static void of_some(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    const struct comm_view *all = comm_group_view(group);
    struct room r = {.view = {.number = all->number, .size = all->size - 1},
                     .size = (int)all->size - 1};
    int ranks[COMM_MAX_WORKERS];
    struct coll *whole;

    crew_check(coll_open(group, NULL, &whole) == BASE_OK);
    for (int i = 0; i < r.size; i++) {
        ranks[i] = r.size - i;
        r.view.members[i] = all->members[ranks[i]];
        r.rank = ranks[i] == comm_group_rank(group) ? i : r.rank;
    }
    if (comm_group_rank(group) != 0)
        every_order(&r, group, whole, ranks);
    crew_check(coll_barrier(whole) == BASE_OK);
    coll_close(whole);
    comm_group_close(group);
}

static void wrong_numbers(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    const struct coll_owned good = {100, 0, 100, 1}, beyond = {100, 1, 100, 1},
                            none = {100, 0, 100, 0}, many = {100, 0, 100, 3},
                            wide = {1000, 0, 101, 1};
    float memory[100], *kept[3] = {memory, memory, memory};
    struct coll_space *space;
    struct coll *coll;
    uint64_t ticket;

    crew_check(coll_open(group, NULL, &coll) == BASE_OK);
    crew_check(coll_space_open(coll, "wrong", 100, &space) == BASE_OK);
    crew_check(coll_start_reduce_owned(coll, space, 0, &good, kept, &ticket) == BASE_ERR_INTERNAL);
    crew_check(comm_engine_begin(group) == BASE_OK); /* without which nothing starts */
    crew_check(coll_start_reduce_owned(coll, space, 1, &good, kept, &ticket) == BASE_ERR_INTERNAL);
    crew_check(coll_start_reduce_owned(coll, space, 0, &beyond, kept, &ticket) ==
               BASE_ERR_INTERNAL);
    crew_check(coll_start_reduce_owned(coll, space, 0, &none, kept, &ticket) == BASE_ERR_INTERNAL);
    crew_check(coll_start_reduce_owned(coll, space, 0, &many, kept, &ticket) == BASE_ERR_INTERNAL);
    crew_check(coll_start_gather_owned(coll, space, 0, &wide, memory, &ticket) ==
               BASE_ERR_INTERNAL);
    crew_check(ticket == 0);
    crew_check(comm_engine_end(group) == BASE_OK);
    coll_space_close(space);
    coll_close(coll);
    comm_group_close(group);
}

/* Reduces and gathers until a rank is lost. */
static void survive(struct crew_worker *me)
{
    struct groups_board *board = me->board;
    struct comm_group *group = groups_open(me, 0);
    struct room r = {.rank = comm_group_rank(group), .size = comm_group_size(group)};
    struct coll_owned range = {MOST, 0, 0, r.size > 2 ? 2 : 1};
    base_status st = BASE_OK, end;
    uint64_t ticket = 0;
    float *result;

    for (int i = 0; i < 2; i++)
        crew_check(base_tensor(MOST, sizeof(float), "kept", &r.kept[i]) == BASE_OK);
    atomic_fetch_add(&board->ready, 1);
    TRY(coll_open(group, NULL, &r.coll));
    TRY(coll_space_open(r.coll, "loss", MOST, &r.space));
    TRY(comm_engine_begin(group));
    for (size_t turn = 0; st == BASE_OK; turn++) {
        range.from = turn % 7 * (MOST / 7);
        range.count = turn % 3 * (MOST / 16) + 1;
        st = turn % 2 == 0
                 ? coll_start_reduce_owned(r.coll, r.space, 0, &range, r.kept, &ticket)
                 : coll_start_gather_owned(r.coll, r.space, 0, &range, r.kept[0], &ticket);
        if (st == BASE_OK && turn % 5 == 0)
            st = coll_async_wait(r.coll, ticket, &result);
    }
    end = comm_engine_end(group);
    crew_check(end == st);
out:
    crew_check(st == BASE_ERR_PEER_LOST);
    crew_check(comm_group_lost(group) == atomic_load(&board->victim));
    coll_space_close(r.space);
    coll_close(r.coll);
    comm_group_close(group);
    for (int i = 0; i < 2; i++)
        base_free(r.kept[i]);
}

static void test_orders(void **state)
{
    for (int workers = 1; workers <= 5; workers++)
        groups_run(*state, workers, of_all);
}

static void test_parts(void **state)
{
    groups_run(*state, 4, of_some);
}

static void test_wrong(void **state)
{
    groups_run(*state, 2, wrong_numbers);
}

static void test_loss(void **state)
{
    const struct groups_way *way = *state;

    if ((way->can & COMM_CAN_RECOVER) == 0)
        skip();
    for (int turn = 0; turn < 6; turn++)
        groups_kill_one(survive, way, 2 + turn % 3, turn % 2, 0.002 * turn);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_loss),
    };

    return groups_main(argc, argv, tests, sizeof tests / sizeof tests[0], NULL);
}
