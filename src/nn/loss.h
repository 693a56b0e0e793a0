/* SPDX-License-Identifier: MIT
 *
 * What the loss layers share: they take a vector of one score a class and keep one double a
 * sample, its loss, so that the sum has one order whatever the number of threads.
 */
#ifndef NN_LOSS_H
#define NN_LOSS_H

#include "nn/layer.h"

base_status nn_loss_describe(struct nn_node *node);
int nn_loss_argmax(int count, const float *scores); /* the first of the largest */
double nn_loss_total(int n, const double *losses);

#endif
