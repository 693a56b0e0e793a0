/* SPDX-License-Identifier: MIT
 *
 * Shared inside serve/ only: the server as a whole. `models` has a lock of its own; all else is
 * set before the first request comes in and does not change.
 */
#ifndef SERVE_PRIVATE_H
#define SERVE_PRIVATE_H

#include "serve/models.h"
#include "serve/serve.h"

enum serve_port { SERVE_INFERENCE, SERVE_MANAGEMENT, SERVE_METRICS, SERVE_PORTS };

struct serve {
    const struct serve_setup *setup;
    struct serve_models *models;
    struct http_server *servers[SERVE_PORTS];
    char *tokens[SERVE_PORTS]; /* NULL: none is asked for */
    char *certificate, *key;
    int threads;
    double started;
    atomic_ullong answers[3]; /* 2xx, 4xx, 5xx of all ports */
};

extern const struct http_route serve_inference_routes[], serve_management_routes[];

/* A reference to what the request's segments name; NULL: it has been refused. `version` may be
 * NULL. */
struct serve_version *serve_find(struct serve *serve, struct http_request *request,
                                 const char *name, const char *version);

/* v2.c: the Open Inference Protocol, on the inference port. */
http_handle serve_v2_server, serve_v2_live, serve_v2_ready, serve_v2_model, serve_v2_model_ready,
    serve_v2_infer;

/* inference.c: queues the request for a version, released by this call. */
void serve_queue(struct serve *serve, struct serve_version *version, struct http_request *request,
                 const struct serve_protocol *protocol, void *more);

#endif
