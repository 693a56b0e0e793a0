/* SPDX-License-Identifier: MIT
 *
 * Control messages: JSON objects with a "type", carried in COMM_FRAME_CONTROL frames between
 * worker and agent (a socket pair) and between agent and coordinator (tcp, under TLS where there is
 * a token). docs/protocol.md lists every type with its fields. What arrives is checked here and
 * nowhere else; an unknown type or a wrong field is an error that ends the connection.
 */
#ifndef CLUSTER_MESSAGE_H
#define CLUSTER_MESSAGE_H

#include "base/json.h"
#include "cluster/roles.h"
#include "comm/mailbox.h"
#include "comm/view.h"

enum {
    CLUSTER_PROTOCOL = 6, /* version of control messages; agents with another one are refused */
    CLUSTER_MAX_HOSTS = 256,
    CLUSTER_ANY_HOST = 65535, /* JOIN: the coordinator numbers the host */
    CLUSTER_KEY_TEXT = 64,
    CLUSTER_MAX_TERM = 4000,
    CLUSTER_VIEWS_OF_A_TERM = 1000000, /* views of term T have numbers from T times this + 1 */
};

enum cluster_type {
    /* up: worker → agent → coordinator */
    CLUSTER_READY,     /* worker: endpoint is open, on `port` */
    CLUSTER_HEARTBEAT, /* worker and host (id 0): cpu, memory, load, step, step rate */
    CLUSTER_SUSPECT,   /* worker: `peer` does not answer on this link */
    CLUSTER_ACCUSE,    /* worker: it has found out that `peer` is wrong: `text` */
    CLUSTER_RESULT,    /* worker: its work is done, in `view`; `body` is the result */
    CLUSTER_FAILED,    /* worker: gives up by itself: `code` (base_code), `text` */
    CLUSTER_FIGURES,   /* worker: what its program counts; `body`, for people who look */
    CLUSTER_FOLDER,    /* worker: the job's files are in the folder `text` */
    CLUSTER_REGION,    /* worker → agent and back: shared memory by key */
    CLUSTER_EXITED,    /* agent: worker was reaped: exit code or signal, last lines of its log */
    CLUSTER_APPLIED,   /* worker: the settings `serial` hold from `step` on, for all workers */
    CLUSTER_JOIN,   /* agent: asks to join with so many workers; `body`: the job as it knows it */
    CLUSTER_REPORT, /* agent, to a new coordinator: the workers it has; `body` */
    /* down: coordinator → agent → worker */
    CLUSTER_JOB,  /* the worker's number, and the job's description in `body` */
    CLUSTER_VIEW, /* the next view */
    CLUSTER_KILL, /* agent: end worker `id`, reap it, report CLUSTER_EXITED */
    CLUSTER_END,  /* agent: the job is over, or the agent was refused; `code` (base_code), `text` */
    CLUSTER_STATE, /* agent: what a successor needs to know; `body` (cluster/state.h) */
    CLUSTER_LEAD,  /* agent: host `host` coordinates the job in `term`; answer with REPORT */
    /* agent to agent, when the coordinator is lost (cluster/succession.h) */
    CLUSTER_ASK,  /* host `host` would coordinate in `term`, and has this state */
    CLUSTER_VOTE, /* `code` 0: the host agrees; else it does not. `body`: a newer state, or null */
    /* both ways */
    CLUSTER_SETTINGS, /* down: what a person has changed, `body` (cluster/settings.h), in the change
                       * `serial`; up: the same, to a new coordinator */
    CLUSTER_LOST,     /* up: worker `peer` is dead or silent; down: it left view `view` */
    CLUSTER_STOP, /* up: a person asked; down: save and end. code 0: finish the step; else: groups
                   * are void, every wait ends */
    CLUSTER_TYPES
};

struct cluster_load { /* the load of a worker or of a host */
    double cpu;       /* a worker's share of one core; a host's share of all its cores */
    double memory;    /* a worker's resident bytes; a host's used bytes */
    double load;      /* a host's load average of one minute */
    double step_rate; /* steps a second */
    int64_t step;     /* last step done; -1: none */
};

struct cluster_message {
    enum cluster_type type;
    uint32_t id;      /* the worker it is about or for; 0: the host itself or all; JOB: the first */
    uint32_t host;    /* index of the host */
    uint32_t peer;    /* SUSPECT, ACCUSE, LOST */
    uint32_t view;    /* number */
    uint32_t version; /* JOIN: CLUSTER_PROTOCOL */
    uint32_t term;    /* the coordinator's: 0 for the first, higher for its successors */
    uint32_t state_term; /* ASK: that of the newest state of the asking host */
    uint32_t serial;     /* ASK: the same; SETTINGS, APPLIED: number of the newest change */
    uint16_t port, slot;
    int64_t pid;
    int64_t step;   /* APPLIED */
    uint32_t roles; /* HEARTBEAT: bits of enum cluster_role */
    int code, signal;
    int workers; /* JOIN, JOB */
    struct cluster_load load;
    struct comm_view members;        /* VIEW */
    char key[CLUSTER_KEY_TEXT];      /* REGION */
    uint64_t bytes;                  /* REGION */
    char address[COMM_ADDRESS_TEXT]; /* JOIN: where the host's workers listen */
    char text[1024];                 /* reason, last words, host name */
    json_t *body;                    /* of some types; owned: cluster_message_fini */
};

json_t *cluster_message_to_json(const struct cluster_message *message);
/* Accepts exactly the fields of the type, each within its bounds. */
base_status cluster_message_from_json(const json_t *object, struct cluster_message *message_p);
void cluster_message_fini(struct cluster_message *message);

/* Queues `message`, with the file descriptor `fd` (-1: none), which the caller still owns. A NULL
 * box is a peer that is gone: nothing is sent. */
void cluster_message_send(struct comm_mailbox *box, const struct cluster_message *message, int fd);
/* Moves bytes both ways; *message_p: the next message that has come. *any_p is false if there is
 * none, and then there is nothing to free. Call it until then. */
base_status cluster_message_receive(struct comm_mailbox *box, struct cluster_message *message_p,
                                    bool *any_p);

/* Seconds between two heartbeats of a worker, an agent or the coordinator. */
double cluster_heartbeat_interval(double silence);

const char *cluster_type_name(enum cluster_type type); /* "ready", … */
/* Sets `text`; what does not fit is cut off. */
void cluster_message_text(struct cluster_message *message, const char *text);

/* Overwrites and removes the token of a worker's order. */
void cluster_token_wipe(json_t *body);

#endif
