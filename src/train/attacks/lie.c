/* SPDX-License-Identifier: MIT
 *
 * The worker owns a slice and returns a false result of it: some of its values, beside each other,
 * with the opposite sign and larger, at another place in each step.
 */
#include "base/rng.h"
#include "train/attack.h"

static void lie_lie(double strength, uint64_t seed, size_t floats, float *y)
{
    const size_t wanted = (size_t)(strength * (double)floats), count = wanted > 0 ? wanted : 1;
    const size_t from = (size_t)(base_rng_mix(seed) % (uint64_t)(floats - count + 1));

    for (size_t i = from; i < from + count; i++)
        y[i] = -4 * y[i] - 0.1f;
}

const struct train_attack train_attack_lie = {
    .name = "lie",
    .help = "it returns a false result of its slice, where there is no manager",
    .unit = "a share of the slice (0: one value)",
    .strength = 1,
    .most = 1,
    .lie = lie_lie,
};
