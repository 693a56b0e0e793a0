/* SPDX-License-Identifier: MIT */
#include "http/live.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "http/stream.h"

enum { MAX_STREAMS = 16 };

struct http_live {
    double seconds;
    http_live_tell *tell;
    void *context;
    struct base_mutex lock;
    struct base_signal change; /* a stream came, or the server ends */
    struct {
        struct http_stream *stream;
        bool fresh; /* it was told nothing yet */
    } pages[MAX_STREAMS];
    int count;
    bool ends, runs;
    struct base_thread thread;
};

static bool send_text(struct http_stream *stream, const char *event)
{
    /* A comment finds out whether the client is still there. */
    const char *text = event != NULL ? event : ":\n\n";

    return http_stream_send(stream, text, strlen(text));
}

/* With the lock held. Ends the streams whose client is gone. */
static void send_all(struct http_live *live, const char *news)
{
    char *first = NULL;
    int kept = 0;

    for (int i = 0; i < live->count; i++) {
        struct http_stream *stream = live->pages[i].stream;
        bool fresh = live->pages[i].fresh;

        if (fresh && first == NULL)
            first = live->tell(live->context, true);
        if (send_text(stream, fresh ? first : news)) {
            live->pages[kept].fresh = false;
            live->pages[kept++].stream = stream;
        } else {
            http_stream_end(stream);
        }
    }
    live->count = kept;
    base_free(first);
}

/* With the lock held, which is free while the event is made: that may take its time. */
static void tick(struct http_live *live)
{
    char *news;

    base_mutex_unlock(&live->lock);
    news = live->tell(live->context, false);
    base_mutex_lock(&live->lock);
    send_all(live, news);
    base_free(news);
}

/* With the lock held. */
static bool has_fresh(const struct http_live *live)
{
    return live->count > 0 && live->pages[live->count - 1].fresh;
}

static void *live_thread(void *argument)
{
    struct http_live *live = argument;

    base_mutex_lock(&live->lock);
    while (!live->ends) {
        double next = base_now() + live->seconds;

        if (live->count == 0) {
            base_signal_wait(&live->change, &live->lock, INFINITY);
            continue;
        }
        tick(live);
        while (!live->ends && live->count > 0 && !has_fresh(live) && base_now() < next)
            base_signal_wait(&live->change, &live->lock, next);
    }
    if (live->count > 0)
        tick(live);
    for (int i = 0; i < live->count; i++)
        http_stream_end(live->pages[i].stream);
    base_mutex_unlock(&live->lock);
    return NULL;
}

void http_live_open(struct http_live *live, struct http_request *request)
{
    char why[64];

    base_mutex_lock(&live->lock);
    if (live->ends || live->count == MAX_STREAMS) {
        snprintf(why, sizeof why, "%d pages look already", MAX_STREAMS);
        http_refuse(request, 503, live->ends ? "the server is ending" : why);
    } else {
        live->pages[live->count].fresh = true;
        live->pages[live->count++].stream = http_stream_begin(request, "text/event-stream");
        base_signal_wake(&live->change);
    }
    base_mutex_unlock(&live->lock);
}

base_status http_live_new(double seconds, http_live_tell *tell, void *context,
                          struct http_live **live_p)
{
    struct http_live *live = base_calloc(1, sizeof *live);
    base_status st;

    *live_p = live;
    live->seconds = seconds;
    live->tell = tell;
    live->context = context;
    base_mutex_init(&live->lock);
    base_signal_init(&live->change);
    st = base_thread_start(&live->thread, "live", live_thread, live);
    live->runs = st == BASE_OK;
    return st;
}

void http_live_stop(struct http_live *live)
{
    base_mutex_lock(&live->lock);
    live->ends = true;
    base_signal_wake(&live->change);
    base_mutex_unlock(&live->lock);
    if (live->runs)
        base_thread_join(&live->thread);
    live->runs = false;
}

void http_live_free(struct http_live *live)
{
    if (live == NULL)
        return;
    http_live_stop(live);
    base_signal_fini(&live->change);
    base_mutex_fini(&live->lock);
    base_free(live);
}
