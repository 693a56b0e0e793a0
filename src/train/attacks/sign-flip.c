/* SPDX-License-Identifier: MIT
 *
 * The worker's own update with the opposite sign, and larger: the model is driven away from where
 * the worker's samples would take it.
 */
#include "train/attack.h"

static void sign_flip_forge(const struct train_forgery *f, float *y)
{
    const float *own = f->rows[f->row].values, scale = (float)-f->strength;

    for (size_t i = 0; i < f->floats; i++)
        y[i] = scale * own[i];
}

const struct train_attack train_attack_sign_flip = {
    .name = "sign-flip",
    .help = "its update with the opposite sign",
    .unit = "a multiple of the update",
    .strength = 4,
    .most = 1e6,
    .alone = true,
    .forge = sign_flip_forge,
};
