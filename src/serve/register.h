/* SPDX-License-Identifier: MIT
 *
 * Registering a version of a model, from the command line, from the state of an earlier server, or
 * from a request. One thread at a time: the starting one, later the management port's.
 */
#ifndef SERVE_REGISTER_H
#define SERVE_REGISTER_H

#include "serve/serve_private.h"

struct serve_order {
    const char *name, *version; /* name NULL: the last segment of the url */
    const char *url;            /* a name in the store, or a run or checkpoint */
    bool from_store, at_startup;
    bool follows;                   /* it may have no checkpoint yet */
    bool wait;                      /* until its workers are ready */
    struct serve_settings settings; /* the handler's name is borrowed */
};

/* What a refusal is over HTTP. */
struct serve_verdict {
    int status;
    const char *type; /* NULL: the usual one of the status */
};

extern const char serve_first_version[]; /* "1.0" */
char *serve_model_name(const char *url); /* of a model that was given none; base_free */
/* As the command line has them. */
struct serve_settings serve_default_settings(const struct serve_setup *setup);

base_status serve_register(struct serve *serve, const struct serve_order *order,
                           struct serve_verdict *verdict_p);

/* state.c: the file that remembers registrations. No file, or none asked for: nothing to do. */
base_status serve_state_open(struct serve *serve);
/* The number of workers that it has for this version, put over those of `settings`. */
void serve_state_workers(const struct serve *serve, const char *name, const char *version,
                         struct serve_settings *settings);
/* Registers what came from the store, and makes the versions default that were. */
base_status serve_state_restore(struct serve *serve);
base_status serve_state_save(struct serve *serve);

#endif
