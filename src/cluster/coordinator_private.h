/* SPDX-License-Identifier: MIT
 *
 * The coordinator's state, shared by its files: coordinator.c hears, coordinator_join.c lets hosts
 * in, coordinator_members.c decides which workers are in, coordinator_state.c provides for a
 * successor, coordinator_succeed.c is one, coordinator_settings.c has what a person changes,
 * coordinator_say.c words messages, events and status.
 */
#ifndef CLUSTER_COORDINATOR_PRIVATE_H
#define CLUSTER_COORDINATOR_PRIVATE_H

#include "cluster/coordinator.h"

/* Seconds. If a worker is accused and its host was silent for so long, the host counts as gone
 * before the whole of `silence` has passed. Hosts that heard nothing for so long may have found
 * another coordinator. */
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
    WORKER_STARTING, /* its agent was told to start it */
    WORKER_READY,    /* can be in a view */
    WORKER_LEAVING,  /* lost, and its agent has not reaped it yet */
    WORKER_DONE,     /* has given its result */
};

struct worker {
    uint32_t id; /* 0: free entry */
    int host;
    enum worker_state state;
    bool member;    /* is a member of the current view */
    bool missing;   /* RESUMING: its agent has not reported it */
    bool evicted;   /* its agent was told to kill it */
    bool dismissed; /* evicted because it came when the work was done: this is no loss */
    bool astray;    /* evicted for what a new one in its place would do again */
    uint32_t view;  /* the view it works in */
    uint32_t first; /* number of its first view */
    uint16_t slot, port;
    int64_t pid;
    double since; /* when it was ordered */
    struct cluster_load load;
    uint32_t roles;    /* bits of enum cluster_role; 0: it has not told yet */
    json_t *figures;   /* that its program counts; NULL: none */
    double told;       /* when its last heartbeat became an event */
    uint64_t accuses;  /* bits: workers that do not answer it, as entries of the worker table */
    uint64_t convicts; /* the same of workers that it has found to be wrong */
    double suspected;  /* when it was first accused; 0: it is not */
    char why[256];     /* why it was lost */
    base_code failed;  /* the failure that it told, with `words`; BASE_OK: none */
    char words[1024];
};

struct host {
    bool here;
    bool awaited;  /* RESUMING: its report is awaited */
    bool led;      /* RESUMING: it was asked for its report */
    bool dead;     /* not here, and its kernel says that its agent is gone */
    bool deserted; /* not here, but it may have left for another coordinator and be done there */
    uint16_t port; /* where its agent listens; 0: nowhere */
    int link;      /* its connection; -1: closed */
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
    base_code reason; /* what the worker told itself, with `words`; BASE_OK: nothing */
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
    uint32_t term, serial; /* serial number of the state that was sent last */
    json_t *state;         /* the state that was sent last, without its serial; NULL: none was */
    double born, last_tick, next_beat;
    double woke;     /* when it last woke up, after it had been asleep */
    double deadline; /* when gathering, starting, resuming or failing must end */
    double doubtful; /* when it began to hear too few hosts; 0: it hears enough */
    struct host hosts[CLUSTER_MAX_HOSTS];
    int host_count;
    struct worker workers[COMM_MAX_WORKERS];
    uint32_t last_id;
    int min_workers, finished; /* finished: workers that are done and gone */
    int of_each;               /* workers each host started with; 0: not all the same */
    int failed_starts; /* workers that died before their first view, since the last success */
    struct comm_view view;
    bool quorum[CLUSTER_MAX_HOSTS]; /* hosts of the last view in which all members have worked */
    uint64_t done;                  /* bits: ranks of the view whose workers have given a result */
    char stop_text[256];            /* RESUMING: a person has asked to stop; "": not */
    bool gaps;                      /* a member of the view is gone: the next view is due */
    struct failure failure;         /* the first failure since the view began; id 0: none */
    base_code end_code;
    char end_text[1024];
    json_t *result;
    uint32_t result_id;
    uint32_t done_view;               /* the last view in which a worker gave a result */
    char *folder;                     /* NULL: no worker has told yet */
    struct cluster_settings settings; /* what a person has changed */
    uint32_t applied;                 /* the newest change that a worker has told to hold … */
    int64_t applied_step;             /* … from this step on */
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

/* Orders `workers` new workers on that host. */
void cluster_coordinator_order(struct cluster_coordinator *c, int host, int workers, double now);

/* True if a worker that gives up by itself for this reason is a loss like others: the person said
 * how few may be left, or that dead workers are replaced; there is no result yet; and the reason is
 * not a wrong command line or model, which is the same for every worker. */
bool cluster_coordinator_survives(const struct cluster_coordinator *c, base_code reason);
/* Tells all hosts that `w` is lost; its entry stays until its agent has reaped it. */
void cluster_coordinator_lose(struct cluster_coordinator *c, struct worker *w, const char *why,
                              double now);
/* The same for a worker that its agent takes for healthy: the agent must kill it first. */
void cluster_coordinator_evict(struct cluster_coordinator *c, struct worker *w, const char *why,
                               double now);
/* Removes a worker that was reaped. */
void cluster_coordinator_forget(struct cluster_coordinator *c, struct worker *w);
/* All workers of the host count as gone with it, since its agent can confirm nothing any more. */
void cluster_coordinator_lose_host(struct cluster_coordinator *c, int host, const char *why,
                                   double now);

void cluster_coordinator_stop_all(struct cluster_coordinator *c, int code, const char *reason,
                                  double now);
/* Ends the job. The first cause counts; workers get a while to save. */
void cluster_coordinator_fail(struct cluster_coordinator *c, base_code code, double now,
                              const char *format, ...) __attribute__((format(printf, 4, 5)));
void cluster_coordinator_end(struct cluster_coordinator *c);

/* Looks at what has changed and takes the steps that follow: views, replacements, the end. */
void cluster_coordinator_consider(struct cluster_coordinator *c, double now);

/* ---- coordinator_join.c ---- */

base_status cluster_coordinator_hear_join(struct cluster_coordinator *c, int link,
                                          const struct cluster_message *m, double now);

/* ---- coordinator_state.c ---- */

/* Sends the state to the other hosts' agents if it has changed. */
void cluster_coordinator_replicate(struct cluster_coordinator *c);
/* Called when every member works in the current view: from now on its hosts are the quorum. */
void cluster_coordinator_settle(struct cluster_coordinator *c);
/* True if the host is in the current view or in the last one in use, and so in the quorum, even if
 * it is not here. */
bool cluster_coordinator_has_say(const struct cluster_coordinator *c, int host);
/* True if the coordinator hears at least half of the hosts of the view, and of the last one that
 * was in use; dead hosts do not count. Where not, it waits a moment for news of deaths, then fails.
 */
bool cluster_coordinator_may_go_on(struct cluster_coordinator *c, double now);
/* The same, counting only hosts that were heard just now. A host that is cut off counts as here for
 * the whole of `silence`, and meanwhile no view may be made that the others do not know of. A
 * coordinator that was itself asleep makes none either: what it reads then was said long ago. */
bool cluster_coordinator_may_publish(const struct cluster_coordinator *c, double now);

/* ---- coordinator_succeed.c ---- */

base_status cluster_coordinator_hear_report(struct cluster_coordinator *c, int link,
                                            const struct cluster_message *m, double now);
/* RESUMING: goes on once all hosts have reported, or are not waited for any more. */
void cluster_coordinator_resume(struct cluster_coordinator *c, double now);

/* ---- coordinator_settings.c ---- */

/* Tells the settings to that host's agent (-1: to all), unless nothing was changed. */
void cluster_coordinator_say_settings(struct cluster_coordinator *c, int host);
/* An agent may know of a change that the lost coordinator told no other host. */
void cluster_coordinator_hear_settings(struct cluster_coordinator *c,
                                       const struct cluster_message *m);
void cluster_coordinator_hear_applied(struct cluster_coordinator *c,
                                      const struct cluster_message *m);

/* ---- coordinator_say.c ---- */

/* Queue a message and take it over, to one agent or to the agents of all hosts that are here. */
void cluster_coordinator_say(struct cluster_coordinator *c, int link,
                             struct cluster_message *message);
void cluster_coordinator_say_all(struct cluster_coordinator *c,
                                 const struct cluster_message *message);
/* Describes how `worker` was lost, as far as it is known. */
struct failure cluster_coordinator_failure(const struct cluster_coordinator *c,
                                           const struct worker *worker);
/* Takes `event` over and adds the time. */
void cluster_coordinator_tell(struct cluster_coordinator *c, double now, json_t *event);
void cluster_coordinator_tell_load(struct cluster_coordinator *c, double now, uint32_t id, int host,
                                   const struct cluster_load *load);
/* Writes which worker failed and how: "worker 2 on host a (pid 7) died (signal 9, SIGKILL)". */
void cluster_coordinator_describe(const struct failure *failure, char *text, size_t room);
/* Tells the person at host 0 of a loss that the job survives; `heir`: the worker that is started in
 * its place, or 0. */
void cluster_coordinator_warn(const struct cluster_coordinator *c, const struct failure *failure,
                              uint32_t heir);
/* Writes into an END which worker failed and how, with its own words or its last lines. */
void cluster_coordinator_last_words(const struct cluster_coordinator *c,
                                    const struct failure *failure, struct cluster_message *end);

#endif
