/* SPDX-License-Identifier: MIT */
#include "cluster/roles.h"

json_t *cluster_roles_json(unsigned roles)
{
    static const char *const names[] = {"worker", "server", "manager"};
    json_t *list = json_array();

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if ((roles >> i & 1) != 0)
            json_array_append_new(list, json_string(names[i]));
    return list;
}
