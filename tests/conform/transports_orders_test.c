/* SPDX-License-Identifier: MIT
 *
 * What may be asked of an engine (comm/engine.h) over every transport: waits that end for a
 * message, for the time or for a newer view, orders that do what they should not, barriers that it
 * keeps from other threads. An argument (shm, tcp, tcp+tls, mixed) picks a transport.
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
#include "comm/barrier.h"
#include "comm/engine.h"
#include "support/exchange.h"
#include "support/groups.h"

/* --- waits ---------------------------------------------------------------------------------- */

static void *cry(void *argument)
{
    comm_endpoint_newer(((struct crew_worker *)argument)->endpoint, 2000);
    return NULL;
}

static void polls(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    struct comm_engine *engine = groups_engine(group);
    struct groups_board *board = me->board;
    uint32_t known = comm_group_newest(group);
    struct comm_task in[2], out, *all[3] = {NULL, &in[0], &in[1]};
    int peer = me->index ^ 1, index;
    uint8_t bytes[2] = {0};
    pthread_t thread;
    double until;

    for (int i = 0; i < 2; i++)
        comm_engine_receive_any(engine, peer, COMM_FORWARD + i, &bytes[i], 1, &in[i]);
    until = base_now() + 0.01;
    crew_check(comm_engine_poll(engine, all, 3, until, known, &index) == BASE_OK && index == -1);
    crew_check(base_now() >= until);
    crew_check(comm_engine_wait(engine, &in[0], base_now() + 0.01) == BASE_ERR_TIMEOUT);
    crew_check(strstr(base_message(), peer == 0 ? "from worker 1" : "from worker 2") != NULL);
    pthread_create(&thread, NULL, cry, me);
    until = groups_soon();
    crew_check(comm_engine_poll(engine, all, 3, until, known, &index) == BASE_OK && index == -1);
    crew_check(base_now() < until && comm_group_newest(group) == 2000);
    pthread_join(thread, NULL);
    atomic_fetch_add(&board->ready, 1);
    groups_wait_for(&board->ready, 2);
    comm_engine_send(engine, peer, COMM_BACKWARD, 9, "too long", 8, &out);
    crew_check(comm_engine_poll(engine, all, 3, until, 2000, &index) == BASE_OK && index == 2);
    crew_check(in[1].request.tag == 9 && in[1].request.count == 8 && bytes[1] == 0);
    groups_finish(engine, &out);
    atomic_fetch_add(&board->ready, 1);
    groups_wait_for(&board->ready, 4);
    comm_engine_send(engine, peer, COMM_FORWARD, 8, "x", 1, &out);
    groups_finish(engine, &in[0]);
    groups_finish(engine, &out);
    crew_check(bytes[0] == 'x');
    crew_check(comm_engine_end(group) == BASE_OK);
    crew_check(exchange_run(group, 0, COMM_CHANNELS, 100, groups_soon()) == BASE_OK);
    comm_group_close(group);
}

/* No task is under way: the engine's thread has nothing to do, and still tells of a newer view. */
static void polls_for_news(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    struct comm_engine *engine = groups_engine(group);
    uint32_t known = comm_group_newest(group);
    struct comm_task out, in;
    double until = groups_soon();
    uint8_t byte = 0;
    pthread_t thread;
    int index;

    usleep(2000); /* its thread sleeps by now, most likely */
    pthread_create(&thread, NULL, cry, me);
    crew_check(comm_engine_poll(engine, NULL, 0, until, known, &index) == BASE_OK && index == -1);
    crew_check(base_now() < until && comm_group_newest(group) == 2000);
    pthread_join(thread, NULL);
    comm_engine_receive(engine, me->index ^ 1, COMM_CALLS, 1, &byte, 1, &in);
    comm_engine_send(engine, me->index ^ 1, COMM_CALLS, 1, "x", 1, &out);
    groups_finish(engine, &in);
    groups_finish(engine, &out);
    crew_check(byte == 'x' && comm_engine_end(group) == BASE_OK);
    comm_group_close(group);
}

/* --- orders --------------------------------------------------------------------------------- */

struct experiment {
    struct crew_worker *me;
    struct comm_group *group;
    struct comm_request out, in;
    struct comm_task task;
    uint8_t byte;
    base_status st;
    int index;
};

static base_status wait_for_itself(void *context)
{
    struct experiment *x = context;
    struct comm_engine *engine = comm_group_engine(x->group);

    comm_engine_receive(engine, x->me->index ^ 1, COMM_CALLS, 1, &x->byte, 1, &x->task);
    x->st = comm_engine_wait(engine, &x->task, groups_soon());
    return BASE_OK;
}

/* A comm_poll returns for a newer view, in an order as elsewhere. */
static base_status poll_for_news(void *context)
{
    struct experiment *x = context;
    struct groups_board *board = x->me->board;
    struct comm_request *both[] = {&x->out, &x->in};
    pthread_t thread;

    comm_receive(x->group, x->me->index ^ 1, COMM_FORWARD, 1, &x->byte, 1, &x->in);
    pthread_create(&thread, NULL, cry, x->me);
    x->st = comm_poll(x->group, &both[1], 1, groups_soon(), &x->index);
    pthread_join(thread, NULL);
    atomic_fetch_add(&board->go, 1);
    groups_wait_for(&board->go, 2);
    comm_send(x->group, x->me->index ^ 1, COMM_FORWARD, 1, "y", 1, &x->out);
    return comm_wait(x->group, both, 2, groups_soon());
}

/* A message that never comes, of which the order says nothing. */
static base_status hide_failure(void *context)
{
    struct experiment *x = context;
    struct comm_request *wait = &x->in;

    comm_receive(x->group, x->me->index ^ 1, COMM_CALLS, 1, &x->byte, 1, &x->in);
    x->st = comm_wait(x->group, &wait, 1, base_now() + 0.01);
    return BASE_OK;
}

static void perform(struct experiment *x, comm_order *order)
{
    struct comm_task task;

    comm_engine_order(comm_group_engine(x->group), order, x, &task);
    groups_finish(comm_group_engine(x->group), &task);
}

static void odd_orders(struct crew_worker *me)
{
    struct experiment x = {.me = me, .group = groups_open(me, 0)};
    struct comm_engine *engine = groups_engine(x.group);
    struct groups_board *board = me->board;
    struct comm_task task;
    uint8_t byte;
    int index;

    perform(&x, wait_for_itself);
    crew_check(x.st == BASE_ERR_INTERNAL);
    comm_engine_send(engine, me->index ^ 1, COMM_CALLS, 1, "x", 1, &task);
    groups_finish(engine, &task);
    groups_finish(engine, &x.task);
    crew_check(x.byte == 'x');
    perform(&x, poll_for_news);
    crew_check(x.st == BASE_OK && x.index == -1 && x.byte == 'y');
    comm_engine_receive(engine, me->index ^ 1, COMM_BACKWARD, 1, &byte, 1, &task);
    perform(&x, hide_failure);
    crew_check(x.st == BASE_ERR_TIMEOUT);
    crew_check(comm_engine_wait(engine, &task, groups_soon()) == BASE_ERR_TIMEOUT);
    crew_check(atomic_load(&task.ended)); /* the group's end, not the wait's */
    crew_check(comm_engine_poll(engine, NULL, 0, groups_soon(), 2000, &index) == BASE_ERR_TIMEOUT);
    crew_check(index == -1 && comm_engine_end(x.group) == BASE_ERR_TIMEOUT);
    crew_check(comm_engine_begin(x.group) == BASE_ERR_TIMEOUT); /* a void group is for no engine */
    crew_check(comm_group_engine(x.group) == NULL);
    atomic_fetch_add(&board->ready, 1);
    groups_wait_for(&board->ready, 2); /* a connection that closes is a loss */
    comm_group_close(x.group);
}

/* While an engine has the group, other threads wait at no barrier. */
static void keep_out(struct crew_worker *me)
{
    const struct groups_way *way = me->argument;
    struct comm_group *group = groups_open(me, 0);
    struct comm_barrier barrier = {0};
    char key[32];

    if (way->shares) {
        snprintf(key, sizeof key, "view/1/barrier of %d", me->index);
        crew_check(comm_barrier_open(&barrier, group, key, &me->index, 1) == BASE_OK);
        groups_engine(group);
        crew_check(comm_barrier_wait(&barrier, groups_soon()) == BASE_ERR_INTERNAL);
        crew_check(comm_local_barrier(group, groups_soon()) == BASE_ERR_INTERNAL);
        crew_check(comm_engine_end(group) == BASE_OK);
        crew_check(comm_barrier_wait(&barrier, groups_soon()) == BASE_OK);
        comm_barrier_close(&barrier);
    }
    crew_check(exchange_run(group, 0, COMM_CHANNELS, 100, groups_soon()) == BASE_OK);
    comm_group_close(group);
}

/* --- the suite ------------------------------------------------------------------------------ */

static void test_waits(void **state)
{
    groups_run(*state, 2, polls);
    groups_run(*state, 2, polls_for_news);
}

static void test_orders(void **state)
{
    groups_run(*state, 2, odd_orders);
    groups_run(*state, 2, keep_out);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_waits), cmocka_unit_test(test_orders)};

    return groups_main(argc, argv, tests, sizeof tests / sizeof tests[0], NULL);
}
