/* SPDX-License-Identifier: MIT */
#include "nn/optimiser.h"

#include "base/registry.h"

base_status nn_optimiser_find(const char *name, const struct nn_optimiser **optimiser_p)
{
    return base_registry_find("optimiser", name, nn_optimiser_registry, nn_optimiser_count,
                              optimiser_p);
}
