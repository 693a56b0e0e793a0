/* SPDX-License-Identifier: MIT
 *
 * Finds an optimiser by name.
 */
#include "nn/optimiser.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

base_status nn_optimiser_find(const char *name, const struct nn_optimiser **optimiser_p)
{
    const char **names = base_calloc(nn_optimiser_count, sizeof *names);
    base_status st = BASE_OK;

    *optimiser_p = NULL;
    for (size_t i = 0; i < nn_optimiser_count; i++) {
        names[i] = nn_optimiser_registry[i]->name;
        if (strcmp(names[i], name) == 0)
            *optimiser_p = nn_optimiser_registry[i];
    }
    if (*optimiser_p == NULL)
        st = base_unknown(BASE_ERR_USAGE, "optimiser", name, names, nn_optimiser_count);
    base_free(names);
    return st;
}
