/* SPDX-License-Identifier: MIT
 *
 * What the files of the task `network` share: its work, and who does what of it.
 */
#ifndef TRAIN_TASKS_NETWORK_NETWORK_H
#define TRAIN_TASKS_NETWORK_NETWORK_H

#include "nn/net.h"
#include "train/samples.h"
#include "train/session.h"

struct network {
    struct train_samples samples;
    const struct data_info *info; /* of its set */
    struct nn_graph *graph;
    const struct nn_closed *closed; /* of a model that needs no steps; otherwise NULL … */
    const char *arguments;          /* … and what follows its name */

    /* For this view's share of the batch. */
    struct nn_net *net;
    int piece;            /* samples computed at once */
    int net_piece;        /* that the network was made for */
    const float *weights; /* that the network computes with */
    float *accumulated;   /* gradients of the earlier pieces; NULL when --accumulate 1 */
    int ranges_ready;     /* of the backward under way */

    const struct train_stages *stages; /* of the strategy; NULL: `net` has all layers */

    /* For a strategy that lends. */
    struct nn_group *groups;  /* what is lent at once */
    struct train_lends lends; /* zeros: nothing is */
    int loans, awaits;        /* of the step under way */
    bool begins, ends;        /* the piece under way is the first, the last of its batch … */
    uint32_t has;             /* … and has so many samples; it may have none */

    uint32_t *recorded; /* training samples of --record LAYER:npy; NULL: none are asked for */
    uint32_t recorded_count;

    float *statistics_before; /* as they were before step `before`: … */
    int64_t *tracked_before;  /* … one that fails never was */
    int64_t before;
    int64_t united_samples; /* of this worker, when the statistics were last united */
};

/* ---- tasks/network.c ---- */

/* This worker's share of every batch: where the layers are divided, and not the samples, all of
 * it. */
struct data_share network_share(const struct train_session *session);
/* The network computes with the weights as they are now, wherever they are. */
void network_find_weights(struct train_session *session);

/* The samples are open: what the session says of them follows. */
void network_opened(struct train_session *session);

/* As in struct train_task, for tasks whose model is a network, too; their work begins with a struct
 * network. `text` is that of the network; NULL: the job's model names it. */
base_status network_describe(struct train_session *session, const char *text);
void network_discard(struct train_session *session);
base_status network_start(struct train_session *session);
base_status network_tune(struct train_session *session, const char *wished);
base_status network_fit(struct train_session *session);
int32_t network_order(struct train_session *session, int64_t epoch, uint32_t *ids,
                      int32_t *classes);
base_status network_take(struct train_session *session, const struct train_block *block);
base_status network_next(struct train_session *session, struct data_batch *batch_p);
base_status network_compute(struct train_session *session, const struct data_batch *batch,
                            struct train_outcome *outcome);
void network_undo(struct train_session *session);
base_status network_unite(struct train_session *session);

/* ---- sizes.c ---- */

base_status network_sizes(const struct train_session *session, int workers, int64_t batch,
                          int64_t accumulate, struct train_sizes *sizes_p);

/* ---- loans.c: what the strategy lends goes to the network, and comes back ---- */

base_status network_borrow(void *session, struct nn_loan *loan);
base_status network_give_back(void *session, const struct nn_loan *loan);

/* ---- record.c: --record LAYER:npy ---- */

/* The layers and samples that the job asks for, or what is wrong with them. */
base_status network_record_choose(struct train_session *session);
/* As in struct train_task. */
base_status network_record(struct train_session *session);

/* ---- scores.c: as in struct train_task ---- */

size_t network_score_count(const struct train_session *session);
base_status network_score(struct train_session *session, enum data_part part,
                          struct data_share share, double *score);
void network_score_text(const struct train_session *session, const double *score,
                        struct base_str *text);
json_t *network_score_json(const struct train_session *session, const double *score);
const struct train_grade *network_grade(const struct train_session *session);
void network_result(const struct train_session *session, json_t *result);
double network_graded(const struct train_session *session, const double *score);

#endif
