/* covers: src/train/strategies/ps/call.c */
/* SPDX-License-Identifier: MIT
 *
 * What the workers and servers of `ps` say to each other. What is accepted has ranks and counts
 * that can be used, and is the same bytes when it is said again.
 */
#include <stdlib.h>
#include <string.h>

#include "train/strategies/ps/call.h"

static void check(const struct train_outline *o)
{
    if (o->rank < 0 || o->rank >= COMM_MAX_WORKERS || o->block.from < 0 || o->block.count < 0 ||
        o->block.from + o->block.count < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct train_log_entry entry;
    static uint8_t said[PS_ENTRY_MAX_BYTES];
    struct train_ps_body body;
    struct train_outline outline;
    struct ps_note note;

    if (ps_note_decode(bytes, count, &note) == BASE_OK) {
        ps_note_encode(&note, said);
        if (count != PS_NOTE_BYTES || memcmp(said, bytes, count) != 0)
            abort();
    }
    if (ps_body_decode(bytes, count, &body) == BASE_OK) {
        if (body.rank < 0 || body.rank >= COMM_MAX_WORKERS || body.block.count < 0)
            abort();
        ps_body_encode(&body, said);
        if (count != PS_BODY_BYTES || memcmp(said, bytes, count) != 0)
            abort();
    }
    if (ps_outline_decode(bytes, count, &outline) == BASE_OK) {
        check(&outline);
        ps_outline_encode(&outline, said);
        if (count != PS_OUTLINE_BYTES || memcmp(said, bytes, count) != 0)
            abort();
    }
    if (ps_entry_decode(bytes, count, &entry) == BASE_OK) {
        if (entry.count < 0 || entry.count > COMM_MAX_WORKERS)
            abort();
        for (int i = 0; i < entry.count; i++)
            check(&entry.of[i]);
        if (ps_entry_encode(&entry, said) != count || memcmp(said, bytes, count) != 0)
            abort();
    }
    return 0;
}
