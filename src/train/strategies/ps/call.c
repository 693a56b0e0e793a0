/* SPDX-License-Identifier: MIT
 *
 * All numbers are little-endian; flags are bits of one number.
 */
#include "train/strategies/ps/call.h"

#include <string.h>

const char *const ps_refusal_texts[PS_REFUSALS] = {
    [PS_NOT_FINITE] = "gradients that are not finite",
    [PS_WRONG_SIZE] = "gradients of another size",
    [PS_WRONG_BLOCK] = "gradients of a block that it was not given",
    [PS_UNREADABLE] = "gradients that are not finite or not whole",
};

/* ---- encode ---- */

static uint8_t *put_real(uint8_t *at, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return base_put_le64(at, bits);
}

static uint8_t *put_counts(uint8_t *at, const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        at = base_put_le64(at, (uint64_t)numbers[i]);
    return at;
}

static uint8_t *put_flags(uint8_t *at, const bool *flags, int count)
{
    uint32_t bits = 0;

    for (int i = 0; i < count; i++)
        bits |= (uint32_t)flags[i] << i;
    return base_put_le32(at, bits);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

void ps_body_encode(const struct train_ps_body *b, uint8_t bytes[PS_BODY_BYTES])
{
    const bool flags[] = {b->over, b->shared, b->stop, b->renew, b->news, b->diverged};
    const int64_t counts[] = {b->clock,       b->block.from, b->block.count, b->whole.from,
                              b->whole.count, b->step,       b->correct,     b->seen};
    uint8_t *at = base_put_le32(bytes, (uint32_t)b->rank);

    at = put_flags(at, flags, COUNT(flags));
    at = base_put_le32(at, (uint32_t)b->refusal);
    at = put_counts(at, counts, COUNT(counts));
    at = base_put_le64(at, b->number);
    put_real(at, b->loss_sum);
}

void ps_outline_encode(const struct train_outline *o, uint8_t bytes[PS_OUTLINE_BYTES])
{
    const bool flags[] = {o->shared, o->stop, o->renew, o->news};
    const int64_t counts[] = {o->clock, o->block.from, o->block.count, o->correct, o->seen};
    uint8_t *at = base_put_le32(bytes, (uint32_t)o->rank);

    at = put_flags(at, flags, COUNT(flags));
    at = put_counts(at, counts, COUNT(counts));
    at = base_put_le64(at, o->read);
    put_real(at, o->loss_sum);
}

size_t ps_entry_encode(const struct train_log_entry *e, uint8_t bytes[PS_ENTRY_MAX_BYTES])
{
    uint8_t *at = base_put_le64(bytes, e->number);

    at = put_real(at, e->lr);
    at = base_put_le64(at, e->update);
    at = base_put_le64(at, e->readers);
    at = base_put_le32(at, (uint32_t)e->count);
    for (int i = 0; i < e->count; i++) {
        ps_outline_encode(&e->of[i], at);
        at += PS_OUTLINE_BYTES;
    }
    return (size_t)(at - bytes);
}

/* ---- decode ---- */

/* A rank, a number of ranks, a kind: at most `most`. */
static base_status get_number(struct base_cursor *c, uint32_t most, int *number_p)
{
    base_status st = BASE_OK;
    uint32_t number;

    TRY(base_cursor_le32(c, &number));
    if (number > most)
        TRY(base_fail(BASE_ERR_DATA, "a call with %u where %u is the most", number, most));
    *number_p = (int)number;
out:
    return st;
}

static base_status get_flags(struct base_cursor *c, bool *const *flags, int count)
{
    base_status st = BASE_OK;
    uint32_t bits;

    TRY(base_cursor_le32(c, &bits));
    if (bits >> count != 0)
        TRY(base_fail(BASE_ERR_DATA, "a call with flags %#x", bits));
    for (int i = 0; i < count; i++)
        *flags[i] = (bits >> i & 1) != 0;
out:
    return st;
}

/* Counts of samples and steps: none is negative, and the sum of two is still a number. */
static base_status get_counts(struct base_cursor *c, int64_t *const *numbers, size_t count)
{
    base_status st = BASE_OK;
    uint64_t bits;

    for (size_t i = 0; i < count; i++) {
        TRY(base_cursor_le64(c, &bits));
        if (bits > INT64_MAX / 2)
            TRY(base_fail(BASE_ERR_DATA, "a call with a count of %lld", (long long)bits));
        *numbers[i] = (int64_t)bits;
    }
out:
    return st;
}

static base_status get_real(struct base_cursor *c, double *value_p)
{
    uint64_t bits = 0;
    base_status st = base_cursor_le64(c, &bits);

    memcpy(value_p, &bits, sizeof bits);
    return st;
}

static base_status check_end(const struct base_cursor *c)
{
    if (base_cursor_left(c) == 0)
        return BASE_OK;
    return base_fail(BASE_ERR_DATA, "a call with %zu bytes too many", base_cursor_left(c));
}

base_status ps_body_decode(const void *bytes, size_t count, struct train_ps_body *body_p)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(bytes, count);
    struct train_ps_body b = {0};
    bool *const flags[] = {&b.over, &b.shared, &b.stop, &b.renew, &b.news, &b.diverged};
    int64_t *const counts[] = {&b.clock,       &b.block.from, &b.block.count, &b.whole.from,
                               &b.whole.count, &b.step,       &b.correct,     &b.seen};
    int refusal;

    *body_p = b;
    TRY(get_number(&c, COMM_MAX_WORKERS - 1, &b.rank));
    TRY(get_flags(&c, flags, COUNT(flags)));
    TRY(get_number(&c, PS_REFUSALS - 1, &refusal));
    b.refusal = (enum ps_refusal)refusal;
    TRY(get_counts(&c, counts, COUNT(counts)));
    TRY(base_cursor_le64(&c, &b.number));
    TRY(get_real(&c, &b.loss_sum));
    TRY(check_end(&c));
    *body_p = b;
out:
    return st;
}

static base_status read_outline(struct base_cursor *c, struct train_outline *outline_p)
{
    base_status st = BASE_OK;
    struct train_outline o = {0};
    bool *const flags[] = {&o.shared, &o.stop, &o.renew, &o.news};
    int64_t *const counts[] = {&o.clock, &o.block.from, &o.block.count, &o.correct, &o.seen};

    *outline_p = o;
    TRY(get_number(c, COMM_MAX_WORKERS - 1, &o.rank));
    TRY(get_flags(c, flags, COUNT(flags)));
    TRY(get_counts(c, counts, COUNT(counts)));
    TRY(base_cursor_le64(c, &o.read));
    TRY(get_real(c, &o.loss_sum));
    *outline_p = o;
out:
    return st;
}

base_status ps_outline_decode(const void *bytes, size_t count, struct train_outline *outline_p)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(bytes, count);

    TRY(read_outline(&c, outline_p));
    TRY(check_end(&c));
out:
    return st;
}

base_status ps_entry_read(struct base_cursor *c, struct train_log_entry *e)
{
    base_status st = BASE_OK;

    *e = (struct train_log_entry){0};
    TRY(base_cursor_le64(c, &e->number));
    TRY(get_real(c, &e->lr));
    TRY(base_cursor_le64(c, &e->update));
    TRY(base_cursor_le64(c, &e->readers));
    TRY(get_number(c, COMM_MAX_WORKERS, &e->count));
    for (int i = 0; i < e->count; i++)
        TRY(read_outline(c, &e->of[i]));
out:
    return st;
}

base_status ps_entry_decode(const void *bytes, size_t count, struct train_log_entry *entry_p)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(bytes, count);

    TRY(ps_entry_read(&c, entry_p));
    TRY(check_end(&c));
out:
    return st;
}
