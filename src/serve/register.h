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
    bool follows;                   /* it follows a run, which may have no checkpoint yet */
    bool wait;                      /* return only when its workers are ready */
    struct serve_settings settings; /* the handler's name is borrowed */
};

/* A refusal as HTTP tells it. */
struct serve_verdict {
    int status;
    const char *type; /* NULL: the usual one of the status */
};

extern const char serve_first_version[]; /* "1.0" */
char *serve_model_name(const char *url); /* the name of a model that was given none; base_free */
/* The settings of the command line. */
struct serve_settings serve_default_settings(const struct serve_setup *setup);

base_status serve_register(struct serve *serve, const struct serve_order *order,
                           struct serve_verdict *verdict_p);

/* state.c: the file that remembers registrations. These do nothing if there is no file or none was
 * asked for. */
base_status serve_state_open(struct serve *serve);
/* Overwrites the number of workers in `settings` with the one that the file has for this version.
 */
void serve_state_workers(const struct serve *serve, const char *name, const char *version,
                         struct serve_settings *settings);
/* Registers again what came from the store, and makes the former default versions default. */
base_status serve_state_restore(struct serve *serve);
base_status serve_state_save(struct serve *serve);

#endif
