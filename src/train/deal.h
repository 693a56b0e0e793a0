/* SPDX-License-Identifier: MIT
 *
 * Work divided between workers by how fast each of them has been. Pure arithmetic on figures that
 * all workers have gathered, so that the division is the same on every one.
 */
#ifndef TRAIN_DEAL_H
#define TRAIN_DEAL_H

#include <stdbool.h>

#include "comm/view.h"

enum { TRAIN_DEAL = 1 << 16 }; /* parts that the work is cut into */

struct train_deal {
    int size;
    int begin[COMM_MAX_WORKERS + 1]; /* worker r has parts begin[r] … begin[r + 1] - 1 */
    double rate[COMM_MAX_WORKERS];   /* work a second of each, of late; 0: not known */
};

void train_deal_equally(struct train_deal *deal, int size);
/* What each worker has just measured; 0: nothing. Where the parts of some worker should be more
 * than 15 % more or fewer than they are, all are dealt again: true. Every worker keeps some, by
 * which it is measured again. */
bool train_deal_again(struct train_deal *deal, const double *rates);

#endif
