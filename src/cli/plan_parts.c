/* SPDX-License-Identifier: MIT */
#include "cli/plan_parts.h"

#include <math.h>

#include "cluster/process.h"
#include "train/measure.h"

static int plan_counts(int workers, int counts[CLI_MOST_PARTS])
{
    int count = 0, cores = cluster_cores();

    if (workers > 0) {
        counts[0] = workers;
        return 1;
    }
    for (int n = 1; n < cores && count < CLI_MOST_PARTS - 1; n *= 2)
        counts[count++] = n;
    counts[count++] = cores < COMM_MAX_WORKERS ? cores : COMM_MAX_WORKERS;
    return count;
}

/* Numbers of workers may have batches of different sizes. */
double cli_plan_pace(const struct cli_plan_part *part)
{
    return part->forecasts.choice->seconds / (double)part->batch;
}

const struct cli_plan_part *cli_plan_choose(const struct cli_plan_part *parts, int count)
{
    const struct cli_plan_part *chosen = NULL;
    double least = INFINITY, seconds;
    bool frail = true;

    for (const struct cli_plan_part *part = parts; part < parts + count; part++) {
        const struct train_forecast *choice = part->forecasts.choice;

        if (choice == NULL || choice->cost.frail > frail)
            continue;
        seconds = train_forecast_judged(choice) / (double)part->batch;
        if (choice->cost.frail < frail || seconds < least) {
            frail = choice->cost.frail;
            least = seconds;
            chosen = part;
        }
    }
    return chosen;
}

base_status cli_plan_make(const struct train_job *job, int workers, double link, struct cli_plan *p)
{
    base_status st = BASE_OK;
    int counts[CLI_MOST_PARTS], count = plan_counts(workers, counts);

    *p = (struct cli_plan){.job = *job, .link = link};
    TRY(train_forecast_open(&p->job, &p->session));
    TRY(train_measure_memory(cluster_cores(), &p->memory_rate));
    for (int i = 0; i < count; i++) {
        struct cli_plan_part *part = &p->parts[p->count++];

        if (p->job.batch_per_worker > 0)
            p->session.plan.batch = p->job.batch_per_worker * counts[i];
        part->batch = p->session.plan.batch;
        cli_setting(&p->session, counts[i], p->link, p->memory_rate, &part->profiles,
                    &part->setting);
        TRY(train_forecast_make(&p->session, &part->setting, true, &part->forecasts));
    }
    p->chosen = cli_plan_choose(p->parts, p->count);
out:
    return st;
}

void cli_plan_fini(struct cli_plan *p)
{
    for (int i = 0; i < p->count; i++)
        train_forecasts_fini(&p->parts[i].forecasts);
    if (p->session.job != NULL)
        train_session_close(&p->session);
    *p = (struct cli_plan){0};
}
