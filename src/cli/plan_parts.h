/* SPDX-License-Identifier: MIT
 *
 * A plan for several numbers of workers, for `paceline plan` and --workers auto: what each strategy
 * would need and how long its steps would take, for each number, and the best choice of all.
 */
#ifndef CLI_PLAN_PARTS_H
#define CLI_PLAN_PARTS_H

#include "cli/plan_profile.h"
#include "train/session.h"

enum { CLI_MOST_PARTS = 12 }; /* numbers of workers that are compared */

struct cli_plan {                 /* zeros: none */
    struct train_job job;         /* the session's; a caller may change its model */
    struct train_session session; /* surveyed */
    double link, memory_rate;
    int count;
    struct cli_plan_part { /* one number of workers */
        int64_t batch;
        struct train_setting setting;
        struct cli_profiles profiles;
        struct train_forecasts forecasts;
    } parts[CLI_MOST_PARTS];
    const struct cli_plan_part *chosen; /* has the best choice of all; NULL: nothing fits */
};

/* For `workers`; 0 or less: one, two, four and so on, as many as there are cores. `link`: as in
 * cli_setting. The plan stays where it is; end it with cli_plan_fini, on failure, too. */
base_status cli_plan_make(const struct train_job *job, int workers, double link,
                          struct cli_plan *plan);
void cli_plan_fini(struct cli_plan *plan); /* accepts zeros and half-made */

/* The part with the best choice, by train_forecast_judged: the usual strategies stay across numbers
 * of workers, too, unless another is much faster. A frail choice counts only where all are. NULL:
 * nothing fits. */
const struct cli_plan_part *cli_plan_choose(const struct cli_plan_part *parts, int count);

/* How much of a second the choice of a part that has one takes for a sample. */
double cli_plan_pace(const struct cli_plan_part *part);

#endif
