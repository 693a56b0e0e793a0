/* SPDX-License-Identifier: MIT
 *
 * One version of a served model: a bounded queue of jobs, the threads that work on it in batches,
 * and the weights in use. Jobs may be pushed and weights replaced from any thread; scaling and
 * closing are the management's and happen one at a time.
 *
 * A worker computes a batch with the weights that were current when it took the batch, so every
 * answer comes from one checkpoint. It takes `batch_size` jobs, or fewer if the oldest has waited
 * for `max_batch_delay`.
 */
#ifndef SERVE_VERSION_H
#define SERVE_VERSION_H

#include <pthread.h>
#include <time.h>

#include "http/server.h"
#include "serve/handler.h"
#include "serve/loaded.h"
#include "serve/metrics.h"
#include "serve/recent.h"

/* What registration and scaling set. The state file keeps them. */
struct serve_settings {
    int batch_size, max_batch_delay; /* samples, milliseconds */
    int response_timeout;            /* seconds from the request's last byte to its answer */
    int min_workers, max_workers;
    char *handler; /* the handler's name; NULL: chosen by the body */
};

struct serve_job;

/* Turns a kind of request into samples, and values into its answer. */
struct serve_protocol {
    base_status (*read)(const struct serve_loaded *loaded, struct serve_job *job);
    /* Returns y (job->samples.n, outputs) as a JSON value, a new reference. */
    json_t *(*write)(const struct serve_loaded *loaded, const struct serve_job *job,
                     const float *y);
};

struct serve_job {
    struct serve_job *next;
    struct http_request *request;
    const struct serve_protocol *protocol;
    const char *name, *version, *handler; /* those of the version that serves it */
    char *type;                           /* Content-Type, or "" */
    size_t max_pixels;                    /* of an image */
    json_t *id;                           /* the client's id of the request, a string, or NULL */
    struct serve_samples samples;
    json_t *answer; /* of a rating model, which needs no batch; NULL: the samples are computed */
    double arrived;
    base_status st;
    char *why; /* the message of st */
};

struct serve_worker {
    struct serve_version *owner;
    int index;
    pthread_t thread;
    bool started;     /* its thread must be joined */
    bool ready, able; /* it has looked at the weights; it can compute with them */
    time_t since;
    struct serve_loaded *loaded;
    struct nn_lane *lane;
    int generation, threads; /* those of the weights that it last looked at */
};

enum { SERVE_MAX_WORKERS = 64 };

struct serve_version {
    char *name, *version, *url; /* url: what it was registered with */
    bool at_startup, from_store;
    struct serve_settings settings;
    struct serve_counters counters;
    struct serve_recent recent;

    pthread_mutex_t lock;
    pthread_cond_t work;   /* there are jobs, other weights, or fewer workers wanted */
    pthread_cond_t filled; /* enough jobs for the worker that collects a batch */
    pthread_cond_t change; /* a worker became ready or left */
    struct serve_job *first, **last;
    int queued, capacity;
    bool collecting;     /* a worker waits for its batch to fill */
    bool hurried;        /* no worker waits for a full batch any more */
    int wanted, threads; /* workers that there should be; compute threads of all of them */
    struct serve_worker workers[SERVE_MAX_WORKERS];
    struct serve_loaded *loaded; /* NULL: no checkpoint yet */
    int generation;              /* incremented at every replacement of the weights */
    int refs; /* references of the registry and of handlers, which the registry's lock guards */
};

/* Takes over `settings.handler` and one reference to `loaded`. No workers yet. */
struct serve_version *serve_version_new(const char *name, const char *version, const char *url,
                                        struct serve_settings settings, struct serve_loaded *loaded,
                                        int capacity, int threads);
/* Ends the workers once the queue is empty. No other thread may push any more. Accepts NULL. */
void serve_version_free(struct serve_version *version);

/* Scales to settings.min_workers; with `wait` it returns when the new workers are ready and the old
 * ones have left. */
base_status serve_version_scale(struct serve_version *version, int min_workers, int max_workers,
                                bool wait);

struct serve_version_status {
    int wanted, able; /* workers */
    int queued;       /* jobs that wait */
};
struct serve_version_status serve_version_status(struct serve_version *version);

/* Makes workers compute batches that are not full at once, because the server is about to end. */
void serve_version_hurry(struct serve_version *version);

/* Takes over other weights, which are used from the next batch on. */
void serve_version_replace(struct serve_version *version, struct serve_loaded *loaded);
struct serve_loaded *serve_version_loaded(struct serve_version *version); /* a reference, or NULL */

/* Takes over the job and answers it later. False: it is refused, the caller still owns it, and
 * *why_p says why (no worker, queue full). */
bool serve_version_push(struct serve_version *version, struct serve_job *job, const char **why_p);
void serve_job_free(struct serve_job *job);

#endif
