/* SPDX-License-Identifier: MIT
 *
 * Shared inside serve/ only: the server as a whole. `models` has a lock of its own; all else is
 * set before the first request comes in and does not change.
 */
#ifndef SERVE_PRIVATE_H
#define SERVE_PRIVATE_H

#include "serve/models.h"
#include "serve/serve.h"
#include "serve/store.h"

enum serve_port { SERVE_INFERENCE, SERVE_MANAGEMENT, SERVE_METRICS, SERVE_PORTS };

/* The limits of registration; the command line's options have the same. */
enum { SERVE_MAX_BATCH = 1024, SERVE_MAX_DELAY = 1000 * 1000, SERVE_MAX_TIMEOUT = 86400 };

struct serve {
    const struct serve_setup *setup;
    struct serve_models *models;
    struct serve_store *store; /* NULL: none */
    char *state_path;          /* NULL: none */
    json_t *state;             /* the contents of that file, until they are restored */
    struct serve_follower *follower;
    struct http_live *live;
    struct http_server *servers[SERVE_PORTS];
    char *tokens[SERVE_PORTS]; /* NULL: none is asked for */
    char *certificate, *key;
    int threads;
    double started;
    atomic_ullong answers[3];                 /* 2xx, 4xx, 5xx of all ports */
    unsigned long long cpu_before, cpu_total; /* the metrics port's values of its last look */
};

extern const struct http_route serve_inference_routes[], serve_management_routes[],
    serve_metrics_routes[];

/* inference.c: returns a reference to a version; NULL: it has refused the request. `version` NULL
 * means the default one. */
struct serve_version *serve_find(struct serve *serve, struct http_request *request,
                                 const char *name, const char *version);
/* Queues the request for a version, which this call releases. */
void serve_queue(struct serve *serve, struct serve_version *version, struct http_request *request,
                 const struct serve_protocol *protocol);
/* Counts the workers that the default versions should have, and those that can compute. */
void serve_health(struct serve *serve, int *wanted_p, int *able_p);

/* v2.c: the Open Inference Protocol, on the inference port. */
http_handle serve_v2_server, serve_v2_live, serve_v2_ready, serve_v2_model, serve_v2_model_ready,
    serve_v2_infer;

http_handle serve_live_open; /* live.c */

/* openapi.c: describes a port's routes as OpenAPI 3.0.1. */
json_t *serve_openapi(const char *title, const struct http_route *routes);

#endif
