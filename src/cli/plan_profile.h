/* SPDX-License-Identifier: MIT
 *
 * How fast this machine computes a model: for `paceline plan`. Each measurement is `paceline bench
 * step` in processes of its own, as many at once as workers will share the host.
 */
#ifndef CLI_PLAN_PROFILE_H
#define CLI_PLAN_PROFILE_H

#include "nn/shape.h"
#include "train/forecast.h"

enum { CLI_MOST_PROFILES = 16 };

struct cli_profiles {
    const char *model, *kernels;
    struct nn_shape input;
    int classes;
    int threads, together; /* threads of each process; processes at once */
    struct {
        int samples;
        struct train_profile profile;
    } known[CLI_MOST_PROFILES];
    int count;
};

/* `context`: struct cli_profiles. Each number of samples is measured once. */
base_status cli_profile(void *context, int samples, struct train_profile *profile_p);

/* Workers on this host, or with `link` (bytes a second) each on a host of its own like this one.
 * The session is surveyed; `profiles_p` and the job stay while the setting is in use. */
void cli_setting(const struct train_session *session, int workers, double link, double memory_rate,
                 struct cli_profiles *profiles_p, struct train_setting *setting_p);

#endif
