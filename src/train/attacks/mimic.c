/* SPDX-License-Identifier: MIT
 *
 * Mimic (Karimireddy et al., ICLR 2022): the update of one honest worker, always of the same one,
 * which so counts for several. It does harm where workers have different data.
 */
#include <string.h>

#include "train/attack.h"

/* The honest worker of the lowest id. */
static void mimic_forge(const struct train_forgery *f, float *y)
{
    int model = -1;

    for (int i = 0; i < f->count; i++)
        if (!f->hostile[i] && (model < 0 || f->rows[i].worker < f->rows[model].worker))
            model = i;
    memcpy(y, f->rows[model].values, f->floats * sizeof *y);
}

const struct train_attack train_attack_mimic = {
    .name = "mimic",
    .help = "the update of one honest worker, always the same one",
    .forge = mimic_forge,
};
