/* SPDX-License-Identifier: MIT
 *
 * A kind of input that models take: what a file in serve/handlers/ provides, `const struct
 * serve_handler serve_handler_NAME`. Handlers are asked in order of file name whether a body for
 * such a model is theirs; a model that was registered with `handler=NAME` asks that one alone. A
 * handler is for networks, for which it makes samples, or for rating models, whose answer it gives.
 * Keeps no state; called from several threads at once.
 */
#ifndef SERVE_HANDLER_H
#define SERVE_HANDLER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/status.h"
#include "model/about.h"
#include "recsys/saved.h"

/* A request's body, or the part of a form that has the data. */
struct serve_body {
    const char *type; /* media type of its Content-Type; "" if there is none */
    const void *bytes;
    size_t count;
    size_t max_pixels; /* the most pixels that an image may have */
    bool in_form;      /* its type is only the client's guess from a file's name */
};

struct serve_samples {
    int n;
    float *x;  /* (n,C,H,W) canonical, as the network takes them; base_free */
    bool list; /* the client sent a list and gets one */
};

struct serve_handler {
    const char *name, *help;
    const char *alias; /* what TorchServe calls it, or NULL */
    /* Of networks; NULL in a handler of rating models. */
    bool (*takes)(const struct model_about *about, const struct serve_body *body);
    /* A failure is the client's fault, and the client is told its message. */
    base_status (*read)(const struct model_about *about, const struct serve_body *body,
                        struct serve_samples *samples_p);
    /* Of rating models; NULL in a handler of networks. A new reference. */
    base_status (*answer)(const struct recsys_saved *saved, const struct serve_body *body,
                          json_t **answer_p);
};

extern const struct serve_handler *const serve_handler_registry[];
extern const size_t serve_handler_count;

/* Finds a handler by name or alias; an unknown one is an error that lists the known ones. */
base_status serve_handler_find(const char *name, const struct serve_handler **handler_p);

/* Reads a body with the handler of that name (NULL: with the first that takes it). */
base_status serve_read(const char *handler, const struct model_about *about,
                       const struct serve_body *body, struct serve_samples *samples_p);

/* The same for a rating model. *answer_p: a new reference. */
base_status serve_ask(const char *handler, const struct recsys_saved *saved,
                      const struct serve_body *body, json_t **answer_p);

/* True if its type, or its first letter, says that it is JSON. The first letter does not count for
 * application/octet-stream, whose bytes may begin with any. */
bool serve_is_json(const struct serve_body *body);
bool serve_is_octets(const struct serve_body *body);

/* Makes n samples of the model's shape, all zeros. Fails if n x values overflows or is too much. */
base_status serve_samples_new(const struct model_about *about, size_t values,
                              struct serve_samples *samples_p);

#endif
