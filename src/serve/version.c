/* SPDX-License-Identifier: MIT
 *
 * The queue and the life of workers; what a worker does with a batch is batch.c.
 */
#include "serve/version.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "nn/threads.h"
#include "serve/batch.h"
#include <errno.h>

struct serve_version *serve_version_new(const char *name, const char *version, const char *url,
                                        struct serve_settings settings, struct serve_loaded *loaded,
                                        int capacity, int threads)
{
    struct serve_version *v = base_calloc(1, sizeof *v);
    pthread_condattr_t monotonic;

    v->name = base_strdup(name);
    v->version = base_strdup(version);
    v->url = base_strdup(url);
    v->settings = settings;
    v->loaded = loaded;
    v->capacity = capacity;
    v->threads = threads;
    v->last = &v->first;
    v->refs = 1;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->work, &monotonic);
    pthread_cond_init(&v->filled, &monotonic);
    pthread_cond_init(&v->change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return v;
}

void serve_version_free(struct serve_version *v)
{
    if (v == NULL)
        return;
    base_ignore(serve_version_scale(v, 0, 0, true));
    serve_loaded_unref(v->loaded);
    pthread_cond_destroy(&v->change);
    pthread_cond_destroy(&v->filled);
    pthread_cond_destroy(&v->work);
    pthread_mutex_destroy(&v->lock);
    base_free(v->settings.handler);
    base_free(v->url);
    base_free(v->version);
    base_free(v->name);
    base_free(v);
}

void serve_job_free(struct serve_job *job)
{
    if (job == NULL)
        return;
    json_decref(job->id);
    json_decref(job->answer);
    base_free(job->samples.x);
    base_free(job->type);
    base_free(job->why);
    base_free(job);
}

/* ---- the queue ---- */

bool serve_version_push(struct serve_version *v, struct serve_job *job, const char **why_p)
{
    *why_p = NULL;
    job->next = NULL;
    job->arrived = base_now();
    pthread_mutex_lock(&v->lock);
    if (v->wanted == 0)
        *why_p = "has no worker to serve inference request. Please use scale workers API to add "
                 "workers.";
    else if (v->loaded == NULL)
        *why_p = "has no checkpoint yet; its training has saved none.";
    else if (v->queued >= v->capacity)
        *why_p = "has no place in its queue; try again later.";
    if (*why_p == NULL) {
        *v->last = job;
        v->last = &job->next;
        v->queued++;
        if (!v->collecting)
            pthread_cond_signal(&v->work);
        else if (v->queued >= v->settings.batch_size)
            pthread_cond_signal(&v->filled);
    }
    pthread_mutex_unlock(&v->lock);
    return *why_p == NULL;
}

/* Call it under the lock, with jobs in the queue. Waits for a full batch until the oldest job has
 * waited long enough or the worker is to leave, then takes the jobs there are. */
static struct serve_job *take_batch(struct serve_version *v, const struct serve_worker *w)
{
    struct timespec at = base_timespec(v->first->arrived + v->settings.max_batch_delay / 1e3);
    struct serve_job *batch = v->first, **end = &v->first;
    int late = 0;

    v->collecting = true;
    while (v->queued < v->settings.batch_size && late == 0 && w->index < v->wanted && !v->hurried)
        late = pthread_cond_timedwait(&v->filled, &v->lock, &at);
    v->collecting = false;
    for (int i = 0; i < v->settings.batch_size && *end != NULL; i++) {
        end = &(*end)->next;
        v->queued--;
    }
    v->first = *end;
    *end = NULL;
    if (v->first == NULL)
        v->last = &v->first;
    else
        pthread_cond_signal(&v->work);
    if (v->wanted == 0) /* the other workers leave once the queue is empty */
        pthread_cond_broadcast(&v->work);
    return batch;
}

/* ---- a worker ---- */

static void drop_weights(struct serve_worker *w)
{
    nn_lane_free(w->lane);
    serve_loaded_unref(w->loaded);
    w->lane = NULL;
    w->loaded = NULL;
}

/* Makes what the worker computes with. The worker's own thread does it, because that fixes the
 * number of compute threads. A worker that cannot get the memory goes on with the weights it has.
 */
static void take_weights(struct serve_worker *w, struct serve_loaded *loaded, int threads)
{
    struct nn_lane *lane = NULL;

    nn_threads_set(threads);
    if (loaded != NULL && loaded->infer != NULL && nn_lane_new(loaded->infer, &lane) != BASE_OK) {
        base_warn("a worker of %s cannot take its weights: %s", w->owner->name, base_message());
        serve_loaded_unref(loaded);
        return;
    }
    drop_weights(w);
    w->lane = lane;
    w->loaded = loaded;
}

static int share_of_threads(const struct serve_version *v)
{
    return v->wanted > 0 && v->threads > v->wanted ? v->threads / v->wanted : 1;
}

/* Call it under the lock. True for a worker too many; the last worker leaves when the queue is
 * empty. */
static bool may_leave(const struct serve_version *v, const struct serve_worker *w)
{
    return w->index >= v->wanted && (v->first == NULL || v->wanted > 0);
}

/* Call it under the lock, which it releases meanwhile. */
static void look_at_weights(struct serve_version *v, struct serve_worker *w)
{
    struct serve_loaded *loaded = serve_loaded_ref(v->loaded);

    w->generation = v->generation;
    w->threads = share_of_threads(v);
    pthread_mutex_unlock(&v->lock);
    take_weights(w, loaded, w->threads);
    pthread_mutex_lock(&v->lock);
    w->ready = true;
    w->able = w->loaded != NULL;
    pthread_cond_broadcast(&v->change);
}

static void *work(void *argument)
{
    struct serve_worker *w = argument;
    struct serve_version *v = w->owner;

    pthread_mutex_lock(&v->lock);
    while (!may_leave(v, w)) {
        if (w->index < v->wanted &&
            (w->generation != v->generation || w->threads != share_of_threads(v))) {
            look_at_weights(v, w);
        } else if (v->first != NULL && !v->collecting) {
            struct serve_job *batch = take_batch(v, w);

            if (w->generation != v->generation) /* new weights came while the batch filled */
                look_at_weights(v, w);
            pthread_mutex_unlock(&v->lock);
            serve_batch_run(v, w, batch);
            pthread_mutex_lock(&v->lock);
        } else {
            pthread_cond_wait(&v->work, &v->lock);
        }
    }
    w->ready = w->able = false;
    pthread_cond_broadcast(&v->change);
    pthread_mutex_unlock(&v->lock);
    drop_weights(w);
    return NULL;
}

/* Call it under the lock. */
static base_status start_worker(struct serve_version *v, int index)
{
    struct serve_worker *w = &v->workers[index];

    *w = (struct serve_worker){.owner = v, .index = index, .generation = -1, .since = time(NULL)};
    if ((errno = pthread_create(&w->thread, NULL, work, w)) != 0)
        return base_fail(BASE_ERR_MEMORY, "cannot start a worker: %m");
    w->started = true;
    return BASE_OK;
}

/* Waits for workers that were told to leave, with the lock released. */
static void join_leaving(struct serve_version *v)
{
    for (int i = v->wanted; i < SERVE_MAX_WORKERS; i++)
        if (v->workers[i].started) {
            pthread_mutex_unlock(&v->lock);
            pthread_join(v->workers[i].thread, NULL);
            pthread_mutex_lock(&v->lock);
            v->workers[i].started = false;
        }
}

/* Call it under the lock, which it releases meanwhile. */
static base_status wait_for_workers(struct serve_version *v)
{
    for (int i = 0; i < v->wanted; i++) {
        while (!v->workers[i].ready)
            pthread_cond_wait(&v->change, &v->lock);
        if (v->loaded != NULL && !v->workers[i].able)
            return base_fail(BASE_ERR_MEMORY,
                             "a worker of %s could not be started; the server's log says why",
                             v->name);
    }
    return BASE_OK;
}

base_status serve_version_scale(struct serve_version *v, int min_workers, int max_workers,
                                bool wait)
{
    base_status st = BASE_OK;

    pthread_mutex_lock(&v->lock);
    join_leaving(v); /* those of the last scaling */
    v->settings.min_workers = v->wanted = min_workers;
    v->settings.max_workers = max_workers;
    for (int i = 0; i < min_workers; i++)
        if (!v->workers[i].started)
            TRY(start_worker(v, i));
    pthread_cond_broadcast(&v->work);
    pthread_cond_broadcast(&v->filled);
    if (wait) {
        join_leaving(v);
        TRY(wait_for_workers(v));
    }
out:
    if (st != BASE_OK) { /* wants as many as could be started */
        v->wanted = 0;
        while (v->wanted < min_workers && v->workers[v->wanted].started)
            v->wanted++;
        v->settings.min_workers = v->wanted;
    }
    pthread_mutex_unlock(&v->lock);
    return st;
}

struct serve_version_status serve_version_status(struct serve_version *v)
{
    struct serve_version_status status = {0};

    pthread_mutex_lock(&v->lock);
    status.wanted = v->wanted;
    status.queued = v->queued;
    for (int i = 0; i < v->wanted; i++)
        status.able += v->workers[i].able;
    pthread_mutex_unlock(&v->lock);
    return status;
}

void serve_version_hurry(struct serve_version *v)
{
    pthread_mutex_lock(&v->lock);
    v->hurried = true;
    pthread_cond_broadcast(&v->filled);
    pthread_mutex_unlock(&v->lock);
}

/* ---- weights ---- */

void serve_version_replace(struct serve_version *v, struct serve_loaded *loaded)
{
    struct serve_loaded *old;

    pthread_mutex_lock(&v->lock);
    old = v->loaded;
    v->loaded = loaded;
    v->generation++;
    pthread_cond_broadcast(&v->work);
    pthread_mutex_unlock(&v->lock);
    serve_loaded_unref(old);
}

struct serve_loaded *serve_version_loaded(struct serve_version *v)
{
    struct serve_loaded *loaded;

    pthread_mutex_lock(&v->lock);
    loaded = serve_loaded_ref(v->loaded);
    pthread_mutex_unlock(&v->lock);
    return loaded;
}
