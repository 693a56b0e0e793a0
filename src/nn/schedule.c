/* SPDX-License-Identifier: MIT
 *
 * Finds a schedule by name; warm-up in front of every schedule.
 */
#include "nn/schedule.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

base_status nn_schedule_find(const char *name, const struct nn_schedule **schedule_p)
{
    const char **names = base_calloc(nn_schedule_count, sizeof *names);
    base_status st = BASE_OK;

    *schedule_p = NULL;
    for (size_t i = 0; i < nn_schedule_count; i++) {
        names[i] = nn_schedule_registry[i]->name;
        if (strcmp(names[i], name) == 0)
            *schedule_p = nn_schedule_registry[i];
    }
    if (*schedule_p == NULL)
        st = base_unknown(BASE_ERR_USAGE, "schedule", name, names, nn_schedule_count);
    base_free(names);
    return st;
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
