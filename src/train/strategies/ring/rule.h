/* SPDX-License-Identifier: MIT
 *
 * The ready rule: what a worker of the ring does next. A backward comes in two parts: gradients of
 * activations, which the worker before waits for, and those of weights, layer by layer, which can
 * wait. A worker runs what has arrived, a backward before a forward, the later stage first; then
 * gradients of weights, the oldest first; and it waits where there are none. No list, no costs, no
 * scheduler: every worker decides by what it sees.
 *
 * It cannot deadlock, for any timing, numbers of workers, laps and micro-batches, under two
 * conditions: a message that was sent is taken without the help of the receiver's rule, and every
 * stage may have at least one micro-batch in flight, whatever the worker's other stages have.
 * For assume that no worker can move. Then no gradients of weights are left to compute, so what is
 * in flight waits for its backward. No gradient waits, because the worker that it waits for could
 * run its backward. Take the last stage with a micro-batch in flight. It is not the model's last,
 * whose backward waits for nothing. So its activation waits at the next stage, which has none in
 * flight, and could run its forward. With none in flight at all the first stage could.
 *
 * Where steps overlap a worker begins a batch when nothing of the one before it is left for it to
 * do, and takes the messages of a batch from then on. The oldest batch that is not done has all of
 * its workers, so the above holds for it; when it is done the next one is the oldest. The same
 * where two batches of a worker are open at a time (async.h): what has come is the older one's as
 * long as that one waits for more, and the younger one has only those places in flight that the
 * older one needs no more.
 *
 * Per stage, forwards, backwards and gradients of weights each happen in the order of the
 * micro-batches: so gradients are summed in one order, and the bits depend on no timing.
 */
#ifndef TRAIN_STRATEGIES_RING_RULE_H
#define TRAIN_STRATEGIES_RING_RULE_H

#include "train/strategies/ring/cut.h"

/* The two ways through a stage, and of what passes from stage to stage. */
enum ring_way { RING_FORWARD, RING_BACKWARD, RING_WAYS };

/* A stage of this worker. */
struct ring_track {
    bool first, last;      /* of the model */
    int limit;             /* micro-batches that may be in flight: from forward to `learned` */
    int jobs;              /* layers whose gradients of weights come apart; 0: with the backward */
    int done[RING_WAYS];   /* micro-batches */
    int learned;           /* micro-batches of which nothing is left to do */
    int job;               /* of the next one: layers that are done */
    bool came[RING_WAYS];  /* what the next one needs has arrived: activation, gradient */
    bool clear[RING_WAYS]; /* what it makes can be sent */
};

struct ring_rule {
    int count, pieces; /* stages of this worker in ascending order; micro-batches of the batch */
    struct ring_track at[RING_MAX_LAPS];
};

enum ring_verb { RING_RUN, RING_LEARN, RING_WAIT, RING_END };

struct ring_move {
    enum ring_verb verb;
    enum ring_way way;
    int track, piece; /* of RING_RUN and RING_LEARN … */
    int job;          /* … the latter: gradients of weights of one layer */
};

struct ring_move ring_rule_next(const struct ring_rule *rule);
/* The move was made. */
void ring_rule_made(struct ring_rule *rule, struct ring_move move);

#endif
