/* SPDX-License-Identifier: MIT
 *
 * Shared inside http/ only: a server's connections and requests. `lock` guards the lists, the
 * deadlines, and of a request `refs`, `answered`, `suspended`, `response` and `status`; all else
 * of a request belongs to libmicrohttpd's thread until its handler is called.
 */
#ifndef HTTP_PRIVATE_H
#define HTTP_PRIVATE_H

#include <microhttpd.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/str.h"
#include "http/server.h"
#include "http/uri.h"

enum { HTTP_MAX_WILDCARDS = 4, HTTP_MAX_HEADERS = 4, HTTP_ID = 37 };

/* A connection. At its deadline the watcher shuts it down or refuses its request. */
struct http_link {
    struct http_link *previous, *next;
    int fd;
    double deadline; /* base_now; INFINITY: none */
    struct http_request *request;
};

/* An answer under way whose end is not known (stream.c). The lock guards it. */
struct http_stream {
    struct http_server *server;
    struct MHD_Connection *connection;
    struct http_link *link;
    struct http_request *request; /* NULL: it has ended */
    struct base_str waiting;      /* bytes to be sent */
    bool has_sender, has_client; /* the two owners: the program that sends, the client that reads */
    bool ended, asleep;          /* asleep: its connection is suspended */
};

struct http_request {
    struct http_server *server;
    struct MHD_Connection *connection;
    struct http_link *link;
    /* libmicrohttpd has one until it has completed the request, the handler until it answers. */
    int refs;

    const char *method;
    struct http_uri uri;
    char *fault; /* why `uri` could not be parsed; NULL: it was */
    const struct http_route *route;
    const char *wildcards[HTTP_MAX_WILDCARDS];
    char *last_wildcard; /* its text without the pattern's ending; base_free */

    char *body;
    size_t count, capacity;
    size_t discarded; /* bytes of a body that is refused */
    int body_status;  /* 0, or the status that refuses the body: 413 or 503 */
    double started;

    bool head_seen, handled, counted, answered, suspended;
    char *late_message; /* the message of a refusal at the deadline */
    struct MHD_Response *response;
    int status;
    _Atomic size_t response_count; /* a late answer may still be made beside the one that counts */
    struct http_stream *stream;    /* NULL: the answer is whole */
    const char *header_names[HTTP_MAX_HEADERS];
    char *header_values[HTTP_MAX_HEADERS];
    int headers;
    char id[HTTP_ID];
};

struct http_server {
    struct http_setup setup;
    struct MHD_Daemon *daemon;
    int listening; /* the socket once libmicrohttpd has given it up; else -1 */
    int port;
    bool loopback;  /* only this host can connect */
    char token[65]; /* the token's SHA-256 in hexadecimal digits */

    pthread_mutex_t lock;
    struct http_link links; /* head of a ring */
    size_t bodies;          /* bytes of bodies in memory */
    int under_way;          /* requests that have begun and not ended */
    _Atomic bool draining, closing;
    bool handling;       /* a handler runs */
    pthread_cond_t idle; /* under_way became 0, or a handler has returned */

    pthread_t watcher;
    pthread_cond_t sooner; /* there is a deadline before `wakes`, or the server ends */
    double wakes;
    bool watching, ends;
    unsigned long long id_high, id_low;
};

/* listen.c */
base_status http_listen(const char *host, int port, int *fd_p, int *port_p, bool *loopback_p);

/* watch.c: deadlines. Call these under the lock. */
base_status http_watch_start(struct http_server *server);
void http_watch_stop(struct http_server *server);
void http_watch_set(struct http_server *server, struct http_link *link, double deadline);

/* admit.c: decides whether to serve a request by its head: 0, or a refusal's status and reason. */
int http_admit(struct http_request *request, const char **why_p);

/* request.c */
struct http_request *http_request_new(struct http_server *server, struct MHD_Connection *connection,
                                      struct http_link *link, const char *target);
void http_request_unref(struct http_request *request); /* call it without the lock */
/* Stores the answer unless there is one. True: the caller must resume the connection. Call it under
 * the lock. */
bool http_request_settle(struct http_request *request, int status, struct MHD_Response *response);
void http_response_headers(struct http_request *request, struct MHD_Response *response, int status,
                           const char *type);
struct MHD_Response *http_response(struct http_request *request, int status, const char *type,
                                   char *body, size_t count);
/* Settles the request, releases it and resumes its connection. */
void http_request_answer(struct http_request *request, int status, struct MHD_Response *response);
struct MHD_Response *http_refusal(struct http_request *request, int *status, const char *message);

/* stream.c. True: the caller must resume the connection. Call it under the lock. */
bool http_stream_wake(struct http_stream *stream);

#endif
