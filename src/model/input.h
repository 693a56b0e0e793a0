/* SPDX-License-Identifier: MIT
 *
 * What a person has becomes what a trained model takes. Shape, channels and normalisation are
 * those of its training.
 */
#ifndef MODEL_INPUT_H
#define MODEL_INPUT_H

#include "model/about.h"

/* A PNG or JPEG file in memory becomes x (C,H,W) of `about->input`, cropped, scaled and normalised
 * as the test images of the training were: the same bits as if it lay in a folder. Thread-safe. */
base_status model_input_image(const struct model_about *about, const void *bytes, size_t count,
                              float *x);

#endif
