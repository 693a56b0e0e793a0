/* SPDX-License-Identifier: MIT
 *
 * A crew: forked workers, each with an endpoint and a control thread, and the test in the part of
 * their agents and of the coordinator: it hands out shared memory, watches the words of each host,
 * says who was lost, reaps, and publishes the next view. Workers are spread over `hosts` equal
 * hosts, in rank order; each host has its own words and its own shared memory.
 *
 * A body runs in a child: crew_check, not cmocka's assertions.
 */
#ifndef SUPPORT_CREW_H
#define SUPPORT_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/group.h"

struct crew_worker { /* in the child */
    int index;       /* its rank in view 1 */
    uint32_t id;     /* index + 1 */
    int workers;     /* at the start */
    struct comm_endpoint *endpoint;
    void *board; /* memory that the test and all workers share */
    void *argument;
    struct crew_seat *seat; /* NULL: support/launched.h */
};

typedef void crew_body(struct crew_worker *me);

struct crew_setup {
    int workers, hosts;
    const char *listen;               /* NULL: no sockets */
    const struct comm_secret *secret; /* NULL: plain */
    size_t board_bytes;
    crew_body *body;
    void *argument;
};

struct crew;

struct crew *crew_start(const struct crew_setup *setup);
void *crew_board(struct crew *crew);
void crew_signal(struct crew *crew, int index, int signal);
void crew_cancel(struct crew *crew);               /* tells every worker that the job ends */
double crew_lost_at(struct crew *crew, int index); /* base_now() of the news; 0: not lost */
/* Waits for all of them and frees the crew; how many ended otherwise than well or by a signal of
 * crew_signal. Workers that are still there at the deadline are killed and count. */
int crew_finish(struct crew *crew, double deadline);

/* In the child: waits for a view newer than `after`. */
void crew_view(struct crew_worker *me, uint32_t after, struct comm_view *view_p);

/* Ends the child, with a line on stderr, unless it holds. */
#define crew_check(holds)                            \
    do {                                             \
        if (!(holds))                                \
            crew_failed(__FILE__, __LINE__, #holds); \
    } while (0)
_Noreturn void crew_failed(const char *file, int line, const char *what);

#endif
