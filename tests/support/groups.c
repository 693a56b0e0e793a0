/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/secret.h"
#include "support/groups.h"
#include "support/launched.h"

static const struct comm_secret secret = {.key = {1, 2, 3}};

int groups_ways(struct groups_way ways[GROUPS_WAYS])
{
    const struct comm_transport *launcher = launched_by();
    bool sockets = false;
    int count = 0;

    if (launcher != NULL) {
        ways[0] = (struct groups_way){
            .transport = launcher->name, .hosts = 1, .can = launcher->can, .launched = true};
        snprintf(ways[0].name, sizeof ways[0].name, "%s", launcher->name);
        return 1;
    }
    for (size_t i = 0; i < comm_transport_count; i++) {
        const struct comm_transport *t = comm_transport_registry[i];
        bool listens = (t->can & COMM_CAN_SHARE) == 0;

        if ((t->can & COMM_CAN_NATIVE) != 0)
            continue; /* comes with its own launcher */
        sockets |= listens;
        for (int with_secret = 0; with_secret <= (int)listens; with_secret++) {
            struct groups_way *way = &ways[count++];

            *way = (struct groups_way){.transport = t->name,
                                       .hosts = 1,
                                       .listens = listens,
                                       .secret = with_secret,
                                       .can = t->can,
                                       .shares = !listens};
            snprintf(way->name, sizeof way->name, "%s%s", t->name, with_secret ? "+tls" : "");
        }
    }
    if (sockets)
        ways[count++] = (struct groups_way){
            .name = "mixed", .hosts = 2, .listens = true, .can = COMM_CAN_RECOVER, .shares = true};
    return count;
}

bool groups_brief(void)
{
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
    return getenv("FULL") == NULL;
#else
    return false;
#endif
}

double groups_soon(void)
{
    return base_now() + GROUPS_PATIENCE;
}

void groups_wait_for(_Atomic int *word, int value)
{
    for (double end = groups_soon(); atomic_load(word) < value && base_now() < end;)
        usleep(200);
}

struct comm_group *groups_open(struct crew_worker *me, uint32_t after)
{
    const struct groups_way *way = me->argument;
    struct comm_group *group;
    struct comm_view view;

    crew_view(me, after, &view);
    crew_check(comm_group_open(me->endpoint, &view, way->transport, groups_soon(), &group) ==
               BASE_OK);
    return group;
}

struct comm_engine *groups_engine(struct comm_group *group)
{
    crew_check(comm_group_engine(group) == NULL);
    crew_check(comm_engine_begin(group) == BASE_OK);
    return comm_group_engine(group);
}

void groups_finish(struct comm_engine *engine, struct comm_task *task)
{
    crew_check(comm_engine_wait(engine, task, groups_soon()) == BASE_OK);
    crew_check(task->run != NULL || task->request.done);
}

struct crew *groups_start(const struct groups_way *way, int workers, crew_body *body)
{
    return crew_start(&(struct crew_setup){.workers = workers,
                                           .hosts = way->hosts < workers ? way->hosts : workers,
                                           .listen = way->listens ? "127.0.0.1" : NULL,
                                           .secret = way->secret ? &secret : NULL,
                                           .board_bytes = sizeof(struct groups_board),
                                           .body = body,
                                           .argument = (void *)way});
}

void groups_run(const struct groups_way *way, int workers, crew_body *body)
{
    struct crew *crew;

    if (way->launched) {
        launched_run(workers, body, sizeof(struct groups_board), (void *)way);
        return;
    }
    crew = groups_start(way, workers, body);
    assert_int_equal(crew_finish(crew, base_now() + 2 * GROUPS_PATIENCE), 0);
}

int groups_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count,
                bool (*suits)(const struct groups_way *way))
{
    struct CMUnitTest mine[16];
    struct groups_way ways[GROUPS_WAYS];
    int ways_count = groups_ways(ways), failed = 0;

    assert(count <= sizeof mine / sizeof mine[0]);
    for (int i = 0; i < ways_count; i++) {
        if ((argc > 1 && strcmp(argv[1], ways[i].name) != 0) || (suits != NULL && !suits(&ways[i])))
            continue;
        for (size_t k = 0; k < count; k++) {
            mine[k] = tests[k];
            mine[k].initial_state = &ways[i];
        }
        print_message("over %s\n", ways[i].name);
        failed += _cmocka_run_group_tests(ways[i].name, mine, count, NULL, NULL);
    }
    return failed;
}

void groups_kill_one(crew_body *body, const struct groups_way *way, int workers, int victim,
                     double after)
{
    struct crew *crew = groups_start(way, workers, body);
    struct groups_board *board = crew_board(crew);

    atomic_store(&board->victim, (uint32_t)victim + 1);
    while (atomic_load(&board->ready) < workers)
        usleep(200);
    usleep((useconds_t)(1e6 * after));
    crew_signal(crew, victim, SIGKILL);
    assert_int_equal(crew_finish(crew, groups_soon()), 0);
}
