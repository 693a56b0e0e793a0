/* SPDX-License-Identifier: MIT
 *
 * Inner-product manipulation (Xie et al., UAI 2020): the honest mean with the opposite sign. All
 * attackers send the same, so that rules which look for neighbours find them together.
 */
#include "train/attack.h"

static void inner_product_forge(const struct train_forgery *f, float *y)
{
    train_forgery_mean(f, y);
    for (size_t i = 0; i < f->floats; i++)
        y[i] *= (float)-f->strength;
}

const struct train_attack train_attack_inner_product = {
    .name = "inner-product",
    .help = "the honest mean with the opposite sign",
    .unit = "a multiple of the mean",
    .strength = 3,
    .most = 1e6,
    .forge = inner_product_forge,
};
