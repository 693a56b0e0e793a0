/* SPDX-License-Identifier: MIT
 *
 * `lab lr`: a learning rate range test (Smith 2015). One training whose rate rises by the same
 * factor in every step shows from which rate on a model learns and at which it no longer does.
 */
#ifndef LAB_RATE_H
#define LAB_RATE_H

#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "base/str.h"
#include "report/svg.h"

enum { LAB_RATE_LEAST = 20, LAB_RATE_MOST = 100000 }; /* steps */

struct lab_rate {
    double low, high; /* learning rates of the first and of the last step */
    int64_t steps;
    double *rates, *losses, *smooth; /* as far as the loss was no multiple of its lowest */
    size_t count;
    bool diverged;            /* there were more */
    double suggested, lowest; /* rates: where the loss falls fastest, and where it is lowest; NAN:
                               * it does not fall */
};

/* Trains with `options` ("--NAME=VALUE" of train, without those that the test sets; NULL-ended) in
 * a run "FOLDER/runs/lr", which is made anew, and reads its losses. low, high and steps are set. A
 * signal (base/stop.h) ends it as it ends a lab. lab_rate_fini, also after a failure. */
base_status lab_rate_run(const char *folder, char *const *options, struct lab_rate *rate);
void lab_rate_fini(struct lab_rate *rate); /* accepts zeros */

/* From `rates` and `losses`: cuts them where the training diverged, smoothes, suggests. */
void lab_rate_judge(struct lab_rate *rate);

/* The losses over the rates; valid as long as `rate` and `series`, of two. */
struct report_chart lab_rate_chart(const struct lab_rate *rate, struct report_series series[2],
                                   struct report_mark *mark);

#endif
