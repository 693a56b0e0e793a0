/* SPDX-License-Identifier: MIT
 *
 * Kernels chosen by time (--tune): each distinct shape of a model is tried once on this machine
 * (nn/conv/trial.h), and the fastest candidate that agrees with the reference is remembered in
 * ~/.cache/paceline/kernels.json for this CPU, level and number of threads. Two machines, or one
 * under load, may choose differently, and then their results differ in the last bits.
 */
#ifndef NN_CONV_TUNE_H
#define NN_CONV_TUNE_H

#include "nn/conv/kernelplan.h"

/* Sets the `conv` of every layer. `cache` is the file of earlier choices, read and replaced; NULL:
 * none. Tells how long it will take and how far it is. */
base_status nn_tune(struct nn_planned *layers, int count, const char *cache);

/* Where this person's choices are remembered, or NULL; base_free. */
char *nn_tune_cache(void);

#endif
