/* SPDX-License-Identifier: MIT
 *
 * One training under way: shared by setup.c (makes it), loop.c (runs it), result.c (tells it).
 */
#ifndef TRAIN_PRIVATE_H
#define TRAIN_PRIVATE_H

#include "base/events.h"
#include "base/str.h"
#include "data/loader.h"
#include "nn/net.h"
#include "nn/schedule.h"
#include "train/job.h"
#include "train/metrics.h"
#include "train/pace.h"
#include "train/record.h"
#include "train/run.h"
#include "train/state.h"
#include "train/strategy.h"

struct train_session {
    const struct train_job *job;
    int threads;

    struct data_set *set;
    const struct data_info *info;
    struct data_loader *loader;
    uint32_t *order; /* of the current epoch */

    struct nn_graph *graph;
    struct nn_net *net;
    struct train_state state;
    float *accumulated; /* gradients of the earlier pieces; NULL when --accumulate 1 */
    int piece;          /* samples computed at once */
    char *kernels;      /* the kernel plan */

    const struct train_strategy *strategy;
    const struct nn_schedule *schedule;
    struct nn_schedule_setup schedule_setup;
    int64_t steps_per_epoch, last_step; /* the run ends when position.step reaches last_step */

    struct train_run run;
    bool run_started; /* run.json was written: a failure is recorded there */
    struct base_events *events;
    struct train_record *record;
    int64_t saved_step; /* of the newest checkpoint, -1: none */

    double started;
    struct train_times times;
    double wait_cpu;        /* CPU time inside times.wait */
    struct train_pace pace; /* of this process's steps */
    int64_t first_timed_step;

    double train_loss, train_accuracy;  /* of the last epoch, complete or not; NAN: none */
    double window_loss, window_seconds; /* since the last log line */
    int64_t window_correct, window_seen, window_steps;
    double first_loss; /* divergence is judged against it */
    bool stopped_early, tested;
    struct train_metrics test;
};

base_status train_session_open(const struct train_job *job, struct train_session *session);
void train_session_close(struct train_session *session);

/* What a checkpoint's manifest and run.json say about the model and its data; a new reference. */
json_t *train_session_about(const struct train_session *session);
base_status train_session_save(struct train_session *session);

base_status train_loop(struct train_session *session);
base_status train_session_test(struct train_session *session);
bool train_session_stale(const struct train_session *session); /* --patience is used up */

json_t *train_session_result(const struct train_session *session);
base_status train_session_report(struct train_session *session);

#endif
