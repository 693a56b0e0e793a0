/* SPDX-License-Identifier: MIT
 *
 * How often a backdoor opens: images of other classes are stamped with a mark (data/trigger.h), and
 * those that the network then takes for the target class are counted.
 */
#ifndef TRAIN_BACKDOOR_H
#define TRAIN_BACKDOOR_H

#include "base/json.h"
#include "base/str.h"
#include "data/dataset.h"
#include "nn/net.h"

struct train_backdoor { /* zeros: not measured */
    const struct data_info *info;
    int trigger;
    int32_t target;
    uint64_t *seen, *opened; /* (classes) images of each class, and how many became the target */
};

/* Stamps every image of the part that is not of the target class. `batch`: what the network holds
 * at once. */
base_status train_backdoor_measure(struct nn_net *net, const struct data_set *set,
                                   enum data_part part, int batch, int trigger, int32_t target,
                                   struct train_backdoor *backdoor_p);
void train_backdoor_fini(struct train_backdoor *backdoor); /* accepts zeros */

json_t *train_backdoor_json(const struct train_backdoor *backdoor);
/* A line: all classes together, and the one that it works best on. */
void train_backdoor_text(const struct train_backdoor *backdoor, struct base_str *text);

#endif
