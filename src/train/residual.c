/* SPDX-License-Identifier: MIT */
#include "train/residual.h"

#include "base/cursor.h"
#include "base/mem.h"
#include "coll/kernels.h"
#include "train/wire.h"

enum { PIECE = 1024 }; /* values that are packed at a time, on the stack */

static size_t piece_at(size_t from, size_t floats)
{
    return floats - from < PIECE ? floats - from : PIECE;
}

static size_t packed_bytes(const struct train_wiring *wiring, size_t floats)
{
    size_t bytes = 0;

    for (size_t from = 0; from < floats; from += PIECE)
        bytes += train_wire_bound(wiring, piece_at(from, floats)); /* of int8 the very length */
    return bytes;
}

/* What int8 leaves out is dropped. */
static void pack(const struct train_wiring *wiring, const float *x, size_t floats, uint8_t *bytes)
{
    for (size_t from = 0; from < floats; from += PIECE) {
        float rest[PIECE] = {0};

        bytes += train_wire_encode(wiring, x + from, rest, piece_at(from, floats), bytes);
    }
}

static base_status add(const struct train_wiring *wiring, struct base_cursor in, float *x,
                       size_t floats)
{
    base_status st = BASE_OK;

    for (size_t from = 0; from < floats; from += PIECE) {
        size_t count = piece_at(from, floats), length = train_wire_bound(wiring, count);
        const uint8_t *bytes;
        float piece[PIECE];

        TRY(base_cursor_skip(&in, length, &bytes));
        TRY(train_wire_decode(wiring, bytes, length, piece, count));
        coll_add(count, piece, 1, x + from);
    }
out:
    return st;
}

base_status train_residual_mean(struct train_team *team, float *x, size_t floats)
{
    base_status st = BASE_OK;
    const struct train_exchange *e = &team->exchange;
    struct train_wiring wiring = {0};
    struct train_message message = {.sends = e->rank > 0};
    size_t length;

    TRY(train_wire_find("int8", &wiring));
    length = packed_bytes(&wiring, floats);
    message.count = (length + sizeof(float) - 1) / sizeof(float);
    TRY(base_tensor(message.count, sizeof(float), "a residual for a checkpoint", &message.at));
    if (e->rank > 0) {
        pack(&wiring, x, floats, (uint8_t *)message.at);
        TRY(train_team_pass(team, &message, 1));
        goto out;
    }
    for (message.peer = 1; message.peer < e->size; message.peer++) {
        TRY(train_team_pass(team, &message, 1));
        TRY(base_prefix(add(&wiring, base_cursor_of(message.at, length), x, floats),
                        "the residual of worker %u", team->view.members[message.peer].id));
    }
    coll_scale(floats, 1 / (float)e->size, x);
out:
    base_free(message.at);
    train_wiring_fini(&wiring);
    return st;
}
