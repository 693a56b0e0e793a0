/* SPDX-License-Identifier: MIT
 *
 * What a successor of the coordinator needs to know: the job and how it was started, the hosts with
 * the ports of their agents, the last view, what is done. The coordinator sends it to every agent
 * whenever it changes (CLUSTER_STATE); which workers there are, the agents tell a successor
 * themselves. Plain data; the JSON inside is owned.
 */
#ifndef CLUSTER_STATE_H
#define CLUSTER_STATE_H

#include "cluster/message.h"
#include "cluster/settings.h"

struct cluster_state_host {
    bool here;
    uint16_t port; /* its agent listens here for other agents; 0: nowhere */
    int workers;
    char name[64], address[COMM_ADDRESS_TEXT];
};

struct cluster_state {
    uint32_t term, serial;           /* the newer of two states has the higher term, then serial */
    char name[40];                   /* the job's */
    char program[64], transport[32]; /* transport "": automatic */
    json_t *job;
    int first_hosts, of_each;      /* hosts that the job was started with, workers on each */
    int asked, least, min_workers; /* asked: by --min-workers, or 0 */
    bool joins, restarts, folder;  /* of struct cluster_setup */
    double silence, gather;
    bool going_on; /* false: before the first view, or the job fails: there is no successor */
    bool stopping;
    uint32_t last_id;   /* the highest id of a worker so far */
    uint32_t leader;    /* the coordinator's host */
    int finished;       /* workers that have given a result and are in no view any more */
    uint64_t done;      /* bits: ranks of the view whose workers have given a result */
    uint32_t done_view; /* the last view in which a worker gave a result */
    uint32_t result_id; /* the worker that gave it; 0: there is none yet */
    json_t *result;
    struct cluster_settings settings; /* what a person has changed */
    struct comm_view view;            /* the newest view; number 0: there is none yet */
    bool quorum[CLUSTER_MAX_HOSTS];   /* hosts of the last view in which all members have worked */
    int host_count;
    struct cluster_state_host hosts[CLUSTER_MAX_HOSTS];
};

json_t *cluster_state_to_json(const struct cluster_state *state);
/* Accepts exactly the fields, each within its bounds; after a failure the state is empty. */
base_status cluster_state_from_json(const json_t *object, struct cluster_state *state_p);
void cluster_state_fini(struct cluster_state *state);

bool cluster_state_newer(const struct cluster_state *state, uint32_t term, uint32_t serial);
/* True if workers of this host are in the newest view. */
bool cluster_state_in_view(const struct cluster_state *state, uint32_t host);

#endif
