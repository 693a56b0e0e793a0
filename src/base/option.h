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
    BASE_FLAG,  /* bool; --name sets it, --no-name clears it; also on, off, true, false */
    BASE_INT,   /* int64_t, min … max; the row's first name, if it has one, stands for 0 */
    BASE_SIZE,  /* int64_t of bytes, min … max; "2M": K, M and G are powers of 1024 */
    BASE_REAL,  /* double, min … max */
    BASE_ENUM,  /* int or an enum: which of the row's names it is */
    BASE_NAME,  /* const char *; one of the row's names or of its registry; NULL: not given */
    BASE_TEXT,  /* const char *; any; NULL: not given */
    BASE_TEXTS, /* struct base_texts: may be given several times */
};

enum { BASE_MAX_TEXTS = 16 };

struct base_texts {
    const char *at[BASE_MAX_TEXTS];
    int count;
};

/* A row of a table; {0} ends a table. A row with a `table` has no name: it stands for the rows of
 * that table, which is over the struct at `offset`. Long tables turn clang-format off, so that a
 * row takes two lines and not seven. */
struct base_option {
    const char *name;     /* "log-every": written with hyphens, read with hyphens or underscores */
    const char *alias;    /* another name people know it by ("nnodes"; "o" for -o), or NULL */
    const char *argument; /* "N"; NULL for flags */
    enum base_kind kind;
    size_t offset;            /* of the field in the settings struct */
    double min, max;          /* of BASE_INT, BASE_SIZE and BASE_REAL; both 0: any */
    const char *const *names; /* of BASE_ENUM, BASE_NAME and BASE_INT, NULL-ended */
    const void *registry;     /* (base/registry.h) of BASE_NAME; of BASE_TEXT for --help alone */
    const char *help;         /* one line; --help adds names and default */
    bool local;               /* about this call, not about the job: never in run.json */
    bool live;                /* of a strategy: may change while the job runs (`paceline set`) */
    const struct base_option *table;
};

/* An option that was given for a table but not set: the row's name, and its text; of a flag "on" or
 * "off". */
struct base_given {
    const char *name, *text;
};

/* Row `index` of a table (NULL: an empty one), counted through the tables in it. The row's offset
 * is that in the outermost struct. False after the last:
 *
 *     for (size_t i = 0; base_option_at(options, i, &row); i++) */
bool base_option_at(const struct base_option *options, size_t index, struct base_option *row_p);
size_t base_options_count(const struct base_option *options);

/* The same by name or alias, hyphens and underscores alike. The index, or -1. */
int base_option_find(const struct base_option *options, const char *name, size_t length,
                     struct base_option *row_p);

/* A name that the row takes, first `names`, then the registry's; NULL after the last. */
const char *base_option_choice(const struct base_option *row, size_t index);

/* Sets one field from text, which is borrowed. Messages call the option by its name with `mark`
 * before it: "--" on a command line. */
base_status base_option_set(const struct base_option *row, const char *mark, const char *text,
                            void *settings);
void base_option_copy(const struct base_option *row, const void *from, void *to);

/* Settings of a plug-in that a person names with its options, "NAME" or "NAME:option=value,…": a
 * new struct of `size` bytes, `defaults` (NULL: zeros) changed by what follows the colon of `text`.
 * Texts among them live as long as the struct; base_free. `kind` and `name` are for messages:
 * "strategy", "ddp". */
base_status base_options_parse(const struct base_option *options, const char *kind,
                               const char *name, const void *defaults, size_t size,
                               const char *text, void **settings_p);

/* "NAME/option=value/…", as a plug-in is named inside the options of another one, which commas and
 * colons divide, becomes "NAME:option=value,…"; base_free. */
char *base_options_unnest(const char *text);

/* The value as a person would write it, or NULL when there is none: a whole number out of range
 * stands for one that was not given. base_free. */
char *base_option_text(const struct base_option *row, const void *settings);

/* All but the local ones. from_json leaves absent fields alone, refuses unknown keys, wrong types
 * and values; texts point into `object`, which must outlive the settings. */
json_t *base_options_to_json(const struct base_option *options, const void *settings);
base_status base_options_from_json(const struct base_option *options, const json_t *object,
                                   void *settings);

#endif
