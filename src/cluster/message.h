/* SPDX-License-Identifier: MIT
 *
 * Control messages: JSON objects with a "type", carried in COMM_FRAME_CONTROL frames between
 * worker and agent (a socket pair) and between agent and coordinator (tcp, under TLS unless it is
 * loopback). docs/protocol.md lists every type with its fields. What arrives is checked here and
 * nowhere else; an unknown type or a wrong field is an error that ends the connection.
 */
#ifndef CLUSTER_MESSAGE_H
#define CLUSTER_MESSAGE_H

#include "base/json.h"
#include "comm/view.h"

enum cluster_type {
    /* up: worker → agent → coordinator */
    CLUSTER_READY,     /* worker: endpoint is open, on `port` */
    CLUSTER_HEARTBEAT, /* worker and host: cpu, memory, load, step, step rate */
    CLUSTER_SUSPECT,   /* worker: `peer` does not answer on this link */
    CLUSTER_RESULT,    /* worker: what it was started for is done; `body` */
    CLUSTER_REGION,    /* worker → agent only: shared memory by key */
    CLUSTER_EXITED,    /* agent: worker left: exit code or signal, last lines of its log */
    CLUSTER_JOIN,      /* agent: wants in, with so many workers */
    /* down: coordinator → agent → worker */
    CLUSTER_JOB,  /* who you are, and the job's description: `body` */
    CLUSTER_VIEW, /* the next view */
    CLUSTER_LOST, /* worker `peer` left view `view`: stop what you do with it */
    CLUSTER_KILL, /* agent: end worker `id`, reap it, report CLUSTER_EXITED */
    CLUSTER_STOP, /* save and end; `reason` */
    CLUSTER_TYPES
};

struct cluster_load { /* of a worker or of a host */
    double cpu;       /* share of one core, of a host: of all its cores */
    double memory;    /* bytes resident; of a host: used */
    double load;      /* load average of one minute, of a host */
    double step_rate; /* steps a second */
    int64_t step;     /* last step done; -1: none */
};

struct cluster_message {
    enum cluster_type type;
    uint32_t id;   /* worker it is about or for, 0: the host itself or everybody */
    uint32_t host; /* index of the host */
    uint32_t peer; /* SUSPECT, LOST */
    uint32_t view; /* number */
    uint16_t port, slot;
    int64_t pid;
    int code, signal; /* EXITED */
    struct cluster_load load;
    struct comm_view members; /* VIEW */
    char key[64];             /* REGION */
    uint64_t bytes;           /* REGION */
    int workers;              /* JOIN */
    char text[1024];          /* reason, last words, host name */
    json_t *body;             /* JOB, RESULT; owned: cluster_message_fini */
};

json_t *cluster_message_to_json(const struct cluster_message *message);
base_status cluster_message_from_json(const json_t *object, struct cluster_message *message_p);
void cluster_message_fini(struct cluster_message *message);

#endif
