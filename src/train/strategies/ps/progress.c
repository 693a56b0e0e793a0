/* SPDX-License-Identifier: MIT */
#include "train/strategies/ps/progress.h"

#include <string.h>

#include "base/mem.h"

/* Sums with such a count are still numbers. */
static bool is_count(int64_t n)
{
    return n >= 0 && n <= INT64_MAX / 2;
}

bool ps_progress_can_be(const struct train_progress *p, int64_t batch, int64_t samples)
{
    const struct train_position *began = &p->began;
    const struct ps_ledger *l = &p->ledger;

    return p->batch == batch && began->cursor >= 0 && began->cursor <= l->low && l->low <= l->end &&
           l->end <= samples && is_count(began->step) && is_count(began->seen) &&
           is_count(began->correct) && is_count(p->outcome.seen) && is_count(p->outcome.correct) &&
           l->done_count >= 0 && l->done_count <= TRAIN_MAX_SPANS &&
           train_spans_ascend(l->done, l->done_count, l->low + 1, l->end);
}

int64_t ps_progress_steps(const struct train_progress *p, int64_t samples)
{
    return samples / p->batch;
}

void ps_progress_position(const struct train_progress *p, struct train_position *position)
{
    const struct ps_ledger *l = &p->ledger;
    int64_t done = l->low - p->began.cursor, steps = ps_progress_steps(p, done);

    *position = p->began;
    position->cursor += steps * p->batch;
    if (ps_ledger_complete(l) && l->low > position->cursor) { /* the epoch's last batch */
        position->cursor = l->low;
        steps++;
    }
    position->step += steps;
    position->loss_sum += p->outcome.loss_sum;
    position->correct += p->outcome.correct;
    position->seen += p->outcome.seen;
}

int ps_progress_spans(const struct train_progress *p, struct train_span spans[TRAIN_MAX_SPANS + 1])
{
    struct train_position at;
    int count = 0;

    ps_progress_position(p, &at);
    if (p->ledger.low > at.cursor)
        spans[count++] = (struct train_span){at.cursor, p->ledger.low - at.cursor};
    for (int i = 0; i < p->ledger.done_count; i++)
        spans[count++] = p->ledger.done[i];
    return count;
}

/* ---- the journal ---- */

/* The step that is told of next, and its samples. */
static struct train_finished *add(const struct train_progress *p, struct ps_told *told,
                                  int64_t step)
{
    int64_t left = p->ledger.end - p->began.cursor - (step - p->began.step - 1) * p->batch;
    struct train_finished next = {.step = step, .samples = left < p->batch ? left : p->batch};

    told->at = base_realloc(told->at, (size_t)told->count + 1, sizeof *told->at);
    told->at[told->count++] = next;
    return &told->at[told->count - 1];
}

/* A step that ended with the one before it: what that had more than its own samples is the new
 * one's, at the same mean. */
static void divide(const struct train_progress *p, struct ps_told *told, int64_t step)
{
    struct train_finished *next = add(p, told, step), *former = next - 1;
    int64_t more = former->outcome.seen - former->samples;
    double part = more > 0 ? (double)more / (double)former->outcome.seen : 0;

    next->lr = former->lr;
    next->outcome = (struct train_outcome){former->outcome.loss_sum * part,
                                           (int64_t)((double)former->outcome.correct * part),
                                           more > 0 ? more : 0};
    former->outcome.loss_sum -= next->outcome.loss_sum;
    former->outcome.correct -= next->outcome.correct;
    former->outcome.seen -= next->outcome.seen;
}

static void add_outcome(struct train_outcome *sum, const struct train_log_entry *e)
{
    for (int i = 0; i < e->count; i++) {
        sum->loss_sum += e->of[i].loss_sum;
        sum->correct += e->of[i].correct;
        sum->seen += e->of[i].seen;
    }
}

/* The journal is told of a step when its last sample is in the weights; its figures are those of
 * the entries since the step before. An entry that fills a hole may end several steps. */
void ps_progress_count(struct train_progress *p, const struct train_log_entry *e, double lr,
                       struct ps_told *told)
{
    struct train_position before, after;
    struct train_finished *last;

    ps_progress_position(p, &before);
    for (int i = 0; i < e->count; i++) {
        ps_ledger_done(&p->ledger, e->of[i].block);
        p->pushes[e->of[i].rank] = e->of[i].clock + 1;
    }
    add_outcome(&p->outcome, e);
    ps_progress_position(p, &after);
    if (told->count == 0 || told->at[told->count - 1].step <= before.step)
        add(p, told, before.step + 1);
    last = &told->at[told->count - 1];
    last->lr = lr;
    add_outcome(&last->outcome, e);
    for (int64_t step = before.step + 2; step <= after.step; step++)
        divide(p, told, step);
}

void ps_progress_begin(const struct train_progress *p, const struct train_outcome *outcome,
                       struct ps_told *told)
{
    if (outcome->seen > 0)
        add(p, told, p->began.step + 1)->outcome = *outcome;
}

int ps_progress_take(const struct train_progress *p, struct ps_told *told,
                     struct train_finished **steps_p)
{
    struct train_position at;
    int count = 0;

    ps_progress_position(p, &at);
    while (count < told->count && told->at[count].step <= at.step)
        count++;
    *steps_p = base_calloc((size_t)count, sizeof **steps_p);
    if (count == 0)
        return 0;
    memcpy(*steps_p, told->at, (size_t)count * sizeof **steps_p);
    told->count -= count;
    memmove(told->at, told->at + count, (size_t)told->count * sizeof *told->at);
    return count;
}
