/* SPDX-License-Identifier: MIT
 *
 * The update that adam and adamw share; they differ in where the weight decay goes.
 */
#ifndef NN_ADAM_H
#define NN_ADAM_H

#include "nn/optimiser.h"

struct nn_adam_decay {
    float gradient; /* times the weight, added to the gradient (L2) */
    float weight;   /* the weight is multiplied by it (decoupled); 1: not at all */
};

void nn_adam_update(const struct nn_hyper *hyper, const struct nn_update *update,
                    struct nn_adam_decay decay);

#endif
