/* SPDX-License-Identifier: MIT
 *
 * One training under way: a bundle of parts, each with a header of its own. setup.c makes it,
 * enter.c agrees on it with the other workers of a view, loop.c runs it, result.c tells what came
 * out. One thread drives it.
 */
#ifndef TRAIN_SESSION_H
#define TRAIN_SESSION_H

#include "nn/schedule.h"
#include "train/attack.h"
#include "train/clock.h"
#include "train/fault.h"
#include "train/job.h"
#include "train/journal.h"
#include "train/memory.h"
#include "train/run.h"
#include "train/slow.h"
#include "train/state.h"
#include "train/strategy.h"
#include "train/task.h"
#include "train/team.h"
#include "train/trace.h"

/* How far the job goes and by which learning rates; the same on every worker. */
struct train_plan {
    int64_t batch;       /* samples of a step, of all workers together */
    int64_t last_step;   /* the run ends when position.step reaches it */
    int64_t save_every;  /* steps between checkpoints; 0: at each epoch's end */
    int64_t eval_every;  /* epochs between tests; 0: only at the end */
    int64_t judge_every; /* epochs between validations */
    int64_t tell_every;  /* epochs between lines and entries of run.json */
    const struct nn_schedule *schedule;
    struct nn_schedule_setup schedule_setup;
};

/* What all workers of a view have decided together. */
struct train_verdict {
    bool stop;   /* a person asked to */
    bool renew;  /* take the next view */
    bool news;   /* a person has changed settings: the leg ends, and they are taken */
    bool shares; /* batches are divided in another way from now on: the same */
};

/* Says a worker that would have to make a state where there was one. */
#define TRAIN_STATE_UNKNOWN                                                                        \
    "no worker is left that knows the state of the training; go on from its last checkpoint with " \
    "--resume"

struct train_rank;

struct train_session {
    /* For as long as the process trains. */
    const struct train_job *job;
    int threads;
    struct train_shares_plan shares_plan; /* of --shares at:… */
    const struct train_task *task;
    void *work;                 /* the task's own */
    uint32_t count[DATA_PARTS]; /* samples of each part, by which the job counts epochs … */
    uint32_t own_samples; /* … and of the training part that this worker has; the same, but where
                           * every worker has data of its own: then `count` is the first one's */
    uint32_t shape;       /* checksum of what a sample is and what is predicted */
    const char *digest;   /* of the data */
    const char *former_digest; /* the same before this call added some; NULL: it did not */
    const char *excluded;      /* digest of the index of --exclude; "": none */
    const char *data_names;    /* digest of the names of its files, "" without such … */
    const char *data_path;     /* … and where they are; NULL: in no place */
    bool data_failed;          /* a sample cannot be read, and the session ends */
    const struct train_strategy *strategy;
    void *options;                    /* of the strategy, as they hold now */
    void *strategy_state;             /* its own, across views */
    void *first_options;              /* of the strategy, as the job has them */
    struct cluster_settings settings; /* changed since by a person; `options` follows them */
    struct train_fault fault;
    struct train_attackers attackers;
    struct train_clock clock;
    struct train_trace trace; /* of the clock */
    struct train_slow slow;
    struct train_journal journal;
    struct {
        double program, data, files; /* bytes of the process when the data had been opened */
    } before;
    struct train_memory memory; /* what this worker needs, by estimate */

    /* The model, from the first view in which this worker has it. */
    struct train_state state;
    bool closed;      /* its weights are computed in one step, by task->solve */
    bool lazy;        /* a step changes those weights alone that have a gradient (nn/optimiser.h) */
    bool whole;       /* what it holds of it is complete; a worker that joins has none yet */
    bool begun;       /* it has had a state, and knows from where that can begin again */
    bool about_waits; /* run.json tells of data that was added once a checkpoint does */
    struct store_checkpoint origin; /* what the state is loaded from, until it is */
    int64_t united_step;            /* at which all of it was the same on every worker; -1: never */
    int64_t samples;                /* computed by this worker; once in the weights, but for … */
    int64_t lost_samples, lost_steps; /* … those before a return to a checkpoint */
    int64_t back_from; /* step before a return that is not told yet; -1: there is none */
    int64_t reached;   /* newest step that it heard to be done by others, in a leg that ended
                        * half-way: what a return is told from; -1: none */
    int64_t saved_samples, saved_samples_step; /* as of the newest save */
    double first_loss;                         /* divergence is judged against it; 0: no step yet */
    char *kernels;                             /* the kernel plan */
    struct train_plan plan;
    double *test;        /* score on the test part, while `tested` */
    int64_t tested_step; /* of the weights after this step */

    /* The run: rank 0 has its folder, the others know it. */
    struct train_run run;
    bool run_started;    /* this worker has begun to write run.json, and records how the job ends */
    int64_t saved_step;  /* of the newest checkpoint, -1: none */
    int64_t wrote_step;  /* of the newest checkpoint that this process wrote, -1: none */
    bool logged;         /* this worker's lines go into the folder, too */
    uint32_t leader;     /* id of the worker that had the folder last */
    json_t *figures;     /* the strategy's own, of all workers, when they last met; or NULL */
    double next_figures; /* when this worker's are told next */
    struct train_rank *ranks; /* of the last view, once it is done; NULL before */
    json_t *result;           /* the same */

    /* One view. */
    struct train_team team;
    bool opened; /* the strategy is */
    bool tested; /* since the last step */
    struct train_verdict verdict;
    struct train_watch *watch; /* for workers that become slow */
};

/* Samples of a batch: no more than there are. */
static inline uint32_t train_session_whole(const struct train_session *session, int64_t batch)
{
    uint32_t all = session->count[DATA_TRAIN];

    return batch < all ? (uint32_t)batch : all;
}

/* ---- setup.c ---- */

base_status train_session_open(const struct train_job *job, struct cluster_worker *worker,
                               struct train_session *session);
void train_session_close(struct train_session *session);
/* The task opens its data; what the process has then is what its estimate begins with. */
base_status train_session_open_task(struct train_session *session);
/* The first worker of a job describes the state: a new one, or a checkpoint's. */
base_status train_session_create(struct train_session *session);
/* The others make room for the state they will be sent. */
base_status train_session_follow(struct train_session *session, const char *model,
                                 const char *kernels, const struct train_position *position);
/* Gives the state up, for one that is made anew. */
void train_session_discard(struct train_session *session);
/* What each worker of the view is to hold, by rank; base_free. */
struct train_holds *train_session_places(const struct train_session *session);

/* ---- begin.c ---- */

/* The position of session->origin. Of data to which some was added, the plan begins anew. */
base_status train_session_load_position(struct train_session *session);
/* Was session->origin trained on other data than the session has? */
bool train_session_is_grown(const struct train_session *session);
/* The state begins from a file: a checkpoint, or --init. */
bool train_session_has_file(const struct train_session *session);
/* Fills what each worker holds, anew: from the seed, then from the file that rank `source` has.
 * `started`: this worker has the seed's values. */
base_status train_session_begin_state(struct train_session *session,
                                      const struct train_holds *places, int source, bool started,
                                      bool file);
/* No version of the state is whole: finds the worker that has the newest checkpoint of the run, or
 * `*source_p` for the seed; its position is then that one. Every worker's state is void. `leader`
 * is the id of the worker that has the folder from now on. */
base_status train_session_go_back(struct train_session *session, uint32_t leader, int *source_p);

/* ---- enter.c ---- */

/* Takes the next view: agrees on the state with its members, gives it or gets it. */
base_status train_session_enter(struct train_session *session);
/* Between two legs of a view, on all of its workers: the strategy's places have changed, and the
 * state follows. */
base_status train_session_move(struct train_session *session);
/* Ends what the view began. Accepts a session without a view. */
void train_session_leave(struct train_session *session);

/* ---- compare.c ---- */

/* Do all workers that hold a range have the same bits there? */
base_status train_session_compare(struct train_session *session);

/* ---- lead.c ---- */

/* run.json has an entry an epoch: those after the position come anew. */
void train_session_forget_epochs(struct train_session *session);

/* What a checkpoint's manifest and run.json say about the model and its data; a new reference. */
json_t *train_session_about(const struct train_session *session);
/* Rank 0's business: the run's folder, run.json, events. */
base_status train_session_lead(struct train_session *session, bool takes_over);

/* Rank 0: makes the run's folder again, with a warning, if it was removed or moved. */
base_status train_session_keep_folder(struct train_session *session);

/* ---- save.c ---- */

/* All of the state becomes the same on every worker; all of them call it at the same step. */
base_status train_session_unite(struct train_session *session);
/* --checkpoint-every, or each epoch's end, asks for a checkpoint of this step. */
bool train_session_save_is_due(const struct train_session *session);
/* A checkpoint of this step, unless it is there; all workers call it. */
base_status train_session_save(struct train_session *session);
/* Rank 0: this step's checkpoint is the best one, if it is. */
base_status train_session_mark_best(struct train_session *session);
/* A sample cannot be read: keeps the steps up to there. Returns `st`, with its message. */
base_status train_session_save_failed(struct train_session *session, base_status st);
/* The job has ended under this worker, in BASE_ERR_INTERRUPTED: saves what it has, if no other
 * worker does. */
base_status train_session_save_alone(struct train_session *session);

/* ---- score.c ---- */

/* Scores a part of the data, each worker its share; `score` has task->score_count numbers. */
base_status train_session_score(struct train_session *session, enum data_part part, double *score);
/* Of the test part, into session->test. */
base_status train_session_test(struct train_session *session);
/* The same for the weights of the best checkpoint; the state stays as it is. Where rank 0 cannot
 * read that checkpoint, a warning says so, and the test is left as it is. */
base_status train_session_test_best(struct train_session *session);

/* ---- train.c ---- */

/* All steps are done: result, report, the run closed. */
base_status train_session_finish(struct train_session *session);

/* ---- loop.c ---- */

base_status train_loop(struct train_session *session);
bool train_session_stopped(const struct train_session *session); /* on request */
/* The leg under way ends: a stop, or a newer view. */
bool train_session_halts(const struct train_session *session);
bool train_session_stale(const struct train_session *session); /* --patience is used up */

/* ---- result.c ---- */

/* What a worker says of itself at the end. */
struct train_rank {
    uint32_t id;
    char host[64];
    struct train_times times;
    int64_t samples;
    uint64_t bytes_sent, peak_memory;
    uint32_t roles; /* bits of enum cluster_role */
};

/* What all workers say of themselves, into session->ranks. */
base_status train_session_gather_ranks(struct train_session *session);
json_t *train_session_result(const struct train_session *session); /* the object of docs/json.md */
base_status train_session_report(const struct train_session *session); /* report.txt */

#endif
