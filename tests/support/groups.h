/* SPDX-License-Identifier: MIT
 *
 * The ways in which groups of a crew (support/crew.h) can be connected, for suites that go over all
 * of them: every transport of the registry, encrypted where it has sockets, and hosts mixed. Under
 * mpirun: its transport alone.
 */
#ifndef SUPPORT_GROUPS_H
#define SUPPORT_GROUPS_H

#include <stdatomic.h>

#include "comm/engine.h"
#include "comm/transport.h"
#include "support/crew.h"

enum { GROUPS_WAYS = 2 * 4 + 1, GROUPS_PATIENCE = 60 };

struct groups_way {
    char name[40];
    const char *transport; /* NULL: automatic */
    int hosts;
    bool listens, secret;
    bool launched; /* by the transport's own launcher: no crew, groups_run alone */
    unsigned can;  /* between all */
    bool shares;   /* ranks of one host do */
    uint64_t seed;
    uint32_t victims; /* a set of ids, for tests of losses */
    const void *argument;
};

struct groups_board { /* what bodies and test share */
    _Atomic int ready, go, counter[COMM_MAX_WORKERS];
    _Atomic uint32_t victim;
};

int groups_ways(struct groups_way ways[GROUPS_WAYS]);
/* Runs `tests`, cmocka's, over every way, or over the one that argv names; each gets the way as its
 * state. `suits` NULL: all do. The number of failures. */
struct CMUnitTest;
int groups_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count,
                bool (*suits)(const struct groups_way *way));

/* Suites move fewer bytes and do fewer rounds under a sanitizer: it looks at accesses and their
 * order, which more of the same does not change, and slows every byte down. The plain build does
 * everything; so do these with FULL in the environment (make soak). */
bool groups_brief(void);

double groups_soon(void);
/* Until other threads or workers have raised the word to `value`, or it is too late. */
void groups_wait_for(_Atomic int *word, int value);

/* In the child: the group of the first view newer than `after`. */
struct comm_group *groups_open(struct crew_worker *me, uint32_t after);

/* The group's engine, begun. */
struct comm_engine *groups_engine(struct comm_group *group);
/* The task ends well. */
void groups_finish(struct comm_engine *engine, struct comm_task *task);

struct crew *groups_start(const struct groups_way *way, int workers, crew_body *body);
void groups_run(const struct groups_way *way, int workers, crew_body *body);
/* Starts a crew, waits until all its workers have raised the board's `ready`, and kills `victim`,
 * whose id the board tells them, `after` seconds later. The others must end well. */
void groups_kill_one(crew_body *body, const struct groups_way *way, int workers, int victim,
                     double after);

#endif
