/* SPDX-License-Identifier: MIT */
#include "cluster/state.h"

#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(struct cluster_state, field)

static const struct number {
    const char *key;
    size_t offset;
    int64_t max;
    bool is_signed; /* int, else uint32_t: within these bounds they have the same bytes */
} numbers[] = {
    {"term", AT(term), CLUSTER_MAX_TERM, false},
    {"serial", AT(serial), UINT32_MAX, false},
    {"first_hosts", AT(first_hosts), CLUSTER_MAX_HOSTS, true},
    {"of_each", AT(of_each), COMM_MAX_WORKERS, true},
    {"asked", AT(asked), COMM_MAX_WORKERS, true},
    {"least", AT(least), COMM_MAX_WORKERS, true},
    {"min_workers", AT(min_workers), COMM_MAX_WORKERS, true},
    {"last_id", AT(last_id), UINT32_MAX, false},
    {"leader", AT(leader), CLUSTER_MAX_HOSTS - 1, false},
    {"finished", AT(finished), INT32_MAX, true},
    {"done_view", AT(done_view), UINT32_MAX, false},
    {"result_id", AT(result_id), UINT32_MAX, false},
    {"settings_number", AT(settings.number), UINT32_MAX, false},
};

static const struct text {
    const char *key;
    size_t offset, room;
} texts[] = {
    {"name", AT(name), sizeof((struct cluster_state *)0)->name},
    {"program", AT(program), sizeof((struct cluster_state *)0)->program},
    {"transport", AT(transport), sizeof((struct cluster_state *)0)->transport},
};

static const struct flag {
    const char *key;
    size_t offset;
} flags[] = {
    {"joins", AT(joins)},       {"restarts", AT(restarts)}, {"folder", AT(folder)},
    {"going_on", AT(going_on)}, {"stopping", AT(stopping)},
};

enum {
    NUMBERS = sizeof numbers / sizeof numbers[0],
    TEXTS = sizeof texts / sizeof texts[0],
    FLAGS = sizeof flags / sizeof flags[0],
    OTHERS = 9, /* silence, gather, done, job, result, settings, view, quorum, hosts */
    HOST_FIELDS = 5,
};

/* ---- to JSON ---- */

static json_t *hosts_to_json(const struct cluster_state *s)
{
    json_t *list = json_array();

    for (int i = 0; i < s->host_count; i++) {
        const struct cluster_state_host *h = &s->hosts[i];

        json_array_append_new(list, json_pack("{s:b, s:i, s:i, s:o, s:s}", "here", (int)h->here,
                                              "port", (int)h->port, "workers", h->workers, "name",
                                              base_json_text(h->name), "address", h->address));
    }
    return list;
}

static json_t *quorum_to_json(const struct cluster_state *s)
{
    json_t *list = json_array();

    for (int i = 0; i < s->host_count; i++)
        if (s->quorum[i])
            json_array_append_new(list, json_integer(i));
    return list;
}

static json_t *done_to_json(const struct cluster_state *s)
{
    json_t *ids = json_array();

    for (uint32_t i = 0; i < s->view.size; i++)
        if ((s->done >> i & 1) != 0)
            json_array_append_new(ids, json_integer(s->view.members[i].id));
    return ids;
}

json_t *cluster_state_to_json(const struct cluster_state *s)
{
    json_t *object = json_object();

    for (int i = 0; i < NUMBERS; i++) {
        const void *at = (const char *)s + numbers[i].offset;

        json_object_set_new(object, numbers[i].key,
                            json_integer(numbers[i].is_signed
                                             ? (json_int_t) * (const int *)at
                                             : (json_int_t) * (const uint32_t *)at));
    }
    for (int i = 0; i < TEXTS; i++)
        json_object_set_new(object, texts[i].key,
                            base_json_text((const char *)s + texts[i].offset));
    for (int i = 0; i < FLAGS; i++)
        json_object_set_new(object, flags[i].key,
                            json_boolean(*(const bool *)((const char *)s + flags[i].offset)));
    json_object_set_new(object, "silence", json_real(s->silence));
    json_object_set_new(object, "gather", json_real(s->gather));
    json_object_set_new(object, "done", done_to_json(s));
    json_object_set(object, "job", s->job);
    json_object_set_new(object, "result", s->result != NULL ? json_incref(s->result) : json_null());
    json_object_set_new(object, "settings",
                        s->settings.number != 0 ? json_incref(s->settings.values) : json_null());
    json_object_set_new(object, "view",
                        s->view.number != 0 ? comm_view_to_json(&s->view) : json_null());
    json_object_set_new(object, "quorum", quorum_to_json(s));
    json_object_set_new(object, "hosts", hosts_to_json(s));
    return object;
}

/* ---- from JSON ---- */

static base_status read_text(const json_t *object, const char *key, char *text, size_t room)
{
    base_status st = BASE_OK;
    const char *value = NULL;
    size_t length;

    TRY(base_json_string(object, key, &value));
    length = json_string_length(json_object_get(object, key));
    if (length >= room || strlen(value) != length)
        TRY(base_fail(BASE_ERR_DATA, "\"%s\" is not a text of at most %zu bytes", key, room - 1));
    memcpy(text, value, length + 1);
out:
    return st;
}

static base_status read_host(const json_t *object, struct cluster_state_host *h)
{
    base_status st = BASE_OK;
    int64_t port = 0, workers = 0;

    TRY(base_json_flag(object, "here", &h->here));
    TRY(base_json_bounded(object, "port", 0, UINT16_MAX, &port));
    TRY(base_json_bounded(object, "workers", 0, COMM_MAX_WORKERS, &workers));
    TRY(read_text(object, "name", h->name, sizeof h->name));
    TRY(read_text(object, "address", h->address, sizeof h->address));
    h->port = (uint16_t)port;
    h->workers = (int)workers;
    if (h->here && !comm_address_is_numeric(h->address))
        TRY(base_fail(BASE_ERR_DATA, "'%s' is no numeric address", h->address));
    if (json_object_size(object) != HOST_FIELDS)
        TRY(base_fail(BASE_ERR_DATA, "a host has an unknown field"));
out:
    return st;
}

static base_status read_quorum(const json_t *object, struct cluster_state *s)
{
    base_status st = BASE_OK;
    json_t *list;

    TRY(base_json_array(object, "quorum", &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *host = json_array_get(list, i);
        json_int_t index = json_is_integer(host) ? json_integer_value(host) : -1;

        if (index < 0 || index >= s->host_count || s->quorum[index])
            TRY(base_fail(BASE_ERR_DATA, "\"quorum\" names no host, or one twice"));
        s->quorum[index] = true;
    }
out:
    return st;
}

static base_status read_hosts(const json_t *object, struct cluster_state *s)
{
    base_status st = BASE_OK;
    json_t *list;

    TRY(base_json_array(object, "hosts", &list));
    if (json_array_size(list) > CLUSTER_MAX_HOSTS)
        TRY(base_fail(BASE_ERR_DATA, "there are %zu hosts", json_array_size(list)));
    for (size_t i = 0; i < json_array_size(list); i++)
        TRY(read_host(json_array_get(list, i), &s->hosts[i]));
    s->host_count = (int)json_array_size(list);
    for (uint32_t i = 0; i < s->view.size; i++)
        if (s->view.members[i].host >= s->host_count)
            TRY(base_fail(BASE_ERR_DATA, "the view has a host that is not listed"));
    TRY(read_quorum(object, s));
out:
    return st;
}

static base_status read_done(const json_t *object, struct cluster_state *s)
{
    base_status st = BASE_OK;
    json_t *ids;

    TRY(base_json_array(object, "done", &ids));
    for (size_t i = 0; i < json_array_size(ids); i++) {
        json_int_t id = json_integer_value(json_array_get(ids, i));
        int rank = id > 0 && id <= UINT32_MAX ? comm_view_rank(&s->view, (uint32_t)id) : -1;

        if (rank < 0 || (s->done >> rank & 1) != 0)
            TRY(base_fail(BASE_ERR_DATA, "\"done\" names no worker of the view, or one twice"));
        s->done |= UINT64_C(1) << rank;
    }
out:
    return st;
}

static base_status read_bodies(const json_t *object, struct cluster_state *s)
{
    base_status st = BASE_OK;
    json_t *result = json_object_get(object, "result"), *view = json_object_get(object, "view");
    json_t *settings = json_object_get(object, "settings"), *job;

    TRY(base_json_object(object, "job", &job));
    if (s->settings.number != 0)
        TRY(cluster_settings_check(settings));
    else if (!json_is_null(settings))
        TRY(base_fail(BASE_ERR_DATA, "\"settings\" without a number"));
    if (!json_is_object(result) && !json_is_null(result))
        TRY(base_fail(BASE_ERR_DATA, "\"result\" is missing or of the wrong type"));
    if (!json_is_null(view))
        TRY(comm_view_from_json(view, &s->view));
    TRY(read_done(object, s));
    s->job = json_incref(job);
    s->settings.values = s->settings.number != 0 ? json_incref(settings) : NULL;
    s->result = json_is_object(result) ? json_incref(result) : NULL;
out:
    return st;
}

static base_status read_plain(const json_t *object, struct cluster_state *s)
{
    base_status st = BASE_OK;
    int64_t value = 0;

    for (int i = 0; i < NUMBERS; i++) {
        void *at = (char *)s + numbers[i].offset;

        TRY(base_json_bounded(object, numbers[i].key, 0, numbers[i].max, &value));
        if (numbers[i].is_signed)
            *(int *)at = (int)value;
        else
            *(uint32_t *)at = (uint32_t)value;
    }
    for (int i = 0; i < TEXTS; i++)
        TRY(read_text(object, texts[i].key, (char *)s + texts[i].offset, texts[i].room));
    for (int i = 0; i < FLAGS; i++)
        TRY(base_json_flag(object, flags[i].key, (bool *)((char *)s + flags[i].offset)));
    TRY(base_json_real(object, "silence", &s->silence));
    TRY(base_json_real(object, "gather", &s->gather));
    if (!(s->silence > 0 && s->silence < 1e6 && s->gather > 0 && s->gather < 1e6))
        TRY(base_fail(BASE_ERR_DATA, "the seconds of silence or gathering cannot be"));
out:
    return st;
}

base_status cluster_state_from_json(const json_t *object, struct cluster_state *s)
{
    base_status st = BASE_OK;

    *s = (struct cluster_state){0};
    TRY(read_plain(object, s));
    TRY(read_bodies(object, s));
    TRY(read_hosts(object, s));
    if (json_object_size(object) != NUMBERS + TEXTS + FLAGS + OTHERS)
        TRY(base_fail(BASE_ERR_DATA, "it has %zu fields instead of %d", json_object_size(object),
                      NUMBERS + TEXTS + FLAGS + OTHERS));
out:
    if (st != BASE_OK) {
        cluster_state_fini(s);
        *s = (struct cluster_state){0};
    }
    return base_prefix(st, "the coordinator's state");
}

void cluster_state_fini(struct cluster_state *s)
{
    json_decref(s->job);
    json_decref(s->result);
    s->job = s->result = NULL;
    cluster_settings_fini(&s->settings);
}

bool cluster_state_newer(const struct cluster_state *s, uint32_t term, uint32_t serial)
{
    return s->term > term || (s->term == term && s->serial > serial);
}

bool cluster_state_in_view(const struct cluster_state *s, uint32_t host)
{
    for (uint32_t i = 0; i < s->view.size; i++)
        if (s->view.members[i].host == host)
            return true;
    return false;
}
