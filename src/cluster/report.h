/* SPDX-License-Identifier: MIT
 *
 * What an agent tells a new coordinator of its workers: body of CLUSTER_REPORT. Plain data; the
 * result is owned.
 */
#ifndef CLUSTER_REPORT_H
#define CLUSTER_REPORT_H

#include "cluster/message.h"

enum { CLUSTER_MAX_REPORTED = 2 * COMM_MAX_WORKERS };

struct cluster_reported { /* a worker of the reporting host */
    uint32_t id;
    uint32_t view; /* the view it works in, or in which it gave its result */
    int64_t pid;
    uint16_t slot, port;
    bool live;  /* its process is there */
    bool ready; /* can be in a view */
    bool done;  /* has given its result */
    bool lost;  /* it died or hangs, and is about to be reaped */
};

struct cluster_report {
    int count;
    struct cluster_reported workers[CLUSTER_MAX_REPORTED];
    uint32_t result_id; /* 0: no worker of this host has given one */
    json_t *result;     /* the result of the worker with the lowest id */
};

json_t *cluster_report_to_json(const struct cluster_report *report);
base_status cluster_report_from_json(const json_t *object, struct cluster_report *report_p);
void cluster_report_fini(struct cluster_report *report);

#endif
