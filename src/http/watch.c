/* SPDX-License-Identifier: MIT
 *
 * Deadlines. libmicrohttpd knows only how long a connection may be silent, which a client that
 * sends a byte now and then outlives. Here every connection has one moment at which it ends: its
 * socket is shut down, which libmicrohttpd's thread then finds, or, where a handler is at work for
 * it, the request is refused. The thread sleeps until the earliest; a deadline that moves back
 * does not wake it, so a busy server costs it a few passes over its connections a minute.
 */
#include <errno.h>
#include <math.h>

#include "base/clock.h"
#include "http/http_private.h"

enum { BATCH = 64 }; /* connections to resume in a pass */

void http_watch_set(struct http_server *server, struct http_link *link, double deadline)
{
    link->deadline = deadline;
    if (deadline < server->wakes) {
        server->wakes = deadline;
        pthread_cond_signal(&server->sooner);
    }
}

/* Ends what is due. Returns the connections to resume, since resuming needs the lock to be free; a
 * suspended connection stays until then. */
static int end_due(struct http_server *server, struct MHD_Connection *resume[BATCH])
{
    double now = base_now(), next = INFINITY;
    int count = 0;

    for (struct http_link *link = server->links.next; link != &server->links; link = link->next) {
        struct http_request *request = link->request;
        int status = MHD_HTTP_REQUEST_TIMEOUT;

        if (link->deadline <= now && count < BATCH) {
            link->deadline = INFINITY;
            if (request == NULL || !request->suspended) {
                shutdown(link->fd, SHUT_RDWR);
                continue;
            }
            struct MHD_Response *refusal = http_refusal(request, &status, request->late_message);

            if (http_request_settle(request, status, refusal))
                resume[count++] = request->connection;
        }
        next = fmin(next, link->deadline);
    }
    server->wakes = next;
    return count;
}

static void sleep_until(struct http_server *server)
{
    struct timespec at;

    if (isinf(server->wakes)) {
        pthread_cond_wait(&server->sooner, &server->lock);
    } else {
        at = base_timespec(server->wakes);
        pthread_cond_timedwait(&server->sooner, &server->lock, &at);
    }
}

static void *watch(void *argument)
{
    struct http_server *server = argument;
    struct MHD_Connection *resume[BATCH];

    pthread_mutex_lock(&server->lock);
    while (!server->ends) {
        int count = base_now() >= server->wakes ? end_due(server, resume) : 0;

        if (count > 0) {
            pthread_mutex_unlock(&server->lock);
            for (int i = 0; i < count; i++)
                MHD_resume_connection(resume[i]);
            pthread_mutex_lock(&server->lock);
        } else {
            sleep_until(server);
        }
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

base_status http_watch_start(struct http_server *server)
{
    server->wakes = INFINITY;
    if ((errno = pthread_create(&server->watcher, NULL, watch, server)) != 0)
        return base_fail(BASE_ERR_IO, "cannot start a thread: %m");
    server->watching = true;
    return BASE_OK;
}

void http_watch_stop(struct http_server *server)
{
    if (!server->watching)
        return;
    pthread_mutex_lock(&server->lock);
    server->ends = true;
    pthread_cond_signal(&server->sooner);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->watcher, NULL);
    server->watching = false;
}
