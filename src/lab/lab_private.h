/* SPDX-License-Identifier: MIT
 *
 * Between the files of this directory.
 */
#ifndef LAB_LAB_PRIVATE_H
#define LAB_LAB_PRIVATE_H

#include "lab/lab.h"

/* Every key of `object` is one of `keys`, which is NULL-ended. */
base_status lab_check_keys(const json_t *object, const char *const *keys);

/* The words to start runs with that `object` has under "launch"; NULL: none. */
base_status lab_read_launch(const json_t *object, const json_t **launch_p);

/* The points of a case. `common`: options of all cases; `forced`: those that count more than the
 * case's own. `number`, from 1, is for messages. */
base_status lab_expand(struct lab *lab, const json_t *common, const json_t *a_case, size_t number,
                       const json_t *forced);

#endif
