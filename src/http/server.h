/* SPDX-License-Identifier: MIT
 *
 * An HTTP server on one address and port, over libmicrohttpd, which only src/http/ includes. One
 * thread sleeps in epoll and calls the handlers of routes; a second one sleeps until the earliest
 * deadline. Neither runs while no request is under way.
 *
 * A handler answers its request exactly once, with http_answer or http_refuse: before it returns,
 * or later from any thread; the connection is suspended meanwhile and costs nothing. A handler
 * that blocks holds up every other request of its server.
 *
 * What a client can take is bounded: bytes of a body and of all bodies together, connections in
 * all and of one address, the time for a head, for a body (and its least rate), for an answer to
 * be read, and between two requests. A request with two lengths, or with a length and a transfer
 * encoding, is refused. A server on a loopback address without a token refuses requests that a web
 * page of elsewhere makes a browser send (their Host or Origin is another).
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct http_server;
struct http_request;

typedef void http_handle(void *context, struct http_request *request);

struct http_route {
    const char *methods; /* "GET", "POST|PUT" */
    /* "/models/{model_name}/{version}": {…} stands for a segment, {…}:x for one that ends in :x */
    const char *pattern;
    http_handle *handle;
    bool open;         /* needs no token */
    bool local;        /* there only where the server listens on a loopback address */
    const char *help;  /* one line, for descriptions of the API */
    const char *query; /* its parameters, "limit next_page_token", likewise; NULL: none */
};

struct http_setup {
    const char *host;                /* an address, not a name: "127.0.0.1", "::1", "0.0.0.0" */
    int port;                        /* 0: any that is free */
    const struct http_route *routes; /* ends with {0}; the first that matches counts */
    void *context;                   /* passed to handlers and to the functions below */

    /* What a refusal says: a body (base_free) of type application/json. The status may be changed,
     * for clients that expect another one. `message` may be NULL where the status says it all. */
    char *(*error_body)(void *context, const struct http_request *request, int *status,
                        const char *message);
    /* Called with every answer's status, for counting. Optional. */
    void (*answered)(void *context, int status);

    const char *token;             /* "Authorization: Bearer TOKEN"; NULL: none is asked for */
    const char *certificate, *key; /* PEM texts: HTTPS; NULL: plain HTTP */

    size_t body_limit, bodies_limit; /* bytes of one body, and of all at a time (at least one) */
    unsigned connections, connections_per_address;
    double head_seconds, body_seconds, send_seconds, idle_seconds;
    double least_rate; /* bytes a second that a client must send or read */
};

extern const struct http_setup http_setup_defaults; /* sets the limits and nothing else */

/* Is it an address that only this host can connect to? False for what is no address. */
bool http_is_loopback(const char *host);

/* The setup is copied; its texts and routes must outlive the server. */
base_status http_server_open(const struct http_setup *setup, struct http_server **server_p);
/* The port it listens on. */
int http_server_port(const struct http_server *server);
/* Takes no new connections and waits until every request has its answer, or for `seconds`; false:
 * some had none, and got 503. Answers say that the connection closes. On return no handler runs and
 * none will: requests of connections that are still open are refused. */
bool http_server_drain(struct http_server *server, double seconds);
/* Drains for no time. Threads that answer requests later must have ended before. Accepts NULL. */
void http_server_close(struct http_server *server);

/* ---- questions about a request, until it is answered ---- */

const char *http_method(const struct http_request *request);
const char *http_segment(const struct http_request *request, int index); /* NULL after the last */
/* The text that stands for {…} number `index` of the pattern; NULL if the pattern has fewer. */
const char *http_wildcard(const struct http_request *request, int index);
const char *http_parameter(const struct http_request *request, const char *name); /* or NULL */
/* Value number `index` of a parameter that may be given several times; NULL after the last. */
const char *http_parameter_at(const struct http_request *request, const char *name, int index);
const char *http_header(const struct http_request *request, const char *name); /* or NULL */
/* Stays until the answer; may be NULL when empty. */
const char *http_body(const struct http_request *request, size_t *count_p);
/* True if a time limit has answered the request, so that computing its answer would be in vain. */
bool http_is_over(const struct http_request *request);

/* For the handler itself, before it returns: unless there is an answer within `seconds`, the
 * server refuses it with 408 and `message` (copied). http_answer must still be called. */
void http_expire(struct http_request *request, double seconds, const char *message);

/* One more header of the answer, sent before http_answer; at most four. Texts are copied. */
void http_add_header(struct http_request *request, const char *name, const char *value);

/* Takes `body` over (base_free; NULL: empty). The request is gone afterwards. Statuses from 400 on
 * close the connection. */
void http_answer(struct http_request *request, int status, const char *type, char *body,
                 size_t count);
/* Answers with the body that the setup's error_body makes. */
void http_refuse(struct http_request *request, int status, const char *message);

#endif
