/* SPDX-License-Identifier: MIT */
#include "nn/optimiser.h"

#include "base/registry.h"

base_status nn_optimiser_find(const char *name, const struct nn_optimiser **optimiser_p)
{
    return base_registry_find("optimiser", name, nn_optimiser_registry, nn_optimiser_count,
                              optimiser_p);
}

/* True of NaN: a divergence is no idle gradient. */
bool nn_update_is_idle(const float *gradient, size_t count)
{
    unsigned any = 0;

    for (size_t i = 0; i < count; i++)
        any |= gradient[i] != 0;
    return any == 0;
}

struct nn_update nn_update_part(const struct nn_optimiser *optimiser, const struct nn_update *u,
                                size_t from, size_t count)
{
    struct nn_update part = {.count = count,
                             .gradient = u->gradient + from,
                             .weight_in = u->weight_in + from,
                             .weight_out = u->weight_out + from};

    for (int slot = 0; slot < optimiser->slots; slot++) {
        part.slot_in[slot] = u->slot_in[slot] + from;
        part.slot_out[slot] = u->slot_out[slot] + from;
    }
    return part;
}

void nn_optimiser_update(const struct nn_optimiser *optimiser, const struct nn_hyper *hyper,
                         const struct nn_update *u)
{
    if (!hyper->lazy || u->weight_in != u->weight_out) {
        optimiser->update(hyper, u);
        return;
    }
#pragma omp parallel for
    for (size_t from = 0; from < u->count; from += NN_UPDATE_BLOCK) {
        const size_t left = u->count - from,
                     count = left < NN_UPDATE_BLOCK ? left : NN_UPDATE_BLOCK;

        if (!nn_update_is_idle(u->gradient + from, count)) {
            const struct nn_update part = nn_update_part(optimiser, u, from, count);

            optimiser->update(hyper, &part);
        }
    }
}
