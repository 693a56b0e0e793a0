/* SPDX-License-Identifier: MIT
 *
 * Small checkpoints whose every byte is a function of the step, for tests that break them.
 */
#ifndef SUPPORT_CHECKPOINTS_H
#define SUPPORT_CHECKPOINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "store/checkpoint.h"

/* Saves a checkpoint of `step` with a model.safetensors and a state.safetensors. */
base_status support_save(const char *dir, uint64_t step, unsigned keep);

/* Whether manifest and tensors are those that support_save writes for the checkpoint's step. */
bool support_is_right(const struct store_checkpoint *checkpoint);

#endif
