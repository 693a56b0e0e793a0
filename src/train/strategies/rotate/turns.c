/* SPDX-License-Identifier: MIT
 *
 * The turns of a sweep: a bundle is trained, goes to the worker before this one, and comes from the
 * one after it. The group's engine moves bundles while others are trained. Words that a bundle in
 * shared memory is free need no engine, whose thread would take turns with the one that trains.
 */
#include "train/strategies/rotate/rotate.h"

#include <math.h>

#include "base/clock.h"

uint32_t rotate_bundle_of(const struct train_session *s, uint32_t turn)
{
    const struct rotate *r = s->strategy_state;

    return (ROTATE_AHEAD * (uint32_t)s->team.exchange.rank + turn) % r->bundles;
}

/* The memory of a turn's bundle, and the bytes that travel of it: none where it is shared. */
static float *rotate_bundle(const struct train_session *s, uint32_t turn, size_t *bytes_p)
{
    const struct rotate *r = s->strategy_state;
    const size_t floats = s->task->sweeps->rotation->floats(s);

    *bytes_p = rotate_versions_shared(&r->versions) ? 0 : floats * sizeof(float);
    return r->versions.bundles + rotate_bundle_of(s, turn) * floats;
}

static void rotate_receive(struct train_session *s, uint32_t turn)
{
    struct rotate *r = s->strategy_state;
    const struct train_exchange *x = &s->team.exchange;
    size_t bytes;
    float *bundle = rotate_bundle(s, turn, &bytes);
    struct comm_engine *engine = comm_group_engine(s->team.group);
    const int from = (x->rank + 1) % x->size;

    if (engine != NULL)
        comm_engine_receive(engine, from, COMM_FORWARD, turn, bundle, bytes, &r->receives[turn]);
    else
        comm_receive(s->team.group, from, COMM_FORWARD, turn, bundle, bytes,
                     &r->receives[turn].request);
    r->received = turn + 1;
}

static void rotate_send(struct train_session *s, uint32_t turn)
{
    struct rotate *r = s->strategy_state;
    const struct train_exchange *x = &s->team.exchange;
    size_t bytes;
    const float *bundle = rotate_bundle(s, turn, &bytes);
    struct comm_engine *engine = comm_group_engine(s->team.group);
    const int to = (x->rank + x->size - 1) % x->size;
    const uint32_t tag = turn + ROTATE_AHEAD;

    if (engine != NULL)
        comm_engine_send(engine, to, COMM_FORWARD, tag, bundle, bytes, &r->sends[turn]);
    else
        comm_send(s->team.group, to, COMM_FORWARD, tag, bundle, bytes, &r->sends[turn].request);
    r->sent = turn + 1;
}

static base_status rotate_wait(struct train_session *s, struct comm_task *task)
{
    const enum train_category was = train_clock_enter(&s->clock, TRAIN_COMMUNICATE);
    struct comm_engine *engine = comm_group_engine(s->team.group);
    const base_status st =
        engine != NULL
            ? comm_engine_wait(engine, task, INFINITY)
            : comm_wait(s->team.group, &(struct comm_request *){&task->request}, 1, INFINITY);

    train_clock_enter(&s->clock, was);
    return st;
}

/* Until no message is under way; those of a group that has ended are not. */
static base_status rotate_drain(struct train_session *s)
{
    struct rotate *r = s->strategy_state;
    base_status st = BASE_OK, ended;

    for (uint32_t turn = ROTATE_AHEAD; turn < r->received; turn++)
        if ((ended = rotate_wait(s, &r->receives[turn])) != BASE_OK)
            st = ended;
    for (uint32_t turn = 0; turn < r->sent; turn++)
        if ((ended = rotate_wait(s, &r->sends[turn])) != BASE_OK)
            st = ended;
    r->received = r->sent = 0;
    return st;
}

base_status rotate_turns(struct train_session *s)
{
    base_status st = BASE_OK;
    struct rotate *r = s->strategy_state;
    const struct train_rotation *rotation = s->task->sweeps->rotation;
    const bool travels = s->team.exchange.size > 1;
    double began;

    r->seconds = 0;
    for (uint32_t turn = 0; turn < r->turns; turn++) {
        if (travels)
            rotate_receive(s, turn + ROTATE_AHEAD);
        if (travels && turn >= ROTATE_AHEAD)
            TRY(rotate_wait(s, &r->receives[turn]));
        began = base_now();
        rotation->train(s, rotate_versions_at(&r->versions, &r->own), r->versions.bundles,
                        turn / r->bundles, rotate_bundle_of(s, turn));
        r->seconds += base_now() - began;
        train_fault_nth(&s->fault, "turn", (int)turn + 1, s->team.exchange.step);
        if (travels)
            rotate_send(s, turn);
    }
out:
    if (st == BASE_OK)
        st = rotate_drain(s);
    else
        base_ignore(rotate_drain(s)); /* says the same */
    return st;
}
