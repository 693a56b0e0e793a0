/* SPDX-License-Identifier: MIT
 *
 * Which entries a server believes: those of server 0, and those that another server knows of after
 * a loss. An entry that is wrong would break the ledger or leave a hole in the log.
 */
#include <math.h>

#include "train/strategies/ps/server_private.h"

/* Blocks of the leg's samples, of workers in ascending order. */
static bool has_blocks_of_leg(const struct ps_server *v, const struct train_log_entry *e)
{
    const struct train_progress *p = &v->progress;

    for (int i = 0; i < e->count; i++) {
        struct train_span block = e->of[i].block;

        if (e->of[i].rank < v->sequencer.first_worker || e->of[i].rank >= v->size ||
            (i > 0 && e->of[i].rank <= e->of[i - 1].rank) || block.from < p->began.cursor ||
            block.from + block.count > p->ledger.end)
            return false;
        for (int j = 0; j < i; j++)
            if (train_spans_overlap(block, e->of[j].block))
                return false;
    }
    return true;
}

static bool entries_overlap(const struct train_log_entry *a, const struct train_log_entry *b)
{
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < b->count; j++)
            if (train_spans_overlap(a->of[i].block, b->of[j].block))
                return true;
    return false;
}

/* No sample is in the weights or in an entry that waits, and the ledger has room for all. */
static bool has_open_blocks(const struct ps_server *v, const struct train_log_entry *e)
{
    int spans = v->progress.ledger.done_count + e->count;

    for (int i = 0; i < e->count; i++)
        if (!ps_ledger_is_open(&v->progress.ledger, e->of[i].block))
            return false;
    for (int i = 0; i < v->log_count; i++) {
        if (v->log[i].number == e->number)
            continue; /* it is known already */
        if (entries_overlap(&v->log[i], e))
            return false;
        spans += v->log[i].count;
    }
    return spans <= TRAIN_MAX_SPANS;
}

/* A worker pushes again only when its push before is in the weights of every server: so there are
 * never more entries that wait than workers. */
bool ps_server_is_entry(const struct ps_server *v, const struct train_log_entry *e)
{
    if (e->count < 1 || e->count > v->size || e->number < 1 || e->update < 1 || !isfinite(e->lr) ||
        (v->size < COMM_MAX_WORKERS && e->readers >> v->size != 0) || !has_blocks_of_leg(v, e))
        return false;
    return e->number <= v->applied ||
           (e->number - v->applied <= (uint64_t)v->size && has_open_blocks(v, e));
}
