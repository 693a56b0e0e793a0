/* SPDX-License-Identifier: MIT
 *
 * Finds a schedule by name; warm-up in front of every schedule.
 */
#include "nn/schedule.h"

#include "base/registry.h"

base_status nn_schedule_find(const char *name, const struct nn_schedule **schedule_p)
{
    return base_registry_find("schedule", name, nn_schedule_registry, nn_schedule_count,
                              schedule_p);
}

double nn_schedule_factor(const struct nn_schedule *schedule, const struct nn_schedule_setup *setup,
                          uint64_t step)
{
    uint64_t length = setup->total > setup->warmup ? setup->total - setup->warmup : 1;
    double position;

    if (step < setup->warmup)
        return (double)(step + 1) / (double)(setup->warmup + 1) * schedule->factor(setup, 0, 0.0);
    step -= setup->warmup;
    position = length > 1 ? (double)step / (double)(length - 1) : 0.0;
    return schedule->factor(setup, step, position < 1.0 ? position : 1.0);
}
