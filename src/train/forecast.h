/* SPDX-License-Identifier: MIT
 *
 * What a training will need and how long its steps will take, strategy by strategy, before any of
 * it is started: `paceline plan`. Memory is what a training itself counts (train/memory.h). A step
 * is
 *
 *   computing / (1 − bubble) + updating + what of communicating no computing hides
 *
 * where a strategy's `cost` says what of each there is, by formula, and a profile how fast this
 * machine is. Between hosts computing hides communicating, on one host nothing does. Pure
 * arithmetic but for the profile, which the caller measures.
 */
#ifndef TRAIN_FORECAST_H
#define TRAIN_FORECAST_H

#include "train/memory.h"

/* What a step costs a worker; it comes as that of a worker alone with its share of the samples. */
struct train_cost {
    double work;    /* of the computing of its samples, what the busiest worker does: 1 */
    double updates; /* of the weights, what a worker updates: 1 */
    double sent;    /* bytes that the busiest link carries one way */
    double moved;   /* bytes read and written in shared memory, of all workers of a host */
    double hidden;  /* the share of them that travels while the worker computes: 0 … 1 */
    double bubble;  /* the share of the computing time in which it waits by construction */
    bool exact;     /* losses are those of one worker, to rounding */
    bool frail;     /* a lost worker costs all that came after the newest checkpoint */
};

/* Seconds on this machine, by measurement. */
struct train_profile {
    double compute; /* forward and backward of so many samples, the whole model */
    double update;  /* of all weights */
};

/* Where the training is to be. */
struct train_setting {
    int workers, threads; /* threads: of each worker */
    double link;          /* bytes a second between workers on hosts of their own; 0: one host */
    double memory_rate;   /* bytes a second of this host's memory, all cores together */
    double budget;        /* bytes a worker may use; 0: its part of the host */
    /* Measures `samples` at a time; as many workers at once as share a host. */
    base_status (*profile)(void *context, int samples, struct train_profile *profile_p);
    void *context;
};

/* Of one strategy. */
struct train_forecast {
    char *text;                 /* as --strategy takes it */
    double worker, resident;    /* bytes of the worker that needs most; with all that is shared */
    struct train_memory memory; /* its parts */
    bool fits, usual;           /* usual: `auto` stands for it */
    struct train_cost cost;
    double seconds, idle; /* of a step; the share of it in which a worker waits or communicates */
};

struct train_forecasts {
    struct train_forecast *at; /* in the order of the registry */
    size_t count;
    /* Of those that fit and are exact the fastest that is not frail, by train_forecast_judged; the
     * fastest where all are; NULL: none is exact and fits. */
    const struct train_forecast *choice;
};

struct train_session;

/* Opens a session just far enough to know the model: data and description, no memory, no run. `job`
 * stays. End it with train_session_close. */
base_status train_forecast_open(const struct train_job *job, struct train_session *session);
/* Describes another model on the same data. */
base_status train_forecast_model(struct train_session *session, struct train_job *job,
                                 const char *model);

/* `timed`: asks for profiles; else `seconds` are zeros, and the choice means nothing. */
base_status train_forecast_make(struct train_session *session, const struct train_setting *setting,
                                bool timed, struct train_forecasts *forecasts_p);
/* Would one strategy of train_forecast_make fit? */
bool train_forecast_fits(struct train_session *session, const struct train_setting *setting,
                         const char *text);
/* Seconds of a step as choices compare them: the usual strategy stays unless another is faster by
 * more than forecasts err. */
double train_forecast_judged(const struct train_forecast *forecast);
/* What to add to a sentence that tells of a choice: "", or what a frail one costs. */
const char *train_forecast_price(const struct train_forecast *forecast);
void train_forecasts_fini(struct train_forecasts *forecasts);

#endif
