/* SPDX-License-Identifier: MIT */
#include "train/strategies/ps/ledger.h"

#include <assert.h>
#include <string.h>

void ps_ledger_init(struct ps_ledger *l, int64_t low, int64_t end)
{
    *l = (struct ps_ledger){.low = low, .end = end};
}

static int64_t end_of(struct train_span span)
{
    return span.from + span.count;
}

bool train_spans_overlap(struct train_span a, struct train_span b)
{
    return a.from < end_of(b) && b.from < end_of(a) && a.count > 0 && b.count > 0;
}

bool train_spans_ascend(const struct train_span *spans, int count, int64_t from, int64_t end)
{
    for (int i = 0; i < count; i++) {
        if (spans[i].from < from || spans[i].from >= end || spans[i].count < 1 ||
            spans[i].count > end - spans[i].from)
            return false;
        from = end_of(spans[i]) + 1;
    }
    return true;
}

/* The end of the span that contains `at`, or `at` where none does; *next_p: the beginning of the
 * first span after it, if that is lower. */
static int64_t skip(const struct train_span *spans, int count, int64_t at, int64_t *next_p)
{
    int64_t end = at;

    for (int i = 0; i < count; i++) {
        if (spans[i].from <= at && at < end_of(spans[i]))
            end = end_of(spans[i]);
        else if (spans[i].from > at && spans[i].from < *next_p)
            *next_p = spans[i].from;
    }
    return end;
}

bool ps_ledger_issue(struct ps_ledger *l, int64_t most, struct train_span *block)
{
    int64_t at = l->low, before, next = l->end;

    do {
        before = at;
        next = l->end;
        at = skip(l->done, l->done_count, at, &next);
        at = skip(l->issued, l->issued_count, at, &next);
    } while (at != before);
    if (at >= l->end || l->issued_count == COMM_MAX_WORKERS ||
        l->done_count + l->issued_count >= TRAIN_MAX_SPANS - 1)
        return false;
    *block = (struct train_span){at, next - at < most ? next - at : most};
    l->issued[l->issued_count++] = *block;
    return true;
}

void ps_ledger_return(struct ps_ledger *l, struct train_span block)
{
    for (int i = 0; i < l->issued_count; i++)
        if (l->issued[i].from == block.from && l->issued[i].count == block.count) {
            l->issued[i] = l->issued[--l->issued_count];
            return;
        }
}

/* Spans that touch become one, and the mark moves over those that touch it. */
static void merge(struct ps_ledger *l)
{
    int kept = 0;

    for (int i = 0; i < l->done_count; i++) {
        struct train_span span = l->done[i];

        if (kept > 0 && end_of(l->done[kept - 1]) == span.from)
            l->done[kept - 1].count += span.count;
        else
            l->done[kept++] = span;
    }
    l->done_count = kept;
    if (kept > 0 && l->done[0].from == l->low) {
        l->low = end_of(l->done[0]);
        l->done_count--;
        memmove(l->done, l->done + 1, (size_t)l->done_count * sizeof *l->done);
    }
}

void ps_ledger_done(struct ps_ledger *l, struct train_span block)
{
    int at = 0;

    ps_ledger_return(l, block);
    if (block.count == 0)
        return;
    assert(l->done_count < TRAIN_MAX_SPANS);
    while (at < l->done_count && l->done[at].from < block.from)
        at++;
    memmove(l->done + at + 1, l->done + at, (size_t)(l->done_count - at) * sizeof *l->done);
    l->done[at] = block;
    l->done_count++;
    merge(l);
}

bool ps_ledger_is_done(const struct ps_ledger *l, int64_t sample)
{
    int64_t next = l->end;

    return sample < l->low || skip(l->done, l->done_count, sample, &next) > sample;
}

bool ps_ledger_is_open(const struct ps_ledger *l, struct train_span block)
{
    if (end_of(block) > l->end || (block.count > 0 && block.from < l->low))
        return false;
    for (int i = 0; i < l->done_count; i++)
        if (train_spans_overlap(l->done[i], block))
            return false;
    return true;
}

int64_t ps_ledger_top(const struct ps_ledger *l)
{
    int64_t top = l->low;

    if (l->done_count > 0)
        top = end_of(l->done[l->done_count - 1]);
    for (int i = 0; i < l->issued_count; i++)
        if (end_of(l->issued[i]) > top)
            top = end_of(l->issued[i]);
    return top;
}

bool ps_ledger_complete(const struct ps_ledger *l)
{
    return l->low >= l->end;
}
