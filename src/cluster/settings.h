/* SPDX-License-Identifier: MIT
 *
 * What a person has changed in a running job (`paceline set`): texts by name. Every change has a
 * number, and a process takes only settings with a higher one than its own, so that all processes
 * see the same order. All settings travel with each change: a process that missed some lacks
 * nothing once it has the newest. Like the numbers of views, those of a coordinator's term T are
 * above T * CLUSTER_VIEWS_OF_A_TERM.
 */
#ifndef CLUSTER_SETTINGS_H
#define CLUSTER_SETTINGS_H

#include "base/json.h"

enum { CLUSTER_MAX_SETTINGS = 32, CLUSTER_SETTING_TEXT = 256 };

struct cluster_settings {
    uint32_t number; /* of the newest change; 0: nothing was changed */
    json_t *values;  /* {name: text}; owned; NULL where the number is 0 */
};

/* May these settings ({name: text}) hold in the job while it runs? BASE_ERR_USAGE tells why not. A
 * program of cluster/worker.h has one, which runs in the agent that coordinates. */
typedef base_status cluster_check(const json_t *job, const json_t *settings);

/* An object of at most CLUSTER_MAX_SETTINGS texts by name, names and texts shorter than
 * CLUSTER_SETTING_TEXT; else an error. */
base_status cluster_settings_check(const json_t *values);

/* Takes other settings if their number is higher; true: they were. */
bool cluster_settings_take(struct cluster_settings *settings, uint32_t number, json_t *values);
void cluster_settings_fini(struct cluster_settings *settings); /* accepts zeros */

#endif
