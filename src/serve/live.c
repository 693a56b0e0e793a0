/* SPDX-License-Identifier: MIT
 *
 * An event's data is one line of JSON: {"models":[{"name","version","default","requests","refused",
 * "queued","rate","p50_ms","p99_ms","step","input","outputs"}]}. Rate and latencies are those of
 * the last five seconds, 0 where they had no request; the last three are missing while there is no
 * checkpoint.
 */
#include "serve/live.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "http/stream.h"
#include "serve/answer.h"

enum { MAX_STREAMS = 16 };
static const double WINDOW = 5; /* seconds */

struct serve_live {
    struct serve *serve;
    pthread_mutex_t lock;
    pthread_cond_t change; /* a stream came, or the server ends */
    struct http_stream *streams[MAX_STREAMS];
    int count;
    bool ends;
    pthread_t thread;
};

static json_t *describe(struct serve_version *v, bool is_default, double now)
{
    struct serve_pace pace = serve_recent_pace(&v->recent, now, WINDOW);
    struct serve_loaded *loaded = serve_version_loaded(v);
    json_t *model = json_pack("{s:s, s:s, s:b, s:I, s:I, s:i, s:f, s:f, s:f}", "name", v->name,
                              "version", v->version, "default", is_default, "requests",
                              (json_int_t)atomic_load(&v->counters.requests), "refused",
                              (json_int_t)atomic_load(&v->counters.refused), "queued",
                              serve_version_status(v).queued, "rate", pace.per_second, "p50_ms",
                              pace.p50 * 1e3, "p99_ms", pace.p99 * 1e3);

    if (loaded != NULL) {
        struct nn_shape in = loaded->model.about.input;

        json_object_set_new(model, "step", json_integer((json_int_t)loaded->model.checkpoint.step));
        json_object_set_new(model, "input", json_pack("[i, i, i]", in.c, in.h, in.w));
        json_object_set_new(model, "outputs", json_integer(loaded->outputs));
        serve_loaded_unref(loaded);
    }
    return model;
}

/* Makes "data: {…}\n\n"; base_free. */
static char *make_event(struct serve_live *live)
{
    struct serve_models *models = live->serve->models;
    double now = base_now();
    json_t *list = json_array(), *document = json_pack("{s:o}", "models", list);
    size_t count;
    struct serve_version **all = serve_models_list(models, false, &count);
    char *text, *event;

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, describe(all[i], serve_models_is_default(models, all[i]), now));
        serve_models_release(models, all[i]);
    }
    base_free(all);
    text = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(6));
    event = base_format("data: %s\n\n", text);
    base_free(text);
    json_decref(document);
    return event;
}

/* Call it under the lock. Ends the streams whose client is gone. */
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
