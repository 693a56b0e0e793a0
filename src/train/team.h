/* SPDX-License-Identifier: MIT
 *
 * The workers of a view, connected; or one process alone, for which all of this is trivial. A team
 * lives for one view: after BASE_ERR_PEER_LOST, or when a newer view was heard of, it is left and
 * the next one met.
 */
#ifndef TRAIN_TEAM_H
#define TRAIN_TEAM_H

#include "base/json.h"
#include "cluster/worker.h"
#include "data/loader.h"
#include "train/shares.h"
#include "train/strategy.h"

struct train_team {
    struct cluster_worker *worker; /* NULL: alone in the process that a person started */
    struct comm_view view;
    struct comm_group *group;
    struct train_exchange exchange; /* its rank, size and coll hold from train_team_meet on */
    float *own;                     /* the exchange's memory, alone */
    struct train_shares shares;     /* of its members */
    struct train_effort effort;     /* of this worker, also in former views; zeros: not known */
    base_status failure;            /* of the first train_team_sum that failed in this view */
    uint64_t bytes_sent;            /* in earlier views */
    uint64_t bytes_opening;         /* sent to connect this view, which is no training */
};

/* Takes the next view and connects with its members; those lost meanwhile cost another view. */
base_status train_team_meet(struct train_team *team);
/* Memory for gradients of `floats`, where they are summed fastest. */
base_status train_team_begin(struct train_team *team, size_t floats);
/* Ends what the view began; says whom the group takes for lost. Accepts zeros. */
void train_team_leave(struct train_team *team);

/* This worker's share, as team->shares has it: of parts that are scored, and of batches, unless the
 * strategy divides these in another way (train_strategy_share). */
struct data_share train_team_share(const struct train_team *team);
int train_team_neighbours(const struct train_team *team); /* workers of this host, this one too */
bool train_team_leads(const struct train_team *team);     /* rank 0, or alone */
uint32_t train_team_id(const struct train_team *team);    /* of this worker; 0: alone */
uint32_t train_team_since(const struct train_team *team); /* its first view; 0: alone */
bool train_team_outdated(const struct train_team *team);  /* a newer view was heard of */
bool train_team_stopping(const struct train_team *team);  /* the person asked to stop */
uint64_t train_team_bytes_sent(const struct train_team *team);

/* This worker has found out that another one is wrong: tells the coordinator, and waits for it to
 * decide. Fails: with BASE_ERR_PEER_LOST when the other one is gone. */
base_status train_team_accuse(struct train_team *team, int rank, const char *why);

/* Inside a step, at the same places on every worker: sums of all, in place. What goes wrong is kept
 * in `failure`, and the step is void. */
void train_team_sum(struct train_team *team, float *sums, size_t count);

/* Collectives between steps. */
base_status train_team_gather(struct train_team *team, const void *mine, size_t count, void *all);
base_status train_team_broadcast(struct train_team *team, int root, void *bytes, size_t count);
/* Floats to or from another worker. */
struct train_message {
    int peer;
    bool sends;
    float *at; /* not written to when `sends` */
    size_t count;
};
/* All of these at once. Two workers list what goes between them in the same order. */
base_status train_team_pass(struct train_team *team, const struct train_message *messages,
                            size_t count);
/* The weighted mean over workers, in place; where all weights are 0 they count as 1. */
base_status train_team_mean(struct train_team *team, float *x, size_t count, int64_t weight);
/* root's object becomes that of all workers: *object_p is untouched at root, a new reference
 * elsewhere. */
base_status train_team_tell(struct train_team *team, int root, json_t **object_p);

#endif
