/* SPDX-License-Identifier: MIT
 *
 * Distributed data parallel (Li et al., VLDB 2020): gradients are summed in buckets while backward
 * goes on. Backward completes the flat buffer from its end to its beginning, so buckets are cut
 * from the end; the first is smaller, to have something to send early. They are started in the
 * same order by everybody, as soon as they are complete, and the communication thread runs them.
 * The last one has the head in it, or the head follows by itself where gradients travel rounded.
 *
 * On one host the sums run at the speed of memory and a communication thread would take the cores
 * from the computing ones: unless told otherwise nothing is sent there. Behind the backward each
 * worker sums its slice of everybody's gradients and updates it, for all.
 */
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "train/strategy.h"

struct options {
    int64_t bucket, first;
    const char *wire, *overlap;
};

struct bucket {
    size_t offset, count;
    uint64_t ticket;
};

struct state {
    struct coll_sum sum;
    bool overlaps;
    struct bucket buckets[TRAIN_MAX_RANGES];
    int count, started;
    base_status failure; /* of a start inside backward */
    double busy;         /* of the communication thread, before this step */
};

static size_t floats_of(int64_t bytes)
{
    return ((size_t)bytes / sizeof(float) + 15) / 16 * 16;
}

/* From the end of the buffer to its beginning. */
static void cut(const struct train_exchange *x, const struct options *options, struct state *state)
{
    bool apart = state->sum.wire != COLL_FP32;
    size_t begin = apart ? TRAIN_HEAD : 0, end = x->floats, size = floats_of(options->first);
    size_t least = x->floats / (TRAIN_MAX_RANGES - 2) + 16, usual = floats_of(options->bucket);

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

static base_status find_overlap(const struct train_exchange *x, const char *name, bool *overlaps_p)
{
    static const char *const names[] = {"auto", "on", "off"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            *overlaps_p = i == 1 || (i == 0 && !x->one_host);
            return BASE_OK;
        }
    return base_unknown(BASE_ERR_USAGE, "overlap", name, names, sizeof names / sizeof names[0]);
}

static base_status open(struct train_exchange *x)
{
    base_status st = BASE_OK;
    const struct options *options = x->options;
    struct state *state = x->state;

    TRY(train_wire_find(options->wire, &state->sum.wire));
    TRY(find_overlap(x, options->overlap, &state->overlaps));
    x->slices = x->one_host && !state->overlaps && state->sum.wire == COLL_FP32;
    cut(x, options, state);
out:
    return st;
}

static base_status start(struct train_exchange *x, struct state *state)
{
    base_status st = BASE_OK;
    struct bucket *bucket = &state->buckets[state->started];

    if (!x->talks) {
        TRY(coll_async_begin(x->coll));
        x->talks = true;
        state->busy = 0;
    }
    TRY(coll_start_all_reduce(x->coll, x->space, bucket->offset, bucket->count,
                              bucket->offset == 0 ? NULL : &state->sum, &bucket->ticket));
    train_fault_nth(x->fault, "bucket", ++state->started, x->step);
out:
    return st;
}

/* Everything from `offset` on is complete. The bucket at 0 has the head, which comes last. */
static void ready(struct train_exchange *x, size_t offset, size_t count)
{
    struct state *state = x->state;

    (void)count;
    while (state->overlaps && state->failure == BASE_OK && state->started < state->count &&
           state->buckets[state->started].offset >= offset &&
           state->buckets[state->started].offset > 0)
        state->failure = start(x, state);
}

static base_status combine(struct train_exchange *x)
{
    base_status st = BASE_OK;
    struct state *state = x->state;
    double began = base_now(), exposed, hidden;

    if (x->slices)
        return train_exchange_head(x);
    if (!state->overlaps)
        return train_exchange_sum(x, &state->sum);
    TRY(state->failure);
    while (state->started < state->count)
        TRY(start(x, state));
    state->started = 0;
    for (int i = 0; i < state->count; i++) {
        const struct bucket *bucket = &state->buckets[i];
        float *result;

        TRY(coll_async_wait(x->coll, bucket->ticket, &result));
        x->ranges[i] = (struct train_range){bucket->offset, bucket->count, result};
    }
    x->range_count = state->count;
    exposed = base_now() - began;
    hidden = coll_async_busy(x->coll) - state->busy - exposed;
    state->busy = coll_async_busy(x->coll);
    x->communicate += exposed;
    x->overlapped += hidden > 0 ? hidden : 0;
out:
    return st;
}

#define AT(field) offsetof(struct options, field)

static const struct base_option table[] = {
    {"bucket", "BYTES", BASE_SIZE, AT(bucket), 1024, 1e12, "of gradients that are summed together",
     false},
    {"first", "BYTES", BASE_SIZE, AT(first), 1024, 1e12, "of the first bucket, the model's end",
     false},
    {"wire", "TYPE", BASE_TEXT, AT(wire), 0, 0,
     "what gradients travel as: fp32, or bf16 (half the bytes; sums stay fp32)", false},
    {"overlap", "WHEN", BASE_TEXT, AT(overlap), 0, 0,
     "on, off, or auto: on between hosts, off on one", false},
    {0},
};

const struct train_strategy train_strategy_ddp = {
    .name = "ddp",
    .help = "gradients are summed in buckets while backward goes on",
    .commit_unit = "step",
    .options = table,
    .options_size = sizeof(struct options),
    .defaults =
        &(const struct options){
            .bucket = 2 << 20, .first = 512 << 10, .wire = "fp32", .overlap = "auto"},
    .examples =
        (const char *const[]){"", "overlap=on,bucket=64K,first=4K", "overlap=on,wire=bf16", NULL},
    .state_size = sizeof(struct state),
    .open = open,
    .ready = ready,
    .combine = combine,
};
