/* SPDX-License-Identifier: MIT
 *
 * What a worker does between the beginning and the end of a round: blocks one after the other, and
 * what it says to the manager about them.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "train/strategies/downpour/downpour.h"

/* For tests: what a worker that is wrong would send. */
static void downpour_spoil(struct train_session *s, struct downpour_call *call)
{
    struct downpour *d = s->strategy_state;
    int64_t step = d->solo.round.step + 1;

    if (train_fault_hits(&s->fault, "rubbish-nan", step))
        d->solo.own.values[downpour_solo_floats(s) / 2] = NAN;
    if (train_fault_hits(&s->fault, "rubbish-epoch", step))
        call->round.epoch++;
    if (train_fault_hits(&s->fault, "rubbish-block", step))
        call->block = (call->block + 1) % d->solo.round.blocks;
}

const void *downpour_dispatch(struct downpour *d, size_t floats, size_t *length_p)
{
    struct train_own *own = &d->solo.own;

    own->unsettled = !own->counts;
    *length_p = floats * sizeof(float);
    if (!downpour_parcel_packs(&d->parcel))
        return own->values;
    *length_p = downpour_parcel_pack(&d->parcel, own->values);
    return d->parcel.bytes;
}

/* To the manager of another process: the call, with its values. Whether they count the answer
 * tells, unless it crossed them: the round's end tells it then. */
static base_status downpour_send(struct train_session *s, const struct downpour_call *call,
                                 struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    const struct downpour_options *options = s->options;
    struct downpour *d = s->strategy_state;
    bool result = call->kind == DOWNPOUR_CALL_RESULT;
    bool brings = result || call->kind == DOWNPOUR_CALL_PUSH;
    const void *values = NULL;
    size_t length = 0;

    if (brings)
        values = downpour_dispatch(d, downpour_solo_floats(s), &length);
    if (result && train_fault_hits(&s->fault, "rubbish-size", d->solo.round.step + 1))
        length /= 2;
    d->parcel.pushed += (int64_t)length;
    if (options->latency > 0 && call->kind != DOWNPOUR_CALL_BYE) /* of the call and its answer */
        base_sleep_until(base_now() + 2 * options->latency);
    TRY(downpour_line_call(&d->line, call, values, length, answer_p));
    if (brings && answer_p->kind != TRAIN_ANSWER_CLOSE)
        downpour_settle(d, answer_p->counts, result);
out:
    return st;
}

/* Says what this worker has, and hears what it is to do. */
static base_status downpour_call(struct train_session *s, enum downpour_call_kind kind,
                                 struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    struct train_own *own = &d->solo.own;
    bool result = kind == DOWNPOUR_CALL_RESULT;
    struct downpour_call call = {
        .kind = kind,
        .block = own->block,
        .round =
            kind == DOWNPOUR_CALL_ASK || kind == DOWNPOUR_CALL_BYE ? d->solo.round : own->round,
        .outcome = own->outcome,
    };
    enum train_category was = train_clock_enter(&s->clock, TRAIN_WAIT);
    float **values = kind == DOWNPOUR_CALL_FETCH ? &d->fetched : &own->values;

    if (result)
        downpour_spoil(s, &call);
    if (d->manager != NULL)
        TRY(downpour_manager_call(d->manager, &call, values, answer_p));
    else
        TRY(downpour_send(s, &call, answer_p));
    if (result && own->values == NULL) /* the ledger has it */
        own->valid = false;
    train_clock_enter(&s->clock, was);
out:
    return st;
}

/* Changes are added as they come: this worker's goes to the manager. */
static base_status downpour_push(struct train_session *s, struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;

    TRY(downpour_solo_measure(&d->solo, s));
    TRY(downpour_call(s, DOWNPOUR_CALL_PUSH, answer_p));
    downpour_fill(s, d->solo.pushed);
out:
    return st;
}

/* The weights that the manager has sent, or their change since they last came. */
static base_status downpour_receive(struct train_session *s)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    size_t floats = s->state.floats, all = downpour_solo_floats(s) * sizeof(float), length;
    struct downpour_parcel *p = &d->parcel;
    bool packed = downpour_parcel_packs(p);
    size_t room = packed ? downpour_parcel_bound(&p->wiring, floats, p->statistics) : all;

    TRY(downpour_line_fetch(&d->line, packed ? (void *)p->bytes : d->fetched, room, &length));
    if (packed)
        TRY(base_prefix(
            downpour_parcel_unpack(&p->wiring, p->bytes, length, d->change, floats, p->statistics),
            "the manager's weights"));
    else if (length != all)
        TRY(base_fail(BASE_ERR_DATA, "the manager sent %zu bytes of weights and not %zu", length,
                      all));
    for (size_t i = 0; packed && i < floats; i++)
        d->fetched[i] += d->change[i];
    if (packed)
        memcpy(d->fetched + floats, d->change + floats, p->statistics * sizeof *d->fetched);
out:
    return st;
}

/* … and what all have made of the weights comes back. */
static base_status downpour_fetch(struct train_session *s, struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    size_t floats = downpour_solo_floats(s);
    uint64_t version = 0;

    if (d->region != NULL) {
        TRY(comm_region_read(d->region, 0, floats * sizeof(float), d->fetched,
                             base_now() + DOWNPOUR_MANAGER_PATIENCE, &version));
    } else {
        TRY(downpour_call(s, DOWNPOUR_CALL_FETCH, answer_p));
        if (answer_p->kind == TRAIN_ANSWER_CLOSE)
            goto out;
        if (d->manager == NULL)
            TRY(downpour_receive(s));
    }
    downpour_solo_fetch(&d->solo, s, d->fetched);
out:
    return st;
}

/* After a step. Has the manager said that the round is over? Its answer is then in `context`. */
static base_status downpour_look(struct train_session *s, void *context, bool *over_p)
{
    base_status st = BASE_OK;
    const struct downpour_options *options = s->options;
    struct downpour *d = s->strategy_state;
    struct train_answer *answer = context;
    int64_t fetch = options->fetch_every > 0 ? options->fetch_every : options->push_every;

    TRY(d->manager != NULL ? downpour_manager_look(d->manager, over_p, context)
                           : downpour_line_look(&d->line, over_p, context));
    d->steps++;
    if (options->push_every == 0 || *over_p || d->solo.own.done == d->solo.own.samples)
        goto out; /* the last change goes with the result */
    if (d->steps % options->push_every == 0)
        TRY(downpour_push(s, answer));
    if (answer->kind != TRAIN_ANSWER_CLOSE && d->steps % fetch == 0)
        TRY(downpour_fetch(s, answer));
    *over_p = answer->kind == TRAIN_ANSWER_CLOSE;
out:
    return st;
}

/* Trains over the rest of the block; complete, its change becomes what is sent. */
static base_status downpour_train(struct train_session *s, struct train_answer *answer_p,
                                  bool *over_p)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;

    TRY(downpour_solo_train(&d->solo, s, downpour_look, answer_p, over_p));
    if (d->solo.own.complete)
        train_momentum_smooth(&d->momentum, downpour_extra(s, TRAIN_MOMENTUM), d->solo.own.values);
out:
    return st;
}

/* What this worker begins the round with. */
static base_status downpour_greet(struct train_session *s, bool *over_p,
                                  struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    struct train_own *own = &d->solo.own;

    *over_p = false;
    if (own->valid && own->late && !own->complete)
        TRY(downpour_train(s, answer_p, over_p));
    if (*over_p)
        goto out;
    TRY(downpour_call(s,
                      !own->valid     ? DOWNPOUR_CALL_ASK
                      : own->complete ? DOWNPOUR_CALL_RESULT
                                      : DOWNPOUR_CALL_CONTINUE,
                      answer_p));
    if (own->late && own->complete)
        own->valid = own->late = false;
    *over_p = answer_p->kind == TRAIN_ANSWER_CLOSE;
out:
    return st;
}

void downpour_settle(struct downpour *d, bool counts, bool result)
{
    struct train_own *own = &d->solo.own;

    if (own->unsettled)
        downpour_parcel_settle(&d->parcel, counts);
    own->counts = result && (own->counts || (own->unsettled && counts));
    own->unsettled = false;
}

void downpour_forget_settled(struct downpour *d)
{
    downpour_parcel_forget(&d->parcel);
    d->solo.own.counts = d->solo.own.unsettled = false;
}

base_status downpour_work(struct train_session *s, struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    struct train_answer none;
    bool over = false;

    TRY(downpour_greet(s, &over, answer_p));
    while (!over) {
        if (answer_p->kind != TRAIN_ANSWER_BLOCK || answer_p->block >= d->solo.round.blocks ||
            (d->solo.split == DOWNPOUR_SPLIT_LOCAL &&
             answer_p->block != (uint32_t)s->team.exchange.rank))
            TRY(base_fail(BASE_ERR_DATA, "the manager gave block %u of %u", answer_p->block,
                          d->solo.round.blocks));
        downpour_solo_accept(&d->solo, answer_p->block);
        if (d->fetched != NULL)
            TRY(downpour_fetch(s, answer_p));
        if (answer_p->kind == TRAIN_ANSWER_CLOSE)
            break;
        train_fault_at(&s->fault, "block-issued", d->solo.round.step + 1);
        TRY(downpour_train(s, answer_p, &over));
        if (over)
            break;
        train_fault_at(&s->fault, "block-done", d->solo.round.step + 1);
        TRY(downpour_call(s, DOWNPOUR_CALL_RESULT, answer_p));
        if (d->fetched != NULL) /* all of it is on its way */
            downpour_fill(s, d->solo.pushed);
        over = answer_p->kind == TRAIN_ANSWER_CLOSE;
    }
    TRY(downpour_call(s, DOWNPOUR_CALL_BYE, &none));
out:
    return st;
}
