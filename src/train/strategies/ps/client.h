/* SPDX-License-Identifier: MIT
 *
 * A worker's side of parameter servers (train/strategies/ps/server.h), for a leg: it asks for work,
 * pulls weights and pushes gradients, to each server what concerns it. A server in the same process
 * is called directly, the others over the group's engine. What a server of the same host serves is
 * read from shared memory.
 */
#ifndef TRAIN_STRATEGIES_PS_CLIENT_H
#define TRAIN_STRATEGIES_PS_CLIENT_H

#include "train/strategies/ps/parcel.h"
#include "train/strategies/ps/server.h"
#include "train/strategies/ps/shelf.h"

/* Of one call: a message and two slices to every server, and an answer. */
enum { PS_CLIENT_TASKS = 3 * COMM_MAX_WORKERS + 1 };

struct ps_client {
    struct train_session *session;
    struct ps_server *server; /* of this process; NULL: it does not serve */
    struct ps_parcel *parcel; /* what gradients travel as */
    struct ps_shelf shelf;    /* of the view: what servers of this host serve */
    bool exact; /* weights are of the very entry that is asked for: no shelf has them */
    int servers;
    struct train_slice slices[COMM_MAX_WORKERS][2]; /* that each server keeps, without memory */
    struct train_ps_body answer;                    /* the newest */
    uint64_t read;                                  /* the entry up to which weights were read */
    int64_t pushed, pulled; /* bytes of values to and from other processes, in all views */
    bool spoils;            /* tests: values of a push lack their half */

    struct comm_task tasks[PS_CLIENT_TASKS]; /* messages under way, and their memory */
    int task_count;
    uint8_t call[PS_BODY_BYTES], calls[COMM_MAX_WORKERS][PS_BODY_BYTES];
    uint8_t heads[COMM_MAX_WORKERS][PS_BODY_BYTES];
    uint8_t outline[PS_OUTLINE_BYTES];
};

void ps_client_open(struct ps_client *client, struct train_session *session, int servers,
                    struct ps_server *server, struct ps_parcel *parcel);
/* Asks for the first block of the leg. */
base_status ps_client_ask(struct ps_client *client);
/* Waits for the answer to the ask or to the push. Then the gradients may be written again. */
base_status ps_client_answer(struct ps_client *client);
/* The weights after entry `number` at least, into the state. */
base_status ps_client_pull(struct ps_client *client, uint64_t number);
/* The exchange's gradients must stay as they are until the answer. */
void ps_client_push(struct ps_client *client, const struct train_outline *outline);
/* This worker needs no server any more. Of a process that serves, server 0 hears it only from the
 * second call, after ps_server_finish: a late push of a slow worker may still come until then. */
base_status ps_client_leave(struct ps_client *client);
base_status ps_client_leave_first(struct ps_client *client);

#endif
