/* SPDX-License-Identifier: MIT
 *
 * Noise, normally distributed, whose length is a multiple of that of the worker's own update.
 */
#include <math.h>

#include "base/rng.h"
#include "train/attack.h"

static double gaussian_length(const float *x, size_t floats)
{
    double sum = 0;

    for (size_t i = 0; i < floats; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static void gaussian_forge(const struct train_forgery *f, float *y)
{
    const double scale =
        f->strength * gaussian_length(f->rows[f->row].values, f->floats) / sqrt((double)f->floats);

    for (size_t i = 0; i < f->floats; i++) { /* Box and Muller (1958) */
        const uint64_t bits = base_rng_mix(f->seed + i);
        const double a = ((double)(bits >> 32) + 0.5) * 0x1p-32;
        const double b = (double)(bits & 0xffffffff) * 0x1p-32;

        y[i] = (float)(scale * sqrt(-2 * log(a)) * cos(2 * M_PI * b));
    }
}

const struct train_attack train_attack_gaussian = {
    .name = "gaussian",
    .help = "noise in place of its update",
    .unit = "a multiple of the update's length",
    .strength = 10,
    .most = 1e6,
    .alone = true,
    .forge = gaussian_forge,
};
