/* SPDX-License-Identifier: MIT
 *
 * One training under way: shared by setup.c (makes it), enter.c (agrees on it with other workers),
 * loop.c (runs it), result.c (tells it).
 */
#ifndef TRAIN_PRIVATE_H
#define TRAIN_PRIVATE_H

#include "base/events.h"
#include "base/str.h"
#include "data/loader.h"
#include "nn/net.h"
#include "nn/schedule.h"
#include "train/copies.h"
#include "train/fault.h"
#include "train/job.h"
#include "train/metrics.h"
#include "train/pace.h"
#include "train/record.h"
#include "train/round.h"
#include "train/run.h"
#include "train/state.h"
#include "train/team.h"
#include "train/update.h"

struct train_session {
    const struct train_job *job;
    int threads;
    int64_t batch; /* of all workers together */

    struct train_fault fault;
    int ranges_ready; /* of the backward under way */

    struct train_team team;
    const struct train_strategy *strategy;
    void *options;            /* of the strategy */
    struct train_round round; /* of strategies that have rounds */
    double round_loss;        /* of this worker's shares since … */
    int64_t round_correct, round_seen;
    bool whole;      /* the state below is complete; a worker that joins has none yet */
    bool stop;       /* all workers have agreed to */
    bool renew;      /* … and to take the next view */
    uint32_t leader; /* id of the worker that had the run's folder last */

    struct data_set *set;
    const struct data_info *info;
    struct data_loader *loader;
    uint32_t *order; /* of the current epoch */

    struct nn_graph *graph;
    struct nn_net *net;
    struct train_state state;
    struct train_copies copies; /* of it, where workers of one host update it together */
    float *statistics_before;   /* of the step under way: … */
    int64_t *tracked_before;    /* … one that fails never was */
    int64_t averaged_step;      /* at which the workers' statistics became one; -1: never */
    float *accumulated;         /* gradients of the earlier pieces; NULL when --accumulate 1 */
    int piece;                  /* samples computed at once */
    int net_piece;              /* that the network was made for */
    char *kernels;              /* the kernel plan */

    const struct nn_schedule *schedule;
    struct nn_schedule_setup schedule_setup;
    int64_t steps_per_epoch, last_step; /* the run ends when position.step reaches last_step */

    struct train_run run; /* rank 0 has its folder; the others know it */
    bool run_started;     /* run.json was written: a failure is recorded there */
    struct base_events *events;
    struct train_record *record;
    int64_t saved_step; /* of the newest checkpoint, -1: none */

    double started, loop_began, loop_cpu;
    struct train_times times;
    double wait_cpu;          /* CPU time inside times.wait and times.communicate */
    int64_t own_samples;      /* computed by this worker, in the weights */
    int64_t averaged_samples; /* … of which the common statistics are */
    struct train_rank *ranks; /* of all workers, once they are done */
    struct train_pace pace;   /* of this process's steps */
    int64_t first_timed_step;

    double train_loss, train_accuracy;   /* of the last epoch, complete or not; NAN: none */
    double window_loss, window_seconds;  /* since the last log line */
    int64_t window_correct, window_seen; /* of all workers, or between rounds of this one */
    int64_t window_samples, window_steps;
    double first_loss; /* divergence is judged against it */
    bool stopped_early, tested;
    struct train_metrics test;
};

base_status train_session_open(const struct train_job *job, struct cluster_worker *worker,
                               struct train_session *session);
void train_session_close(struct train_session *session);

/* The first of a job makes the state: model, weights or checkpoint, kernel plan. */
base_status train_session_found(struct train_session *session);
/* The others make room for what they will be sent. `model`: its text. */
base_status train_session_follow(struct train_session *session, const char *model,
                                 const char *kernels);
/* Chooses the kernel plan for this view's share of the batch; `wish` as in nn_tune. */
base_status train_session_tune(struct train_session *session, const char *wish);
/* Memory, network and loader for it. */
base_status train_session_fit(struct train_session *session);
/* Rank 0's business: the folder, run.json, events. */
base_status train_session_lead(struct train_session *session, bool takes_over);
/* Gives the state up, for one that is made anew. */
void train_session_unmake(struct train_session *session);

/* Takes the next view: agrees on the state with its members, gives it or gets it. */
base_status train_session_enter(struct train_session *session);

/* What a checkpoint's manifest and run.json say about the model and its data; a new reference. */
json_t *train_session_about(const struct train_session *session);
base_status train_session_save(struct train_session *session);
/* Rank 0: this step's checkpoint is the best one, if it is. */
base_status train_session_mark_best(struct train_session *session);
/* Weights of all workers are the same bits? */
base_status train_session_compare(struct train_session *session);

/* What a worker says of itself in the end. */
struct train_rank {
    uint32_t id;
    char host[64];
    struct train_times times;
    int64_t samples;
    uint64_t bytes_sent, peak_memory;
};

bool train_session_stopped(const struct train_session *session); /* on request */

/* One step on this worker's share; with BASE_OK it is committed, otherwise it never was. */
base_status train_session_step(struct train_session *session, const struct data_batch *batch,
                               double data_seconds);

/* The state is everybody's: what a round that fails goes back to. */
base_status train_session_mark(struct train_session *session);

base_status train_loop(struct train_session *session);
base_status train_session_test(struct train_session *session);
bool train_session_stale(const struct train_session *session); /* --patience is used up */

json_t *train_session_result(const struct train_session *session);
base_status train_session_report(struct train_session *session);

#endif
