/* SPDX-License-Identifier: MIT
 *
 * Names in model files: of layers and of saved tensors. Letters, digits, `_`, `-` and `.`, so
 * that they can be part of a tensor's name and of a kernel plan.
 */
#ifndef NN_NAME_H
#define NN_NAME_H

#include "nn/layer.h"

/* The config of save, load and add. */
struct nn_name {
    char text[NN_MAX_NAME];
};

base_status nn_name_check(const char *name);
base_status nn_name_parse(struct nn_line *line, void *config); /* of save, load and add */

#endif
