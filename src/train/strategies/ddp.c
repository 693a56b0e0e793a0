/* SPDX-License-Identifier: MIT
 *
 * Distributed data parallel (Li et al., VLDB 2020): gradients are summed in buckets while backward
 * goes on. Backward completes the flat buffer from its end to its beginning, so buckets are cut
 * from the end; the first is smaller, to have something to send early. All workers start them in
 * the same order, as soon as they are complete, and the engine of the group runs them. The last
 * one has the head in it, or the head follows by itself where gradients travel rounded or as rows.
 *
 * With a rule of --aggregate gradients are not summed: train/defence.h combines them, after the
 * backward.
 *
 * On one host sums run at the speed of memory and a communication thread would take the cores from
 * the computing ones: unless told otherwise nothing is sent there. After the backward each worker
 * sums its slice of all workers' gradients and updates that slice for all (train/copies.h).
 */
#include "base/clock.h"
#include "comm/engine.h"
#include "train/copies.h"
#include "train/defence.h"
#include "train/forecast.h"
#include "train/memory.h"
#include "train/parallel.h"
#include "train/session.h"
#include "train/touched.h"

enum overlap { AUTO, ON, OFF };

struct options {
    int64_t bucket, first;
    enum coll_wire wire;
    enum overlap overlap;
    double momentum;
};

struct bucket {
    size_t offset, count;
    uint64_t ticket;
};

struct ddp {
    struct train_defence defence; /* in place of all that follows */
    struct coll_sum sum;
    bool overlaps; /* buckets are sent during the backward */
    bool together; /* each worker updates a slice of `copies`, for all of them */
    struct train_copies copies;
    struct train_touched touched;
    struct bucket buckets[TRAIN_MAX_RANGES];
    int count, started;
    base_status failure; /* of a start inside backward */
    double busy;         /* coll_async_busy before this step */
};

static size_t ddp_floats(int64_t bytes)
{
    return ((size_t)bytes / sizeof(float) + 15) / 16 * 16;
}

/* Cuts the buckets, from the end of the buffer to its beginning. */
static void ddp_cut(const struct train_exchange *x, const struct options *options,
                    struct ddp *state)
{
    const size_t rows = train_exchange_rows(x);
    bool apart = state->sum.wire != COLL_FP32 || rows > 0;
    size_t begin = apart ? TRAIN_HEAD + rows : 0, end = x->floats,
           size = ddp_floats(options->first);
    size_t least = (end - begin) / (TRAIN_MAX_RANGES - 3) + 16, usual = ddp_floats(options->bucket);

    usual = (usual < least ? least : usual) / 16 * 16;
    while (end > begin) {
        size_t from = end - begin > size + size / 4 ? (end - size) / 16 * 16 : begin;

        state->buckets[state->count++] = (struct bucket){from, end - from, 0};
        end = from;
        size = usual;
    }
    if (apart)
        state->buckets[state->count++] = (struct bucket){0, TRAIN_HEAD, 0};
}

/* Buckets are sent during the backward. */
static bool ddp_overlaps(const struct options *options, bool one_host)
{
    return options->overlap == ON || (options->overlap == AUTO && !one_host);
}

/* Each worker updates a slice for all. Clipping needs the norm of the whole gradient, which no
 * worker has then. */
static bool ddp_updates_together(const struct options *options, bool one_host, bool clips)
{
    return one_host && !ddp_overlaps(options, one_host) && options->wire == COLL_FP32 && !clips;
}

static void ddp_memory(const struct train_memory_question *q, struct train_memory *m)
{
    const struct train_seat *seat = &q->seat;
    bool one_host = seat->workers > 1 && seat->shares && seat->locals == seat->workers;

    if (q->defends)
        train_defence_memory(q, ((const struct options *)q->options)->momentum, m);
    else if (ddp_updates_together(q->options, one_host, q->clips))
        m->of[TRAIN_MEMORY_SPARE].shared += train_copies_bytes(q->sizes->weights, q->sizes->slots);
    else
        m->of[TRAIN_MEMORY_COMMUNICATION].own += q->sizes->rows.memory;
}

static void ddp_cost(const struct train_memory_question *q, struct train_cost *cost)
{
    const struct options *options = q->options;
    double n = q->seat.workers, whole = q->sizes->weights - q->sizes->rows.weights;
    bool together = n > 1 && ddp_updates_together(options, q->seat.shares, q->clips);

    cost->sent = train_memory_sent(q, options->wire);
    cost->moved = together ? n * q->sizes->weights : n > 1 ? (n + 1) * whole : 0;
    cost->hidden = ddp_overlaps(options, q->seat.shares);
    cost->updates = together ? 1 / n : 1;
}

static base_status ddp_suits(const void *struct_of, const void *first, const struct train_job *job)
{
    const struct options *options = struct_of;

    (void)first;
    if (options->overlap == ON && (train_defence_wanted(job) || job->attack != NULL))
        return base_fail(BASE_ERR_USAGE, "ddp:overlap=on sends gradients before a rule of "
                                         "--aggregate, or an --attack, can see them whole: leave "
                                         "it out");
    return train_defence_suits(job, options->momentum, options->wire);
}

static base_status ddp_open_sums(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct options *options = s->options;
    const struct train_exchange *x = &s->team.exchange;
    struct ddp *state = s->strategy_state;

    state->sum.wire = options->wire;
    state->overlaps = ddp_overlaps(options, x->one_host) && s->job->attack == NULL;
    state->together = ddp_updates_together(options, x->one_host, s->job->clip != 0);
    if (!state->together)
        TRY(train_touched_open(&state->touched, s));
    ddp_cut(x, options, state);
    if (state->overlaps && x->coll != NULL)
        TRY(comm_engine_begin(coll_group(x->coll)));
    if (state->together)
        TRY(train_copies_open(&state->copies, x, &s->state));
out:
    return st;
}

static base_status ddp_open(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ddp *state = s->strategy_state;

    *state = (struct ddp){.defence = state->defence};
    TRY(train_defence_open(&state->defence, s, ((const struct options *)s->options)->momentum));
    if (!train_defence_is_on(&state->defence))
        TRY(ddp_open_sums(s));
out:
    return st;
}

static void ddp_close(struct train_session *s)
{
    struct ddp *state = s->strategy_state;

    if (s->team.group != NULL)
        base_ignore(comm_engine_end(s->team.group)); /* says what ended the group, which is known */
    train_copies_close(&state->copies, &s->state);
    train_touched_close(&state->touched);
    train_defence_close(&state->defence);
}

static void ddp_fini(void *state)
{
    train_defence_fini(&((struct ddp *)state)->defence);
}

static const char *const *ddp_extras(const void *options)
{
    return train_defence_extras(((const struct options *)options)->momentum);
}

static base_status ddp_saving(struct train_session *s)
{
    train_defence_saving(&((struct ddp *)s->strategy_state)->defence);
    return BASE_OK;
}

static base_status ddp_unite(struct train_session *s)
{
    return train_defence_unite(&((struct ddp *)s->strategy_state)->defence, s);
}

static base_status ddp_start(struct train_exchange *x, struct ddp *state)
{
    base_status st = BASE_OK;
    struct bucket *bucket = &state->buckets[state->started];

    TRY(coll_start_all_reduce(x->coll, x->space, bucket->offset, bucket->count,
                              bucket->offset == 0 ? NULL : &state->sum, &bucket->ticket));
    train_fault_nth(x->fault, "bucket", ++state->started, x->step);
out:
    return st;
}

/* Everything from `offset` on is complete. The bucket at 0 has the head, which comes last. */
static void ddp_ready(struct train_exchange *x, size_t offset, size_t count)
{
    struct ddp *state = x->state;

    (void)count;
    while (state->overlaps && state->failure == BASE_OK && state->started < state->count &&
           state->buckets[state->started].offset >= offset &&
           state->buckets[state->started].offset > 0)
        state->failure = ddp_start(x, state);
}

static base_status ddp_combine(struct train_exchange *x)
{
    base_status st = BASE_OK;
    struct ddp *state = x->state;
    enum train_category was;
    double began = base_now(), hidden;

    if (train_defence_is_on(&state->defence))
        return train_defence_combine(&state->defence, x);
    if (state->together)
        return train_exchange_head(x);
    if (!state->overlaps)
        return train_exchange_sum(x, &state->sum);
    TRY(state->failure);
    was = train_clock_enter(x->clock, TRAIN_COMMUNICATE);
    while (state->started < state->count)
        TRY(ddp_start(x, state));
    state->started = 0;
    for (int i = 0; i < state->count; i++) {
        const struct bucket *bucket = &state->buckets[i];
        float *result;

        TRY(coll_async_wait(x->coll, bucket->ticket, &result));
        x->ranges[i] = (struct train_range){bucket->offset, bucket->count, result};
    }
    x->range_count = state->count;
    hidden = coll_async_busy(x->coll) - state->busy - (base_now() - began);
    state->busy = coll_async_busy(x->coll);
    x->clock->overlapped += hidden > 0 ? hidden : 0;
    TRY(train_exchange_sum_rows(x));
    train_clock_enter(x->clock, was);
out:
    return st;
}

static base_status ddp_apply(struct train_session *s, struct train_update *update)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &s->team.exchange;
    struct ddp *state = s->strategy_state;

    if (!state->together) {
        train_update_ranges(update, x->ranges, x->range_count);
        goto out;
    }
    train_copies_write(&state->copies, x, update, &s->state);
    train_fault_at(&s->fault, "slice", x->step);
    TRY(train_copies_turn(&state->copies, x, &s->state));
out:
    return st;
}

#define AT(field) offsetof(struct options, field)

/* clang-format off */
static const struct base_option table[] = {
    {.name = "bucket", .argument = "BYTES", .kind = BASE_SIZE, .offset = AT(bucket), .min = 1024,
     .max = 1e12, .help = "of gradients that are summed together"},
    {.name = "first", .argument = "BYTES", .kind = BASE_SIZE, .offset = AT(first), .min = 1024,
     .max = 1e12, .help = "of the first bucket, the model's end"},
    {.name = "wire", .argument = "TYPE", .kind = BASE_ENUM, .offset = AT(wire),
     .names = coll_wire_names,
     .help = "what gradients travel as (bf16: half the bytes; sums stay fp32)"},
    {.name = "overlap", .argument = "WHEN", .kind = BASE_ENUM, .offset = AT(overlap),
     .names = (const char *const[]){[AUTO] = "auto", [ON] = "on", [OFF] = "off", NULL},
     .help = "sum while backward goes on (auto: only between hosts)"},
    {.name = "momentum", .argument = "X", .kind = BASE_REAL, .offset = AT(momentum), .max = 0.999,
     .help = TRAIN_DEFENCE_MOMENTUM},
    {0},
};
/* clang-format on */

const struct train_strategy train_strategy_ddp = {
    .name = "ddp",
    .help = "gradients are summed in buckets while backward goes on",
    .commit_unit = "step",
    .shares = TRAIN_SHARES_BATCHES,
    .aggregates = true,
    .least = 1,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults =
        &(const struct options){
            .bucket = 2 << 20, .first = 512 << 10, .wire = COLL_FP32, .overlap = AUTO},
    .examples =
        (const char *const[]){"", "overlap=on,bucket=64K,first=4K", "overlap=on,wire=bf16", NULL},
    .suits = ddp_suits,
    .extras = ddp_extras,
    .own_extras = true,
    .saving = ddp_saving,
    .memory = ddp_memory,
    .cost = ddp_cost,
    .state_size = sizeof(struct ddp),
    .fini = ddp_fini,
    .open = ddp_open,
    .close = ddp_close,
    .leg = train_parallel_leg,
    .ready = ddp_ready,
    .sum = &(const struct train_sum){.combine = ddp_combine, .apply = ddp_apply},
    .unite = ddp_unite,
};
