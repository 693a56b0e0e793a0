/* SPDX-License-Identifier: MIT
 *
 * A little is enough (Baruch et al., NeurIPS 2019): the mean of the honest updates, moved by z
 * standard deviations in every coordinate. So near, the forged updates pass for honest ones, and
 * robust rules prefer them to some of these. Without a strength z is the paper's: as many honest
 * updates must be farther away as the attackers lack for a majority. It is LEAST_Z at least: the
 * paper's falls below zero where attackers are few.
 */
#include <math.h>

#include "recsys/gauss.h"
#include "train/attack.h"

static const double LEAST_Z = 0.3;

static double alie_z(const struct train_forgery *f)
{
    const int n = f->count, hostile = n - f->honest, needed = n / 2 + 1 - hostile;
    const double share = (double)(f->honest - needed) / f->honest;

    if (f->strength > 0)
        return f->strength;
    return share > 0 && share < 1 ? fmax(recsys_phi_inverse(share), LEAST_Z) : LEAST_Z;
}

static void alie_forge(const struct train_forgery *f, float *y)
{
    const float z = (float)alie_z(f);

    train_forgery_mean(f, y);
    for (size_t i = 0; i < f->floats; i++) {
        float sum = 0;

        for (int row = 0; row < f->count; row++) {
            float off = f->rows[row].values[i] - y[i];

            sum += f->hostile[row] ? 0 : off * off;
        }
        y[i] -= z * sqrtf(sum / (float)f->honest);
    }
}

const struct train_attack train_attack_alie = {
    .name = "alie",
    .help = "the honest mean, moved a little in every coordinate",
    .unit = "deviations (0: by the number of attackers)",
    .most = 1e3,
    .forge = alie_forge,
};
