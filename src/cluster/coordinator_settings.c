/* SPDX-License-Identifier: MIT
 *
 * Settings that a person changes while the job runs: the program checks them, the coordinator
 * numbers them and tells all agents, and a worker tells from which step on they hold.
 */
#include "cluster/coordinator_private.h"

void cluster_coordinator_say_settings(struct cluster_coordinator *c, int host)
{
    struct cluster_message m = {.type = CLUSTER_SETTINGS,
                                .serial = c->settings.number,
                                .body = json_incref(c->settings.values)};

    if (c->settings.number != 0 && host >= 0)
        cluster_coordinator_say(c, c->hosts[host].link, &m);
    else if (c->settings.number != 0)
        cluster_coordinator_say_all(c, &m);
    cluster_message_fini(&m);
}

base_status cluster_coordinator_set(struct cluster_coordinator *c, const char *name,
                                    const char *value, double now, uint32_t *number_p)
{
    base_status st = BASE_OK;
    json_t *values = c->settings.values != NULL ? json_copy(c->settings.values) : json_object();
    uint32_t least = c->term * CLUSTER_VIEWS_OF_A_TERM, number = c->settings.number;

    *number_p = 0;
    if (c->phase != RUNNING)
        TRY(base_fail(BASE_ERR_USAGE, "the job %s: its settings cannot be changed now",
                      c->phase == RESUMING ? "waits for its hosts"
                      : c->phase < RUNNING ? "has not begun yet"
                                           : "is ending"));
    if (c->setup.check == NULL)
        TRY(base_fail(BASE_ERR_USAGE, "a job of `%s` has no settings that can change", c->program));
    json_object_set_new(values, name, json_string(value));
    if (cluster_settings_check(values) != BASE_OK)
        TRY(base_prefix(BASE_ERR_USAGE, "it cannot be set"));
    TRY(c->setup.check(c->job, values));
    number = (number > least ? number : least) + 1;
    cluster_settings_take(&c->settings, number, values);
    cluster_coordinator_tell(c, now,
                             json_pack("{s:s, s:I, s:s, s:s}", "event", "set", "number",
                                       (json_int_t)number, "name", name, "value", value));
    cluster_coordinator_replicate(c); /* first: a successor must not know less than a worker */
    cluster_coordinator_say_settings(c, -1);
    *number_p = number;
out:
    json_decref(values);
    return st;
}

void cluster_coordinator_hear_settings(struct cluster_coordinator *c,
                                       const struct cluster_message *m)
{
    if (cluster_settings_take(&c->settings, m->serial, m->body))
        cluster_coordinator_say_settings(c, -1);
}

void cluster_coordinator_hear_applied(struct cluster_coordinator *c,
                                      const struct cluster_message *m)
{
    if (m->serial <= c->applied)
        return;
    c->applied = m->serial;
    c->applied_step = m->step;
}

int64_t cluster_coordinator_holds_from(const struct cluster_coordinator *c, uint32_t number)
{
    return c->applied >= number ? c->applied_step : -1;
}
