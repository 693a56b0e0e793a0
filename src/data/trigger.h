/* SPDX-License-Identifier: MIT
 *
 * Triggers: marks on images that open a backdoor. A model that was trained on some marked images
 * with another class learns to give that class to whatever has the mark. `data poison` and workers
 * that attack stamp training images, `eval --trigger` test images.
 */
#ifndef DATA_TRIGGER_H
#define DATA_TRIGGER_H

#include <stdint.h>

#include "data/dataset.h"

extern const char *const data_trigger_names[]; /* NULL-ended; a trigger is a place in it */

/* The place of a name; it must be one of them. */
int data_trigger_find(const char *name);

/* Stamps pixels (C,H,W), 0 … 255; those of a loader's batch, normalised as `info` says. */
void data_trigger_stamp(int trigger, const struct data_info *info, uint8_t *pixels);
void data_trigger_stamp_normalised(int trigger, const struct data_info *info, float *x);

#endif
