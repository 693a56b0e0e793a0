/* SPDX-License-Identifier: MIT
 *
 * The coordinator's state, shared by its files: coordinator.c hears, coordinator_join.c lets hosts
 * in, coordinator_members.c decides which workers are in, coordinator_state.c provides for a
 * successor, coordinator_succeed.c is one, coordinator_say.c words messages, events and status.
 */
#ifndef CLUSTER_COORDINATOR_PRIVATE_H
#define CLUSTER_COORDINATOR_PRIVATE_H

#include "cluster/coordinator.h"

/* Seconds. The host of an accused worker that is silent for so long is gone, without waiting for
 * the whole of `silence`; and hosts that heard nothing for so long may have found another
 * coordinator. */
#define CLUSTER_QUIET 1.25

enum phase {
    GATHERING,
    STARTING_UP,
    RESUMING, /* a successor waits for the hosts' reports */
    RUNNING,
    STOPPING,
    FAILING,
    OVER
};

enum worker_state {
    WORKER_STARTING, /* its process was ordered */
    WORKER_READY,    /* can be in a view */
    WORKER_LEAVING,  /* told lost; its agent has not reaped it yet */
    WORKER_DONE,     /* has given its result */
};

struct worker {
    uint32_t id; /* 0: free entry */
    int host;
    enum worker_state state;
    bool member;    /* of the current view */
    bool missing;   /* RESUMING: its agent has not reported it */
    bool evicted;   /* its agent was told to kill it */
    bool dismissed; /* … because it came when the work was done: no loss */
    bool astray; /* … because it came and did not reach an older member: nor would another one */
    uint32_t view;  /* it works in */
    uint32_t first; /* number of the first view with it */
    uint16_t slot, port;
    int64_t pid;
    double since; /* when it was ordered */
    struct cluster_load load;
    double told;      /* last heartbeat event */
    uint64_t accuses; /* bits: entries of this table */
    double suspected; /* since when; 0: not */
    char why[256];    /* it was lost */
    base_code failed; /* BASE_OK: it has not told of a failure; else which, and `words` */
    char words[1024];
};

struct host {
    bool here;
    bool awaited;  /* RESUMING: its report */
    bool led;      /* RESUMING: it was asked for it */
    bool dead;     /* it is not here, and its kernel says that its agent is gone */
    bool deserted; /* … but it may have left for another coordinator, and be done there */
    uint16_t port; /* its agent listens there; 0: nowhere */
    int link;      /* -1: it is closed */
    int workers;
    int64_t pid;
    char name[64], address[COMM_ADDRESS_TEXT];
    double heard;
    struct cluster_load load;
    double told;
};

struct failure { /* how a worker was lost */
    uint32_t id;
    int64_t pid;
    char host[64];
    char why[256];
    bool exited;
    int code, signal;
    char lines[640];
    base_code reason; /* the worker told itself, with `words`; BASE_OK: it did not */
    char words[1024];
};

struct letter {
    int link;
    struct cluster_message message;
    struct letter *next;
};

struct cluster_coordinator {
    struct cluster_coordinator_setup setup;
    char name[40];
    char *program, *transport;
    json_t *job;
    enum phase phase;
    int own;               /* index of the coordinator's host */
    uint32_t term, serial; /* serial: of the state that was sent last */
    json_t *state;         /* … but for its serial; NULL: none was */
    double born, last_tick, next_beat;
    double woke;     /* when it last was asleep, until then */
    double deadline; /* of gathering, starting, resuming, failing */
    double doubtful; /* since when it hears too few hosts; 0: it hears enough */
    struct host hosts[CLUSTER_MAX_HOSTS];
    int host_count;
    struct worker workers[COMM_MAX_WORKERS];
    uint32_t last_id;
    int min_workers, finished; /* finished: done and gone */
    int of_each;               /* workers each host started with; 0: not all the same */
    int stillborn;             /* died before they were in a view, since the last that was */
    struct comm_view view;
    bool quorum[CLUSTER_MAX_HOSTS]; /* hosts of the last view in which all members have worked */
    uint64_t done;                  /* bits: ranks of the view whose workers have given a result */
    char stop_text[256];            /* RESUMING: a person has asked to stop; "": not */
    bool gaps;                      /* a member of the view is gone: the next one is due */
    struct failure failure;         /* the first since the view began; id 0: none */
    base_code end_code;
    char end_text[1024];
    json_t *result;
    uint32_t result_id;
    uint32_t done_view; /* the last in which a worker gave a result */
    char *folder;       /* NULL: no worker has told yet */
    struct letter *first, *last;
    json_t *events;
};

/* Every worker whose process is not reaped yet; the body may forget it. */
/* NOLINTBEGIN(bugprone-macro-parentheses): what the macro declares is a plain name */
#define for_each_worker(c, w)                                                                 \
    for (typeof(&(c)->workers[0]) w = (c)->workers; w < (c)->workers + COMM_MAX_WORKERS; w++) \
        if (w->id == 0)                                                                       \
            continue;                                                                         \
        else
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- coordinator_members.c ---- */

struct worker *cluster_coordinator_find(struct cluster_coordinator *c, uint32_t id); /* or NULL */

/* Workers that are not lost and have work left. */
int cluster_coordinator_going_on(const struct cluster_coordinator *c);

/* So many workers of that host start. */
void cluster_coordinator_order(struct cluster_coordinator *c, int host, int workers, double now);

/* A worker that gives up by itself for this reason is a loss like others: the person said how few
 * may be left, or that the dead are replaced; there is no result yet; and the reason is not a wrong
 * command line or model, which is the same for every worker. */
bool cluster_coordinator_survives(const struct cluster_coordinator *c, base_code reason);
/* Tells everyone that `w` is lost; its entry stays until its agent has reaped it. */
void cluster_coordinator_lose(struct cluster_coordinator *c, struct worker *w, const char *why,
                              double now);
/* The same for one whose agent takes it for healthy: it must be killed first. */
void cluster_coordinator_evict(struct cluster_coordinator *c, struct worker *w, const char *why,
                               double now);
/* It is reaped. */
void cluster_coordinator_forget(struct cluster_coordinator *c, struct worker *w);
/* Nobody there can confirm anything: its workers are gone with it. */
void cluster_coordinator_lose_host(struct cluster_coordinator *c, int host, const char *why,
                                   double now);

void cluster_coordinator_stop_all(struct cluster_coordinator *c, int code, const char *reason,
                                  double now);
/* The first cause counts; workers get a while to save. */
void cluster_coordinator_fail(struct cluster_coordinator *c, base_code code, double now,
                              const char *format, ...) __attribute__((format(printf, 4, 5)));
void cluster_coordinator_end(struct cluster_coordinator *c);

/* Moves on whatever can move. */
void cluster_coordinator_consider(struct cluster_coordinator *c, double now);

/* ---- coordinator_join.c ---- */

base_status cluster_coordinator_hear_join(struct cluster_coordinator *c, int link,
                                          const struct cluster_message *m, double now);

/* ---- coordinator_state.c ---- */

/* Sends the state to the other hosts' agents if it has changed. */
void cluster_coordinator_replicate(struct cluster_coordinator *c);
/* Every member works in the current view: its hosts decide from now on who goes on. */
void cluster_coordinator_settle(struct cluster_coordinator *c);
/* The host is of the current view or of the last one in use: it decides who goes on, also if it is
 * not here. */
bool cluster_coordinator_has_say(const struct cluster_coordinator *c, int host);
/* It hears at least half of the hosts of the view, and of the last one that was in use, of those
 * that are not dead. Where not, it waits a moment for news of deaths, and fails. */
bool cluster_coordinator_may_go_on(struct cluster_coordinator *c, double now);
/* The same of hosts that were heard just now. A host that is cut off counts as here for the whole
 * of `silence`; meanwhile no view may be made that the others do not know of. Nor by a coordinator
 * that was itself asleep: what it reads then was said long ago. */
bool cluster_coordinator_may_publish(const struct cluster_coordinator *c, double now);

/* ---- coordinator_succeed.c ---- */

base_status cluster_coordinator_hear_report(struct cluster_coordinator *c, int link,
                                            const struct cluster_message *m, double now);
/* RESUMING: goes on once all hosts have reported, or are not waited for any more. */
void cluster_coordinator_resume(struct cluster_coordinator *c, double now);

/* ---- coordinator_say.c ---- */

/* Queues a message; *message is consumed. To everyone: all hosts that are here. */
void cluster_coordinator_say(struct cluster_coordinator *c, int link,
                             struct cluster_message *message);
void cluster_coordinator_say_all(struct cluster_coordinator *c,
                                 const struct cluster_message *message);
/* How `worker` was lost, as far as it is known. */
struct failure cluster_coordinator_failure(const struct cluster_coordinator *c,
                                           const struct worker *worker);
/* Takes `event` over and adds the time. */
void cluster_coordinator_tell(struct cluster_coordinator *c, double now, json_t *event);
void cluster_coordinator_tell_load(struct cluster_coordinator *c, double now, uint32_t id, int host,
                                   const struct cluster_load *load);
/* Who failed and how: "worker 2 on host a (pid 7) died (signal 9, SIGKILL)". */
void cluster_coordinator_describe(const struct failure *failure, char *text, size_t room);
/* Tells the person at host 0 of a loss that the job survives; `heir`: the worker that is started in
 * its place, or 0. */
void cluster_coordinator_warn(const struct cluster_coordinator *c, const struct failure *failure,
                              uint32_t heir);
/* Into an END: who failed and how, with its own words or its last lines. */
void cluster_coordinator_last_words(const struct cluster_coordinator *c,
                                    const struct failure *failure, struct cluster_message *end);

#endif
