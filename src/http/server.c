/* SPDX-License-Identifier: MIT
 *
 * libmicrohttpd's callbacks, and a server's life. The library tells of a connection, of each
 * request's target, its head, its body in parts, its end; the functions below are in that order.
 */
#include "http/server.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "http/http_private.h"

const struct http_setup http_setup_defaults = {
    .host = "127.0.0.1",
    .body_limit = 6553500,
    .bodies_limit = (size_t)256 << 20,
    .connections = 1024,
    .connections_per_address = 512,
    .head_seconds = 10,
    .body_seconds = 60,
    .send_seconds = 30,
    .idle_seconds = 60,
    .least_rate = 16 << 10,
};

/* ---- connections ---- */

static void link_open(struct http_server *server, struct MHD_Connection *connection, void **slot)
{
    struct http_link *link = base_calloc(1, sizeof *link), *first;

    link->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    *slot = link;
    pthread_mutex_lock(&server->lock);
    first = server->links.next;
    link->previous = &server->links;
    link->next = first;
    server->links.next = first->previous = link;
    http_watch_set(server, link, base_now() + server->setup.head_seconds);
    pthread_mutex_unlock(&server->lock);
}

/* Called when libmicrohttpd is done with the request. */
static void end_request(struct http_server *server, struct http_request *request)
{
    pthread_mutex_lock(&server->lock);
    request->link->request = NULL;
    if (request->stream != NULL)
        request->stream->request = NULL;
    http_watch_set(server, request->link, base_now() + server->setup.idle_seconds);
    server->under_way -= request->counted;
    if (server->under_way == 0)
        pthread_cond_broadcast(&server->idle);
    pthread_mutex_unlock(&server->lock);
    http_request_unref(request);
}

/* The socket is closed only after this call, so the watcher, which holds the lock, never sees
 * another connection with the same descriptor. */
static void link_close(struct http_server *server, struct http_link *link)
{
    /* libmicrohttpd does not complete what it refuses by itself, such as too many parameters. */
    if (link->request != NULL)
        end_request(server, link->request);
    pthread_mutex_lock(&server->lock);
    link->previous->next = link->next;
    link->next->previous = link->previous;
    pthread_mutex_unlock(&server->lock);
    base_free(link);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **slot,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        link_open(context, connection, slot);
    else if (*slot != NULL)
        link_close(context, *slot);
}

static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    struct http_link *link =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct http_request *request = http_request_new(context, connection, link, target);

    pthread_mutex_lock(&request->server->lock);
    link->request = request;
    pthread_mutex_unlock(&request->server->lock);
    return request;
}

/* uri.c decodes segments and parameters after it has split them. */
static size_t leave_escaped(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return strlen(text);
}

/* ---- a request's parts ---- */

static enum MHD_Result send_answer(struct http_request *request)
{
    struct http_server *server = request->server;
    const struct http_setup *setup = &server->setup;
    enum MHD_Result result;

    if (request->response == NULL)
        return MHD_NO;
    pthread_mutex_lock(&server->lock);
    http_watch_set(server, request->link,
                   request->stream != NULL
                       ? INFINITY
                       : base_now() + setup->send_seconds +
                             (double)request->response_count / setup->least_rate);
    pthread_mutex_unlock(&server->lock);
    if (setup->answered != NULL)
        setup->answered(setup->context, request->status);
    result = MHD_queue_response(request->connection, (unsigned)request->status, request->response);
    MHD_destroy_response(request->response);
    request->response = NULL;
    return result;
}

static enum MHD_Result refuse_here(struct http_request *request, int status, const char *why)
{
    struct MHD_Response *response = http_refusal(request, &status, why);

    pthread_mutex_lock(&request->server->lock);
    http_request_settle(request, status, response);
    pthread_mutex_unlock(&request->server->lock);
    return send_answer(request);
}

static enum MHD_Result take_head(struct http_request *request, const char *method)
{
    struct http_server *server = request->server;
    const char *why = NULL;
    int status;

    request->head_seen = true;
    request->method = method;
    pthread_mutex_lock(&server->lock);
    request->counted = true;
    server->under_way++;
    http_watch_set(server, request->link, base_now() + server->setup.head_seconds);
    pthread_mutex_unlock(&server->lock);
    status = http_admit(request, &why);
    return status != 0 ? refuse_here(request, status, why) : MHD_YES;
}

/* Makes room for `count` more bytes of the body; returns 0, or the status of a refusal. */
static int make_room(struct http_request *request, size_t count)
{
    struct http_server *server = request->server;
    size_t capacity = request->capacity * 2, need = request->count + count;
    char *body;
    bool full;

    if (need > server->setup.body_limit)
        return MHD_HTTP_CONTENT_TOO_LARGE;
    if (need <= request->capacity)
        return 0;
    if (capacity > server->setup.body_limit)
        capacity = server->setup.body_limit;
    if (capacity < need)
        capacity = need;
    pthread_mutex_lock(&server->lock);
    full = server->bodies + capacity - request->capacity > server->setup.bodies_limit;
    if (!full)
        server->bodies += capacity - request->capacity;
    pthread_mutex_unlock(&server->lock);
    if (full)
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    body = realloc(request->body, capacity);
    if (body == NULL) {
        pthread_mutex_lock(&server->lock);
        server->bodies -= capacity - request->capacity;
        pthread_mutex_unlock(&server->lock);
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    request->body = body;
    request->capacity = capacity;
    return 0;
}

/* libmicrohttpd cannot answer while a body comes. So a refused body is read to its end and thrown
 * away, up to the limit once more. */
static enum MHD_Result take_body(struct http_request *request, const char *bytes, size_t count)
{
    struct http_server *server = request->server;
    const struct http_setup *setup = &server->setup;
    double received;

    if (request->body_status == 0)
        request->body_status = make_room(request, count);
    if (request->body_status == 0) {
        memcpy(request->body + request->count, bytes, count);
        request->count += count;
    } else {
        request->discarded += count;
        if (request->discarded > setup->body_limit + ((size_t)8 << 20))
            return MHD_NO;
    }
    received = (double)(request->count + request->discarded);
    pthread_mutex_lock(&server->lock);
    http_watch_set(server, request->link,
                   request->started + fmin(setup->body_seconds,
                                           setup->head_seconds + received / setup->least_rate));
    pthread_mutex_unlock(&server->lock);
    return MHD_YES;
}

/* The request is whole. Its answer may come now, or its connection sleeps until there is one. */
static enum MHD_Result take_end(struct http_request *request)
{
    struct http_server *server = request->server;
    bool answered;

    request->handled = true;
    pthread_mutex_lock(&server->lock);
    server->handling = !server->closing;
    request->refs += server->handling;
    http_watch_set(server, request->link, INFINITY);
    pthread_mutex_unlock(&server->lock);
    if (!server->handling)
        return refuse_here(request, MHD_HTTP_SERVICE_UNAVAILABLE, NULL);
    request->route->handle(server->setup.context, request);
    pthread_mutex_lock(&server->lock);
    server->handling = false;
    pthread_cond_broadcast(&server->idle);
    answered = request->answered;
    if (!answered) {
        request->suspended = true;
        MHD_suspend_connection(request->connection);
    }
    pthread_mutex_unlock(&server->lock);
    return answered ? send_answer(request) : MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *bytes, size_t *count, void **slot)
{
    struct http_request *request = *slot;
    enum MHD_Result result;

    (void)context;
    (void)connection;
    (void)path;
    (void)version;
    if (!request->head_seen)
        return take_head(request, method);
    if (*count > 0) {
        result = take_body(request, bytes, *count);
        *count = 0;
        return result;
    }
    if (request->body_status != 0)
        return refuse_here(request, request->body_status, NULL);
    return request->handled ? send_answer(request) : take_end(request);
}

static void on_end(void *context, struct MHD_Connection *connection, void **slot,
                   enum MHD_RequestTerminationCode why)
{
    (void)connection;
    (void)why;
    if (*slot != NULL)
        end_request(context, *slot);
    *slot = NULL;
}

/* ---- a server's life ---- */

static base_status start_library(struct http_server *server, int fd)
{
    const struct http_setup *s = &server->setup;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)s->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)s->key},
        {MHD_OPTION_END, 0, NULL},
    };

    if (s->certificate != NULL)
        flags |= MHD_USE_TLS;
    else
        tls[0] = tls[2];
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_URI_LOG_CALLBACK, on_target,
        server, MHD_OPTION_NOTIFY_COMPLETED, on_end, server, MHD_OPTION_UNESCAPE_CALLBACK,
        leave_escaped, NULL, MHD_OPTION_CONNECTION_LIMIT, s->connections,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, s->connections_per_address,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (server->daemon == NULL && s->certificate != NULL)
        return base_fail(BASE_ERR_USAGE, "the certificate and key are no pair in PEM form that "
                                         "HTTPS could be served with");
    if (server->daemon == NULL)
        return base_fail(BASE_ERR_IO, "cannot start the HTTP server: %m");
    return BASE_OK;
}

static base_status init_server(struct http_server *server)
{
    pthread_condattr_t monotonic;

    server->listening = -1;
    server->links.next = server->links.previous = &server->links;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->sooner, &monotonic);
    pthread_cond_init(&server->idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (server->setup.token != NULL)
        base_sha256(server->setup.token, strlen(server->setup.token), server->token);
    if (getrandom(&server->id_high, sizeof server->id_high, 0) != sizeof server->id_high)
        return base_fail(BASE_ERR_IO, "the system gives no random bytes: %m");
    return BASE_OK;
}

base_status http_server_open(const struct http_setup *setup, struct http_server **server_p)
{
    base_status st = BASE_OK;
    struct http_server *server = base_calloc(1, sizeof *server);
    int fd = -1;

    *server_p = NULL;
    server->setup = *setup;
    if (setup->bodies_limit < setup->body_limit) /* one body of the largest size must fit */
        server->setup.bodies_limit = setup->body_limit;
    TRY(init_server(server));
    TRY(http_listen(setup->host, setup->port, &fd, &server->port, &server->loopback));
    TRY(http_watch_start(server));
    TRY(start_library(server, fd));
    fd = -1;
    *server_p = server;
    server = NULL;
out:
    if (fd >= 0)
        close(fd);
    http_server_close(server);
    return st;
}

int http_server_port(const struct http_server *server)
{
    return server->port;
}

/* Ends streams and, with `all`, refuses what a handler has still to answer: libmicrohttpd cannot be
 * stopped while connections are suspended. */
static void resume(struct http_server *server, bool all)
{
    struct MHD_Connection *connection;

    do {
        connection = NULL;
        pthread_mutex_lock(&server->lock);
        for (struct http_link *l = server->links.next; connection == NULL && l != &server->links;
             l = l->next) {
            struct http_request *r = l->request;
            int status = MHD_HTTP_SERVICE_UNAVAILABLE;

            if (r == NULL)
                continue;
            if (r->stream != NULL)
                r->stream->ended = true;
            if (r->stream != NULL && http_stream_wake(r->stream))
                connection = r->connection;
            if (all && r->suspended) {
                struct MHD_Response *refusal = http_refusal(r, &status, NULL);

                http_request_settle(r, status, refusal);
                connection = r->connection;
            }
        }
        pthread_mutex_unlock(&server->lock);
        if (connection != NULL)
            MHD_resume_connection(connection);
    } while (connection != NULL);
}

bool http_server_drain(struct http_server *server, double seconds)
{
    struct timespec at = base_timespec(base_now() + seconds);
    bool idle;
    int late = 0;

    if (server->listening < 0)
        server->listening = MHD_quiesce_daemon(server->daemon);
    server->draining = true;
    resume(server, false);
    pthread_mutex_lock(&server->lock);
    while (server->under_way > 0 && late == 0)
        late = pthread_cond_timedwait(&server->idle, &server->lock, &at);
    idle = server->under_way == 0;
    server->closing = true;
    while (server->handling)
        pthread_cond_wait(&server->idle, &server->lock);
    pthread_mutex_unlock(&server->lock);
    resume(server, true);
    return idle;
}

void http_server_close(struct http_server *server)
{
    if (server == NULL)
        return;
    http_watch_stop(server);
    if (server->daemon != NULL) {
        http_server_drain(server, 0);
        MHD_stop_daemon(server->daemon);
    }
    if (server->listening >= 0)
        close(server->listening);
    pthread_cond_destroy(&server->idle);
    pthread_cond_destroy(&server->sooner);
    pthread_mutex_destroy(&server->lock);
    base_free(server);
}
