/* SPDX-License-Identifier: MIT
 *
 * What a process of a job is there for, as its program tells: a set of bits, since one process may
 * have several roles.
 */
#ifndef CLUSTER_ROLES_H
#define CLUSTER_ROLES_H

#include "base/json.h"

enum cluster_role {
    CLUSTER_ROLE_WORKER = 1 << 0,  /* computes on samples */
    CLUSTER_ROLE_SERVER = 1 << 1,  /* keeps parameters for the others */
    CLUSTER_ROLE_MANAGER = 1 << 2, /* gives out the work */
    CLUSTER_ALL_ROLES = (1 << 3) - 1,
};

json_t *cluster_roles_json(unsigned roles); /* ["worker", "server"]; a new reference */

#endif
