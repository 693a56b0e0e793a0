/* SPDX-License-Identifier: MIT
 *
 * A group: the members of one view, connected, and messages between them. A group is used by one
 * thread at a time. It lives as long as its view: after a loss it is closed and the next view's is
 * opened; nothing of the old one, no message and no connection, reaches the new one. A process
 * opens one group a view.
 *
 * Messages between two ranks on one channel arrive in the order they were sent; channels do not
 * wait for each other. The receiver knows tag and length (comm_receive), and both are checked, so
 * that two ranks that disagree about what they are doing get an error and no wrong sum; or it takes
 * what comes and looks at both itself (comm_receive_any).
 *
 * Every wait has a deadline (base_now() seconds) and ends in
 *   BASE_OK              all given requests are complete,
 *   BASE_ERR_PEER_LOST   a worker left the view; comm_group_lost names it; the group is void,
 *   BASE_ERR_TIMEOUT     the deadline passed; the group is void,
 *   BASE_ERR_DATA        a peer sent what it should not have; the group is void,
 *   BASE_ERR_INTERRUPTED the job ends.
 * A void group fails every further call with the same code at once.
 */
#ifndef COMM_GROUP_H
#define COMM_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "comm/endpoint.h"
#include "comm/view.h"

enum comm_channel { /* kinds of traffic that must not wait for each other */
                    COMM_COLLECTIVES,
                    COMM_FORWARD,
                    COMM_BACKWARD,
                    COMM_CALLS,
                    COMM_CHANNELS
};

struct comm_group;

/* transport: a name of the registry for all peers, or NULL: for each peer the first that reaches it
 * (shm, then tcp). Returns when every rank of the view is connected. `endpoint` must outlive it.
 * After a failure *group_p is a void group, which can still name the worker that was lost or did
 * not come. */
base_status comm_group_open(struct comm_endpoint *endpoint, const struct comm_view *view,
                            const char *transport, double deadline, struct comm_group **group_p);
void comm_group_close(struct comm_group *group); /* accepts NULL */

/* Memory of this group, by a key of its view. A host that is in a later view gives none: that ends
 * the group as a wait would. By the thread that waits for the group. */
base_status comm_group_share(struct comm_group *group, const char *key, size_t bytes,
                             struct comm_shared *shared_p);

int comm_group_rank(const struct comm_group *group);
int comm_group_size(const struct comm_group *group);
const struct comm_view *comm_group_view(const struct comm_group *group);
struct comm_endpoint *comm_group_endpoint(const struct comm_group *group);
/* The worker whose loss, or whose connection, voided the group; 0: none can be named. */
uint32_t comm_group_lost(const struct comm_group *group);
/* comm_can flags (comm/transport.h) that hold between this rank and `rank`, or for all ranks. */
unsigned comm_group_can(const struct comm_group *group, int rank);
unsigned comm_group_can_all(const struct comm_group *group);

/* The caller owns it and keeps it and its buffer in place until comm_wait has returned. */
struct comm_request {
    enum comm_channel channel;
    int peer;
    bool sends;
    bool any; /* comm_receive_any: tag and count are those of the message that came */
    uint32_t tag;
    void *bytes; /* only read when `sends` */
    size_t room; /* comm_receive_any: the size of `bytes` */
    size_t count, moved;
    bool done;
    struct comm_request *next; /* links the transport's queue */
};

/* These begin a request. Requests to one peer on one channel complete in order. A message may have
 * zero bytes. */
void comm_send(struct comm_group *group, int to, enum comm_channel channel, uint32_t tag,
               const void *bytes, size_t count, struct comm_request *request);
void comm_receive(struct comm_group *group, int from, enum comm_channel channel, uint32_t tag,
                  void *bytes, size_t count, struct comm_request *request);

/* Takes the next message of any tag and length: when the request is done, `tag` and `count` are the
 * message's. A message of more than `room` bytes is taken from the channel, too, but the contents
 * of `bytes` are then undefined. So the caller can answer an unexpected message, and the group goes
 * on. */
void comm_receive_any(struct comm_group *group, int from, enum comm_channel channel, void *bytes,
                      size_t room, struct comm_request *request);

/* comm_wait waits until all of `requests` are done, comm_wait_any until one is. NULL entries are
 * skipped. */
base_status comm_wait(struct comm_group *group, struct comm_request *const *requests, int count,
                      double deadline);
base_status comm_wait_any(struct comm_group *group, struct comm_request *const *requests, int count,
                          double deadline);

/* Waits until one of `requests` is done, and no longer than `until`; the group stays valid when the
 * time is up. *index_p: the first that is done, or -1. Returns early, once for each new view,
 * when this worker hears of a view newer than all before: comm_group_newest tells which. */
base_status comm_poll(struct comm_group *group, struct comm_request *const *requests, int count,
                      double until, int *index_p);
/* The number of the newest view that this worker has heard of; the group's own at least. */
uint32_t comm_group_newest(const struct comm_group *group);

/* BASE_OK, or the code with which the group ended for this rank. */
base_status comm_group_ended(const struct comm_group *group);

/* A barrier of the ranks of this host (COMM_CAN_SHARE between them). Requests under way do
 * not move meanwhile: wait for them first. */
base_status comm_local_barrier(struct comm_group *group, double deadline);

/* Ranks of this rank's host, ascending. */
int comm_group_locals(const struct comm_group *group, int ranks[COMM_MAX_WORKERS]);

/* How long collectives' bytes to `peer` have been on their way so far, and how many they were;
 * false: not known. By any thread of this rank. */
bool comm_group_sending(const struct comm_group *group, int peer, double *seconds_p,
                        double *bytes_p);
uint64_t comm_group_bytes_sent(const struct comm_group *group); /* payload and framing together */

#endif
