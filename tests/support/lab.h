/* SPDX-License-Identifier: MIT
 *
 * A coordinator in a laboratory: driven by messages of made-up hosts, link by link, and a made-up
 * clock. What it says, but for heartbeats, is collected. Worker `id` has pid 100 + id, the host of
 * link L the name host-L.
 */
#ifndef SUPPORT_LAB_H
#define SUPPORT_LAB_H

#include "cluster/coordinator.h"

enum { LAB_MAX_SAID = 512 };

struct lab {
    struct cluster_coordinator *c;
    double now;
    bool restarts;         /* of the next job; off again when it is over */
    int least;             /* the same */
    const char *transport; /* the same; NULL: automatic */
    cluster_check *check;  /* the same; NULL: nothing can change */
    struct {
        int link;
        struct cluster_message m;
    } said[LAB_MAX_SAID];
    int count;
    int own;       /* link of the coordinator's host */
    json_t *state; /* the last that was sent to agents; NULL: none */
};

extern struct lab lab;

void lab_begin(int hosts, int min_workers, bool joins);
/* Two hosts of two workers, all in view 1. */
void lab_two_hosts(int min_workers, bool joins);
void lab_two_hosts_that_restart(void);
int lab_finish(void **state); /* a teardown */

/* Messages of agents; all but the first are to be taken without complaint. */
base_status lab_hear(int link, struct cluster_message m);
void lab_tell(int link, struct cluster_message m);
void lab_join(int link, uint32_t host, int workers);
void lab_join_with(int link, uint32_t host, int workers, json_t *body);
void lab_ready(int link, uint32_t id);
void lab_works_in(int link, uint32_t id, uint32_t view);
void lab_failed(int link, uint32_t id, base_code code, const char *words);
void lab_suspect(int link, uint32_t id, uint32_t peer, uint32_t view);
void lab_accuse(int link, uint32_t id, uint32_t peer, uint32_t view);
void lab_lost(int link, uint32_t id);
void lab_exited(int link, uint32_t id, int code, int signal);
void lab_result(int link, uint32_t id); /* in the view that there is */
void lab_result_of(int link, uint32_t id, uint32_t view);
void lab_pass_alive(double seconds, int hosts); /* with the heartbeats of all */
void lab_collect(void);                         /* after calls of the coordinator itself */

/* How many of that type went to `link` (-1: any); the last of them. */
int lab_said(enum cluster_type type, int link, struct cluster_message *last_p);
void lab_assert_view(uint32_t number, int size, ...); /* the newest: ids of its members */
void lab_assert_end(base_code code, const char *text);

#endif
