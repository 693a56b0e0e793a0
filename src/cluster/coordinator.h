/* SPDX-License-Identifier: MIT
 *
 * The coordinator as a state machine: messages of agents and the passing of time in, messages to
 * agents and events out. No sockets, no threads, no clock: cluster/server.c gives it those.
 *
 * It gathers the hosts, numbers the workers, and publishes views. A worker that is lost is told to
 * all workers at once; the next view waits until its agent has reaped it (shared memory cannot be
 * fenced otherwise) or its whole host is gone. docs/protocol.md has the rules.
 */
#ifndef CLUSTER_COORDINATOR_H
#define CLUSTER_COORDINATOR_H

#include "cluster/message.h"
#include "cluster/state.h"

struct cluster_coordinator;

struct cluster_coordinator_setup {
    const char *name;       /* the job's random name */
    const char *program;    /* name of a program of cluster/worker.h */
    const json_t *job;      /* the job's description */
    cluster_check *check;   /* of the program; NULL: nothing can change while the job runs */
    const char *transport;  /* NULL: automatic */
    int hosts;              /* hosts that must be there before the first view */
    int min_workers;        /* with fewer the job ends; 0: not asked for, `least` counts */
    int least;              /* the program cannot go on with fewer; 0: it needs all first workers */
    bool joins;             /* hosts may come later */
    bool restarts;          /* a member that dies is replaced, on its host, under a new id */
    bool awaits_folder;     /* its server waits for the program's folder; kept for successors */
    double silence, gather; /* seconds; cluster/launch.h */
};

struct cluster_coordinator *cluster_coordinator_new(const struct cluster_coordinator_setup *setup,
                                                    double now);
/* Makes the successor of a lost coordinator, on host `own`, in `term`. It waits a moment for the
 * reports of the hosts whose agents it leads (cluster_coordinator_lead) and goes on with those. */
struct cluster_coordinator *cluster_coordinator_succeed(const struct cluster_state *state,
                                                        cluster_check *check, uint32_t own,
                                                        uint32_t term, double now);
void cluster_coordinator_free(struct cluster_coordinator *c); /* accepts NULL */

/* Hears a message of the agent on connection `link`, a number that the caller chooses. If it fails,
 * the caller cuts this agent off (cluster_coordinator_gone). */
base_status cluster_coordinator_hear(struct cluster_coordinator *c, int link,
                                     const struct cluster_message *message, double now);
void cluster_coordinator_gone(struct cluster_coordinator *c, int link, const char *why, double now);
/* Call it a few times a second. */
void cluster_coordinator_tick(struct cluster_coordinator *c, double now);

/* Tells that `link` is a connection to that host's agent, which a successor leads. False: there is
 * nothing to say to it. */
bool cluster_coordinator_lead(struct cluster_coordinator *c, int host, int link);
/* True if the coordinator wants to know whether that host's agent is alive. The caller connects
 * with it and calls cluster_coordinator_lead, or cluster_coordinator_dead. */
bool cluster_coordinator_seeks(const struct cluster_coordinator *c, int host);
/* Tells that the host itself answered that no agent listens at its port. */
void cluster_coordinator_dead(struct cluster_coordinator *c, int host, double now);
/* The address and port at which that host's agent listens. */
const char *cluster_coordinator_address(const struct cluster_coordinator *c, int host,
                                        uint16_t *port_p);
int cluster_coordinator_hosts(const struct cluster_coordinator *c);
const char *cluster_coordinator_name(const struct cluster_coordinator *c); /* the job's name */

/* True if this connection is that of a host that has joined and was not lost. */
bool cluster_coordinator_knows(const struct cluster_coordinator *c, int link);

/* A person changes a setting. It is refused (BASE_ERR_USAGE) where the program would not take it or
 * the job is not at work, and then nothing has changed. *number_p: the number of the change. */
base_status cluster_coordinator_set(struct cluster_coordinator *c, const char *name,
                                    const char *value, double now, uint32_t *number_p);
/* The step from which on that change, or a later one, holds; -1: no worker has told it yet. */
int64_t cluster_coordinator_holds_from(const struct cluster_coordinator *c, uint32_t number);

/* Takes the next message that the coordinator wants sent; false: there is none. The caller owns the
 * message. */
bool cluster_coordinator_next(struct cluster_coordinator *c, int *link_p,
                              struct cluster_message *message_p);
/* Takes the next event, which the caller then owns; NULL: none. */
json_t *cluster_coordinator_event(struct cluster_coordinator *c);

bool cluster_coordinator_over(const struct cluster_coordinator *c);
const json_t *cluster_coordinator_result(const struct cluster_coordinator *c); /* or NULL */
/* Where the program has its files on the coordinator's host; NULL: no worker has told yet. */
const char *cluster_coordinator_folder(const struct cluster_coordinator *c);
json_t *cluster_coordinator_status(const struct cluster_coordinator *c, double now);

#endif
