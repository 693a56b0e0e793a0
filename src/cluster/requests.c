/* SPDX-License-Identifier: MIT */
#include "cluster/requests.h"

#include <string.h>

#include "base/mem.h"
#include "cluster/status.h"

/* Seconds after which a change is answered without the step from which on it holds. */
static const double WAITING = 20.0;

enum { MAX_WAITING = 16 };

struct waiting {     /* a client that has changed a setting */
    uint32_t number; /* of the change; 0: the entry is free */
    int client;
    double since;
    char *name, *value;
};

struct cluster_requests {
    struct cluster_status *status;
    struct waiting waiting[MAX_WAITING];
};

base_status cluster_request_read(const json_t *object, struct cluster_request *r)
{
    base_status st = BASE_OK;
    const char *ask = NULL;

    *r = (struct cluster_request){0};
    if (object == NULL)
        TRY(base_fail(BASE_ERR_USAGE, "this is no request"));
    TRY(base_json_string(object, "ask", &ask));
    r->sets = strcmp(ask, "set") == 0;
    if (!r->sets && strcmp(ask, "status") != 0)
        TRY(base_fail(BASE_ERR_USAGE, "a job cannot be asked for '%.32s'", ask));
    if (r->sets) {
        TRY(base_json_string(object, "name", &r->name));
        TRY(base_json_string(object, "value", &r->value));
    }
    if (json_object_size(object) != (r->sets ? 3 : 1))
        TRY(base_fail(BASE_ERR_USAGE, "the request has an unknown field"));
out:
    return st;
}

base_status cluster_requests_open(const char *path, struct cluster_requests **requests_p)
{
    base_status st = BASE_OK;
    struct cluster_requests *r = base_calloc(1, sizeof *r);

    *requests_p = NULL;
    TRY(cluster_status_open(path, &r->status));
    *requests_p = r;
    r = NULL;
out:
    base_free(r);
    return st;
}

int cluster_requests_watch(const struct cluster_requests *r, struct pollfd *fds, int room)
{
    return cluster_status_watch(r->status, fds, room);
}

static void answer(struct cluster_requests *r, int client, json_t *object)
{
    cluster_status_answer(r->status, client, object);
    json_decref(object);
}

static void answer_failure(struct cluster_requests *r, int client, base_status st)
{
    answer(r, client,
           json_pack("{s:i, s:{s:s, s:o}}", "schema", 1, "error", "code", base_code_name(st),
                     "message", base_json_text(base_message())));
}

/* `step` -1: it is not known from which step on the change holds. */
static void answer_waiting(struct cluster_requests *r, struct waiting *w, int64_t step)
{
    answer(r, w->client,
           json_pack("{s:i, s:s, s:s, s:I, s:o}", "schema", 1, "name", w->name, "value", w->value,
                     "number", (json_int_t)w->number, "step",
                     step >= 0 ? json_integer(step) : json_null()));
    base_free(w->name);
    base_free(w->value);
    *w = (struct waiting){0};
}

static base_status change(struct cluster_requests *r, int client, const struct cluster_request *q,
                          struct cluster_coordinator *c, double now)
{
    base_status st = BASE_OK;
    struct waiting *w = r->waiting;

    while (w < r->waiting + MAX_WAITING && w->number != 0)
        w++;
    if (w == r->waiting + MAX_WAITING)
        TRY(base_fail(BASE_ERR_USAGE, "%d changes are under way; try again", MAX_WAITING));
    TRY(cluster_coordinator_set(c, q->name, q->value, now, &w->number));
    w->client = client;
    w->since = now;
    w->name = base_strdup(q->name);
    w->value = base_strdup(q->value);
out:
    return st;
}

static void hear(struct cluster_requests *r, int client, const json_t *object,
                 struct cluster_coordinator *c, double now)
{
    struct cluster_request q;
    base_status st = cluster_request_read(object, &q);

    if (st == BASE_OK && q.sets)
        st = change(r, client, &q, c, now);
    else if (st == BASE_OK)
        answer(r, client, cluster_coordinator_status(c, now));
    if (st != BASE_OK)
        answer_failure(r, client, st);
}

void cluster_requests_step(struct cluster_requests *r, struct cluster_coordinator *c, double now)
{
    json_t *object;
    int client;

    while (cluster_status_next(r->status, now, &client, &object)) {
        hear(r, client, object, c, now);
        json_decref(object);
    }
    for (struct waiting *w = r->waiting; w < r->waiting + MAX_WAITING; w++) {
        int64_t step = w->number != 0 ? cluster_coordinator_holds_from(c, w->number) : -1;

        if (step >= 0 || (w->number != 0 && now - w->since > WAITING))
            answer_waiting(r, w, step);
    }
}

void cluster_requests_close(struct cluster_requests *r)
{
    if (r == NULL)
        return;
    for (struct waiting *w = r->waiting; w < r->waiting + MAX_WAITING; w++)
        if (w->number != 0)
            answer_waiting(r, w, -1);
    cluster_status_close(r->status);
    base_free(r);
}
