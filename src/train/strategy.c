/* SPDX-License-Identifier: MIT */
#include "train/strategy.h"

#include "base/registry.h"

base_status train_strategy_find(const char *name, const struct train_strategy **strategy_p)
{
    return base_registry_find("strategy", name, train_strategy_registry, train_strategy_count,
                              strategy_p);
}
