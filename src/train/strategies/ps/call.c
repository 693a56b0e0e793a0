/* SPDX-License-Identifier: MIT
 *
 * What a message is made of is written down once, as a walk over its fields, which either puts
 * them or gets them. All numbers are little-endian; flags are bits of one number.
 */
#include "train/strategies/ps/call.h"

#include <string.h>

const char *const ps_refusal_texts[PS_REFUSALS] = {
    [PS_NOT_FINITE] = "gradients that are not finite",
    [PS_WRONG_SIZE] = "gradients of another size",
    [PS_WRONG_BLOCK] = "gradients of a block that it was not given",
    [PS_UNREADABLE] = "gradients that are not finite or not whole",
};

/* A walk that puts fields has `put`, where the next one goes; one that gets them has `get`. */
struct walk {
    uint8_t *put;
    struct base_cursor *get;
    base_status status; /* of the first field that is none; the walk is over then */
};

/* ---- kinds of fields ---- */

static void walk_32(struct walk *w, uint32_t *value)
{
    if (w->put != NULL)
        w->put = base_put_le32(w->put, *value);
    else if (w->status == BASE_OK)
        w->status = base_cursor_le32(w->get, value);
}

static void walk_64(struct walk *w, uint64_t *value)
{
    if (w->put != NULL)
        w->put = base_put_le64(w->put, *value);
    else if (w->status == BASE_OK)
        w->status = base_cursor_le64(w->get, value);
}

/* A rank, a number of ranks, a kind: at most `most`. */
static void walk_number(struct walk *w, int *number, uint32_t most)
{
    uint32_t value = (uint32_t)*number;

    walk_32(w, &value);
    if (w->get != NULL && w->status == BASE_OK && value > most)
        w->status = base_fail(BASE_ERR_DATA, "a call with %u where %u is the most", value, most);
    if (w->status == BASE_OK)
        *number = (int)value;
}

static void walk_flags(struct walk *w, bool *const *flags, int count)
{
    uint32_t bits = 0;

    for (int i = 0; i < count; i++)
        bits |= (uint32_t)*flags[i] << i;
    walk_32(w, &bits);
    if (w->get != NULL && w->status == BASE_OK && bits >> count != 0)
        w->status = base_fail(BASE_ERR_DATA, "a call with flags %#x", bits);
    for (int i = 0; w->status == BASE_OK && i < count; i++)
        *flags[i] = (bits >> i & 1) != 0;
}

/* Counts of samples and steps: none is negative, and the sum of two is still a number. */
static void walk_counts(struct walk *w, int64_t *const *counts, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t bits = (uint64_t)*counts[i];

        walk_64(w, &bits);
        if (w->get != NULL && w->status == BASE_OK && bits > INT64_MAX / 2)
            w->status = base_fail(BASE_ERR_DATA, "a call with a count of %lld", (long long)bits);
        if (w->status == BASE_OK)
            *counts[i] = (int64_t)bits;
    }
}

static void walk_real(struct walk *w, double *value)
{
    uint64_t bits;

    memcpy(&bits, value, sizeof bits);
    walk_64(w, &bits);
    memcpy(value, &bits, sizeof bits);
}

/* Names, in place of their addresses and number. */
#define FLAGS(w, ...)                           \
    walk_flags(w, (bool *const[]){__VA_ARGS__}, \
               sizeof((bool *const[]){__VA_ARGS__}) / sizeof(bool *))
#define COUNTS(w, ...)                              \
    walk_counts(w, (int64_t *const[]){__VA_ARGS__}, \
                sizeof((int64_t *const[]){__VA_ARGS__}) / sizeof(int64_t *))

/* ---- messages ---- */

static void walk_body(struct walk *w, struct train_ps_body *b)
{
    int refusal = (int)b->refusal;

    walk_number(w, &b->rank, COMM_MAX_WORKERS - 1);
    FLAGS(w, &b->over, &b->shared, &b->stop, &b->renew, &b->news, &b->diverged);
    walk_number(w, &refusal, PS_REFUSALS - 1);
    b->refusal = (enum ps_refusal)refusal;
    COUNTS(w, &b->clock, &b->block.from, &b->block.count, &b->whole.from, &b->whole.count, &b->step,
           &b->correct, &b->seen);
    walk_64(w, &b->number);
    walk_real(w, &b->loss_sum);
}

static void walk_outline(struct walk *w, struct train_outline *o)
{
    walk_number(w, &o->rank, COMM_MAX_WORKERS - 1);
    FLAGS(w, &o->shared, &o->stop, &o->renew, &o->news);
    COUNTS(w, &o->clock, &o->block.from, &o->block.count, &o->correct, &o->seen);
    walk_64(w, &o->read);
    walk_real(w, &o->loss_sum);
}

static void walk_entry(struct walk *w, struct train_log_entry *e)
{
    walk_64(w, &e->number);
    walk_real(w, &e->lr);
    walk_64(w, &e->update);
    walk_64(w, &e->readers);
    walk_number(w, &e->count, COMM_MAX_WORKERS);
    for (int i = 0; i < e->count && w->status == BASE_OK; i++)
        walk_outline(w, &e->of[i]);
}

static void walk_note(struct walk *w, struct ps_note *n)
{
    walk_32(w, &n->view);
    FLAGS(w, &n->serves, &n->has_residual);
    walk_64(w, &n->applied);
    walk_64(w, &n->log_bytes);
}

/* ---- encode ---- */

void ps_body_encode(const struct train_ps_body *body, uint8_t bytes[PS_BODY_BYTES])
{
    struct train_ps_body b = *body;

    walk_body(&(struct walk){.put = bytes}, &b);
}

void ps_outline_encode(const struct train_outline *outline, uint8_t bytes[PS_OUTLINE_BYTES])
{
    struct train_outline o = *outline;

    walk_outline(&(struct walk){.put = bytes}, &o);
}

size_t ps_entry_encode(const struct train_log_entry *entry, uint8_t bytes[PS_ENTRY_MAX_BYTES])
{
    struct train_log_entry e = *entry;
    struct walk w = {.put = bytes};

    walk_entry(&w, &e);
    return (size_t)(w.put - bytes);
}

void ps_note_encode(const struct ps_note *note, uint8_t bytes[PS_NOTE_BYTES])
{
    struct ps_note n = *note;

    walk_note(&(struct walk){.put = bytes}, &n);
}

/* ---- decode ---- */

/* What was got is a whole message. */
static base_status check_end(const struct walk *w)
{
    if (w->status != BASE_OK || base_cursor_left(w->get) == 0)
        return w->status;
    return base_fail(BASE_ERR_DATA, "a call with %zu bytes too many", base_cursor_left(w->get));
}

base_status ps_body_decode(const void *bytes, size_t count, struct train_ps_body *body_p)
{
    struct base_cursor c = base_cursor_of(bytes, count);
    struct walk w = {.get = &c};

    *body_p = (struct train_ps_body){0};
    walk_body(&w, body_p);
    return check_end(&w);
}

base_status ps_outline_decode(const void *bytes, size_t count, struct train_outline *outline_p)
{
    struct base_cursor c = base_cursor_of(bytes, count);
    struct walk w = {.get = &c};

    *outline_p = (struct train_outline){0};
    walk_outline(&w, outline_p);
    return check_end(&w);
}

base_status ps_entry_read(struct base_cursor *c, struct train_log_entry *entry_p)
{
    struct walk w = {.get = c};

    *entry_p = (struct train_log_entry){0};
    walk_entry(&w, entry_p);
    return w.status;
}

base_status ps_entry_decode(const void *bytes, size_t count, struct train_log_entry *entry_p)
{
    struct base_cursor c = base_cursor_of(bytes, count);
    base_status st = ps_entry_read(&c, entry_p);

    return check_end(&(struct walk){.get = &c, .status = st});
}

base_status ps_note_decode(const void *bytes, size_t count, struct ps_note *note_p)
{
    struct base_cursor c = base_cursor_of(bytes, count);
    struct walk w = {.get = &c};

    *note_p = (struct ps_note){0};
    walk_note(&w, note_p);
    return check_end(&w);
}
