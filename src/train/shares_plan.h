/* SPDX-License-Identifier: MIT
 *
 * Shares as a run had them: `--shares at:21=10/20/34,61=12/18/34` says that from step 21 on the
 * three workers compute 10, 20 and 34 samples of a whole batch, by rank, and others from step 61
 * on. `--like RUN --shares recorded` makes that text of the run's events: a run whose shares
 * followed speed can be repeated bit by bit.
 */
#ifndef TRAIN_SHARES_PLAN_H
#define TRAIN_SHARES_PLAN_H

#include <stdint.h>

#include "base/status.h"
#include "comm/group.h"

#define TRAIN_SHARES_AT "at:"
#define TRAIN_SHARES_RECORDED "recorded"

struct train_run;

struct train_shares_entry {
    int64_t step; /* the first with these shares */
    int size;
    uint32_t of[COMM_MAX_WORKERS];
};

struct train_shares_plan {         /* zeros: none */
    struct train_shares_entry *at; /* by rising step */
    int count;
};

/* An empty plan for a text that does not begin with TRAIN_SHARES_AT. */
base_status train_shares_plan_parse(const char *text, struct train_shares_plan *plan);
void train_shares_plan_fini(struct train_shares_plan *plan);
/* The entry that holds at this step; NULL: shares are even there. */
const struct train_shares_entry *train_shares_plan_at(const struct train_shares_plan *plan,
                                                      int64_t step);

/* Is it of so many workers? */
base_status train_shares_entry_fits(const struct train_shares_entry *entry, int workers);

/* The text for what a run's events tell; base_free. "even" where its shares never changed. */
base_status train_shares_recorded(const struct train_run *run, char **text_p);

#endif
