/* SPDX-License-Identifier: MIT
 *
 * Settings as a table over a struct: the same lines give command-line parsing, --help with
 * defaults, shell completion, the man page, and the settings in run.json.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"

enum base_kind {
    BASE_FLAG,  /* bool; --name sets it, --no-name clears it */
    BASE_INT,   /* int64_t, min … max */
    BASE_SIZE,  /* int64_t of bytes, min … max; "2M": K, M and G are powers of 1024 */
    BASE_REAL,  /* double, min … max */
    BASE_TEXT,  /* const char *; NULL by default */
    BASE_TEXTS, /* struct base_texts: may be given several times */
};

enum { BASE_MAX_TEXTS = 16, BASE_MAX_OPTIONS = 64 };

struct base_texts {
    const char *at[BASE_MAX_TEXTS];
    int count;
};

struct base_option {
    const char *name;     /* "log-every": written with hyphens, read with hyphens or underscores */
    const char *argument; /* "N"; NULL for flags */
    enum base_kind kind;
    size_t offset;    /* of the field in the settings struct */
    double min, max;  /* of BASE_INT and BASE_REAL; both 0: any */
    const char *help; /* one line; the default is added by --help */
    bool local;       /* about this call, not about the job: never in run.json */
    /* Names it takes, shown by --help: a registry (cmake/registry.cmake) and its count. */
    const void *choices;
    const size_t *choice_count;
    const char *alias; /* another name people know it by ("nnodes"), or NULL */
};

size_t base_options_count(const struct base_option *options); /* ended by a NULL name */

/* Index of an option by name or alias, hyphens and underscores alike, or -1. */
int base_option_find(const struct base_option *options, const char *name, size_t length);

/* Sets one field from text ("true" and "false" for flags). Text is borrowed. */
base_status base_option_set(const struct base_option *option, void *settings, const char *text);
void base_option_copy(const struct base_option *option, const void *from, void *to);

/* The value as a person would write it, or NULL when there is none; base_free. */
char *base_option_text(const struct base_option *option, const void *settings);

/* All but the local ones. from_json leaves absent fields alone, refuses unknown keys and wrong
 * types; texts point into `object`, which must outlive the settings. */
json_t *base_options_to_json(const struct base_option *options, const void *settings);
base_status base_options_from_json(const struct base_option *options, const json_t *object,
                                   void *settings);

#endif
