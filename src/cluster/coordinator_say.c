/* SPDX-License-Identifier: MIT
 *
 * What the coordinator says: the queue of messages, the events, the status, the last words.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/coordinator_private.h"

static const char *const phase_names[] = {
    [GATHERING] = "gathering", [STARTING_UP] = "starting", [RESUMING] = "resuming",
    [RUNNING] = "running",     [STOPPING] = "stopping",    [FAILING] = "failing",
    [OVER] = "over",
};

static const char *const state_names[] = {
    [WORKER_STARTING] = "starting",
    [WORKER_READY] = "ready",
    [WORKER_LEAVING] = "leaving",
    [WORKER_DONE] = "done",
};

void cluster_coordinator_say(struct cluster_coordinator *c, int link,
                             struct cluster_message *message)
{
    struct letter *letter = base_calloc(1, sizeof *letter);

    letter->link = link;
    letter->message = *message;
    message->body = NULL;
    if (c->last != NULL)
        c->last->next = letter;
    else
        c->first = letter;
    c->last = letter;
}

void cluster_coordinator_say_all(struct cluster_coordinator *c,
                                 const struct cluster_message *message)
{
    for (int i = 0; i < c->host_count; i++) {
        struct cluster_message copy = *message;

        json_incref(copy.body);
        if (c->hosts[i].here)
            cluster_coordinator_say(c, c->hosts[i].link, &copy);
        cluster_message_fini(&copy);
    }
}

bool cluster_coordinator_next(struct cluster_coordinator *c, int *link_p,
                              struct cluster_message *message_p)
{
    struct letter *letter = c->first;

    if (letter == NULL)
        return false;
    *link_p = letter->link;
    *message_p = letter->message;
    c->first = letter->next;
    if (c->first == NULL)
        c->last = NULL;
    base_free(letter);
    return true;
}

void cluster_coordinator_tell(struct cluster_coordinator *c, double now, json_t *event)
{
    json_object_set_new(event, "time", json_real(now - c->born));
    json_array_append_new(c->events, event);
}

void cluster_coordinator_tell_load(struct cluster_coordinator *c, double now, uint32_t id, int host,
                                   const struct cluster_load *l)
{
    json_t *event = json_pack("{s:s, s:I, s:i, s:f, s:f}", "event", "heartbeat", "id",
                              (json_int_t)id, "host", host, "cpu", l->cpu, "memory", l->memory);

    if (id == 0) {
        json_object_set_new(event, "load", json_real(l->load));
    } else {
        json_object_set_new(event, "step", json_integer(l->step));
        json_object_set_new(event, "step_rate", json_real(l->step_rate));
    }
    cluster_coordinator_tell(c, now, event);
}

json_t *cluster_coordinator_event(struct cluster_coordinator *c)
{
    json_t *event = json_array_get(c->events, 0);

    json_incref(event);
    json_array_remove(c->events, 0);
    return event;
}

void cluster_coordinator_describe(const struct failure *f, char *text, size_t room)
{
    char how[320], pid[32] = ""; /* a worker that never started has no pid */

    if (f->exited && f->signal != 0)
        snprintf(how, sizeof how, "%s (signal %d, SIG%s)", f->why, f->signal,
                 sigabbrev_np(f->signal) != NULL ? sigabbrev_np(f->signal) : "?");
    else if (f->exited)
        snprintf(how, sizeof how, "ended %s (exit code %d)",
                 f->code == 0 ? "without a result" : "with a failure", f->code);
    else
        snprintf(how, sizeof how, "%s", f->why);
    if (f->pid > 0)
        snprintf(pid, sizeof pid, " (pid %lld)", (long long)f->pid);
    snprintf(text, room, "worker %u on host %s%s %s", f->id, f->host, pid, how);
}

void cluster_coordinator_warn(const struct cluster_coordinator *c, const struct failure *f,
                              uint32_t heir)
{
    int left = cluster_coordinator_going_on(c) - (heir != 0);
    char text[1600], place[64] = "";
    size_t used;

    if (c->phase == FAILING || c->phase == OVER) /* the job's END tells of it */
        return;
    cluster_coordinator_describe(f, text, 512);
    used = strlen(text);
    if (f->reason != BASE_OK)
        snprintf(text + used, sizeof text - used, ": %s", f->words);
    if (heir != 0)
        snprintf(place, sizeof place, "worker %u is started in its place, ", heir);
    if (left > 0)
        base_warn("%s; %s%d worker%s on", text, place, left, left == 1 ? " goes" : "s go");
    else
        base_warn("%s; %sall others are done", text, place);
}

void cluster_coordinator_last_words(const struct cluster_coordinator *c, const struct failure *f,
                                    struct cluster_message *end)
{
    char who[512], text[1200];

    end->id = f->id;
    end->code = (int)(f->reason != BASE_OK ? f->reason : BASE_ERR_PEER_LOST);
    if (f->reason == BASE_ERR_USAGE || f->reason == BASE_ERR_MODEL ||
        (f->reason != BASE_OK && c->host_count == 1)) {
        /* No worker is to blame: the command line or the model is wrong, or there is one host,
         * whose workers all have the same input. */
        snprintf(text, sizeof text, "%s", f->words);
    } else if (f->reason != BASE_OK) {
        snprintf(text, sizeof text, "worker %u on host %s: %s", f->id, f->host, f->words);
    } else {
        cluster_coordinator_describe(f, who, sizeof who);
        snprintf(text, sizeof text, "%s%s%s", who, f->lines[0] != '\0' ? "; its last lines:\n" : "",
                 f->lines);
    }
    cluster_message_text(end, text);
}

static json_t *host_json(const struct cluster_coordinator *c, int index, double now)
{
    const struct host *h = &c->hosts[index];

    return json_pack("{s:i, s:o, s:s, s:i, s:I, s:f, s:f, s:f, s:f}", "host", index, "name",
                     base_json_text(h->name), "address", h->address, "workers", h->workers, "pid",
                     (json_int_t)h->pid, "cpu", h->load.cpu, "memory", h->load.memory, "load",
                     h->load.load, "silent_seconds", now - h->heard);
}

static json_t *worker_json(const struct cluster_coordinator *c, const struct worker *w)
{
    json_t *object = json_pack("{s:I, s:i, s:I, s:s, s:f, s:f, s:I, s:f}", "id", (json_int_t)w->id,
                               "host", w->host, "pid", (json_int_t)w->pid, "state",
                               state_names[w->state], "cpu", w->load.cpu, "memory", w->load.memory,
                               "step", (json_int_t)w->load.step, "step_rate", w->load.step_rate);

    json_object_set_new(object, "roles", cluster_roles_json(w->roles));
    json_object_set_new(object, "figures",
                        w->figures != NULL ? json_incref(w->figures) : json_null());
    json_object_set_new(object, "rank",
                        w->member ? json_integer(comm_view_rank(&c->view, w->id)) : json_null());
    return object;
}

json_t *cluster_coordinator_status(const struct cluster_coordinator *c, double now)
{
    json_t *hosts = json_array(), *workers = json_array();

    for (int i = 0; i < c->host_count; i++)
        if (c->hosts[i].here)
            json_array_append_new(hosts, host_json(c, i, now));
    for_each_worker(c, w)
        json_array_append_new(workers, worker_json(c, w));
    return json_pack("{s:i, s:s, s:s, s:s, s:I, s:f, s:o, s:o}", "schema", 1, "job", c->name,
                     "program", c->program, "phase", phase_names[c->phase], "view",
                     (json_int_t)c->view.number, "seconds", now - c->born, "hosts", hosts,
                     "workers", workers);
}
