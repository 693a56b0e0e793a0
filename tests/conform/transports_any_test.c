/* SPDX-License-Identifier: MIT
 *
 * For every transport (support/groups.h): comm_receive_any, which takes what comes, and comm_poll,
 * whose time may be up. An argument (shm, tcp, tcp+tls, mixed) picks one of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "support/exchange.h"
#include "support/groups.h"

static void finish(struct comm_group *group, struct comm_request *request)
{
    crew_check(comm_wait(group, &request, 1, groups_soon()) == BASE_OK);
    crew_check(request->done);
}

/* --- comm_receive_any ---------------------------------------------------------------------- */

static uint8_t byte_of(size_t size, size_t i)
{
    return (uint8_t)(7 * size + i + i / 251);
}

/* Messages of every size, under way at once; the receiver knows nothing of them. */
static void every_size(struct crew_worker *me)
{
    const size_t most = groups_brief() ? 1 << 20 : EXCHANGE_MOST;
    struct comm_group *group = groups_open(me, 0);
    int size = comm_group_size(group), rank = comm_group_rank(group);
    struct comm_request sends[EXCHANGE_SIZES], any;
    uint8_t *out[EXCHANGE_SIZES], *in = base_calloc(most + 1, 1);
    size_t count = 0;

    for (; count < EXCHANGE_SIZES && exchange_sizes[count] <= most; count++) {
        size_t bytes = exchange_sizes[count];

        out[count] = base_calloc(bytes + 1, 1);
        for (size_t i = 0; i < bytes; i++)
            out[count][i] = byte_of(bytes, i);
        comm_send(group, (rank + 1) % size, COMM_CALLS, (uint32_t)(100 + count), out[count], bytes,
                  &sends[count]);
    }
    for (size_t k = 0; k < count; k++) {
        comm_receive_any(group, (rank + size - 1) % size, COMM_CALLS, in, most, &any);
        finish(group, &any);
        crew_check(any.tag == 100 + k && any.count == exchange_sizes[k]);
        for (size_t i = 0; i < any.count; i++)
            crew_check(in[i] == byte_of(any.count, i));
    }
    for (size_t k = 0; k < count; k++) {
        finish(group, &sends[k]);
        base_free(out[k]);
    }
    base_free(in);
    comm_group_close(group);
}

/* What rank 0 sends in `rubbish`; the receiver has room for ROOM bytes and hopes for tag 1. The
 * long ones have several frames, and one of them would fit but for its last byte. */
enum { ROOM = 300000 };
static const struct {
    uint32_t tag;
    size_t count;
} letters[] = {{1, 100},     {9, 100}, {1, 0},          {1, ROOM + 1},   {1, ROOM},
               {2, 3000001}, {1, 5},   {0x7fffffff, 0}, {1, 262144 * 2}, {1, ROOM - 1}};
enum { LETTERS = sizeof letters / sizeof *letters };

static void send_letters(struct comm_group *group)
{
    struct comm_request requests[LETTERS];
    uint8_t *bytes = base_calloc(3000001, 1);

    memset(bytes, 0x5a, 3000001);
    for (int i = 0; i < LETTERS; i++)
        comm_send(group, 1, COMM_CALLS, letters[i].tag, bytes, letters[i].count, &requests[i]);
    for (int i = 0; i < LETTERS; i++)
        finish(group, &requests[i]);
    base_free(bytes);
}

static void receive_letters(struct comm_group *group)
{
    uint8_t *bytes = base_calloc(ROOM + 1, 1);
    struct comm_request any;

    for (int i = 0; i < LETTERS; i++) {
        memset(bytes, 0, ROOM);
        comm_receive_any(group, 0, COMM_CALLS, bytes, ROOM, &any);
        finish(group, &any);
        crew_check(any.tag == letters[i].tag && any.count == letters[i].count);
        for (size_t k = 0; any.count <= ROOM && k < ROOM; k++)
            crew_check(bytes[k] == (k < any.count ? 0x5a : 0));
        crew_check(bytes[ROOM] == 0);
    }
    base_free(bytes);
}

/* Rubbish is an answer: the group goes on, that channel, too. */
static void rubbish(struct crew_worker *me)
{
    static const uint8_t much[2 * ROOM];
    struct comm_group *group = groups_open(me, 0);
    struct comm_request request;
    uint8_t byte = 0;

    if (me->index == 0)
        send_letters(group);
    else if (me->index == 1)
        receive_letters(group);
    if (me->index == 0) { /* no room at all */
        comm_send(group, 1, COMM_CALLS, 3, much, sizeof much, &request);
        finish(group, &request);
    } else if (me->index == 1) {
        comm_receive_any(group, 0, COMM_CALLS, NULL, 0, &request);
        finish(group, &request);
        crew_check(request.tag == 3 && request.count == sizeof much);
    }
    if (me->index == 0) /* and one that is expected */
        comm_send(group, 1, COMM_CALLS, 4, "x", 1, &request);
    else if (me->index == 1)
        comm_receive(group, 0, COMM_CALLS, 4, &byte, 1, &request);
    if (me->index < 2)
        finish(group, &request);
    crew_check(me->index != 1 || byte == 'x');
    crew_check(exchange_run(group, COMM_COLLECTIVES, COMM_CHANNELS, 1000, groups_soon()) ==
               BASE_OK);
    comm_group_close(group);
}

/* --- comm_poll ----------------------------------------------------------------------------- */

static void time_is_up(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    struct groups_board *board = me->board;
    struct comm_request out, in[2], *all[3] = {NULL, &in[0], &in[1]};
    int peer = me->index ^ 1, index;
    double start;
    uint8_t bytes[2];

    for (int i = 0; i < 2; i++)
        comm_receive_any(group, peer, i == 0 ? COMM_CALLS : COMM_FORWARD, &bytes[i], 1, &in[i]);
    start = base_now();
    crew_check(comm_poll(group, all, 3, start + 0.02, &index) == BASE_OK);
    crew_check(index == -1 && base_now() >= start + 0.02);
    crew_check(comm_poll(group, all, 3, 0, &index) == BASE_OK && index == -1);
    crew_check(comm_poll(group, NULL, 0, base_now() + 0.002, &index) == BASE_OK && index == -1);
    atomic_fetch_add(&board->ready, 1);
    groups_wait_for(&board->ready, 2); /* both have seen that nothing comes */
    comm_send(group, peer, COMM_FORWARD, 5, "f", 1, &out);
    finish(group, &out);
    crew_check(comm_poll(group, all, 3, groups_soon(), &index) == BASE_OK && index == 2);
    crew_check(in[1].tag == 5 && bytes[1] == 'f' && !in[0].done);
    all[2] = NULL;
    atomic_fetch_add(&board->ready, 1);
    groups_wait_for(&board->ready, 4);
    comm_send(group, peer, COMM_CALLS, 6, "c", 1, &out);
    finish(group, &out);
    crew_check(comm_poll(group, all, 3, groups_soon(), &index) == BASE_OK && index == 1);
    crew_check(in[0].tag == 6 && bytes[0] == 'c');
    crew_check(exchange_run(group, 0, COMM_CHANNELS, 100, groups_soon()) == BASE_OK);
    comm_group_close(group);
}

struct herald {
    struct crew_worker *me;
    _Atomic int cried, cry; /* how many newer views were told of, are to be told of */
};

static void *cry(void *argument)
{
    struct herald *herald = argument;

    for (uint32_t i = 0; i < 2; i++) {
        groups_wait_for(&herald->cry, (int)i + 1);
        comm_endpoint_newer(herald->me->endpoint, 1000 + i);
        atomic_fetch_add(&herald->cried, 1);
    }
    return NULL;
}

/* A newer view ends a poll once, whether it is heard of before or during it; no other wait. */
static void newer_view(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    struct herald herald = {.me = me};
    struct comm_request request, *wait = &request;
    int peer = me->index ^ 1, index;
    pthread_t thread;
    double until;
    uint8_t byte;

    crew_check(comm_group_newest(group) == comm_group_view(group)->number);
    pthread_create(&thread, NULL, cry, &herald);
    comm_receive(group, peer, COMM_CALLS, 1, &byte, 1, wait);
    atomic_store(&herald.cry, 1);
    until = groups_soon();
    crew_check(comm_poll(group, &wait, 1, until, &index) == BASE_OK);
    crew_check(index == -1 && base_now() < until && comm_group_newest(group) == 1000);
    until = base_now() + 0.01;
    crew_check(comm_poll(group, &wait, 1, until, &index) == BASE_OK);
    crew_check(index == -1 && base_now() >= until);
    atomic_store(&herald.cry, 2);
    groups_wait_for(&herald.cried, 2);
    crew_check(exchange_run(group, COMM_FORWARD, 2, 100000, groups_soon()) == BASE_OK);
    until = groups_soon();
    crew_check(comm_poll(group, &wait, 1, until, &index) == BASE_OK);
    crew_check(index == -1 && base_now() < until && comm_group_newest(group) == 1001);
    pthread_join(thread, NULL);
    comm_endpoint_newer(me->endpoint, 1000); /* is older */
    crew_check(exchange_run(group, COMM_FORWARD, 1, 1, groups_soon()) ==
               BASE_OK); /* both are here */
    comm_send(group, peer, COMM_CALLS, 1, &byte, 1, &(struct comm_request){0});
    crew_check(comm_poll(group, &wait, 1, groups_soon(), &index) == BASE_OK && index == 0);
    crew_check(exchange_run(group, 0, COMM_CHANNELS, 100, groups_soon()) == BASE_OK);
    comm_group_close(group);
}

static void is_cancelled(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    struct groups_board *board = me->board;
    struct comm_request request, *wait = &request;
    int index;
    uint8_t byte;

    comm_receive_any(group, me->index ^ 1, COMM_CALLS, &byte, 1, wait);
    atomic_fetch_add(&board->ready, 1);
    crew_check(comm_poll(group, &wait, 1, groups_soon(), &index) == BASE_ERR_INTERRUPTED);
    crew_check(index == -1);
    crew_check(comm_poll(group, &wait, 1, groups_soon(), &index) == BASE_ERR_INTERRUPTED);
    comm_group_close(group);
}

/* --- the suite ----------------------------------------------------------------------------- */

static void test_any(void **state)
{
    groups_run(*state, 2, every_size);
    groups_run(*state, 4, every_size);
    groups_run(*state, 2, rubbish);
    groups_run(*state, 4, rubbish);
}

static void test_poll(void **state)
{
    groups_run(*state, 2, time_is_up);
    groups_run(*state, 2, newer_view);
}

static void test_cancel(void **state)
{
    struct groups_way *way = *state;
    struct groups_board *board;
    struct crew *crew;

    if (way->launched)
        skip();
    crew = groups_start(way, 2, is_cancelled);
    board = crew_board(crew);
    groups_wait_for(&board->ready, 2);
    crew_cancel(crew);
    assert_int_equal(crew_finish(crew, groups_soon()), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any),
        cmocka_unit_test(test_poll),
        cmocka_unit_test(test_cancel),
    };

    return groups_main(argc, argv, tests, sizeof tests / sizeof tests[0], NULL);
}
