/* SPDX-License-Identifier: MIT
 *
 * A rating model for ratings of support/rated.h, with the team that it runs on.
 */
#ifndef SUPPORT_FITTED_H
#define SUPPORT_FITTED_H

#include "recsys/model.h"
#include "support/rated.h"

struct fitted {
    struct base_team *team;
    void *options;
    struct recsys_fit *fit;
};

/* Starting values; `options` as after the name, "k=16,sweeps=2". Fails the test if it cannot. */
void fitted_open(struct fitted *f, const struct rated *rated, const char *model,
                 const char *options, int threads, uint64_t seed);
void fitted_train(struct fitted *f); /* all its sweeps */
void fitted_close(struct fitted *f);

#endif
