/* SPDX-License-Identifier: MIT */
#include "train/strategies/downpour/ledger.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

/* A block is late when it takes this many times as long as the median of its peers. What is less
 * than NOISE seconds beyond the median is no delay: processes of a busy machine wait that long. */
static const double LATE = 2, NOISE = 1;
enum {
    REFUSALS = 3, /* of one block; then it is not the worker that is wrong */
    MOST_LATE = 1024,
};

void downpour_ledger_forget(struct downpour_ledger *l)
{
    for (uint32_t b = 0; l->blocks != NULL && b < l->round.blocks; b++)
        base_free(l->blocks[b].values);
    base_free(l->blocks);
    base_free(l->paces);
    l->blocks = NULL;
    l->paces = NULL;
}

void downpour_ledger_fini(struct downpour_ledger *l)
{
    downpour_ledger_forget(l);
    for (size_t i = 0; i < l->late_count; i++)
        base_free(l->late[i].values);
    base_free(l->late);
    *l = (struct downpour_ledger){0};
}

/* Workers of the former view have nothing any more. */
static void recall(struct downpour_ledger *l)
{
    for (uint32_t b = 0; b < l->round.blocks; b++)
        l->blocks[b].holders = 0;
}

void downpour_ledger_begin(struct downpour_ledger *l, const struct downpour_round *round,
                           const uint32_t *counts)
{
    if (l->blocks != NULL && downpour_round_same(&l->round, round)) {
        recall(l);
        return;
    }
    downpour_ledger_forget(l);
    l->round = *round;
    l->blocks = base_calloc(round->blocks, sizeof *l->blocks);
    l->paces = base_calloc(round->blocks, sizeof *l->paces);
    l->filled = l->in = l->pace_count = 0;
    l->samples = 0;
    l->quorum_since = -1;
    for (uint32_t b = 0; b < round->blocks; b++) {
        l->blocks[b].samples = counts[b];
        l->filled += counts[b] > 0;
        l->samples += counts[b];
    }
}

/* ---- giving out ---- */

static bool is_free(const struct downpour_ledger *l, uint32_t block)
{
    const struct downpour_ledger_block *b = &l->blocks[block];

    return b->samples > 0 && !b->in && b->holders == 0;
}

/* How long it takes, as a multiple of the median of those that came; 0: not known. */
static double delay(const struct downpour_ledger *l, const struct downpour_ledger_block *b,
                    double now)
{
    double usual = l->pace_count > 0 ? l->paces[(l->pace_count - 1) / 2] * b->samples : 0;

    return usual > 0 && now - b->since > usual + NOISE ? (now - b->since) / usual : 0;
}

/* The block that is out and latest; two workers at most have the same one. */
static int64_t latest(const struct downpour_ledger *l, uint32_t worker, double now)
{
    double most = LATE;
    int64_t found = -1;

    for (uint32_t i = 0; i < l->round.blocks; i++) {
        const struct downpour_ledger_block *b = &l->blocks[i];

        if (b->in || b->holders != 1 || b->worker == worker ||
            (l->awaited != 0 && b->worker == l->awaited) || delay(l, b, now) < most)
            continue;
        most = delay(l, b, now);
        found = i;
    }
    return found;
}

/* A free one that was not refused from this worker, the favourite first. */
static int64_t find_free(const struct downpour_ledger *l, uint32_t worker, bool alone,
                         uint32_t favourite)
{
    for (uint32_t i = 0; i < l->round.blocks; i++) {
        uint32_t at = (favourite + i) % l->round.blocks;
        const struct downpour_ledger_block *b = &l->blocks[at];

        if (is_free(l, at) && (alone || b->refusals == 0 || b->worker != worker))
            return at;
    }
    return -1;
}

static void give_out(struct downpour_ledger *l, uint32_t block, uint32_t worker, double now)
{
    struct downpour_ledger_block *b = &l->blocks[block];

    if (b->holders == 0)
        b->since = now;
    b->holders++;
    b->worker = worker;
}

void downpour_ledger_claim(struct downpour_ledger *l, uint32_t block)
{
    l->counts.reissued += l->blocks[block].issued;
    l->blocks[block].issued = true;
}

bool downpour_ledger_reserve(struct downpour_ledger *l, uint32_t worker, uint32_t block, double now)
{
    if (block >= l->round.blocks || !is_free(l, block))
        return false;
    give_out(l, block, worker, now);
    return true;
}

int64_t downpour_ledger_issue(struct downpour_ledger *l, uint32_t worker, bool alone,
                              uint32_t favourite, double now)
{
    int64_t found = find_free(l, worker, alone, favourite);

    if (found < 0 && !l->once)
        found = latest(l, worker, now);
    if (found < 0)
        return -1;
    give_out(l, (uint32_t)found, worker, now);
    downpour_ledger_claim(l, (uint32_t)found);
    return found;
}

bool downpour_ledger_resume(struct downpour_ledger *l, uint32_t worker,
                            const struct downpour_call *call, double now)
{
    if (!downpour_round_same(&l->round, &call->round) || call->block >= l->round.blocks ||
        !is_free(l, call->block))
        return false;
    give_out(l, call->block, worker, now);
    l->blocks[call->block].issued = true;
    return true;
}

void downpour_ledger_release(struct downpour_ledger *l, uint32_t block)
{
    if (block < l->round.blocks && l->blocks[block].holders > 0)
        l->blocks[block].holders--;
}

/* ---- what comes back ---- */

static base_status check_values(const float *values, size_t floats, size_t got)
{
    bool finite = true;

    if (got != floats)
        return base_fail(BASE_ERR_DATA, "a result of %zu numbers and not %zu", got, floats);
    for (size_t i = 0; i < floats; i++)
        finite &= isfinite(values[i]) != 0;
    return finite ? BASE_OK : base_fail(BASE_ERR_DATA, "a result that is not finite");
}

static base_status check_block(const struct downpour_ledger *l, const struct downpour_call *call)
{
    if (downpour_round_same(&call->round, &l->round) && call->block < l->round.blocks)
        return BASE_OK;
    return base_fail(BASE_ERR_DATA,
                     "a result of epoch %" PRId64 ", block %u, which it was not given",
                     call->round.epoch + 1, call->block);
}

static base_status check_outcome(const struct train_outcome *o, uint32_t samples)
{
    if (o->seen != samples || o->correct > o->seen)
        return base_fail(BASE_ERR_DATA,
                         "a result of %" PRId64 " samples, %" PRId64 " correct, and not of %u",
                         o->seen, o->correct, samples);
    if (!isfinite(o->loss_sum) || o->loss_sum < -1e30)
        return base_fail(BASE_ERR_DATA, "a result with a loss of %g", o->loss_sum);
    return BASE_OK;
}

/* Where a new pace belongs. */
static void add_pace(struct downpour_ledger *l, double pace)
{
    uint32_t at = l->pace_count++;

    for (; at > 0 && l->paces[at - 1] > pace; at--)
        l->paces[at] = l->paces[at - 1];
    l->paces[at] = pace;
}

static struct downpour_ledger_late *find_late(const struct downpour_ledger *l, int64_t number,
                                              uint32_t block)
{
    for (size_t i = 0; i < l->late_count; i++)
        if (l->late[i].number == number && l->late[i].block == block)
            return &l->late[i];
    return NULL;
}

static base_status check_late(const struct downpour_ledger *l,
                              const struct downpour_ledger_late *late,
                              const struct downpour_call *call)
{
    if (late == NULL)
        return base_fail(BASE_ERR_DATA,
                         "a result of block %u of round %" PRId64 " (epoch %" PRId64
                         "), which round %" PRId64 " (epoch %" PRId64 ") has no use for",
                         call->block, call->round.number, call->round.epoch + 1, l->round.number,
                         l->round.epoch + 1);
    return check_outcome(&call->outcome, late->samples);
}

/* A block that a former round went without. */
static enum downpour_receipt receive_late(struct downpour_ledger *l, uint32_t worker,
                                          const struct downpour_call *call, float **values_p,
                                          size_t floats, size_t got)
{
    struct downpour_ledger_late *late = find_late(l, call->round.number, call->block);

    if (check_late(l, late, call) != BASE_OK || check_values(*values_p, floats, got) != BASE_OK) {
        l->counts.refused++;
        return DOWNPOUR_RECEIPT_REFUSED;
    }
    if (late->values != NULL) {
        l->counts.surplus++;
        return DOWNPOUR_RECEIPT_SURPLUS;
    }
    late->values = *values_p;
    late->worker = worker;
    late->outcome = call->outcome;
    *values_p = NULL;
    return DOWNPOUR_RECEIPT_COUNTS;
}

static enum downpour_receipt refuse(struct downpour_ledger *l)
{
    l->counts.refused++;
    return DOWNPOUR_RECEIPT_REFUSED;
}

void downpour_ledger_blame(struct downpour_ledger *l, uint32_t block, uint32_t worker)
{
    l->blocks[block].refusals++;
    l->blocks[block].worker = worker;
}

base_status downpour_ledger_check(struct downpour_ledger *l, const struct downpour_call *call,
                                  const float *values, size_t floats, size_t got)
{
    base_status st = BASE_OK;

    TRY(check_block(l, call));
    TRY(check_values(values, floats, got));
out:
    l->counts.refused += st != BASE_OK;
    return st;
}

enum downpour_receipt downpour_ledger_receive(struct downpour_ledger *l, uint32_t worker,
                                              const struct downpour_call *call, float **values_p,
                                              size_t floats, size_t got, double now)
{
    struct downpour_ledger_block *b;

    if (!downpour_round_same(&call->round, &l->round) && call->round.number < l->round.number)
        return receive_late(l, worker, call, values_p, floats, got);
    if (check_block(l, call) != BASE_OK)
        return refuse(l);
    b = &l->blocks[call->block];
    if (b->in) {
        l->counts.surplus++;
        return DOWNPOUR_RECEIPT_SURPLUS;
    }
    if (b->samples == 0) { /* it is empty, or was dropped */
        base_ignore(
            base_fail(BASE_ERR_DATA, "a result of block %u, which has no samples", call->block));
        return refuse(l);
    }
    if (check_outcome(&call->outcome, b->samples) != BASE_OK ||
        check_values(*values_p, floats, got) != BASE_OK)
        return refuse(l);
    if (b->holders > 0 && b->samples > 0)
        add_pace(l, (now - b->since) / b->samples);
    b->in = true;
    b->worker = worker;
    b->values = *values_p;
    b->outcome = call->outcome;
    *values_p = NULL;
    l->in++;
    l->counts.results++;
    return DOWNPOUR_RECEIPT_COUNTS;
}

bool downpour_ledger_counts(const struct downpour_ledger *l, const struct downpour_call *call,
                            uint32_t worker)
{
    const struct downpour_ledger_late *late;

    if (downpour_round_same(&call->round, &l->round))
        return call->block < l->round.blocks && l->blocks[call->block].in &&
               l->blocks[call->block].worker == worker;
    late = find_late(l, call->round.number, call->block);
    return late != NULL && late->values != NULL && late->worker == worker;
}

void downpour_ledger_drop(struct downpour_ledger *l, uint32_t block)
{
    l->counts.left_out++;
    l->filled--;
    l->samples -= l->blocks[block].samples;
    l->blocks[block].samples = 0;
}

bool downpour_ledger_complete(struct downpour_ledger *l, double share, double grace, double now)
{
    if (l->in == l->filled)
        return l->in > 0;
    if (l->in == 0 || l->in < share * l->filled - 1e-9)
        return false;
    if (l->quorum_since < 0)
        l->quorum_since = now;
    return now >= l->quorum_since + grace;
}

bool downpour_ledger_hopeless(const struct downpour_ledger *l)
{
    if (l->filled == 0)
        return true;
    for (uint32_t b = 0; b < l->round.blocks; b++)
        if (!l->blocks[b].in && l->blocks[b].refusals >= REFUSALS)
            return true;
    return false;
}

bool downpour_ledger_wants(const struct downpour_ledger *l, uint32_t block)
{
    return block < l->round.blocks && !l->blocks[block].in;
}

/* ---- the update ---- */

static struct train_row row_of(uint32_t worker, const float *values,
                               const struct train_outcome *outcome, int64_t age)
{
    return (struct train_row){.values = values,
                              .worker = worker,
                              .samples = outcome->seen,
                              .loss = outcome->loss_sum / (double)outcome->seen,
                              .judged = NAN,
                              .age = age};
}

int downpour_ledger_rows(const struct downpour_ledger *l, struct train_row *rows)
{
    int count = 0;

    for (uint32_t i = 0; i < l->round.blocks; i++) {
        const struct downpour_ledger_block *b = &l->blocks[i];

        if (b->in)
            rows[count++] = row_of(b->worker, b->values, &b->outcome, 0);
    }
    for (size_t i = 0; i < l->late_count; i++) {
        const struct downpour_ledger_late *late = &l->late[i];

        if (late->values != NULL)
            rows[count++] =
                row_of(late->worker, late->values, &late->outcome, l->round.number - late->number);
    }
    return count;
}

static void add_outcome(struct train_outcome *sum, const struct train_outcome *more)
{
    sum->loss_sum += more->loss_sum;
    sum->correct += more->correct;
    sum->seen += more->seen;
}

struct train_outcome downpour_ledger_outcome(const struct downpour_ledger *l)
{
    struct train_outcome sum = {0};

    for (uint32_t b = 0; b < l->round.blocks; b++)
        if (l->blocks[b].in)
            add_outcome(&sum, &l->blocks[b].outcome);
    for (size_t i = 0; i < l->late_count; i++)
        if (l->late[i].values != NULL)
            add_outcome(&sum, &l->late[i].outcome);
    return sum;
}

int64_t downpour_ledger_samples_of(const struct downpour_ledger *l, uint32_t worker)
{
    int64_t sum = 0;

    for (uint32_t b = 0; b < l->round.blocks; b++)
        if (l->blocks[b].in && l->blocks[b].worker == worker)
            sum += l->blocks[b].outcome.seen;
    for (size_t i = 0; i < l->late_count; i++)
        if (l->late[i].values != NULL && l->late[i].worker == worker)
            sum += l->late[i].outcome.seen;
    return sum;
}

static void count_age(struct downpour_ledger *l, int64_t age)
{
    int64_t last = DOWNPOUR_LEDGER_AGES;

    l->counts.late++;
    l->counts.late_by_age[(age < last ? age : last) - 1]++;
}

/* Those that came are in the update; the others may still come. */
static void drop_late(struct downpour_ledger *l)
{
    size_t kept = 0;

    for (size_t i = 0; i < l->late_count; i++) {
        struct downpour_ledger_late *late = &l->late[i];

        if (late->values == NULL) {
            l->late[kept++] = *late;
            continue;
        }
        count_age(l, l->round.number - late->number);
        base_free(late->values);
    }
    l->late_count = kept;
}

static void add_late(struct downpour_ledger *l, uint32_t block)
{
    if (l->late == NULL)
        l->late = base_calloc(MOST_LATE, sizeof *l->late);
    if (l->late_count == MOST_LATE) { /* the oldest will hardly come any more */
        base_free(l->late[0].values);
        memmove(l->late, l->late + 1, (MOST_LATE - 1) * sizeof *l->late);
        l->late_count--;
    }
    l->late[l->late_count++] = (struct downpour_ledger_late){
        .number = l->round.number, .block = block, .samples = l->blocks[block].samples};
}

void downpour_ledger_commit(struct downpour_ledger *l, bool late)
{
    drop_late(l);
    for (uint32_t b = 0; b < l->round.blocks; b++) {
        if (l->blocks[b].in || l->blocks[b].samples == 0)
            continue;
        l->counts.left_out++;
        if (late)
            add_late(l, b);
    }
    l->counts.rounds++;
    downpour_ledger_forget(l);
}
