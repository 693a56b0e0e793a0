/* SPDX-License-Identifier: MIT
 *
 * The rule that chooses kernels for models that only answer. A rule and no trial: the start of a
 * server takes no time over it, and the same model gets the same kernels on every CPU of a level.
 */
#ifndef NN_CONV_PREFER_H
#define NN_CONV_PREFER_H

#include "nn/conv/conv.h"

/* What a batch of n costs with a candidate that serves, in multiplications: those it does, the
 * fetching of its prepared weights, and the passes over its inputs. */
double nn_prefer_cost(const struct nn_conv *conv, const struct nn_conv_shape *shape, int n);

/* The cheapest candidate for batches of n. */
const struct nn_conv *nn_prefer(const struct nn_conv_shape *shape, int n);

#endif
