/* SPDX-License-Identifier: MIT
 *
 * One table says which fields a type has, another where each field lives and what it may be. Both
 * directions and docs/protocol.md follow them.
 */
#include "cluster/message.h"

#include <stdio.h>
#include <string.h>

#include "cluster/settings.h"

enum has { /* what a type has beside the numbers of `fields` */
           ID = 1 << 0,
           HOST = 1 << 1,
           PEER = 1 << 2,
           VIEW = 1 << 3,
           VERSION = 1 << 4,
           PORT = 1 << 5,
           SLOT = 1 << 6,
           PID = 1 << 7,
           CODE = 1 << 8,
           SIGNAL = 1 << 9,
           WORKERS = 1 << 10,
           BYTES = 1 << 11,
           KEY = 1 << 12,
           ADDRESS = 1 << 13,
           TEXT = 1 << 14,
           LOAD = 1 << 15,
           MEMBERS = 1 << 16,
           BODY = 1 << 17,
           TERM = 1 << 18,
           STATE_TERM = 1 << 19,
           SERIAL = 1 << 20,
           STEP = 1 << 21,
           ROLES = 1 << 22,
};

static const struct {
    const char *name;
    unsigned has;
} types[CLUSTER_TYPES] = {
    [CLUSTER_READY] = {"ready", ID | PORT | SLOT | PID},
    [CLUSTER_HEARTBEAT] = {"heartbeat", ID | VIEW | ROLES | LOAD},
    [CLUSTER_SUSPECT] = {"suspect", ID | PEER | VIEW},
    [CLUSTER_ACCUSE] = {"accuse", ID | PEER | VIEW | TEXT},
    [CLUSTER_RESULT] = {"result", ID | VIEW | BODY},
    [CLUSTER_FAILED] = {"failed", ID | CODE | TEXT},
    [CLUSTER_FIGURES] = {"figures", ID | BODY},
    [CLUSTER_FOLDER] = {"folder", ID | TEXT},
    [CLUSTER_REGION] = {"region", KEY | BYTES | CODE | TEXT},
    [CLUSTER_EXITED] = {"exited", ID | PID | CODE | SIGNAL | TEXT},
    [CLUSTER_APPLIED] = {"applied", ID | SERIAL | STEP},
    [CLUSTER_JOIN] = {"join", HOST | WORKERS | VERSION | ADDRESS | PORT | PID | TEXT | BODY},
    [CLUSTER_JOB] = {"job", ID | HOST | SLOT | WORKERS | BODY},
    [CLUSTER_VIEW] = {"view", MEMBERS},
    [CLUSTER_KILL] = {"kill", ID | TEXT},
    [CLUSTER_END] = {"end", ID | CODE | TEXT},
    [CLUSTER_REPORT] = {"report", HOST | TERM | BODY},
    [CLUSTER_STATE] = {"state", BODY},
    [CLUSTER_LEAD] = {"lead", HOST | TERM},
    [CLUSTER_ASK] = {"ask", HOST | TERM | STATE_TERM | SERIAL},
    [CLUSTER_VOTE] = {"vote", HOST | TERM | CODE | BODY},
    [CLUSTER_SETTINGS] = {"settings", SERIAL | BODY},
    [CLUSTER_LOST] = {"lost", PEER | VIEW | TEXT},
    [CLUSTER_STOP] = {"stop", CODE | TEXT},
};

enum width { U16, U32, I32, I64, U64 };

#define AT(field) offsetof(struct cluster_message, field)

static const struct number {
    const char *key;
    unsigned bit;
    size_t offset;
    enum width width;
    int64_t min, max;
} numbers[] = {
    {"id", ID, AT(id), U32, 0, UINT32_MAX},
    {"host", HOST, AT(host), U32, 0, CLUSTER_ANY_HOST},
    {"peer", PEER, AT(peer), U32, 1, UINT32_MAX},
    {"view", VIEW, AT(view), U32, 0, UINT32_MAX},
    {"term", TERM, AT(term), U32, 0, CLUSTER_MAX_TERM},
    {"state_term", STATE_TERM, AT(state_term), U32, 0, CLUSTER_MAX_TERM},
    {"serial", SERIAL, AT(serial), U32, 0, UINT32_MAX},
    {"version", VERSION, AT(version), U32, 0, UINT32_MAX},
    {"port", PORT, AT(port), U16, 0, UINT16_MAX},
    {"slot", SLOT, AT(slot), U16, 0, COMM_MAX_WORKERS - 1},
    {"pid", PID, AT(pid), I64, 0, INT32_MAX},
    {"step", STEP, AT(step), I64, 0, INT64_MAX},
    {"roles", ROLES, AT(roles), U32, 0, CLUSTER_ALL_ROLES},
    {"code", CODE, AT(code), I32, 0, 255},
    {"signal", SIGNAL, AT(signal), I32, 0, 128},
    {"workers", WORKERS, AT(workers), I32, 1, COMM_MAX_WORKERS},
    {"bytes", BYTES, AT(bytes), U64, 0, INT64_C(1) << 42},
};
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

static const struct text {
    const char *key;
    unsigned bit;
    size_t offset, room;
} texts[] = {
    {"key", KEY, AT(key), CLUSTER_KEY_TEXT},
    {"address", ADDRESS, AT(address), COMM_ADDRESS_TEXT},
    {"text", TEXT, AT(text), sizeof((struct cluster_message *)0)->text},
};
enum { TEXTS = sizeof texts / sizeof texts[0] };

const char *cluster_type_name(enum cluster_type type)
{
    return types[type].name;
}

void cluster_message_text(struct cluster_message *m, const char *text)
{
    snprintf(m->text, sizeof m->text, "%s", text);
}

static int64_t get_number(const struct number *n, const struct cluster_message *m)
{
    const void *at = (const char *)m + n->offset;

    switch (n->width) {
    case U16:
        return *(const uint16_t *)at;
    case U32:
        return *(const uint32_t *)at;
    case I32:
        return *(const int *)at;
    default:
        return *(const int64_t *)at; /* U64 is bounded far below 2^63 */
    }
}

static void set_number(const struct number *n, struct cluster_message *m, int64_t value)
{
    void *at = (char *)m + n->offset;

    switch (n->width) {
    case U16:
        *(uint16_t *)at = (uint16_t)value;
        break;
    case U32:
        *(uint32_t *)at = (uint32_t)value;
        break;
    case I32:
        *(int *)at = (int)value;
        break;
    default:
        *(int64_t *)at = value;
    }
}

static json_t *load_to_json(const struct cluster_load *l)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:I}", "cpu", base_json_number(l->cpu), "memory",
                     base_json_number(l->memory), "load", base_json_number(l->load), "step_rate",
                     base_json_number(l->step_rate), "step", (json_int_t)l->step);
}

json_t *cluster_message_to_json(const struct cluster_message *m)
{
    unsigned has = types[m->type].has;
    json_t *object = json_pack("{s:s}", "type", types[m->type].name);

    for (int i = 0; i < NUMBERS; i++)
        if (has & numbers[i].bit)
            json_object_set_new(object, numbers[i].key, json_integer(get_number(&numbers[i], m)));
    for (int i = 0; i < TEXTS; i++)
        if (has & texts[i].bit)
            json_object_set_new(object, texts[i].key,
                                base_json_text((const char *)m + texts[i].offset));
    if (has & LOAD)
        json_object_set_new(object, "load", load_to_json(&m->load));
    if (has & MEMBERS)
        json_object_set_new(object, "members", comm_view_to_json(&m->members));
    if (has & BODY)
        json_object_set_new(object, "body", m->body != NULL ? json_incref(m->body) : json_null());
    return object;
}

static base_status read_load(const json_t *object, struct cluster_load *l)
{
    base_status st = BASE_OK;
    json_t *load;

    TRY(base_json_object(object, "load", &load));
    TRY(base_json_real(load, "cpu", &l->cpu));
    TRY(base_json_real(load, "memory", &l->memory));
    TRY(base_json_real(load, "load", &l->load));
    TRY(base_json_real(load, "step_rate", &l->step_rate));
    TRY(base_json_integer(load, "step", &l->step));
    if (l->cpu < 0 || l->memory < 0 || l->load < 0 || l->step_rate < 0 || l->step < -1)
        TRY(base_fail(BASE_ERR_DATA, "a load is below zero"));
    if (json_object_size(load) != 5)
        TRY(base_fail(BASE_ERR_DATA, "\"load\" has an unknown field"));
out:
    return st;
}

static base_status read_number(const json_t *object, const struct number *n,
                               struct cluster_message *m)
{
    base_status st = BASE_OK;
    int64_t value = 0;

    TRY(base_json_integer(object, n->key, &value));
    if (value < n->min || value > n->max)
        TRY(base_fail(BASE_ERR_DATA, "\"%s\" is %lld, not between %lld and %lld", n->key,
                      (long long)value, (long long)n->min, (long long)n->max));
    set_number(n, m, value);
out:
    return st;
}

static base_status read_text(const json_t *object, const struct text *t, struct cluster_message *m)
{
    base_status st = BASE_OK;
    const char *text = NULL;
    size_t length;

    TRY(base_json_string(object, t->key, &text));
    length = json_string_length(json_object_get(object, t->key));
    if (length >= t->room || strlen(text) != length) /* a zero inside would hide what follows */
        TRY(base_fail(BASE_ERR_DATA, "\"%s\" is not a text of at most %zu bytes", t->key,
                      t->room - 1));
    memcpy((char *)m + t->offset, text, length + 1);
out:
    return st;
}

static base_status read_body(const json_t *object, struct cluster_message *m)
{
    json_t *body = json_object_get(object, "body");

    if (!json_is_object(body) && !json_is_null(body))
        return base_fail(BASE_ERR_DATA, "\"body\" is missing or of the wrong type");
    m->body = json_is_object(body) ? json_incref(body) : NULL;
    return BASE_OK;
}

static base_status find_type(const json_t *object, enum cluster_type *type_p)
{
    base_status st = BASE_OK;
    const char *name = NULL;

    if (!json_is_object(object))
        TRY(base_fail(BASE_ERR_DATA, "not an object"));
    TRY(base_json_string(object, "type", &name));
    for (int i = 0; i < CLUSTER_TYPES; i++)
        if (strcmp(name, types[i].name) == 0) {
            *type_p = (enum cluster_type)i;
            return BASE_OK;
        }
    st = base_fail(BASE_ERR_DATA, "unknown type '%.32s'", name);
out:
    return st;
}

base_status cluster_message_from_json(const json_t *object, struct cluster_message *m)
{
    base_status st = BASE_OK;
    unsigned has;

    *m = (struct cluster_message){0};
    TRY(find_type(object, &m->type));
    has = types[m->type].has;
    if (json_object_size(object) != 1 + (size_t)__builtin_popcount(has))
        TRY(base_fail(BASE_ERR_DATA, "it has %zu fields instead of %d", json_object_size(object),
                      1 + __builtin_popcount(has)));
    for (int i = 0; i < NUMBERS; i++)
        if (has & numbers[i].bit)
            TRY(read_number(object, &numbers[i], m));
    for (int i = 0; i < TEXTS; i++)
        if (has & texts[i].bit)
            TRY(read_text(object, &texts[i], m));
    if (has & LOAD)
        TRY(read_load(object, &m->load));
    if (has & MEMBERS)
        TRY(comm_view_from_json(json_object_get(object, "members"), &m->members));
    if (has & BODY)
        TRY(read_body(object, m));
    if (m->type == CLUSTER_SETTINGS)
        TRY(cluster_settings_check(m->body));
out:
    if (st != BASE_OK)
        cluster_message_fini(m);
    return base_prefix(st, "control message");
}

void cluster_message_fini(struct cluster_message *m)
{
    json_decref(m->body);
    m->body = NULL;
}

void cluster_message_send(struct comm_mailbox *box, const struct cluster_message *m, int fd)
{
    json_t *json;

    if (box == NULL)
        return;
    json = cluster_message_to_json(m);
    if (fd >= 0)
        comm_mailbox_send_fd(box, json, fd);
    else
        comm_mailbox_send(box, json);
    json_decref(json);
}

base_status cluster_message_receive(struct comm_mailbox *box, struct cluster_message *m,
                                    bool *any_p)
{
    base_status st = BASE_OK;
    json_t *json = NULL;

    *any_p = false;
    TRY(comm_mailbox_move(box, &json));
    if (json == NULL)
        goto out;
    TRY(cluster_message_from_json(json, m));
    *any_p = true;
out:
    json_decref(json);
    return st;
}

/* A peer counts as silent after eight missed heartbeats; twice a second is often enough for the
 * people who watch. */
double cluster_heartbeat_interval(double silence)
{
    return silence / 8 < 0.5 ? silence / 8 : 0.5;
}

void cluster_token_wipe(json_t *body)
{
    const json_t *token = json_object_get(body, "token");

    if (!json_is_string(token))
        return;
    explicit_bzero((char *)(uintptr_t)json_string_value(token), json_string_length(token));
    json_object_del(body, "token");
}
