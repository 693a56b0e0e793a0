/* SPDX-License-Identifier: MIT */
#include "cli/plan_profile.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/process.h"
#include "lab/child.h"
#include "train/session.h"

/* Seconds: for which a measurement goes on at least, and at most before it is given up. */
#define SECONDS "0.6"
static const double PATIENCE = 300;

enum { MOST_WORDS = 20 };

/* Waits until the process has ended. */
static base_status await(const struct lab_child *child, double deadline)
{
    for (;;) {
        struct pollfd fd = {.fd = child->alive, .events = POLLIN};
        double left = deadline - base_now();

        if (left <= 0)
            return base_fail(BASE_ERR_TIMEOUT, "a measurement has taken more than %.0f s",
                             PATIENCE);
        if (poll(&fd, 1, (int)ceil(1e3 * fmin(left, 60))) > 0)
            return BASE_OK;
    }
}

/* The slowest of those that ran at the same time counts, as in a step of all workers. */
static void take_slower(struct train_profile *p, const json_t *result)
{
    const json_t *seconds = json_object_get(result, "seconds");
    double update = json_number_value(json_object_get(seconds, "update"));
    double step = json_number_value(json_object_get(seconds, "median"));

    if (step <= p->compute + p->update)
        return;
    p->update = update;
    p->compute = step - update;
}

static base_status measure(const struct cli_profiles *p, int samples,
                           struct train_profile *profile_p)
{
    base_status st = BASE_OK;
    struct lab_child children[COMM_MAX_WORKERS] = {0};
    double deadline = base_now() + PATIENCE;
    json_t *result = NULL;
    char input[64], classes[16], batch[16], threads[16];
    char *words[MOST_WORDS] = {"paceline", "bench", "step", (char *)(uintptr_t)p->model};
    char *options[] = {
        "--input", input,       "--classes", classes,     "--batch",
        batch,     "--threads", threads,     "--kernels", (char *)(uintptr_t)p->kernels,
        "--steps", "3",         "--for",     SECONDS,     "--json",
        NULL};

    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        words[4 + i] = options[i];
    snprintf(input, sizeof input, "%dx%dx%d", p->input.c, p->input.h, p->input.w);
    snprintf(classes, sizeof classes, "%d", p->classes);
    snprintf(batch, sizeof batch, "%d", samples);
    snprintf(threads, sizeof threads, "%d", p->threads);
    *profile_p = (struct train_profile){0};
    for (int i = 0; i < p->together; i++)
        TRY(lab_child_start(LAB_SELF, words, &children[i]));
    for (int i = 0; i < p->together; i++) {
        TRY(await(&children[i], deadline));
        TRY(base_prefix(lab_child_finish(&children[i], "bench step", &result), "measuring %s",
                        p->model));
        take_slower(profile_p, result);
        json_decref(result);
        result = NULL;
    }
out:
    json_decref(result);
    for (int i = 0; i < p->together; i++)
        lab_child_close(&children[i]);
    return st;
}

base_status cli_profile(void *context, int samples, struct train_profile *profile_p)
{
    base_status st = BASE_OK;
    struct cli_profiles *p = context;

    for (int i = 0; i < p->count; i++)
        if (p->known[i].samples == samples) {
            *profile_p = p->known[i].profile;
            return BASE_OK;
        }
    TRY(measure(p, samples, profile_p));
    if (p->count < CLI_MOST_PROFILES) {
        p->known[p->count].samples = samples;
        p->known[p->count++].profile = *profile_p;
    }
out:
    return st;
}

void cli_setting(const struct train_session *s, int workers, double link, double memory_rate,
                 struct cli_profiles *profiles_p, struct train_setting *setting_p)
{
    const struct train_job *job = s->job;
    int here = link > 0 ? 1 : workers, threads = cluster_cores() / here;
    struct train_sizes sizes = {0};

    base_ignore(s->task->sizes(s, 1, 1, 1, &sizes)); /* for its graph */
    threads = job->threads > 0 ? (int)job->threads : threads > 0 ? threads : 1;
    *profiles_p = (struct cli_profiles){.model = job->model,
                                        .kernels = job->kernels,
                                        .input = nn_graph_input(sizes.graph),
                                        .classes = nn_graph_classes(sizes.graph),
                                        .threads = threads,
                                        .together = here};
    *setting_p = (struct train_setting){.workers = workers,
                                        .threads = threads,
                                        .link = link,
                                        .memory_rate = memory_rate,
                                        .budget = (double)job->memory,
                                        .profile = cli_profile,
                                        .context = profiles_p};
}
