/* SPDX-License-Identifier: MIT
 *
 * Which samples of an epoch's order are in the weights, where workers take blocks of them as they
 * become free. Blocks are issued in order; what is done is a low-water mark and the spans above it.
 * A block that its worker does not finish is simply not done, and is issued again. Pure arithmetic.
 */
#ifndef TRAIN_STRATEGIES_PS_LEDGER_H
#define TRAIN_STRATEGIES_PS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/view.h"

struct train_span { /* samples [from, from + count) of the order */
    int64_t from, count;
};

/* Do they have a sample in common? */
bool train_spans_overlap(struct train_span a, struct train_span b);
/* Samples of [from, end), ascending; none is empty, and they do not touch? */
bool train_spans_ascend(const struct train_span *spans, int count, int64_t from, int64_t end);

/* Spans are apart by what is issued or was returned: one for each worker, and as many again. */
enum { TRAIN_MAX_SPANS = 4 * COMM_MAX_WORKERS };

struct ps_ledger {
    int64_t low;                             /* all samples before it are done */
    int64_t end;                             /* no sample from here on is issued */
    struct train_span done[TRAIN_MAX_SPANS]; /* above `low`, ascending; they do not touch */
    int done_count;
    struct train_span issued[COMM_MAX_WORKERS]; /* and not done */
    int issued_count;
};

void ps_ledger_init(struct ps_ledger *ledger, int64_t low, int64_t end);
/* The lowest samples that are neither done nor issued, at most `most`; false: there are none. */
bool ps_ledger_issue(struct ps_ledger *ledger, int64_t most, struct train_span *block_p);
/* A block that was issued, or any samples that are not done, is done. */
void ps_ledger_done(struct ps_ledger *ledger, struct train_span block);
/* A block that was issued is not done: it may be issued again. */
void ps_ledger_return(struct ps_ledger *ledger, struct train_span block);
bool ps_ledger_is_done(const struct ps_ledger *ledger, int64_t sample);
/* Could this block become done: is it of the ledger's samples, with none that is done? */
bool ps_ledger_is_open(const struct ps_ledger *ledger, struct train_span block);
/* The end of the highest sample that is done or issued. */
int64_t ps_ledger_top(const struct ps_ledger *ledger);
/* Are all samples before `end` done? */
bool ps_ledger_complete(const struct ps_ledger *ledger);

#endif
