/* SPDX-License-Identifier: MIT
 *
 * Who may join: hosts that speak this protocol and mean this job, as long as there is room.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/registry.h"
#include "cluster/coordinator_private.h"
#include "comm/transport.h"

/* The first field of `theirs` that is not the same in `ours`; NULL: none. */
static const char *difference(const json_t *theirs, const json_t *ours)
{
    const char *key;
    json_t *value, *other;

    json_object_foreach((json_t *)(uintptr_t)theirs, key, value)
    {
        other = json_object_get(ours, key);
        if (json_is_object(value) && json_is_object(other)) {
            const char *inside = difference(value, other);

            if (inside != NULL)
                return inside;
        } else if (!json_equal(value, other)) {
            return key;
        }
    }
    return NULL;
}

/* The first setting of the job in which the host differs from host 0; NULL: none. */
static const char *conflict(const struct cluster_coordinator *c, const json_t *body)
{
    const char *program = json_string_value(json_object_get(body, "program"));

    if (program != NULL && strcmp(program, c->program) != 0)
        return "program";
    return difference(json_object_get(body, "job"), c->job);
}

/* The job's transport is shared memory, which does not reach another host. */
static bool stays_on_one_host(const struct cluster_coordinator *c)
{
    const struct comm_transport *transport =
        c->transport != NULL
            ? base_registry_get(c->transport, comm_transport_registry, comm_transport_count)
            : NULL;

    return transport != NULL && (transport->can & COMM_CAN_SHARE) != 0;
}

static base_status admit(struct cluster_coordinator *c, const struct cluster_message *m,
                         int *index_p)
{
    const char *differs = conflict(c, m->body);
    int index = (int)m->host, workers = m->workers;

    if (m->version != CLUSTER_PROTOCOL)
        return base_fail(BASE_ERR_USAGE,
                         "host 0 speaks protocol %d, this host %u: install the same version",
                         CLUSTER_PROTOCOL, m->version);
    if (c->phase > RUNNING)
        return base_fail(BASE_ERR_USAGE, "the job is ending");
    if (!comm_address_is_numeric(m->address)) /* workers refuse a view with such an address */
        return base_fail(BASE_ERR_USAGE, "'%s' is no numeric address; give --bind", m->address);
    if (differs != NULL)
        return base_fail(BASE_ERR_USAGE,
                         "this host's \"%s\" is not the one of host 0, whose job "
                         "counts; start all hosts with the same options",
                         differs);
    if (index < c->setup.hosts && c->hosts[index].here)
        return base_fail(BASE_ERR_USAGE, "host %d is there already; give each host its own --rank",
                         index);
    if (index >= c->setup.hosts && index != CLUSTER_ANY_HOST)
        return base_fail(BASE_ERR_USAGE, "host %d is not one of %d; --num-nodes differs", index,
                         c->setup.hosts);
    if (c->phase != GATHERING || index == CLUSTER_ANY_HOST) {
        if (!c->setup.joins)
            return base_fail(BASE_ERR_USAGE, "this job takes no more workers");
        index = c->setup.hosts; /* a host that comes back is a new one */
        while (index < c->host_count &&
               (c->hosts[index].here || cluster_coordinator_has_say(c, index)))
            index++;
    }
    if (index > 0 && stays_on_one_host(c))
        return base_fail(BASE_ERR_USAGE,
                         "the job has --transport %s, which reaches no other host's workers",
                         c->transport);
    for (int i = 0; i < c->host_count; i++)
        workers += c->hosts[i].here ? c->hosts[i].workers : 0;
    if (workers > COMM_MAX_WORKERS || index >= CLUSTER_MAX_HOSTS)
        return base_fail(BASE_ERR_USAGE, "a job has at most %d workers", COMM_MAX_WORKERS);
    *index_p = index;
    return BASE_OK;
}

base_status cluster_coordinator_hear_join(struct cluster_coordinator *c, int link,
                                          const struct cluster_message *m, double now)
{
    base_status st = BASE_OK;
    struct cluster_message refusal = {.type = CLUSTER_END};
    struct host *h;
    int index;

    st = admit(c, m, &index);
    if (st != BASE_OK) { /* the host is told why, and closes the connection itself */
        base_warn("refused host %s (%s): %s", m->text, m->address, base_message());
        refusal.code = (int)st;
        cluster_message_text(&refusal, base_message());
        cluster_coordinator_say(c, link, &refusal);
        return BASE_OK;
    }
    if (index == c->host_count)
        c->host_count++;
    h = &c->hosts[index];
    *h = (struct host){.here = true,
                       .link = link,
                       .port = m->port,
                       .workers = m->workers,
                       .pid = m->pid,
                       .heard = now};
    snprintf(h->name, sizeof h->name, "%.63s", m->text);
    snprintf(h->address, sizeof h->address, "%s", m->address);
    cluster_coordinator_tell(c, now,
                             json_pack("{s:s, s:i, s:o, s:s, s:i}", "event", "join", "host", index,
                                       "name", base_json_text(h->name), "address", h->address,
                                       "workers", h->workers));
    if (c->phase != GATHERING)
        cluster_coordinator_order(c, index, c->hosts[index].workers, now);
    return BASE_OK;
}
