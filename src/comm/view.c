/* SPDX-License-Identifier: MIT */
#include "comm/view.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "comm/host.h"

int comm_view_rank(const struct comm_view *view, uint32_t id)
{
    for (uint32_t i = 0; i < view->size; i++)
        if (view->members[i].id == id)
            return (int)i;
    return -1;
}

json_t *comm_view_to_json(const struct comm_view *view)
{
    json_t *members = json_array();

    for (uint32_t i = 0; i < view->size; i++) {
        const struct comm_member *m = &view->members[i];

        json_array_append_new(members,
                              json_pack("{s:I, s:i, s:i, s:o, s:i}", "id", (json_int_t)m->id,
                                        "host", (int)m->host, "slot", (int)m->slot, "address",
                                        base_json_text(m->address), "port", (int)m->port));
    }
    return json_pack("{s:I, s:o}", "number", (json_int_t)view->number, "members", members);
}

bool comm_address_is_numeric(const char *address)
{
    struct in6_addr six;
    struct in_addr four;

    return inet_pton(AF_INET, address, &four) == 1 || inet_pton(AF_INET6, address, &six) == 1;
}

static base_status read_member(const json_t *object, struct comm_member *m)
{
    int64_t id, host, slot, port;
    const char *address;
    base_status st;

    TRY(base_json_bounded(object, "id", 1, UINT32_MAX, &id));
    TRY(base_json_bounded(object, "host", 0, UINT16_MAX, &host));
    TRY(base_json_bounded(object, "slot", 0, COMM_HOST_SLOTS - 1, &slot));
    TRY(base_json_bounded(object, "port", 0, UINT16_MAX, &port));
    TRY(base_json_string(object, "address", &address));
    if (strlen(address) >= sizeof m->address || (port != 0 && !comm_address_is_numeric(address)))
        TRY(base_fail(BASE_ERR_DATA, "worker %lld has no numeric address", (long long)id));
    *m = (struct comm_member){
        .id = (uint32_t)id, .host = (uint16_t)host, .slot = (uint16_t)slot, .port = (uint16_t)port};
    snprintf(m->address, sizeof m->address, "%s", address);
out:
    return st;
}

/* Two workers with one id, or with one set of words, would take each other's messages. */
static base_status check_apart(const struct comm_view *view, uint32_t index)
{
    const struct comm_member *m = &view->members[index];

    for (uint32_t i = 0; i < index; i++) {
        const struct comm_member *other = &view->members[i];

        if (other->id == m->id)
            return base_fail(BASE_ERR_DATA, "worker %u is twice in view %u", m->id, view->number);
        if (other->host == m->host && other->slot == m->slot)
            return base_fail(BASE_ERR_DATA, "workers %u and %u of view %u share slot %u of host %u",
                             other->id, m->id, view->number, m->slot, m->host);
    }
    return BASE_OK;
}

base_status comm_view_from_json(const json_t *object, struct comm_view *view_p)
{
    struct comm_view view = {0};
    json_t *members;
    int64_t number;
    base_status st;

    memset(view_p, 0, sizeof *view_p);
    TRY(base_json_bounded(object, "number", 1, UINT32_MAX, &number));
    TRY(base_json_array(object, "members", &members));
    if (json_array_size(members) < 1 || json_array_size(members) > COMM_MAX_WORKERS)
        TRY(base_fail(BASE_ERR_DATA, "view %lld has %zu members, 1 … %d are possible",
                      (long long)number, json_array_size(members), COMM_MAX_WORKERS));
    view.number = (uint32_t)number;
    view.size = (uint32_t)json_array_size(members);
    for (uint32_t i = 0; i < view.size; i++) {
        TRY(read_member(json_array_get(members, i), &view.members[i]));
        TRY(check_apart(&view, i));
    }
    *view_p = view;
out:
    return st;
}
