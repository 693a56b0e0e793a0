/* SPDX-License-Identifier: MIT
 *
 * A worker's side of parameter servers (train/strategies/ps/server.h), for a leg: it asks for work,
 * pulls weights and pushes gradients, to each server what concerns it. A server in the same process
 * is called directly, the others over the group's engine. What a server of the same host serves is
 * read from shared memory. Weights of other hosts come in buckets while forward goes on.
 *
 * Gradients go in buckets, from the end of the weights to their beginning, as backward completes
 * them: floats up to `bucket` of a slice, or a slice that is packed. Where this worker `overlaps`,
 * they go as soon as they are complete, otherwise all with the push. The push itself is an outline
 * that follows them: without it no server has anything.
 */
#ifndef TRAIN_STRATEGIES_PS_CLIENT_H
#define TRAIN_STRATEGIES_PS_CLIENT_H

#include "train/strategies/ps/parcel.h"
#include "train/strategies/ps/server.h"
#include "train/strategies/ps/shelf.h"

/* A pull of one server's slice. */
struct ps_coming {
    struct comm_task *head;   /* says which entry it is; NULL: it was in shared memory */
    size_t arrived;           /* floats of the slice that are in the state … */
    struct comm_task *values; /* … and the messages with the others, one after another */
};

struct ps_client {
    struct train_session *session;
    struct ps_server *server; /* of this process; NULL: it does not serve */
    struct ps_parcel *parcel; /* what gradients travel as */
    struct ps_shelf shelf;    /* of the view: what servers of this host serve */
    bool exact; /* weights are of the very entry that is asked for: no shelf has them */
    bool works; /* this process pushes */
    int servers;
    struct train_slice slices[COMM_MAX_WORKERS][2]; /* that each server keeps, without memory */
    struct train_ps_body answer;                    /* the newest */
    uint64_t read;                                  /* the entry up to which weights were read */
    int64_t pushed, pulled; /* bytes of values to and from other processes, in all views */
    struct ps_coming coming[COMM_MAX_WORKERS]; /* the newest pull */

    /* The push under way. */
    bool overlaps;           /* its values are sent while backward goes on … */
    size_t bucket;           /* … so many floats at a time, where they are not packed */
    double unit;             /* of a packed push (parcel.h) */
    int owner;               /* of the slice whose values go next; -1: all have gone … */
    size_t end;              /* … namely those before this float */
    bool spoils, spoils_nan; /* tests: values lack their half; one is none */

    struct comm_task *tasks; /* messages under way, with room for all of a pull and a push */
    int task_count;
    uint8_t call[PS_BODY_BYTES], calls[COMM_MAX_WORKERS][PS_BODY_BYTES];
    uint8_t heads[COMM_MAX_WORKERS][PS_BODY_BYTES];
    uint8_t outline[PS_OUTLINE_BYTES];
};

/* A leg begins. `bucket`: floats. */
void ps_client_open(struct ps_client *client, struct train_session *session, struct ps_seats seats,
                    struct ps_server *server, struct ps_parcel *parcel, size_t bucket);
void ps_client_fini(struct ps_client *client); /* accepts zeros */
/* Asks for the first block of the leg. */
base_status ps_client_ask(struct ps_client *client);
/* Waits for the answer to the ask or to the push. Then the gradients may be written again. */
base_status ps_client_answer(struct ps_client *client);
/* The weights after entry `number` at least, on their way into the state: those of other hosts are
 * there after ps_client_await, the next answer, or ps_client_leave. */
base_status ps_client_pull(struct ps_client *client, uint64_t number);
/* Waits for the weights before float `end` of a pull whose leg goes on. */
base_status ps_client_await(struct ps_client *client, size_t end);
/* A block will be computed, and pushed with this unit. */
void ps_client_begin_push(struct ps_client *client, double unit);
/* The exchange's gradients from float `from` on are complete, and must stay as they are until the
 * answer. */
void ps_client_ready(struct ps_client *client, size_t from);
/* All of them are. */
void ps_client_push(struct ps_client *client, const struct train_outline *outline);
/* This worker needs no server any more. Of a process that serves, server 0 hears it only from the
 * second call, after ps_server_finish: a late push of a slow worker may still come until then. */
base_status ps_client_leave(struct ps_client *client);
base_status ps_client_leave_first(struct ps_client *client);

#endif
