/* SPDX-License-Identifier: MIT
 *
 * The agent's decisions as a state machine: what its workers and the coordinator say and the
 * passing of time in, orders to its hands out. It knows which workers this host has, which of them
 * are lost, silent or done, what the coordinator is told of them, and how another coordinator is
 * found (cluster/succession.h). No processes, sockets, threads or clock: cluster/agent.c gives it
 * those, a simulation its own.
 */
#ifndef CLUSTER_STEWARD_H
#define CLUSTER_STEWARD_H

#include "cluster/message.h"
#include "cluster/report.h"
#include "cluster/succession.h"

/* What the steward cannot do itself. No function is optional; `agent` is what the caller gave.
 * Workers are named by their slot. The steward still owns the messages. */
struct cluster_hands {
    /* Send to the coordinator, and to a worker. */
    void (*say)(void *agent, const struct cluster_message *message);
    void (*tell)(void *agent, int slot, const struct cluster_message *message);
    /* Starts worker `id` and tells it the coordinator's order. */
    base_status (*start)(void *agent, int slot, uint32_t id, const json_t *order);
    void (*kill)(void *agent, int slot); /* once it is reaped, cluster_steward_bury is called */
    /* The workers of these slots (bits) work in `view` now: the death of one ends the waits of the
     * others at once, even before the steward hears of it. */
    void (*watch)(void *agent, const struct comm_view *view, uint64_t slots);
    /* A watched worker is lost: ends the waits of the others. */
    void (*lost)(void *agent, int slot);
    void (*alarm)(void *agent, uint32_t view, uint32_t id); /* the same for another host's worker */
    void (*give_region)(void *agent, int slot, const struct cluster_message *request);
    void (*forget_regions)(void *agent, uint32_t oldest_view);
    /* Measures cpu, memory and step rate of a worker whose step is in `load`, or the load of the
     * host (slot -1). False: there is no such process any more. */
    bool (*measure)(void *agent, int slot, double now, struct cluster_load *load);
    /* Sends to another host's agent; `answer` as cluster_succession_next tells. */
    void (*send)(void *agent, uint32_t host, bool answer, const struct cluster_message *message);
    void (*drop)(void *agent); /* gives up the connection to the lost coordinator */
    /* The agent of `host` coordinates now: what it sent last came from there, and `say` goes there.
     * Where that is this host, it begins to coordinate, from the succession's state. */
    base_status (*follow)(void *agent, uint32_t host, double now);
};

struct cluster_ward { /* a worker of this host */
    uint32_t id;      /* 0: the slot is free */
    uint32_t view;    /* the view it works in */
    double heard;     /* last sign of life */
    int64_t step, pid;
    uint32_t roles;
    uint16_t port;
    bool ready; /* can be in a view */
    bool lost;  /* the coordinator was told that the worker is lost */
    bool done;  /* has given its result */
};

struct cluster_steward {
    const struct cluster_hands *hands;
    void *agent;
    struct cluster_ward wards[COMM_MAX_WORKERS]; /* by slot */
    uint64_t working;                            /* slots that are watched */
    uint32_t host;
    struct comm_view view;
    bool ordered; /* the coordinator has sent a job */
    double silence, next_beat, last_turn;
    double heard; /* when it last heard the coordinator, plus the time that it slept itself */
    double truly_heard, woke; /* when it really last heard it; when it last woke up */
    bool failing;             /* the coordinator has told the workers to save and end */
    bool succeeds; /* it may look for another coordinator; not on host 0, which has its own */
    struct cluster_succession succession;
    struct cluster_report given;      /* results of workers that are gone */
    struct cluster_message folder;    /* the last CLUSTER_FOLDER of a worker; id 0: none */
    struct cluster_settings settings; /* the newest that it was told */
    char lost_why[256];               /* why the coordinator was lost */
    bool alone;                       /* the coordinator is gone, and there is no other */
    double alone_until;
    bool ended;
    base_code code;        /* how the job ended for this host */
    uint32_t blamed;       /* the first failed worker */
    char words[1024];      /* why it ended */
    char coordinator[128]; /* where the coordinator is, for messages */
};

void cluster_steward_init(struct cluster_steward *s, const struct cluster_hands *hands, void *agent,
                          double silence, double now);
void cluster_steward_fini(struct cluster_steward *s);

base_status cluster_steward_hear_coordinator(struct cluster_steward *s,
                                             const struct cluster_message *message, double now);
/* Fails if this worker sent nonsense: call cluster_steward_cut. */
base_status cluster_steward_hear_worker(struct cluster_steward *s, int slot,
                                        const struct cluster_message *message, double now);
/* The worker's control connection was closed, or carried nonsense: the worker has `silence` seconds
 * to end. */
void cluster_steward_cut(struct cluster_steward *s, int slot, const char *why, double now);
/* The worker counts as lost: its host and the coordinator are told. */
void cluster_steward_lose(struct cluster_steward *s, int slot, const char *why);
/* The worker has ended and was reaped; `exited` tells how. Its slot is free. */
void cluster_steward_bury(struct cluster_steward *s, int slot,
                          const struct cluster_message *exited);
/* The connection to the coordinator is gone: the steward looks for another coordinator. If there is
 * none, workers may save, then this host ends. */
void cluster_steward_lose_coordinator(struct cluster_steward *s, const char *why, double now);

/* Hears other hosts' agents; cluster/succession.h tells what their messages mean. */
base_status cluster_steward_hear_agent(struct cluster_steward *s, uint32_t host,
                                       const struct cluster_message *message, double now);
void cluster_steward_opened(struct cluster_steward *s, uint32_t host, double now);
void cluster_steward_closed(struct cluster_steward *s, uint32_t host);
void cluster_steward_dead(struct cluster_steward *s, uint32_t host, double now);
/* There is no coordinator at the moment; messages to it wait. */
bool cluster_steward_looks(const struct cluster_steward *s);

/* Call it first in every turn: a steward that was itself asleep (Ctrl-Z, a frozen machine) then
 * blames no worker and no coordinator for that time. */
void cluster_steward_wake(struct cluster_steward *s, double now);
/* Call it last in every turn, a few times a second: finds workers that are silent and sends
 * heartbeats that are due. */
void cluster_steward_tick(struct cluster_steward *s, double now);

bool cluster_steward_over(const struct cluster_steward *s, double now);

#endif
