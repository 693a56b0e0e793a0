/* SPDX-License-Identifier: MIT */
#include "cluster/report.h"

enum { FIELDS = 3, WORKER_FIELDS = 9 };

json_t *cluster_report_to_json(const struct cluster_report *r)
{
    json_t *workers = json_array();

    for (int i = 0; i < r->count; i++) {
        const struct cluster_reported *w = &r->workers[i];

        json_array_append_new(workers,
                              json_pack("{s:I, s:I, s:I, s:i, s:i, s:b, s:b, s:b, s:b}", "id",
                                        (json_int_t)w->id, "view", (json_int_t)w->view, "pid",
                                        (json_int_t)w->pid, "slot", (int)w->slot, "port",
                                        (int)w->port, "live", (int)w->live, "ready", (int)w->ready,
                                        "done", (int)w->done, "lost", (int)w->lost));
    }
    return json_pack("{s:o, s:I, s:O?}", "workers", workers, "result_id", (json_int_t)r->result_id,
                     "result", r->result);
}

static base_status read_worker(const json_t *object, struct cluster_reported *w)
{
    base_status st = BASE_OK;
    int64_t id = 0, view = 0, slot = 0, port = 0;

    TRY(base_json_bounded(object, "id", 1, UINT32_MAX, &id));
    TRY(base_json_bounded(object, "view", 0, UINT32_MAX, &view));
    TRY(base_json_bounded(object, "pid", 0, INT32_MAX, &w->pid));
    TRY(base_json_bounded(object, "slot", 0, COMM_MAX_WORKERS - 1, &slot));
    TRY(base_json_bounded(object, "port", 0, UINT16_MAX, &port));
    TRY(base_json_flag(object, "live", &w->live));
    TRY(base_json_flag(object, "ready", &w->ready));
    TRY(base_json_flag(object, "done", &w->done));
    TRY(base_json_flag(object, "lost", &w->lost));
    if (json_object_size(object) != WORKER_FIELDS)
        TRY(base_fail(BASE_ERR_DATA, "a worker has an unknown field"));
    w->id = (uint32_t)id;
    w->view = (uint32_t)view;
    w->slot = (uint16_t)slot;
    w->port = (uint16_t)port;
out:
    return st;
}

/* Two workers with one id, or two live ones with one set of words, would be taken for each other.
 */
static base_status check_apart(const struct cluster_report *r, int index)
{
    const struct cluster_reported *w = &r->workers[index];

    for (int i = 0; i < index; i++) {
        const struct cluster_reported *other = &r->workers[i];

        if (other->id == w->id || (other->live && w->live && other->slot == w->slot))
            return base_fail(BASE_ERR_DATA, "workers %u and %u cannot be told apart", other->id,
                             w->id);
    }
    return BASE_OK;
}

base_status cluster_report_from_json(const json_t *object, struct cluster_report *r)
{
    base_status st = BASE_OK;
    json_t *workers, *result = json_object_get(object, "result");
    int64_t id = 0;

    *r = (struct cluster_report){0};
    TRY(base_json_array(object, "workers", &workers));
    TRY(base_json_bounded(object, "result_id", 0, UINT32_MAX, &id));
    if (json_array_size(workers) > CLUSTER_MAX_REPORTED)
        TRY(base_fail(BASE_ERR_DATA, "it reports %zu workers", json_array_size(workers)));
    if (!json_is_object(result) && !json_is_null(result))
        TRY(base_fail(BASE_ERR_DATA, "\"result\" is missing or of the wrong type"));
    if (json_object_size(object) != FIELDS)
        TRY(base_fail(BASE_ERR_DATA, "it has an unknown field"));
    for (; r->count < (int)json_array_size(workers); r->count++) {
        TRY(read_worker(json_array_get(workers, (size_t)r->count), &r->workers[r->count]));
        TRY(check_apart(r, r->count));
    }
    r->result_id = (uint32_t)id;
    r->result = json_is_object(result) ? json_incref(result) : NULL;
out:
    if (st != BASE_OK)
        *r = (struct cluster_report){0};
    return base_prefix(st, "a host's report");
}

void cluster_report_fini(struct cluster_report *r)
{
    json_decref(r->result);
    r->result = NULL;
}
