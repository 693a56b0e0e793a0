/* SPDX-License-Identifier: MIT
 *
 * The two frames at the beginning of a connection: the hello of the side that connects and the
 * welcome of the other one. A hello is small, so that a stranger cannot make us keep much.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "comm/comm_stream_private.h"
#include "comm/group.h"

static const char *const roles[] = {"agent", "data"};

json_t *comm_hello_to_json(const struct comm_hello *hello)
{
    return json_pack("{s:i, s:s, s:s, s:I, s:I, s:I, s:i}", "protocol", COMM_PROTOCOL, "job",
                     hello->job, "role", hello->role, "from", (json_int_t)hello->from, "to",
                     (json_int_t)hello->to, "view", (json_int_t)hello->view, "channel",
                     hello->channel);
}

/* A job's name goes into messages and keys of shared memory: letters, digits and hyphens. */
static base_status job_of(const json_t *object, char *job, size_t room)
{
    static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";
    const char *text;
    base_status st = base_json_string(object, "job", &text);
    size_t length = json_string_length(json_object_get(object, "job"));

    if (st == BASE_OK && (length >= room || strspn(text, allowed) != length))
        st = base_fail(BASE_ERR_DATA, "the job of a hello is no name");
    if (st == BASE_OK)
        memcpy(job, text, length + 1);
    return st;
}

static base_status role_of(const json_t *object, char *role, size_t room)
{
    const char *text;
    base_status st = base_json_string(object, "role", &text);

    if (st != BASE_OK)
        return st;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(text, roles[i]) == 0) {
            snprintf(role, room, "%s", text);
            return BASE_OK;
        }
    return base_fail(BASE_ERR_DATA, "a hello of an unknown role");
}

base_status comm_hello_from_json(const json_t *object, struct comm_hello *hello_p)
{
    int64_t protocol, from, to, view, channel;
    base_status st = BASE_OK;

    *hello_p = (struct comm_hello){0};
    TRY(base_json_integer(object, "protocol", &protocol));
    if (protocol != COMM_PROTOCOL)
        TRY(base_fail(BASE_ERR_DATA, "it speaks protocol %lld, this paceline speaks %d",
                      (long long)protocol, COMM_PROTOCOL));
    if (json_object_size(object) != 7)
        TRY(base_fail(BASE_ERR_DATA, "a hello of %zu fields", json_object_size(object)));
    TRY(job_of(object, hello_p->job, sizeof hello_p->job));
    TRY(role_of(object, hello_p->role, sizeof hello_p->role));
    TRY(base_json_bounded(object, "from", 0, UINT32_MAX, &from));
    TRY(base_json_bounded(object, "to", 0, UINT32_MAX, &to));
    TRY(base_json_bounded(object, "view", 0, UINT32_MAX, &view));
    TRY(base_json_bounded(object, "channel", 0, COMM_CHANNELS - 1, &channel));
    hello_p->from = (uint32_t)from;
    hello_p->to = (uint32_t)to;
    hello_p->view = (uint32_t)view;
    hello_p->channel = (uint16_t)channel;
out:
    return st;
}

void comm_greeting_hello(struct comm_greeting *greeting, const struct comm_hello *hello,
                         bool encrypted)
{
    json_t *object = comm_hello_to_json(hello);
    struct comm_frame frame = {.type = COMM_FRAME_HELLO};
    uint8_t *payload = greeting->bytes + COMM_FRAME_BYTES;

    frame.count = json_dumpb(object, (char *)payload, COMM_MAX_HELLO, JSON_COMPACT);
    frame.crc = encrypted ? 0 : base_crc32c(0, payload, frame.count);
    comm_frame_write(&frame, greeting->bytes);
    greeting->moved = 0;
    greeting->count = COMM_FRAME_BYTES + frame.count;
    json_decref(object);
}

void comm_greeting_welcome(struct comm_greeting *greeting)
{
    const struct comm_frame frame = {.type = COMM_FRAME_WELCOME};

    comm_frame_write(&frame, greeting->bytes);
    greeting->moved = 0;
    greeting->count = COMM_FRAME_BYTES;
}

base_status comm_greeting_write(struct comm_greeting *greeting, struct comm_stream *stream,
                                bool *done_p)
{
    size_t moved = 0;
    base_status st = comm_stream_write(stream, greeting->bytes + greeting->moved,
                                       greeting->count - greeting->moved, &moved);

    greeting->moved += moved;
    *done_p = greeting->moved == greeting->count;
    return st;
}

base_status comm_greeting_read(struct comm_greeting *greeting, struct comm_stream *stream,
                               bool *done_p)
{
    struct base_cursor c = base_cursor_of(greeting->bytes, COMM_FRAME_BYTES);
    base_status st = BASE_OK;
    struct comm_frame frame;
    size_t moved = 1;

    *done_p = false;
    if (greeting->moved == 0)
        greeting->count = COMM_FRAME_BYTES;
    while (greeting->moved < greeting->count && moved > 0) {
        TRY(comm_stream_read(stream, greeting->bytes + greeting->moved,
                             greeting->count - greeting->moved, &moved));
        greeting->moved += moved;
        if (greeting->moved == COMM_FRAME_BYTES && moved > 0) {
            TRY(comm_frame_read(&c, COMM_MAX_HELLO, &frame));
            greeting->count += frame.count;
        }
    }
    *done_p = greeting->moved == greeting->count;
out:
    return st;
}

base_status comm_greeting_to_hello(const struct comm_greeting *greeting, bool encrypted,
                                   struct comm_hello *hello_p)
{
    struct base_cursor c = base_cursor_of(greeting->bytes, greeting->moved);
    base_status st = BASE_OK;
    struct comm_frame frame;
    json_t *object = NULL;
    const uint8_t *text;

    *hello_p = (struct comm_hello){0};
    TRY(comm_frame_read(&c, COMM_MAX_HELLO, &frame));
    if (frame.type != COMM_FRAME_HELLO)
        TRY(base_fail(BASE_ERR_DATA, "the first frame is of type %u, no hello", frame.type));
    TRY(base_cursor_skip(&c, frame.count, &text));
    if (!encrypted)
        TRY(comm_frame_check(&frame, base_crc32c(0, text, frame.count)));
    TRY(base_json_parse((const char *)text, frame.count, &object));
    TRY(comm_hello_from_json(object, hello_p));
out:
    json_decref(object);
    return st;
}

base_status comm_greeting_is_welcome(const struct comm_greeting *greeting)
{
    struct base_cursor c = base_cursor_of(greeting->bytes, greeting->moved);
    struct comm_frame frame;
    base_status st = comm_frame_read(&c, 0, &frame);

    if (st == BASE_OK && frame.type != COMM_FRAME_WELCOME)
        st = base_fail(BASE_ERR_DATA, "a frame of type %u instead of a welcome", frame.type);
    return st;
}
