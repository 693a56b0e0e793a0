/* SPDX-License-Identifier: MIT
 *
 * What a person has becomes what a trained model takes. Shape, channels, columns and normalisation
 * are those of its training. All of this is thread-safe.
 */
#ifndef MODEL_INPUT_H
#define MODEL_INPUT_H

#include "model/about.h"

/* A PNG or JPEG file in memory becomes x (C,H,W) of `about->input`, cropped, scaled and normalised
 * as the test images of the training were: the same bits as if it lay in a folder. An error of a
 * model that takes rows. */
base_status model_input_image(const struct model_about *about, const void *bytes, size_t count,
                              float *x);

/* A field of a row: its column, and its text as a table would have it ("" or "NA": missing). */
struct model_field {
    const char *column, *text;
};

/* A row of a table becomes x (about->input.c): the same bits as if it lay in a file. The fields
 * may come in any order. All columns of the training must be there, others must not, except for the
 * target, which is ignored. *unknown_p (NULL: not wanted) counts the categories that the training
 * did not have; they count as none. An error of a model that takes images. */
base_status model_input_row(const struct model_about *about, const struct model_field *fields,
                            size_t count, float *x, int *unknown_p);

/* The same from JSON: an object of fields by column, or an array of them in the order of
 * about->table->columns. A field is a number, a string, a boolean ("true", "false") or null, which
 * is missing. */
base_status model_input_json(const struct model_about *about, const json_t *row, float *x,
                             int *unknown_p);

#endif
