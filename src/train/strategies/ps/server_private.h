/* SPDX-License-Identifier: MIT
 *
 * Between the parts of a parameter server: what every server does (server.c), what server 0 decides
 * (server_lead.c), how stale gradients are corrected (correct.c), what is sent (server_send.c) and
 * the thread that takes messages (server_post.c). All of these are called with the server's lock
 * held, or when its thread has ended.
 */
#ifndef TRAIN_STRATEGIES_PS_SERVER_PRIVATE_H
#define TRAIN_STRATEGIES_PS_SERVER_PRIVATE_H

#include "train/strategies/ps/server.h"

/* ---- server.c ---- */

size_t ps_server_floats(const struct ps_server *server); /* of a push */
/* The learning rate of the step under way. A block is a part of a batch: it makes an update by its
 * own mean gradient, with that part of the rate. */
double ps_server_rate(const struct ps_server *server, int64_t samples, bool shared);
/* Where values [from, from + count) of a push are, which are of the slice. */
struct ps_bucket {
    int slice;
    size_t from, count;
};
float *ps_server_values(const struct ps_server *server, int rank, const struct ps_bucket *bucket);
/* They have come: as floats in their place (`packed` is NULL), or packed, then the whole slice.
 * There may be another number of bytes than there should be. */
void ps_server_take_values(struct ps_server *server, int rank, const struct ps_bucket *bucket,
                           const uint8_t *packed, size_t bytes);
/* All values have come, and what the push says of itself. */
void ps_server_take_push(struct ps_server *server, int rank, const struct train_outline *outline);
void ps_server_take_entry(struct ps_server *server, const struct train_log_entry *entry);
/* The main thread of this process is told how to go on. */
void ps_server_keep_answer(struct ps_server *server, const struct train_ps_body *answer);
/* shared: the worker reads the slice in the server's region. */
void ps_server_take_pull(struct ps_server *server, int rank, uint64_t number, bool shared);

/* ---- correct.c: without corrections these do nothing ---- */

/* Server 0: the worker was told to read the weights as they are now. */
void ps_server_grant_read(struct ps_server *server, int rank);
/* Server 0 makes an entry: the workers that were told so since the one before it. */
uint64_t ps_server_take_readers(struct ps_server *server);
/* Before the entry is applied: copies the slices for its readers, and corrects its pushes. */
void ps_server_correct_entry(struct ps_server *server, const struct train_log_entry *entry);
/* What a worker gets that asks for entry `number`, which is applied: the server's own slice.
 * *number_p: the entry that it is of; without corrections the newest. */
const float *ps_server_weights_for(const struct ps_server *server, int rank, uint64_t number,
                                   uint64_t *number_p);
void ps_server_forget_copies(struct ps_server *server);

/* ---- server_lead.c ---- */

void ps_server_take_ask(struct ps_server *server, int rank);
/* One more server has the push of worker `rank`, and may refuse it. */
void ps_server_take_got(struct ps_server *server, int rank, enum ps_refusal refusal);
void ps_server_take_have(struct ps_server *server, uint64_t number);

/* ---- server_send.c ---- */

void ps_server_send(struct ps_server *server, int to, enum train_ps_call call,
                    const struct train_ps_body *body);
void ps_server_send_entry(struct ps_server *server, int to, const struct train_log_entry *entry);
/* Its own slice, in which entry `number` is. */
void ps_server_send_weights(struct ps_server *server, int to, uint64_t number);
/* All has left. */
base_status ps_server_wait_sent(struct ps_server *server, double deadline);
void ps_server_forget_sent(struct ps_server *server);

#endif
