/* SPDX-License-Identifier: MIT */
#include "train/strategies/ps/sequencer.h"

#include <stddef.h>

#include "data/loader.h"

const char *const train_consistency_names[] = {"bsp", "ssp", "asp", NULL};

/* One above the last worker's rank. */
static int end_rank(const struct ps_sequencer *q)
{
    return q->first_worker + q->workers;
}

void ps_sequencer_init(struct ps_sequencer *q, int64_t batch, int64_t first, int64_t end,
                       const struct train_span *done, int done_count)
{
    q->batch = batch;
    q->first = first;
    q->ending = q->begun = q->shares = q->hopeless = false;
    q->refusal_count = 0;
    ps_ledger_init(&q->ledger, first, end);
    for (int i = 0; i < done_count; i++)
        ps_ledger_done(&q->ledger, done[i]);
    for (int i = q->first_worker; i < end_rank(q); i++) {
        q->of[i].work = TRAIN_ABSENT;
        q->of[i].clock = 0;
        q->of[i].refused = false;
        q->of[i].round = q->round;
    }
}

/* Rounds of one batch each: all of it, and nothing but it. */
static bool takes_whole_batches(const struct ps_sequencer *q)
{
    return q->rules.consistency == TRAIN_BSP && q->rules.backup == 0;
}

int64_t ps_sequencer_unit(const struct ps_sequencer *q)
{
    int64_t block = q->batch / q->workers;

    if (takes_whole_batches(q))
        return q->batch;
    block = block > 0 ? block : 1;
    return q->rules.consistency == TRAIN_BSP ? block * (q->workers - q->rules.backup) : block;
}

void ps_sequencer_ask(struct ps_sequencer *q, int worker)
{
    q->of[worker].work = TRAIN_ASKS;
}

/* The slowest of a round come too late. Their samples went back when the round was full. */
static bool is_late(const struct ps_sequencer *q, int worker)
{
    return q->rules.consistency == TRAIN_BSP && q->of[worker].round < q->round;
}

void ps_sequencer_push(struct ps_sequencer *q, int worker)
{
    q->of[worker].work = is_late(q, worker) ? TRAIN_ASKS : TRAIN_PUSHED;
    q->of[worker].refused = false;
}

void ps_sequencer_end(struct ps_sequencer *q)
{
    int64_t top = ps_ledger_top(&q->ledger), steps;

    if (q->ending)
        return;
    q->ending = true;
    steps = (top - q->first + q->batch - 1) / q->batch;
    if (q->first + steps * q->batch < q->ledger.end)
        q->ledger.end = q->first + steps * q->batch;
}

/* ---- refusals ---- */

/* Workers from which the block that begins with this sample was refused: bits. */
static uint64_t refused_from(const struct ps_sequencer *q, int64_t sample)
{
    for (int i = 0; i < q->refusal_count; i++)
        if (q->refusals[i].from == sample)
            return q->refusals[i].workers;
    return 0;
}

static void forget_refusals_that_are_done(struct ps_sequencer *q)
{
    int kept = 0;

    for (int i = 0; i < q->refusal_count; i++)
        if (!ps_ledger_is_done(&q->ledger, q->refusals[i].from))
            q->refusals[kept++] = q->refusals[i];
    q->refusal_count = kept;
}

static void note_refusal(struct ps_sequencer *q, int worker)
{
    int64_t from = q->of[worker].block.from;
    uint64_t workers = refused_from(q, from) | UINT64_C(1) << worker;
    int kept = 0;

    for (int i = 0; i < q->refusal_count; i++)
        if (q->refusals[i].from != from)
            q->refusals[kept++] = q->refusals[i];
    q->refusal_count = kept;
    if (kept == COMM_MAX_WORKERS) {
        q->hopeless = true;
        return;
    }
    q->refusals[kept].from = from;
    q->refusals[kept].workers = workers;
    q->refusal_count++;
    if (__builtin_popcountll(workers) == q->workers)
        q->hopeless = true;
}

void ps_sequencer_refuse(struct ps_sequencer *q, int worker)
{
    bool late = is_late(q, worker);
    int refused = 0;

    if (!late)
        ps_ledger_return(&q->ledger, q->of[worker].block);
    q->of[worker].work = late || q->rules.consistency != TRAIN_BSP ? TRAIN_ASKS : TRAIN_REFUSED;
    q->of[worker].clock++; /* of ssp: the others need not wait for what it failed to do */
    q->of[worker].refused = true;
    if (q->of[worker].block.count > 0)
        note_refusal(q, worker);
    for (int i = q->first_worker; i < end_rank(q); i++)
        refused += q->of[i].refused;
    if (refused == q->workers)
        q->hopeless = true;
}

/* ---- entries ---- */

static void enter(struct ps_sequencer *q, int worker)
{
    ps_ledger_done(&q->ledger, q->of[worker].block);
    forget_refusals_that_are_done(q);
    q->of[worker].work = TRAIN_ASKS;
    q->of[worker].clock++;
    q->of[worker].entry = q->number;
}

static int count(const struct ps_sequencer *q, enum train_work work, bool of_round)
{
    int n = 0;

    for (int i = q->first_worker; i < end_rank(q); i++)
        n += q->of[i].work == work && (!of_round || q->of[i].round == q->round);
    return n;
}

static int64_t samples_pushed(const struct ps_sequencer *q)
{
    int64_t samples = 0;

    for (int i = q->first_worker; i < end_rank(q); i++)
        if (q->of[i].work == TRAIN_PUSHED)
            samples += q->of[i].block.count;
    return samples;
}

/* Could this worker get a block, if it asks? Where the lowest free block was refused from it, it
 * waits for another worker to take that one: a worker that pushes nothing but rubbish would
 * otherwise spoil block after block. */
static bool has_block(const struct ps_sequencer *q, int worker)
{
    struct ps_ledger after = q->ledger;
    struct train_span block;

    return ps_ledger_issue(&after, 1, &block) && (refused_from(q, block.from) >> worker & 1) == 0;
}

/* Will a worker that has nothing to do get a part of this round? */
static bool has_more(const struct ps_sequencer *q)
{
    if (ps_ledger_complete(&q->ledger))
        return false;
    for (int i = q->first_worker; i < end_rank(q); i++)
        if ((q->of[i].work == TRAIN_ASKS || q->of[i].work == TRAIN_ABSENT) &&
            (q->shares || has_block(q, i)))
            return true;
    return false;
}

/* All pushes of the round are there that can be. */
static bool round_is_over(const struct ps_sequencer *q)
{
    return count(q, TRAIN_WORKS, true) == 0 && !has_more(q);
}

/* Workers whose pushes have no sample, or were refused, take part in the next round. */
static void end_round(struct ps_sequencer *q)
{
    for (int i = q->first_worker; i < end_rank(q); i++)
        if (q->of[i].work == TRAIN_PUSHED || q->of[i].work == TRAIN_REFUSED)
            q->of[i].work = TRAIN_ASKS;
    q->round++;
    q->begun = false;
}

/* What the slowest are still computing goes back at once, for the workers of the next round: would
 * it wait for their late pushes, the slowest worker would get the same block again and again, and
 * the samples before it would never be whole. A round in which all samples were refused makes no
 * entry: momentum and decay would move the weights. */
static int make_round(struct ps_sequencer *q, int workers[COMM_MAX_WORKERS])
{
    int n = 0, there = count(q, TRAIN_PUSHED, true) + count(q, TRAIN_REFUSED, true);

    if (!q->begun)
        return 0;
    if (samples_pushed(q) == 0) {
        if (round_is_over(q))
            end_round(q);
        return 0;
    }
    if (there < q->workers - (int)q->rules.backup && !round_is_over(q))
        return 0;
    q->number++;
    for (int i = q->first_worker; i < end_rank(q); i++)
        if (q->of[i].work == TRAIN_PUSHED) {
            enter(q, i);
            workers[n++] = i;
        } else if (q->of[i].work == TRAIN_WORKS && !is_late(q, i)) {
            ps_ledger_return(&q->ledger, q->of[i].block);
        }
    end_round(q);
    return n;
}

int ps_sequencer_entry(struct ps_sequencer *q, int workers[COMM_MAX_WORKERS])
{
    if (q->rules.consistency == TRAIN_BSP)
        return make_round(q, workers);
    for (int i = q->first_worker; i < end_rank(q); i++)
        if (q->of[i].work == TRAIN_PUSHED) {
            q->number++;
            enter(q, i);
            workers[0] = i;
            return 1;
        }
    return 0;
}

/* ---- grants ---- */

/* Can it get nothing to do before another worker has done a block that was refused from it? */
static bool is_barred(const struct ps_sequencer *q, int worker)
{
    return q->refusal_count > 0 && q->of[worker].work == TRAIN_ASKS && !has_block(q, worker);
}

/* No worker may be too far ahead of this one: the lowest clock of those that are not done. A worker
 * that is barred does not count: the one that it waits for would wait for it. */
static int64_t lowest_clock(const struct ps_sequencer *q)
{
    int64_t lowest = INT64_MAX;

    for (int i = q->first_worker; i < end_rank(q); i++)
        if (q->of[i].work != TRAIN_LEFT && q->of[i].clock < lowest && !is_barred(q, i))
            lowest = q->of[i].clock;
    return lowest;
}

static bool may_go_on(const struct ps_sequencer *q, int worker)
{
    if (q->of[worker].work != TRAIN_ASKS || q->of[worker].entry > q->durable)
        return false;
    if (q->rules.consistency == TRAIN_SSP)
        return q->of[worker].clock - q->rules.staleness <= lowest_clock(q);
    return true;
}

/* A round begins. After a loss or a refusal there may be holes, or a worker that is barred from its
 * share: then the round is of blocks. */
static void begin_round(struct ps_sequencer *q)
{
    const struct ps_ledger *l = &q->ledger;
    int64_t left = l->end - l->low;

    q->begun = true;
    q->shares = takes_whole_batches(q) && l->done_count == 0 && l->issued_count == 0 &&
                q->refusal_count == 0 && (l->low - q->first) % q->batch == 0;
    q->whole = (struct train_span){l->low, left < q->batch ? left : q->batch};
}

static void issue_share(struct ps_sequencer *q, int worker)
{
    uint32_t place = (uint32_t)(worker - q->first_worker), first, samples;
    struct ps_ledger *l = &q->ledger;

    data_share_of((struct data_share){place, place + 1, (uint32_t)q->workers},
                  (uint32_t)q->whole.count, &first, &samples);
    q->of[worker].block = (struct train_span){q->whole.from + first, samples};
    if (samples > 0)
        l->issued[l->issued_count++] = q->of[worker].block;
}

static bool issue(struct ps_sequencer *q, int worker)
{
    int64_t most = q->batch / q->workers;

    if (ps_ledger_complete(&q->ledger))
        return false;
    if (is_barred(q, worker))
        return false;
    if (!q->begun && q->rules.consistency == TRAIN_BSP)
        begin_round(q);
    q->of[worker].shared = q->begun && q->shares;
    if (!q->of[worker].shared)
        return ps_ledger_issue(&q->ledger, most > 0 ? most : 1, &q->of[worker].block);
    issue_share(q, worker);
    return true;
}

/* A worker that was barred held the one that goes on now not back. Nothing of it is under way that
 * others would have to wait for: it counts what it missed as done, and will be in the bound. */
static void move_barred_along(struct ps_sequencer *q, int worker)
{
    int64_t least = q->of[worker].clock - q->rules.staleness;

    for (int i = q->first_worker; i < end_rank(q); i++)
        if (q->rules.consistency == TRAIN_SSP && q->of[i].clock < least)
            q->of[i].clock = least;
}

enum train_grant ps_sequencer_grant(struct ps_sequencer *q, int *worker_p)
{
    for (int i = q->first_worker; i < end_rank(q); i++) {
        if (!may_go_on(q, i))
            continue;
        *worker_p = i;
        if (issue(q, i)) {
            q->of[i].work = TRAIN_WORKS;
            q->of[i].round = q->round;
            move_barred_along(q, i);
            return TRAIN_GRANT_BLOCK;
        }
        if (ps_ledger_complete(&q->ledger)) {
            q->of[i].work = TRAIN_LEFT;
            return TRAIN_GRANT_OVER;
        }
    }
    return TRAIN_GRANT_NONE;
}
