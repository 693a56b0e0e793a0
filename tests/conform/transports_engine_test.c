/* SPDX-License-Identifier: MIT
 *
 * The engine (comm/engine.h) over every transport: messages of several threads at once with
 * collectives between them, messages that arrive while their receiver computes or waits in a
 * collective, ends with messages under way, losses and cancellations in the middle. An argument
 * (shm, tcp, tcp+tls, mixed) picks a transport; PACELINE_TEST_SEED repeats the moments of losses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "coll/coll.h"
#include "comm/engine.h"
#include "support/exchange.h"
#include "support/groups.h"

enum { BIG = 3000001 }; /* bytes: more than rings and sockets hold */

/* --- threads that talk, and collectives between ---------------------------------------------- */

struct talker {
    struct comm_group *group;
    enum comm_channel channel;
    int rounds; /* -1: until something ends the group */
    base_status st;
    char message[256];
    pthread_t thread;
};

/* One message to the next rank, one from the rank before; the receiver knows its length or not. */
static base_status talk_once(struct talker *t, int round, uint8_t *out, uint8_t *in)
{
    struct comm_engine *engine = comm_group_engine(t->group);
    int size = comm_group_size(t->group), rank = comm_group_rank(t->group);
    int from = (rank + size - 1) % size;
    size_t count = exchange_sizes[(round + 3 * (int)t->channel) % (EXCHANGE_SIZES - 3)];
    uint32_t tag = (uint32_t)round;
    struct comm_task send, receive;
    base_status st, sent;

    memset(out, rank * 16 + (int)t->channel + round, count);
    if (round % 2 == 0)
        comm_engine_receive(engine, from, t->channel, tag, in, count, &receive);
    else
        comm_engine_receive_any(engine, from, t->channel, in, EXCHANGE_MOST, &receive);
    comm_engine_send(engine, (rank + 1) % size, t->channel, tag, out, count, &send);
    st = comm_engine_wait(engine, &receive, groups_soon());
    sent = comm_engine_wait(engine, &send, groups_soon());
    crew_check(atomic_load(&receive.ended) && atomic_load(&send.ended)); /* neither is left */
    crew_check(sent == BASE_OK || st == BASE_OK || sent == st);
    crew_check(st != BASE_OK || (receive.request.tag == tag && receive.request.count == count));
    for (size_t i = 0; st == BASE_OK && i < count; i += 97)
        crew_check(in[i] == (uint8_t)(from * 16 + (int)t->channel + round));
    return st != BASE_OK ? st : sent;
}

static void *talk(void *argument)
{
    struct talker *t = argument;
    uint8_t *out = base_calloc(EXCHANGE_MOST, 1), *in = base_calloc(EXCHANGE_MOST, 1);

    for (int round = 0; t->st == BASE_OK && round != t->rounds; round++)
        t->st = talk_once(t, round, out, in);
    snprintf(t->message, sizeof t->message, "%s", base_message());
    base_free(out);
    base_free(in);
    return NULL;
}

/* Sums and barriers on the calling thread while others talk. */
static base_status combine(struct coll *coll, int rounds)
{
    int size = comm_group_size(coll_group(coll)), rank = comm_group_rank(coll_group(coll));
    float *x = base_calloc(100000, sizeof *x);
    base_status st = BASE_OK;

    for (int round = 0; st == BASE_OK && round != rounds; round++) {
        size_t count = round % 3 == 0 ? 100000 : 1000;

        for (size_t i = 0; i < count; i++)
            x[i] = (float)(rank + round % 100);
        st = coll_all_reduce(coll, x, count, NULL);
        for (size_t i = 0; st == BASE_OK && i < count; i++)
            crew_check(x[i] == (float)(size * (size - 1) / 2 + size * (round % 100)));
        if (st == BASE_OK)
            st = coll_barrier(coll);
    }
    base_free(x);
    return st;
}

/* Three threads talk while this one combines; all end alike. */
static base_status crossfire(struct comm_group *group, struct coll *coll, int rounds)
{
    struct talker talkers[3];
    char message[256];
    base_status st;

    for (int i = 0; i < 3; i++) {
        talkers[i] = (struct talker){
            .group = group, .channel = (enum comm_channel)(COMM_FORWARD + i), .rounds = rounds};
        pthread_create(&talkers[i].thread, NULL, talk, &talkers[i]);
    }
    st = combine(coll, rounds);
    snprintf(message, sizeof message, "%s", base_message());
    for (int i = 0; i < 3; i++) {
        pthread_join(talkers[i].thread, NULL);
        crew_check(talkers[i].st == st);
        crew_check(st == BASE_OK || strcmp(talkers[i].message, message) == 0);
    }
    return st;
}

static void all_at_once(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    struct coll *coll;

    crew_check(coll_open(group, NULL, &coll) == BASE_OK);
    groups_engine(group);
    crew_check(comm_engine_begin(group) == BASE_ERR_INTERNAL);
    crew_check(comm_wait(group, NULL, 0, groups_soon()) == BASE_ERR_INTERNAL);
    crew_check(crossfire(group, coll, groups_brief() ? 15 : 60) == BASE_OK);
    crew_check(comm_engine_end(group) == BASE_OK);
    crew_check(comm_engine_end(group) == BASE_OK); /* there is none */
    crew_check(exchange_run(group, 0, COMM_CHANNELS, 1000, groups_soon()) == BASE_OK);
    coll_close(coll);
    comm_group_close(group);
}

/* --- without the help of a thread that computes --------------------------------------------- */

struct witness {
    struct comm_engine *engine;
    struct comm_task *task;
    _Atomic int saw;
    double at;
};

static void *see(void *argument)
{
    struct witness *w = argument;

    groups_finish(w->engine, w->task);
    w->at = base_now();
    atomic_store(&w->saw, 1);
    return NULL;
}

/* The thread that gave the task computes until it has arrived, which a third thread sees. */
static void compute_meanwhile(struct comm_engine *engine, struct comm_task *task)
{
    struct witness w = {.engine = engine, .task = task};
    volatile double computed = 1;
    double computed_until;
    pthread_t thread;

    pthread_create(&thread, NULL, see, &w);
    while (atomic_load(&w.saw) == 0)
        for (int i = 0; i < 10000; i++)
            computed = computed * 1.0000001;
    computed_until = base_now();
    pthread_join(thread, NULL);
    crew_check(w.at <= computed_until);
}

/* Bytes that no buffer on the way holds go from a thread that computes to one that computes. */
static void while_computing(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    struct comm_engine *engine = groups_engine(group);
    struct groups_board *board = me->board;
    uint8_t *bytes = base_calloc(BIG, 1);
    struct comm_task task;

    if (me->index == 0) {
        memset(bytes, 7, BIG);
        groups_wait_for(&board->ready, 1);
        comm_engine_send(engine, 1, COMM_FORWARD, 1, bytes, BIG, &task);
    } else {
        comm_engine_receive(engine, 0, COMM_FORWARD, 1, bytes, BIG, &task);
        atomic_store(&board->ready, 1);
    }
    compute_meanwhile(engine, &task);
    crew_check(bytes[0] == 7 && bytes[BIG - 1] == 7);
    crew_check(comm_engine_end(group) == BASE_OK);
    base_free(bytes);
    comm_group_close(group);
}

struct meeting {
    struct coll *coll;
    _Atomic int begun;
    float *x;
};

static base_status meet(void *context)
{
    struct meeting *m = context;
    base_status st = BASE_OK;

    atomic_store(&m->begun, 1);
    TRY(coll_barrier(m->coll));
    TRY(coll_all_reduce(m->coll, m->x, 1000, NULL));
out:
    return st;
}

/* Rank 1 is in a collective for which rank 0 comes only after messages went to and fro. */
static void during_one_of(struct crew_worker *me, struct comm_group *group, struct coll *coll)
{
    uint8_t *bytes = base_calloc(BIG, 1);
    struct comm_task meets, task;
    struct comm_engine *engine = groups_engine(group);
    struct meeting m = {.coll = coll, .x = base_calloc(1000, sizeof *m.x)};

    for (int round = 0; round < 10; round++) {
        atomic_store(&m.begun, 0);
        if (me->index != 0) {
            comm_engine_order(engine, meet, &m, &meets);
            groups_wait_for(&m.begun, 1);
            usleep(round % 2 == 0 ? 0 : 2000); /* it spins, or sleeps: both must work */
        }
        if (me->index == 1) {
            comm_engine_send(engine, 0, COMM_CALLS, 1, bytes, BIG, &task);
            groups_finish(engine, &task);
            comm_engine_receive(engine, 0, COMM_CALLS, 2, bytes, BIG, &task);
            groups_finish(engine, &task);
            crew_check(!atomic_load(&meets.ended));
            comm_engine_send(engine, 0, COMM_CALLS, 3, bytes, 0, &task);
            groups_finish(engine, &task);
        } else if (me->index == 0) {
            comm_engine_receive(engine, 1, COMM_CALLS, 1, bytes, BIG, &task);
            groups_finish(engine, &task);
            comm_engine_send(engine, 1, COMM_CALLS, 2, bytes, BIG, &task);
            groups_finish(engine, &task);
            comm_engine_receive_any(engine, 1, COMM_CALLS, NULL, 0, &task);
            groups_finish(engine, &task);
            crew_check(task.request.tag == 3);
            comm_engine_order(engine, meet, &m, &meets);
        }
        groups_finish(engine, &meets);
    }
    crew_check(comm_engine_end(group) == BASE_OK);
    base_free(m.x);
    base_free(bytes);
}

/* Of the whole group, and of a part, whose barrier has words of its own. */
static void during_a_collective(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    const int ranks[] = {1, 0, 3, 2};
    struct coll *whole, *part;

    crew_check(coll_open(group, NULL, &whole) == BASE_OK);
    crew_check(coll_open_part(whole, "during", ranks, comm_group_size(group), NULL, &part) ==
               BASE_OK);
    during_one_of(me, group, whole);
    during_one_of(me, group, part);
    coll_close(part);
    coll_close(whole);
    comm_group_close(group);
}

/* --- ends ----------------------------------------------------------------------------------- */

/* No rank answers these messages: they end with the engine, and the group does. */
static void under_way(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    struct comm_engine *engine = groups_engine(group);
    struct groups_board *board = me->board;
    uint8_t *bytes = base_calloc(BIG, 1), byte;
    struct comm_task receive, any, send;
    int peer = me->index ^ 1;

    comm_engine_receive(engine, peer, COMM_FORWARD, 1, &byte, 1, &receive);
    comm_engine_receive_any(engine, peer, COMM_BACKWARD, &byte, 1, &any);
    comm_engine_send(engine, peer, COMM_CALLS, 1, bytes, BIG, &send);
    crew_check(comm_engine_end(group) == BASE_OK);
    crew_check(atomic_load(&receive.ended) && receive.status == BASE_ERR_INTERRUPTED);
    crew_check(atomic_load(&any.ended) && any.status == BASE_ERR_INTERRUPTED);
    crew_check(atomic_load(&send.ended) && send.status == BASE_ERR_INTERRUPTED);
    crew_check(comm_wait(group, NULL, 0, groups_soon()) == BASE_ERR_INTERRUPTED);
    atomic_fetch_add(&board->ready, 1);
    groups_wait_for(&board->ready, 2); /* a connection that closes is a loss */
    base_free(bytes);
    comm_group_close(group);
}

static void is_cancelled(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    struct groups_board *board = me->board;
    struct coll *coll;

    crew_check(coll_open(group, NULL, &coll) == BASE_OK);
    groups_engine(group);
    atomic_fetch_add(&board->ready, 1);
    crew_check(crossfire(group, coll, -1) == BASE_ERR_INTERRUPTED);
    crew_check(comm_engine_end(group) == BASE_ERR_INTERRUPTED);
    coll_close(coll);
    comm_group_close(group);
}

/* Until a loss; then the next view works. */
static void survive(struct crew_worker *me)
{
    const struct groups_way *way = me->argument;
    struct groups_board *board = me->board;
    struct comm_group *group = groups_open(me, 0);
    struct comm_view view = *comm_group_view(group);
    struct coll *coll = NULL;
    base_status st = coll_open(group, NULL, &coll);

    crew_check(st == BASE_OK);
    groups_engine(group);
    atomic_fetch_add(&board->ready, 1);
    crew_check(crossfire(group, coll, -1) == BASE_ERR_PEER_LOST);
    crew_check((way->victims >> comm_group_lost(group) & 1) != 0);
    crew_check(comm_engine_end(group) == BASE_ERR_PEER_LOST);
    coll_close(coll);
    comm_group_close(group);
    group = groups_open(me, view.number);
    groups_engine(group);
    if (comm_group_size(group) > 1) {
        crew_check(coll_open(group, NULL, &coll) == BASE_ERR_INTERNAL); /* the engine has it */
        crew_check(comm_engine_end(group) == BASE_OK);
        crew_check(coll_open(group, NULL, &coll) == BASE_OK);
        groups_engine(group);
        crew_check(crossfire(group, coll, 5) == BASE_OK);
        crew_check(comm_engine_end(group) == BASE_OK);
        coll_close(coll);
    }
    comm_group_close(group); /* ends an engine, too */
    atomic_fetch_add(&board->counter[me->index], 1);
}

/* --- the suite ------------------------------------------------------------------------------ */

static void test_messages(void **state)
{
    groups_run(*state, 2, all_at_once);
    groups_run(*state, 4, all_at_once);
    groups_run(*state, 2, while_computing);
    groups_run(*state, 2, during_a_collective);
    groups_run(*state, 4, during_a_collective);
}

static void test_end(void **state)
{
    groups_run(*state, 2, under_way);
}

static void test_cancel(void **state)
{
    struct groups_way *way = *state;
    struct crew *crew;

    if (way->launched)
        skip();
    crew = groups_start(way, 3, is_cancelled);
    groups_wait_for(&((struct groups_board *)crew_board(crew))->ready, 3);
    usleep(20000); /* whatever they are doing then */
    crew_cancel(crew);
    assert_int_equal(crew_finish(crew, groups_soon()), 0);
}

static void test_loss(void **state)
{
    struct groups_way *way = *state;
    const char *text = getenv("PACELINE_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    struct base_rng rng = base_rng_of(seed, BASE_STREAM_TEST, 0, 0, 0);
    const int crews = groups_brief() ? 4 : 12;

    if ((way->can & COMM_CAN_RECOVER) == 0)
        skip();
    print_message("PACELINE_TEST_SEED=%llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < (uint32_t)crews; i++) {
        int workers = 2 + (int)i % 3, victim = (int)(base_rng_u32(&rng, 2 * i) % (uint32_t)workers);
        struct crew *crew;
        int told = 0;

        way->victims = 2U << victim;
        crew = groups_start(way, workers, survive);
        groups_wait_for(&((struct groups_board *)crew_board(crew))->ready, workers);
        usleep(base_rng_u32(&rng, 2 * i + 1) % 30000);
        crew_signal(crew, victim, SIGKILL);
        for (double end = groups_soon(); told < workers - 1 && base_now() < end; usleep(500)) {
            told = 0;
            for (int k = 0; k < workers; k++)
                told += atomic_load(&((struct groups_board *)crew_board(crew))->counter[k]);
        }
        assert_int_equal(told, workers - 1);
        assert_int_equal(crew_finish(crew, groups_soon()), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_loss),
    };

    return groups_main(argc, argv, tests, sizeof tests / sizeof tests[0], NULL);
}
