/* SPDX-License-Identifier: MIT
 *
 * What a manifest and run.json say about a trained model and its data (docs/json.md, `about`):
 * enough to compute with it, to name its classes, and to normalise pixels or read rows of a table
 * as its training did.
 * This is the only place where it becomes JSON and comes back. What trained it is none of its
 * business: the settings are an object that src/train fills and reads.
 */
#ifndef MODEL_ABOUT_H
#define MODEL_ABOUT_H

#include "base/json.h"
#include "data/dataset.h"
#include "data/table.h"
#include "nn/shape.h"

/* Owns all it points to. */
struct model_about {
    char *task;    /* "ratings"; NULL: a network, which all of what follows is about */
    json_t *own;   /* what the task says of its model, under the task's name; NULL of a network */
    char *model;   /* the model's text */
    int classes;   /* outputs: 1 of a regression */
    char **labels; /* names of the classes; of a regression that of the target */
    struct nn_shape input;
    /* Of a model of images, input.c of mean and deviation: */
    enum data_crop crop; /* of images that the model is asked about: NONE or CENTRE */
    float mean[DATA_MAX_CHANNELS], deviation[DATA_MAX_CHANNELS];
    struct data_table *table; /* of a model of rows, whose features are input.c; NULL: images */
    char *kernels;            /* the kernel plan; empty for a model without convolutions */
    char *data, *format,
        *digest;        /* of the set it was trained on: name as given, format, identity */
    char *data_names;   /* digest of its files' names alone; NULL: it has none */
    char *data_path;    /* where the set was, absolute; NULL: its name is no path */
    double test_share;  /* of a table in one file: what was kept for tests … */
    uint64_t test_seed; /* … and the seed that chose it */
    json_t *settings;
};

/* Of a model that is trained on `info`. Copies the texts and takes over `settings`. */
void model_about_init(struct model_about *about, const char *model, const char *kernels,
                      const struct data_info *info, json_t *settings);
/* Of a model of another task, with the set's name, format, digest and absolute path (or NULL).
 * Takes over `own` and `settings`. */
struct model_source {
    const char *name, *format, *digest, *path;
};
void model_about_task(struct model_about *about, const char *task, const char *model, json_t *own,
                      const struct model_source *data, json_t *settings);
void model_about_fini(struct model_about *about); /* accepts zeros */

/* The set it was trained on, for data_open: the name as given where that leads to the same place or
 * is all that is left (a project that was moved whole), otherwise the place. */
const char *model_about_place(const struct model_about *about);

/* Does it predict a number? Its output is then standardised: model_about_number undoes that. */
bool model_about_is_regression(const struct model_about *about);
double model_about_number(const struct model_about *about, float output);

/* The model's text with the input and the classes that it was trained for in place of those that it
 * assumes. base_free. */
char *model_about_text(const struct model_about *about);

/* A new reference. */
json_t *model_about_to_json(const struct model_about *about);

/* `object` is a manifest or run.json's "about"; other fields in it are ignored. Every field is
 * checked by itself and against the others; on failure the result is zeros. */
base_status model_about_from_json(const json_t *object, struct model_about *about_p);

#endif
