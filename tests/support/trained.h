/* SPDX-License-Identifier: MIT
 *
 * Checkpoints of a small model (1x4x4 pixels, classes a, b and c), made without a training.
 */
#ifndef SUPPORT_TRAINED_H
#define SUPPORT_TRAINED_H

#include "model/model.h"

extern const char support_trained_text[]; /* the model's */
extern const struct data_info support_trained_on;

/* A checkpoint of `step` in DIR, its weights those of seed `step`. `model`: another text that its
 * manifest has; `without`: a field to take out of the manifest; NULL: neither. */
void support_trained_save(const char *dir, uint64_t step, const char *model, const char *without);

/* What it answers to x (16): y (3). */
void support_trained_run(const char *place, const float *x, float *y);

#endif
