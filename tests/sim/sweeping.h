/* SPDX-License-Identifier: MIT
 *
 * The model that counts its samples, in sweeps over all of them (train/task.h): a row for each
 * sample, in phases that workers divide; or by rotations (sim/rotating.h).
 */
#ifndef SIM_SWEEPING_H
#define SIM_SWEEPING_H

#include "sim/rotating.h"

extern const struct train_sweeps sim_sweeps;

bool sim_sweeping_takes(const char *model);
struct train_choice sim_sweeping_choose(const char *model, bool several);

#endif
