/* SPDX-License-Identifier: MIT */
#include "train/strategy.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

base_status train_strategy_find(const char *name, const struct train_strategy **strategy_p)
{
    const char **names = base_calloc(train_strategy_count, sizeof *names);
    base_status st = BASE_OK;

    *strategy_p = NULL;
    for (size_t i = 0; i < train_strategy_count; i++) {
        names[i] = train_strategy_registry[i]->name;
        if (strcmp(names[i], name) == 0)
            *strategy_p = train_strategy_registry[i];
    }
    if (*strategy_p == NULL)
        st = base_unknown(BASE_ERR_USAGE, "strategy", name, names, train_strategy_count);
    base_free(names);
    return st;
}
