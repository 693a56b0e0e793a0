/* SPDX-License-Identifier: MIT
 *
 * Between the two halves of a parameter server: what it decides (server.c) and how that travels
 * (server_post.c). All of these are called with the server's lock held.
 */
#ifndef TRAIN_STRATEGIES_PS_SERVER_PRIVATE_H
#define TRAIN_STRATEGIES_PS_SERVER_PRIVATE_H

#include "train/strategies/ps/server.h"

/* ---- server.c ---- */

size_t ps_server_floats(const struct ps_server *server); /* of a push */
/* A worker's push is here whole: its outline and its floats. */
void ps_server_take_push(struct ps_server *server, int rank);
void ps_server_take_got(struct ps_server *server, int rank);
void ps_server_take_entry(struct ps_server *server, const struct train_log_entry *entry);
void ps_server_take_have(struct ps_server *server, uint64_t number);
void ps_server_take_ask(struct ps_server *server, int rank);
void ps_server_take_pull(struct ps_server *server, int rank, uint64_t number);

/* ---- server_post.c ---- */

void ps_server_send(struct ps_server *server, int to, enum train_ps_call call, const void *bytes,
                    size_t count);
/* Its own slice as it is now. */
void ps_server_send_weights(struct ps_server *server, int to);
size_t train_log_entry_bytes(const struct train_log_entry *entry);

#endif
