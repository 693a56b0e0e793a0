/* SPDX-License-Identifier: MIT
 *
 * An event's data is one line of JSON: {"models":[{"name","version","requests","refused","queued",
 * "rate","p50_ms","p99_ms"}]}. Rate and latencies are those of the last second; the latencies are
 * null when it had no request, and are read from the counters' buckets, so they are a little
 * coarse.
 */
#include "serve/live.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "http/stream.h"
#include "serve/answer.h"

enum { MAX_STREAMS = 16, MAX_MODELS = 64 };

/* Counters of a version as they were a second ago. */
struct before {
    const struct serve_counters *counters;
    unsigned long long requests, latency[SERVE_BUCKETS];
};

struct serve_live {
    struct serve *serve;
    pthread_mutex_t lock;
    pthread_cond_t change; /* a stream came, or the end */
    struct http_stream *streams[MAX_STREAMS];
    int count;
    bool ends;
    pthread_t thread;
    struct before before[MAX_MODELS]; /* the thread's own */
    double seconds;                   /* when that was */
};

/* The latency, in milliseconds, that a share of the requests stayed below. */
static json_t *quantile(const unsigned long long *buckets, unsigned long long total, double share)
{
    double want = share * (double)total, below = 0;

    if (total == 0)
        return json_null();
    for (int b = 0; b < SERVE_BUCKETS; b++) {
        double here = (double)buckets[b], low = b == 0 ? 5 : (double)(5ull << b);

        if (here > 0 && below + here >= want)
            return json_real(low * exp2((want - below) / here) / 1e3); /* buckets double */
        below += here;
    }
    return json_null();
}

static json_t *describe(struct serve_version *v, struct before *before, double seconds)
{
    struct serve_counters *c = &v->counters;
    unsigned long long requests = atomic_load(&c->requests), buckets[SERVE_BUCKETS], total = 0;
    struct before now = {.counters = c, .requests = requests};

    if (before->counters != c) /* the first look at this version */
        *before = (struct before){.requests = requests};
    for (int b = 0; b < SERVE_BUCKETS; b++) {
        now.latency[b] = atomic_load(&c->latency[b]);
        buckets[b] = before->counters == c ? now.latency[b] - before->latency[b] : 0;
        total += buckets[b];
    }
    double rate = (double)(requests - before->requests) / seconds;

    *before = now;
    return json_pack("{s:s, s:s, s:I, s:I, s:i, s:f, s:o, s:o}", "name", v->name, "version",
                     v->version, "requests", (json_int_t)requests, "refused",
                     (json_int_t)atomic_load(&c->refused), "queued", serve_version_status(v).queued,
                     "rate", rate, "p50_ms", quantile(buckets, total, 0.5), "p99_ms",
                     quantile(buckets, total, 0.99));
}

/* "data: {…}\n\n"; base_free */
static char *make_event(struct serve_live *live)
{
    struct serve_models *models = live->serve->models;
    double now = base_now(), seconds = fmax(now - live->seconds, 1e-3);
    json_t *list = json_array(), *document = json_pack("{s:o}", "models", list);
    size_t count;
    struct serve_version **all = serve_models_list(models, false, &count);
    char *text, *event;

    for (size_t i = 0; i < count; i++) {
        if (i < MAX_MODELS)
            json_array_append_new(list, describe(all[i], &live->before[i], seconds));
        serve_models_release(models, all[i]);
    }
    base_free(all);
    live->seconds = now;
    text = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(6));
    event = base_format("data: %s\n\n", text);
    base_free(text);
    json_decref(document);
    return event;
}

/* The lock is held. Streams whose client is gone are ended. */
static void send_all(struct serve_live *live, const char *event)
{
    int kept = 0;

    for (int i = 0; i < live->count; i++) {
        if (http_stream_send(live->streams[i], event, strlen(event)))
            live->streams[kept++] = live->streams[i];
        else
            http_stream_end(live->streams[i]);
    }
    live->count = kept;
}

static void *tell(void *argument)
{
    struct serve_live *live = argument;

    pthread_mutex_lock(&live->lock);
    while (!live->ends) {
        struct timespec at;
        char *event;

        if (live->count == 0) {
            pthread_cond_wait(&live->change, &live->lock);
            continue;
        }
        event = make_event(live);
        send_all(live, event);
        base_free(event);
        at = base_timespec(base_now() + 1);
        while (!live->ends && live->count > 0 &&
               pthread_cond_timedwait(&live->change, &live->lock, &at) == 0)
            ;
    }
    for (int i = 0; i < live->count; i++)
        http_stream_end(live->streams[i]);
    pthread_mutex_unlock(&live->lock);
    return NULL;
}

void serve_live_open(void *context, struct http_request *request)
{
    struct serve *serve = context;
    struct serve_live *live = serve->live;

    pthread_mutex_lock(&live->lock);
    if (live->count == MAX_STREAMS) {
        serve_refuse(request, 503, NULL, "%d pages look already", MAX_STREAMS);
    } else {
        live->streams[live->count++] = http_stream_begin(request, "text/event-stream");
        pthread_cond_signal(&live->change);
    }
    pthread_mutex_unlock(&live->lock);
}

base_status serve_live_new(struct serve *serve, struct serve_live **live_p)
{
    struct serve_live *live = base_calloc(1, sizeof *live);
    pthread_condattr_t monotonic;

    *live_p = live;
    live->serve = serve;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&live->lock, NULL);
    pthread_cond_init(&live->change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if ((errno = pthread_create(&live->thread, NULL, tell, live)) == 0)
        return BASE_OK;
    live->ends = true;
    return base_fail(BASE_ERR_IO, "cannot start a thread: %m");
}

void serve_live_free(struct serve_live *live)
{
    bool runs;

    if (live == NULL)
        return;
    pthread_mutex_lock(&live->lock);
    runs = !live->ends;
    live->ends = true;
    pthread_cond_signal(&live->change);
    pthread_mutex_unlock(&live->lock);
    if (runs)
        pthread_join(live->thread, NULL);
    pthread_cond_destroy(&live->change);
    pthread_mutex_destroy(&live->lock);
    base_free(live);
}
