/* SPDX-License-Identifier: MIT
 *
 * The server behind TorchServe's API: inference, management and metrics, each on a port of its
 * own, until a signal asks it to stop.
 */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include "base/option.h"

/* Everything a person can set; src/cli/commands/serve.c has the options. */
struct serve_setup {
    struct base_texts models; /* "NAME=RUN|CHECKPOINT" or just the latter */
    struct base_texts follow; /* the same for runs whose new checkpoints replace the weights */
    const char *store;        /* folder that registration takes models from; NULL: none */
    const char *state;        /* file that remembers registrations; NULL: in the store, if any */
    const char *runs_dir;

    const char *host;
    int64_t port, management_port, metrics_port; /* 0: any that is free */
    const char *ready_file; /* written once it listens: the addresses, as JSON; NULL: none */
    const char *token_file, *management_token_file;
    const char *certificate, *key; /* files; NULL: plain HTTP */

    int64_t workers, threads; /* for each model; 0 threads: all cores this process may use */
    int64_t batch_size, max_batch_delay, queue, response_timeout;
    int64_t body_limit, max_pixels, connections, connections_per_address;
    double body_seconds; /* seconds in which a whole request must come */
    int64_t drain_seconds;
};

/* Serves until a signal comes (base/stop.h). *result_p: what --json prints, a new reference,
 * also when a signal ended it. */
base_status serve_run(const struct serve_setup *setup, json_t **result_p);

#endif
