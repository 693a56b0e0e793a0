/* SPDX-License-Identifier: MIT
 *
 * A parameter server: it keeps slices of the weights and of the optimiser's slots, and applies what
 * workers push. It is a state machine over a log. Every server gets every entry of the log, in
 * order, from server 0, which makes them (train/strategies/ps/sequencer.h), and has the part of
 * every push that concerns its slices before server 0 makes an entry of it. A slice is kept by two
 * servers where there are two; they apply the same entries in the same order and so have the same
 * bits. After the loss of a server, what any survivor knows of the log is what was decided, and
 * every survivor can go on to its end by itself.
 *
 *   worker        server 0            server 1
 *     values ───────▶ keeps its part                      once or more, while backward goes on
 *     values ────────────────────────▶ keeps its part
 *     push ─────────▶ knows that the values are all
 *     push ──────────────────────────▶ the same
 *                     ◀─────── got ───
 *                     makes entry n ─▶ keeps it, applies it
 *                     applies it ◀ have n
 *     ◀─── answer ─── n survives the loss of one server
 *     pull n ───────▶
 *     ◀── weights ─── or, on its host, that they are in shared memory
 *     ◀── values ──── once or more, while forward goes on
 *
 * A server lives for a leg, on a thread of its own that takes messages; the worker of the same
 * process calls it directly. All state is under one lock. Where servers are apart no worker is in
 * their processes; server 0 then tells the others when the leg is over.
 */
#ifndef TRAIN_STRATEGIES_PS_SERVER_H
#define TRAIN_STRATEGIES_PS_SERVER_H

#include <stdio.h>

#include "base/thread.h"
#include "comm/engine.h"
#include "comm/region.h"
#include "train/session.h"
#include "train/strategies/ps/progress.h"
#include "train/strategies/ps/sequencer.h"

struct ps_parcel;
struct train_wiring;

struct train_slice {
    size_t from, count;
    float *weights; /* what is served; slots are in the state */
};

/* Which ranks of a view serve and which work: most do both, or one of them. */
struct ps_seats {
    int servers;      /* ranks below this one serve */
    int first_worker; /* this rank and those above work */
};

/* How old the weights of a push were when it came into the log: entries since they were read. */
enum { TRAIN_STALENESS = 64 };
struct train_staleness {
    int64_t pushes[TRAIN_STALENESS]; /* by that number; the last: or more */
    int64_t reissued;                /* pushes that came too late, and whose samples went back */
    int64_t refused;                 /* pushes that were rubbish; the same */
};

struct ps_server {
    struct train_session *session;
    int rank, size, servers;
    uint32_t view;
    struct base_mutex lock;
    struct base_signal changed;
    struct train_slice slices[2]; /* its own first */
    int slice_count;
    float *pushes[COMM_MAX_WORKERS]; /* the newest of each worker, slice after slice … */
    struct train_outline outlines[COMM_MAX_WORKERS]; /* … and what it is … */
    enum ps_refusal refusals[COMM_MAX_WORKERS];      /* … or why it is none */
    struct train_log_entry *log;                     /* known and not applied, first to last */
    int log_count;
    /* The newest that were applied, as many as there are workers, by number modulo that. Another
     * server may lack these and no older ones: a worker whose push is in an entry pulls the result
     * from every server before it pushes again. */
    struct train_log_entry *applied_log;
    uint64_t applied;
    struct train_progress progress;
    struct ps_told told;
    bool diverged;

    /* Delay compensation (correct.c). */
    bool corrects;
    float lambda;
    float *mean_squares; /* of gradients, running … */
    bool corrected;      /* … of one push at least */
    struct {
        float *weights;         /* the slices, one after the other … */
        uint64_t number;        /* … as they were after this entry … */
        bool made;              /* … unless none was copied yet */
    } copies[COMM_MAX_WORKERS]; /* that each worker was told to read */

    /* Server 0. */
    struct ps_sequencer sequencer;
    int got[COMM_MAX_WORKERS];                 /* servers that have the worker's push … */
    enum ps_refusal refused[COMM_MAX_WORKERS]; /* … and why one of them refuses it */
    enum ps_refusal last_refusal;
    uint64_t told_of; /* workers of whose rubbish a person was told: bits */
    struct train_staleness staleness;
    uint64_t readers; /* correct.c: workers that were given a block since the newest entry: bits */
    bool stop, renew, news;
    bool over;      /* a worker was told that the leg is … */
    bool dismissed; /* … and so was every process that only serves */
    FILE *reads;    /* tests: which entries the workers had read; NULL: not asked for */
    struct train_outcome entered[COMM_MAX_WORKERS]; /* of the entry with the worker's last push */

    /* Messages. */
    const struct train_wiring *wiring; /* the format of pushes; NULL: floats as they are … */
    size_t bucket;                     /* … so many at a time */
    struct comm_engine *engine;        /* NULL: alone */
    struct base_thread thread;
    bool runs;                   /* the thread does */
    struct comm_task bell;       /* rung to end it early */
    struct comm_task last;       /* the thread has failed, and ends the group */
    struct train_inbox *inboxes; /* of every rank */
    struct train_outbox *outboxes;
    struct comm_region *region;       /* its own slice for workers of its host; NULL: none */
    uint64_t pulls[COMM_MAX_WORKERS]; /* what a worker waits to read; 0: none */
    uint64_t shared_pulls;            /* workers that read it there: bits */
    struct train_ps_body answer;      /* for the main thread of this process … */
    bool answered;                    /* … and it is there */
    base_status failure;
    char message[256];
};

/* The slices that server `rank` keeps: its own, and the one of the server before it. */
int ps_server_slices(size_t floats, int rank, int servers, struct train_slice slices[2]);

/* Gradients of a slice travel in buckets of at most `most` floats, cut from its end. The first
 * float of the one that ends before `end`. */
size_t ps_server_bucket(const struct train_slice *slice, size_t end, size_t most);
/* Weights that are pulled go from a slice's beginning to its end: how many buckets that is. */
size_t ps_server_pull_buckets(const struct train_slice *slice, size_t most);

/* A leg begins, from the session's state; `done`: samples above the cursor that are in it. */
base_status ps_server_open(struct ps_server *server, struct train_session *session,
                           struct ps_seats seats, uint64_t number, struct train_rules rules,
                           int64_t end, const struct train_span *done, int done_count);
/* Before the start: stale gradients will be corrected (correct.c). */
base_status ps_server_correct(struct ps_server *server, double lambda);
/* Takes messages until every worker has said goodbye. */
base_status ps_server_start(struct ps_server *server);
/* Waits for that; then all that it had to send is sent. */
base_status ps_server_finish(struct ps_server *server);
/* Ends the thread at once; what it knows stays. */
void ps_server_abandon(struct ps_server *server);
void ps_server_close(struct ps_server *server); /* accepts zeros */

/* Of the leg's workers, with blocks that can be done now, or applied already (server_check.c)? */
bool ps_server_is_entry(const struct ps_server *server, const struct train_log_entry *entry);

/* For the worker of the same process. `gradients`: all of them; `parcel`: the same packed, where
 * pushes have a format. */
void ps_server_ask(struct ps_server *server);
void ps_server_push(struct ps_server *server, const struct train_outline *outline,
                    const float *gradients, const struct ps_parcel *parcel);
base_status ps_server_wait_answer(struct ps_server *server, struct train_ps_body *answer_p);
/* Of a process that only serves: waits until the leg is over (*over_p, with the answer), or for a
 * moment in which entries may have been applied. */
base_status ps_server_attend(struct ps_server *server, struct train_ps_body *answer_p,
                             bool *over_p);
/* Its own slice, once entry `number` is in it; *number_p: the newest that is. With corrections
 * exactly that entry's. */
base_status ps_server_read(struct ps_server *server, uint64_t number, float *weights,
                           uint64_t *number_p);
/* Moves finished steps out (base_free), and adds what was counted since the last call. */
int ps_server_take_told(struct ps_server *server, struct train_finished **told_p,
                        struct train_staleness *staleness);

/* After the thread's end: all entries that another server may lack; base_free. */
int ps_server_known(const struct ps_server *server, struct train_log_entry **entries_p);
/* The same: entries that other servers know of. Applies what follows on; the same
 * entries may come several times. */
void ps_server_learn(struct ps_server *server, const struct train_log_entry *entries, int count);
/* What is served goes into the state: weights, position. */
void ps_server_land(struct ps_server *server);

#endif
