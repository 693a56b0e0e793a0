/* SPDX-License-Identifier: MIT
 *
 * All numbers are little-endian.
 */
#include "train/strategies/downpour/call.h"

#include <string.h>

#include "base/cursor.h"

bool downpour_round_same(const struct downpour_round *a, const struct downpour_round *b)
{
    return a->epoch == b->epoch && a->cursor == b->cursor && a->step == b->step &&
           a->goal == b->goal && a->blocks == b->blocks && a->checksum == b->checksum;
}

/* ---- encode ---- */

void downpour_call_encode(const struct downpour_call *call, uint8_t bytes[DOWNPOUR_CALL_BYTES])
{
    const struct downpour_round *r = &call->round;
    const int64_t numbers[] = {r->number,         r->epoch, r->cursor,
                               r->step,           r->goal,  call->outcome.correct,
                               call->outcome.seen};
    uint64_t loss;
    uint8_t *at = base_put_le32(bytes, (uint32_t)call->kind);

    at = base_put_le32(at, call->block);
    at = base_put_le32(at, r->blocks);
    at = base_put_le32(at, r->checksum);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        at = base_put_le64(at, (uint64_t)numbers[i]);
    memcpy(&loss, &call->outcome.loss_sum, sizeof loss);
    base_put_le64(at, loss);
}

void train_answer_encode(const struct train_answer *answer, uint8_t bytes[TRAIN_ANSWER_BYTES])
{
    uint8_t *at = base_put_le32(bytes, (uint32_t)answer->kind);

    at = base_put_le32(at, answer->block);
    at = base_put_le32(at, (uint32_t)answer->ending);
    base_put_le32(at, answer->wanted | (uint32_t)answer->counts << 1);
}

/* ---- decode ---- */

/* A number below `kinds`. */
static base_status get_kind(struct base_cursor *c, const char *what, uint32_t kinds,
                            uint32_t *kind_p)
{
    base_status st = BASE_OK;

    TRY(base_cursor_le32(c, kind_p));
    if (*kind_p >= kinds)
        TRY(base_fail(BASE_ERR_DATA, "%s of kind %u", what, *kind_p));
out:
    return st;
}

static base_status get64(struct base_cursor *c, int64_t *value_p)
{
    uint64_t bits = 0;
    base_status st = base_cursor_le64(c, &bits);

    *value_p = (int64_t)bits;
    return st;
}

/* A count: not negative. */
static base_status get_count(struct base_cursor *c, int64_t *value_p)
{
    base_status st = BASE_OK;

    TRY(get64(c, value_p));
    if (*value_p < 0)
        TRY(base_fail(BASE_ERR_DATA, "a call with a count of %lld", (long long)*value_p));
out:
    return st;
}

static base_status check_length(const char *what, size_t count, size_t expected)
{
    if (count == expected)
        return BASE_OK;
    return base_fail(BASE_ERR_DATA, "%s of %zu bytes and not %zu", what, count, expected);
}

base_status downpour_call_decode(const void *bytes, size_t count, struct downpour_call *call_p)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(bytes, count);
    struct downpour_call call = {0};
    struct downpour_round *r = &call.round;
    int64_t *const numbers[] = {&r->number,        &r->epoch, &r->cursor,
                                &r->step,          &r->goal,  &call.outcome.correct,
                                &call.outcome.seen};
    uint32_t kind;
    int64_t loss;

    *call_p = call;
    TRY(check_length("a call", count, DOWNPOUR_CALL_BYTES));
    TRY(get_kind(&c, "a call", DOWNPOUR_CALL_KINDS, &kind));
    TRY(base_cursor_le32(&c, &call.block));
    TRY(base_cursor_le32(&c, &r->blocks));
    TRY(base_cursor_le32(&c, &r->checksum));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        TRY(get_count(&c, numbers[i]));
    TRY(get64(&c, &loss));
    memcpy(&call.outcome.loss_sum, &loss, sizeof loss);
    call.kind = (enum downpour_call_kind)kind;
    *call_p = call;
out:
    return st;
}

base_status train_answer_decode(const void *bytes, size_t count, struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(bytes, count);
    struct train_answer answer = {0};
    uint32_t kind, ending, flags;

    *answer_p = answer;
    TRY(check_length("an answer", count, TRAIN_ANSWER_BYTES));
    TRY(get_kind(&c, "an answer", TRAIN_ANSWER_KINDS, &kind));
    TRY(base_cursor_le32(&c, &answer.block));
    TRY(get_kind(&c, "an ending", TRAIN_ENDINGS, &ending));
    TRY(get_kind(&c, "an answer with flags", 4, &flags));
    answer.kind = (enum train_answer_kind)kind;
    answer.ending = (enum train_ending)ending;
    answer.wanted = (flags & 1) != 0;
    answer.counts = (flags & 2) != 0;
    *answer_p = answer;
out:
    return st;
}
