/* SPDX-License-Identifier: MIT
 *
 * `lab sweep`: options of train as a person gives them, some of them ranges "A..B", become a lab's
 * file: a case for every combination of values, of which validation marks the best.
 */
#ifndef LAB_SWEEP_H
#define LAB_SWEEP_H

#include "base/json.h"
#include "base/option.h"

enum { LAB_SWEEP_MOST = 100 }; /* values of a range */

struct lab_sweep {
    const struct base_option *options; /* of train */
    const struct base_given *given;
    int given_count;
    int64_t points;    /* of each range, from 2 to LAB_SWEEP_MOST */
    const char *judge; /* the figure that is compared */
};

/* Values are as far apart by their logarithms, or where A is 0 by themselves; those of a whole
 * number are rounded, and each comes once. A validation part is kept apart and nothing is tested
 * unless the options say otherwise. */
base_status lab_sweep(const struct lab_sweep *sweep, json_t **file_p);

/* Is it "A..B"? The ends are numbers of 0 or more, A below B; another text with two dots between
 * numbers is an error that names the option. */
base_status lab_range(const char *option, const char *text, bool *is_range_p, double *low_p,
                      double *high_p);

#endif
