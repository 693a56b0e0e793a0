/* SPDX-License-Identifier: MIT
 *
 * What a training tells while it runs: log lines and the progress bar for a person, events.jsonl
 * for programs, activations for --record, and how long steps take. A step's entry allocates nothing
 * and makes no system call: events go through a ring (base/events.h).
 */
#ifndef TRAIN_JOURNAL_H
#define TRAIN_JOURNAL_H

#include "base/events.h"
#include "train/job.h"
#include "train/pace.h"
#include "train/record.h"
#include "train/run.h"
#include "train/state.h"
#include "train/task.h"
#include "train/tensorboard.h"

/* A step as events.jsonl has it. */
struct train_told {
    int64_t step, epoch, correct, samples;
    double loss, lr, seconds, data, communicate, wait, overlapped;
};

enum {
    TRAIN_REMEMBERED = 1024,
    TRAIN_LOG_SECONDS = 10, /* between log lines beside a progress line */
};

struct train_journal {
    const struct train_job *job;
    const struct train_grade *grade; /* of the task, once that is open */
    struct base_events *events;      /* NULL: another worker writes them */
    struct train_tensorboard *board; /* of --tensorboard, likewise; NULL: it was not given */
    struct train_record *record;     /* of --record; it writes where there are events */
    struct train_told *told;         /* the newest TRAIN_REMEMBERED steps, each at step % that */
    struct train_pace pace;          /* of this process's steps */
    double started;
    int64_t first_step, last_step; /* for the progress bar */
    double shown_loss, shown_rate; /* on it: of the window, or of the last one that had steps */
    struct {                       /* since the last log line */
        struct train_outcome outcome;
        int64_t samples, steps;
        double seconds;
    } window;
};

/* Of a step that is done. `outcome` is of all workers, or of this one where they have not met. */
struct train_entry {
    const struct train_outcome *outcome;
    int64_t samples; /* of the whole batch */
    double lr;
    double seconds; /* of the step, and in it: */
    double data, communicate, wait, overlapped;
};

void train_journal_init(struct train_journal *journal, const struct train_job *job);
void train_journal_fini(struct train_journal *journal);
/* The run's events, and what --tensorboard writes, from `step` on. */
base_status train_journal_open(struct train_journal *journal, const struct train_run *run,
                               int64_t step);
base_status train_journal_close(struct train_journal *journal); /* where it is open */
/* What was told so far is in the files, or closing will tell why not. */
void train_journal_flush(struct train_journal *journal);
/* Where the bar begins and ends; once, before the first step. */
base_status train_journal_plan(struct train_journal *journal, int64_t first, int64_t last);

/* Before and after the computing of a step, for --record: steps that are logged are recorded. */
void train_journal_watch(struct train_journal *journal, int64_t step);
void train_journal_unwatch(struct train_journal *journal);

void train_journal_step(struct train_journal *journal, const struct train_position *position,
                        const struct train_entry *entry);
/* The events that a rank 0 had not yet written are lost with it. To be called by the next one, with
 * `events` open: it tells the steps up to `step` that the run's file lacks and that it knows. */
void train_journal_catch_up(struct train_journal *journal, const struct train_run *run,
                            int64_t step);
/* All workers have gone back from step `from` to an earlier one: what comes after it comes again.
 */
void train_journal_back(struct train_journal *journal, int64_t from, int64_t step);
/* What a part was scored at the end of an epoch. */
struct train_scored {
    bool there;
    double loss, grade;
};

/* Returns the entry of run.json, a new reference. */
json_t *train_journal_epoch(struct train_journal *journal, const struct train_position *position,
                            struct train_scored validation, struct train_scored test);
/* The strategy's own figures after an epoch; NULL: it has none. */
void train_journal_figures(struct train_journal *journal, const struct train_position *position,
                           const json_t *figures);
void train_journal_checkpoint(struct train_journal *journal, int64_t step, double seconds);

#endif
