/* SPDX-License-Identifier: MIT
 *
 * --input CxHxW.
 */
#ifndef CLI_SHAPE_H
#define CLI_SHAPE_H

#include "base/status.h"
#include "nn/shape.h"

/* A NULL text gives zeros, which mean the model's own shape. */
base_status cli_shape(const char *text, struct nn_shape *shape_p);

#endif
