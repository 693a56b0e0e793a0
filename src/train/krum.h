/* SPDX-License-Identifier: MIT
 *
 * Krum's choice (Blanchard et al., NeurIPS 2017), which several aggregators begin with: an update's
 * score is the sum of its squared distances to the nearest others, all but f + 1 of them.
 */
#ifndef TRAIN_KRUM_H
#define TRAIN_KRUM_H

#include "train/distances.h"

/* How many dishonest updates krum can stand, f of 2f + 3 at least; f = 0: as many as it can. */
int train_krum_tolerates(int64_t f, int count);

/* The `keep` rows with the lowest scores, the lowest first, the first of equals; into `best`. */
void train_krum_best(const double *d, int count, int f, int keep, int *best);

#endif
