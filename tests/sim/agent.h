/* SPDX-License-Identifier: MIT
 *
 * An agent in the simulated world: the real decisions (cluster/steward.h), and on the host that
 * coordinates the real coordinator, with simulated processes and connections. What
 * src/cluster/{agent,agent_hands,peers,server}.c do with sockets is done here with letters.
 */
#ifndef SIM_AGENT_H
#define SIM_AGENT_H

#include "cluster/coordinator.h"
#include "cluster/dials.h"
#include "cluster/steward.h"
#include "sim/seat.h"

enum { SIM_LINKS = 2 * SIM_MAX_HOSTS };

struct sim_agent;

/* A connection between two agents, or between the agent and the coordinator of one host. */
struct sim_line {
    struct sim_agent *at[2]; /* who connected; who accepted */
    struct sim_pipe pipe[2]; /* from that end to the other */
    bool closed[2];          /* that end has closed it, or found it closed */
    struct sim_line *next;   /* of all lines */
};

struct sim_plug { /* one end of a line; line NULL: none */
    struct sim_line *line;
    int end;
};

struct sim_server {
    struct cluster_coordinator *coordinator;
    struct sim_plug links[SIM_LINKS]; /* links[0]: the agent of this host */
    double dial_at[SIM_MAX_HOSTS];
    double next_tick;
};

struct sim_agent {
    int host; /* its index in the simulated job; the job may number a guest otherwise */
    struct cluster_steward steward;
    struct sim_process *process;
    struct sim_box inbox;
    struct sim_seat *seats[COMM_MAX_WORKERS]; /* by slot; NULL: free */
    struct sim_plug up;                       /* to the coordinator */
    struct sim_plug old;                      /* to the one that was lost; it may come back */
    struct sim_plug own[SIM_MAX_HOSTS], theirs[SIM_MAX_HOSTS]; /* as in cluster/peers.c */
    double dial_at[SIM_MAX_HOSTS];
    struct sim_server *server; /* NULL: this host does not coordinate */
    bool ended;
};

/* The agent's life, on its own thread: from the join to the job's end. */
void sim_agent_live(struct sim_agent *agent, bool guest, int workers);
/* All connections of an agent that has ended or died are closed. */
void sim_agent_hang_up(struct sim_agent *agent);

/* ---- line.c ---- */

struct sim_plug sim_line_new(struct sim_agent *from, struct sim_agent *to);
void sim_plug_send(struct sim_plug plug, const struct cluster_message *message);
void sim_plug_close(struct sim_plug *plug); /* accepts none; becomes none */
bool sim_plug_is(struct sim_plug plug, const struct sim_letter *letter);
/* A connection to the agent that listens at `port`; *at: when the attempt under way ends, or 0.
 * CONNECTED: the other side has accepted it. */
enum cluster_dialled sim_dial(struct sim_agent *from, uint32_t from_host, uint16_t port, double *at,
                              struct sim_plug *plug_p);
/* Lines over links that are cut break: closed letters come to both ends. */
void sim_lines_break(struct sim_agent *agent, double now);

/* ---- server.c ---- */

/* The first coordinator; one that succeeds, from the succession's state. */
void sim_server_open(struct sim_agent *agent, const struct cluster_coordinator_setup *setup);
void sim_server_succeed(struct sim_agent *agent);
void sim_server_hear(struct sim_agent *agent, const struct sim_letter *letter, double now);
void sim_server_step(struct sim_agent *agent, double now);
void sim_server_take_in(struct sim_server *server, struct sim_plug plug);

/* ---- hosts.c ---- */

struct sim_agent *sim_agent_at(uint16_t port);
uint16_t sim_agent_port(const struct sim_agent *agent);
struct sim_seat *sim_seat_open(struct sim_agent *agent, int slot, uint32_t id);
void sim_note_end(const struct cluster_coordinator *coordinator, const struct cluster_message *end);

#endif
