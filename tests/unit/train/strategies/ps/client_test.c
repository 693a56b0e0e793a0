/* SPDX-License-Identifier: MIT
 *
 * A worker that pulls while its forward goes on: it waits for the buckets that a layer needs and
 * for no others. And one that pushes while its backward goes on: servers get every bucket once its
 * gradients are complete and not before, the higher ones first, and the outline after all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/groups.h"
#include "train/strategies/ps/client.h"

/* Ranks 0 and 1 are servers and keep everything between them, twice. */
enum { FLOATS = 96, BUCKET = 20, SERVERS = 2, WORKER = 2, BUCKETS = 6 };

static const struct {
    size_t from, count;
} cuts[BUCKETS] = {{76, 20}, {56, 20}, {48, 8}, {28, 20}, {8, 20}, {0, 8}};

static const struct train_outline outline = {.rank = WORKER, .block = {24, 8}, .seen = 8};

/* Raises the board's counter of this rank with every bucket. */
static void serve(struct crew_worker *me, struct comm_group *group)
{
    struct groups_board *board = me->board;
    struct comm_engine *engine = groups_engine(group);
    uint8_t bytes[PS_OUTLINE_BYTES], said[PS_BODY_BYTES];
    struct train_outline heard;
    struct comm_task task;
    float values[FLOATS];

    for (int i = 0; i < BUCKETS; i++) {
        comm_engine_receive(engine, WORKER, COMM_FORWARD, TRAIN_PS_VALUES, values,
                            cuts[i].count * sizeof *values, &task);
        groups_finish(engine, &task);
        for (size_t k = 0; k < cuts[i].count; k++)
            crew_check(values[k] == (float)(cuts[i].from + k));
        atomic_fetch_add(&board->counter[me->index], 1);
    }
    comm_engine_receive(engine, WORKER, COMM_FORWARD, TRAIN_PS_PUSH, bytes, sizeof bytes, &task);
    groups_finish(engine, &task);
    crew_check(ps_outline_decode(bytes, sizeof bytes, &heard) == BASE_OK);
    crew_check(heard.rank == WORKER && heard.block.from == 24 && heard.block.count == 8);
    if (me->index > 0)
        return;
    ps_body_encode(&(struct train_ps_body){.rank = WORKER, .number = 7}, said);
    comm_engine_send(engine, WORKER, COMM_BACKWARD, TRAIN_PS_ANSWER, said, sizeof said, &task);
    groups_finish(engine, &task);
}

/* Backward has come to `from`; then both servers have so many buckets, without a push. */
static void complete(struct crew_worker *me, struct ps_client *c, size_t from, int buckets)
{
    struct groups_board *board = me->board;
    float *gradients = c->session->team.exchange.mine + TRAIN_HEAD;

    for (size_t i = from; i < FLOATS; i++)
        gradients[i] = (float)i;
    ps_client_ready(c, from);
    for (int i = 0; i < SERVERS; i++) {
        groups_wait_for(&board->counter[i], buckets);
        crew_check(atomic_load(&board->counter[i]) == buckets);
    }
}

static void work(struct crew_worker *me, struct comm_group *group)
{
    static float mine[TRAIN_HEAD + FLOATS];
    static struct train_session s;
    struct ps_parcel plain = {0};
    struct ps_client c = {0};

    for (int i = 0; i < FLOATS; i++)
        mine[TRAIN_HEAD + i] = -1; /* not computed yet */
    s.team.group = group;
    s.team.exchange = (struct train_exchange){
        .rank = WORKER, .size = WORKER + 1, .mine = mine, .fault = &s.fault};
    s.state.floats = FLOATS;
    groups_engine(group);
    ps_client_open(&c, &s, (struct ps_seats){.servers = SERVERS, .first_worker = WORKER}, NULL,
                   &plain, BUCKET);
    ps_client_begin_push(&c, 1);
    complete(me, &c, 90, 0);
    complete(me, &c, 57, 1);
    complete(me, &c, 30, 3);
    complete(me, &c, 0, BUCKETS);
    ps_client_push(&c, &outline);
    crew_check(ps_client_answer(&c) == BASE_OK);
    crew_check(c.answer.number == 7);
    crew_check(c.pushed == SERVERS * FLOATS * sizeof(float)); /* each bucket once to each */
    ps_client_fini(&c);
}

/* A server's slice has 48 floats: three buckets, of which the last one is sent when the worker has
 * said on the board that its forward came to it. */
static void serve_pull(struct crew_worker *me, struct comm_group *group)
{
    struct groups_board *board = me->board;
    struct comm_engine *engine = groups_engine(group);
    uint8_t bytes[PS_BODY_BYTES];
    float values[FLOATS / SERVERS];
    struct train_ps_body body;
    struct comm_task task;

    comm_engine_receive(engine, WORKER, COMM_CALLS, TRAIN_PS_PULL, bytes, sizeof bytes, &task);
    groups_finish(engine, &task);
    crew_check(ps_body_decode(bytes, sizeof bytes, &body) == BASE_OK && body.number == 7);
    ps_body_encode(&(struct train_ps_body){.rank = me->index, .number = 8}, bytes);
    comm_engine_send(engine, WORKER, COMM_BACKWARD, TRAIN_PS_WEIGHTS, bytes, sizeof bytes, &task);
    groups_finish(engine, &task);
    for (int i = 0; i < FLOATS / SERVERS; i++)
        values[i] = (float)(me->index * FLOATS / SERVERS + i);
    for (size_t at = 0; at < FLOATS / SERVERS; at += BUCKET) {
        size_t count = at + BUCKET < FLOATS / SERVERS ? BUCKET : FLOATS / SERVERS - at;

        if (at == 2 * BUCKET)
            groups_wait_for(&board->counter[WORKER], me->index + 1);
        comm_engine_send(engine, WORKER, COMM_BACKWARD, TRAIN_PS_VALUES, values + at,
                         count * sizeof *values, &task);
        groups_finish(engine, &task);
    }
}

static void pull(struct crew_worker *me, struct comm_group *group)
{
    struct groups_board *board = me->board;
    static float weights[FLOATS];
    static struct train_session s;
    struct ps_parcel plain = {0};
    struct ps_client c = {0};

    for (int i = 0; i < FLOATS; i++)
        weights[i] = -1;
    s.team.group = group;
    s.team.exchange =
        (struct train_exchange){.rank = WORKER, .size = WORKER + 1, .fault = &s.fault};
    s.state.floats = FLOATS;
    s.state.weights = weights;
    groups_engine(group);
    ps_client_open(&c, &s, (struct ps_seats){.servers = SERVERS, .first_worker = WORKER}, NULL,
                   &plain, BUCKET);
    crew_check(ps_client_pull(&c, 7) == BASE_OK);
    crew_check(c.read == 8); /* that is known before the weights are there */
    for (size_t end = 10; end <= FLOATS; end += 43) { /* 10, 53, 96: none, one, both last ones */
        if (end > 2 * BUCKET)
            atomic_fetch_add(&board->counter[WORKER], 1);
        crew_check(ps_client_await(&c, end) == BASE_OK);
        for (size_t i = 0; i < end; i++)
            crew_check(weights[i] == (float)i);
        crew_check(end == FLOATS || weights[FLOATS - 1] == -1);
    }
    crew_check(ps_client_await(&c, FLOATS) == BASE_OK);
    crew_check(c.pulled == FLOATS * sizeof(float));
    ps_client_fini(&c);
}

static void body(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);

    if (me->index == WORKER)
        work(me, group);
    else
        serve(me, group);
    crew_check(comm_engine_end(group) == BASE_OK);
    comm_group_close(group);
}

static void pull_body(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);

    if (me->index == WORKER)
        pull(me, group);
    else
        serve_pull(me, group);
    crew_check(comm_engine_end(group) == BASE_OK);
    comm_group_close(group);
}

static void test_push_during_backward(void **state)
{
    groups_run(*state, WORKER + 1, body);
}

static void test_pull_during_forward(void **state)
{
    groups_run(*state, WORKER + 1, pull_body);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_push_during_backward),
                                       cmocka_unit_test(test_pull_during_forward)};

    return groups_main(argc, argv, tests, sizeof tests / sizeof *tests, NULL);
}
