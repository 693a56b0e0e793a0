/* SPDX-License-Identifier: MIT
 *
 * A stream belongs to its sender and to libmicrohttpd's response; the second to let go frees it.
 * The server's lock guards it. libmicrohttpd asks for bytes on its own thread; when there are none
 * the connection is suspended, and the next send resumes it.
 */
#include "http/stream.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "http/http_private.h"

enum { WAITING_LIMIT = 1 << 20, BLOCK = 4096 };

static ssize_t give_bytes(void *context, uint64_t at, char *to, size_t most)
{
    struct http_stream *s = context;
    ssize_t count = 0;

    (void)at;
    pthread_mutex_lock(&s->server->lock);
    if (s->waiting.length > 0) {
        size_t taken = s->waiting.length < most ? s->waiting.length : most;

        memcpy(to, s->waiting.text, taken);
        memmove(s->waiting.text, s->waiting.text + taken, s->waiting.length - taken);
        s->waiting.length -= taken;
        count = (ssize_t)taken;
    } else if (s->ended) {
        count = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        s->asleep = true;
        MHD_suspend_connection(s->connection);
    }
    pthread_mutex_unlock(&s->server->lock);
    return count;
}

/* One of the two owners releases the stream. */
static void let_go(struct http_stream *s, bool *owner)
{
    struct http_server *server = s->server;
    bool last;

    pthread_mutex_lock(&server->lock);
    *owner = false;
    if (!s->has_client && s->request != NULL) {
        s->request->stream = NULL;
        s->request = NULL;
    }
    last = !s->has_sender && !s->has_client;
    pthread_mutex_unlock(&server->lock);
    if (!last)
        return;
    base_str_fini(&s->waiting);
    base_free(s);
}

static void client_gone(void *context)
{
    struct http_stream *s = context;

    let_go(s, &s->has_client);
}

struct http_stream *http_stream_begin(struct http_request *request, const char *type)
{
    struct http_stream *s = base_calloc(1, sizeof *s);
    struct MHD_Response *response;

    *s = (struct http_stream){.server = request->server,
                              .connection = request->connection,
                              .link = request->link,
                              .request = request,
                              .has_sender = true,
                              .has_client = true};
    response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, give_bytes, s, client_gone);
    if (response == NULL) /* no memory: the connection ends without an answer */
        s->has_client = false;
    else
        http_response_headers(request, response, 200, type);
    pthread_mutex_lock(&s->server->lock);
    request->stream = s;
    s->ended = s->server->draining; /* a server that ends has ended its streams already */
    pthread_mutex_unlock(&s->server->lock);
    http_request_answer(request, 200, response);
    return s;
}

bool http_stream_wake(struct http_stream *s)
{
    bool was = s->asleep;

    s->asleep = false;
    return was;
}

bool http_stream_send(struct http_stream *s, const char *bytes, size_t count)
{
    struct MHD_Connection *wake = NULL;
    bool good;

    pthread_mutex_lock(&s->server->lock);
    /* A client that has taken all before gets what is sent, of any size. */
    good = s->has_client && !s->ended &&
           (s->waiting.length == 0 || s->waiting.length + count <= WAITING_LIMIT);
    if (good) {
        base_str_append(&s->waiting, bytes, count);
        if (http_stream_wake(s))
            wake = s->connection;
    }
    pthread_mutex_unlock(&s->server->lock);
    if (wake != NULL) /* it was suspended, so it still exists */
        MHD_resume_connection(wake);
    return good;
}

void http_stream_end(struct http_stream *s)
{
    struct MHD_Connection *wake = NULL;

    pthread_mutex_lock(&s->server->lock);
    s->ended = true;
    if (s->has_client) {
        if (http_stream_wake(s))
            wake = s->connection;
        http_watch_set(s->server, s->link, base_now() + s->server->setup.send_seconds);
    }
    pthread_mutex_unlock(&s->server->lock);
    if (wake != NULL)
        MHD_resume_connection(wake);
    let_go(s, &s->has_sender);
}
