/* SPDX-License-Identifier: MIT
 *
 * A view: the numbered list of live workers, in rank order. Only the coordinator (cluster/) makes
 * views; agents and workers read them. Plain data.
 */
#ifndef COMM_VIEW_H
#define COMM_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"

enum { COMM_MAX_WORKERS = 64, COMM_ADDRESS_TEXT = 64 };

struct comm_member {
    uint32_t id;                     /* the worker's for life: counted from 1, never reused */
    uint16_t host;                   /* index of its host's agent */
    uint16_t slot;                   /* its words in the host's shared memory (comm/host.h) */
    uint16_t port;                   /* where its data listener accepts; 0: same host only */
    char address[COMM_ADDRESS_TEXT]; /* numeric IPv4 or IPv6 */
};

struct comm_view {
    uint32_t number; /* counted from 1 */
    uint32_t size;
    struct comm_member members[COMM_MAX_WORKERS]; /* index = rank */
};

bool comm_address_is_numeric(const char *address);             /* IPv4 or IPv6, without a scope */
int comm_view_rank(const struct comm_view *view, uint32_t id); /* or -1 */

/* {"number","members":[{"id","host","slot","address","port"}]}; parsing checks every bound and
 * that ids are unique. */
json_t *comm_view_to_json(const struct comm_view *view);
base_status comm_view_from_json(const json_t *object, struct comm_view *view_p);

#endif
