/* SPDX-License-Identifier: MIT
 *
 * A worker's side of parameter servers (train/server.h), for a leg: it asks for work, pulls weights
 * and pushes gradients, to each server what concerns it. A server in the same process is called
 * directly, the others over the group's engine.
 */
#ifndef TRAIN_CLIENT_H
#define TRAIN_CLIENT_H

#include "train/server.h"

/* Of one call: a message and two slices to every server, and an answer. */
enum { TRAIN_CLIENT_TASKS = 3 * COMM_MAX_WORKERS + 1 };

struct train_client {
    struct train_session *session;
    struct train_server *server; /* of this process; NULL: it does not serve */
    int servers;
    struct train_slice slices[COMM_MAX_WORKERS][2]; /* that each server keeps, without memory */
    struct train_ps_body answer;                    /* the newest */
    uint64_t read;                                  /* the entry up to which weights were read */

    struct comm_task tasks[TRAIN_CLIENT_TASKS]; /* messages under way, and their memory */
    int task_count;
    struct train_ps_body call, heads[COMM_MAX_WORKERS];
    struct train_outline outline;
};

void train_client_open(struct train_client *client, struct train_session *session, int servers,
                       struct train_server *server);
/* Asks for the first block of the leg. */
base_status train_client_ask(struct train_client *client);
/* Waits for the answer to the ask or to the push. Then the gradients may be written again. */
base_status train_client_answer(struct train_client *client);
/* The weights after entry `number` at least, into the state. */
base_status train_client_pull(struct train_client *client, uint64_t number);
/* The exchange's gradients must stay as they are until the answer. */
void train_client_push(struct train_client *client, const struct train_outline *outline);
/* This worker needs no server any more. */
base_status train_client_leave(struct train_client *client);

#endif
