/* SPDX-License-Identifier: MIT
 *
 * What the manager does about a call: it is booked in the ledger first, then all desks are served.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "train/strategies/downpour/manager_private.h"

uint32_t downpour_manager_id(const struct downpour_manager *m, int rank)
{
    return m->team->worker != NULL ? m->team->view.members[rank].id : 0;
}

/* With the lock: the round cannot go on. */
void downpour_manager_fail(struct downpour_manager *m, base_status st)
{
    if (m->failure != BASE_OK)
        return;
    m->failure = st;
    m->message = base_strdup(base_message());
    base_signal_wake(&m->moved);
}

/* ---- answers ---- */

static struct said *free_answer(struct desk *d)
{
    for (int i = 0; i < ANSWERS; i++)
        if (!d->said[i].used || atomic_load(&d->said[i].task.ended))
            return &d->said[i];
    return NULL;
}

void downpour_desks_answer(struct downpour_manager *m, int rank, const struct train_answer *answer)
{
    struct desk *d = &m->desks[rank];
    struct said *said = free_answer(d);
    struct train_answer a = *answer;

    a.counts = d->counts;
    d->waited = base_now();
    if (rank == 0) {
        m->local = a;
        m->answered = true;
        base_signal_wake(&m->moved);
    } else if (said != NULL) {
        said->used = true;
        train_answer_encode(&a, said->bytes);
        comm_engine_send(m->engine, rank, COMM_CALLS, TRAIN_TAG_ANSWER, said->bytes,
                         sizeof said->bytes, &said->task);
    } else {
        downpour_manager_fail(m, base_fail(BASE_ERR_TIMEOUT,
                                           "worker %u takes no answers of the manager",
                                           downpour_manager_id(m, rank)));
    }
}

static void tell_end(struct downpour_manager *m, int rank)
{
    struct desk *d = &m->desks[rank];

    d->told = true;
    downpour_desks_answer(
        m, rank,
        &(struct train_answer){.kind = TRAIN_ANSWER_CLOSE,
                               .ending = m->ending,
                               .wanted = m->ending == TRAIN_ENDING_RENEW ||
                                         d->state == DESK_SILENT || /* with a late block */
                                         (d->holds && downpour_ledger_wants(m->ledger, d->block))});
}

static void give_block(struct downpour_manager *m, int rank, double now)
{
    struct desk *d = &m->desks[rank];
    int64_t block =
        m->rules.fixed
            ? -1
            : downpour_ledger_issue(m->ledger, downpour_manager_id(m, rank), m->workers == 1,
                                    (uint32_t)rank % m->ledger->round.blocks, now);

    if (block >= 0) {
        d->state = DESK_COMPUTES;
        d->holds = true;
        d->added = false;
        d->block = (uint32_t)block;
        downpour_desks_answer(
            m, rank, &(struct train_answer){.kind = TRAIN_ANSWER_BLOCK, .block = (uint32_t)block});
    } else if (rank != 0 && now > d->waited + DOWNPOUR_MANAGER_WAITS) {
        downpour_desks_answer(m, rank, &(struct train_answer){.kind = TRAIN_ANSWER_WAIT});
    }
}

/* The block that is kept for this worker since the round's beginning. */
static void give_reserved(struct downpour_manager *m, int rank)
{
    struct desk *d = &m->desks[rank];

    d->reserved = d->added = false;
    d->state = DESK_COMPUTES;
    downpour_ledger_claim(m->ledger, d->block);
    downpour_desks_answer(m, rank,
                          &(struct train_answer){.kind = TRAIN_ANSWER_BLOCK, .block = d->block});
}

/* ---- the round's end ---- */

static void end_round(struct downpour_manager *m, enum train_ending ending, double now)
{
    m->over = true;
    m->over_since = now;
    m->ending = ending;
}

/* What no message tells. */
static void look_around(struct downpour_manager *m, double now)
{
    if (m->over)
        return;
    if (downpour_ledger_complete(m->ledger, m->rules.quorum, m->rules.grace, now))
        end_round(m, TRAIN_ENDING_COMMIT, now);
    else if (train_team_stopping(m->team))
        end_round(m, TRAIN_ENDING_STOP, now);
    else if (train_team_outdated(m->team))
        end_round(m, TRAIN_ENDING_RENEW, now);
    else if (downpour_ledger_hopeless(m->ledger))
        downpour_manager_fail(
            m, base_fail(BASE_ERR_DIVERGED,
                         "no worker has a result for a block: %s; try a lower --lr or --clip 1",
                         m->refusal != NULL ? m->refusal : "there are no samples"));
}

void downpour_desks_serve(struct downpour_manager *m, double now)
{
    look_around(m, now);
    for (int rank = 0; rank < m->size; rank++) {
        struct desk *d = &m->desks[rank];

        if (m->over && !d->told && d->state != DESK_GONE)
            tell_end(m, rank);
        else if (!m->over && d->state == DESK_WAITS)
            give_block(m, rank, now);
    }
}

/* ---- calls ---- */

static void note_refusal(struct downpour_manager *m, int rank)
{
    base_free(m->refusal);
    m->refusal = base_format("worker %u sent %s", downpour_manager_id(m, rank), base_message());
    base_warn("%s; it does not count", m->refusal);
}

void downpour_desks_publish(struct downpour_manager *m)
{
    if (m->region != NULL)
        base_ignore(
            comm_region_publish(m->region, ++m->version, m->centre)); /* one writer: it can */
}

/* A change is in the centre at once, by its block's share of the round's samples. */
static void add_change(struct downpour_manager *m, const struct downpour_call *call,
                       const float *values)
{
    const struct downpour_ledger *l = m->ledger;
    float *centre = m->centre,
          share = (float)((double)l->blocks[call->block].samples / (double)l->samples);

    for (size_t i = 0; i < m->floats; i++)
        centre[i] += share * values[i];
    downpour_desks_publish(m);
}

static void book_result(struct downpour_manager *m, int rank, const struct downpour_call *call,
                        float **values_p, size_t got, double now)
{
    struct desk *d = &m->desks[rank];
    struct downpour_call booked = *call;
    /* A worker's first call of a view may be the result of a block that it was given in another. */
    bool given = d->holds && !d->reserved ? call->block == d->block
                                          : d->state == DESK_SILENT && m->rounds == 1;

    if (!given && booked.round.number == m->ledger->round.number)
        booked.round.blocks = 0; /* of no round */
    switch (downpour_ledger_receive(m->ledger, downpour_manager_id(m, rank), &booked, values_p,
                                    m->floats, got, now)) {
    case DOWNPOUR_RECEIPT_REFUSED:
        note_refusal(m, rank);
        /* A block that is in the centre in part would count more than once if it was computed
         * again: the rest of it is left out. */
        if (d->holds && !d->reserved && (m->rules.fixed || d->added))
            downpour_ledger_drop(m->ledger, d->block);
        else if (d->holds && !d->reserved)
            downpour_ledger_blame(m->ledger, d->block, downpour_manager_id(m, rank));
        break;
    case DOWNPOUR_RECEIPT_COUNTS:
        if (m->centre != NULL)
            add_change(m, &booked, m->ledger->blocks[booked.block].values);
        break;
    case DOWNPOUR_RECEIPT_SURPLUS:
        break;
    }
    d->counts = downpour_ledger_counts(m->ledger, &booked, downpour_manager_id(m, rank));
}

static void book_push(struct downpour_manager *m, int rank, const struct downpour_call *call,
                      const float *values, size_t got)
{
    struct desk *d = &m->desks[rank];

    d->counts = d->holds && call->block == d->block &&
                downpour_ledger_check(m->ledger, call, values, m->floats, got) == BASE_OK;
    if (d->counts) {
        add_change(m, call, values);
        d->added = true;
    } else {
        note_refusal(m, rank);
    }
    if (!m->over)
        downpour_desks_answer(m, rank, &(struct train_answer){.kind = TRAIN_ANSWER_GO_ON});
}

/* How the centre has changed since the worker knew it, packed; what the format leaves out goes with
 * the next one. */
static base_status pack_centre(struct downpour_manager *m, struct desk *d, size_t *length_p)
{
    base_status st = BASE_OK;
    const struct train_wiring *wiring = m->rules.wiring;
    size_t floats = m->floats - m->statistics, tail = m->statistics * sizeof(float);

    for (size_t i = 0; i < floats; i++)
        m->change[i] = m->centre[i] - d->fetched[i];
    memset(m->rest, 0, floats * sizeof *m->rest);
    *length_p = train_wire_encode(wiring, m->change, m->rest, floats, d->going);
    TRY(train_wire_decode(wiring, d->going, *length_p, m->change, floats));
    for (size_t i = 0; i < floats; i++)
        d->fetched[i] += m->change[i];
    memcpy(d->going + *length_p, m->centre + floats, tail);
    *length_p += tail;
out:
    return st;
}

static void book_fetch(struct downpour_manager *m, int rank)
{
    base_status st;
    struct desk *d = &m->desks[rank];
    size_t bytes = m->floats * sizeof(float);
    const void *weights = d->fetched;

    if (m->over || rank == 0)
        return;
    downpour_desks_answer(m, rank, &(struct train_answer){.kind = TRAIN_ANSWER_GO_ON});
    if (m->rules.wiring == NULL) {
        memcpy(d->fetched, m->centre, bytes);
    } else {
        if ((st = pack_centre(m, d, &bytes)) != BASE_OK)
            return downpour_manager_fail(m, st);
        weights = d->going;
    }
    m->sent += (int64_t)bytes;
    comm_engine_send(m->engine, rank, COMM_CALLS, TRAIN_TAG_WEIGHTS, weights, bytes, &d->fetch);
}

/* A worker has a part of a block done, and gets it if it is free. */
static void book_continue(struct downpour_manager *m, int rank, const struct downpour_call *call,
                          double now)
{
    struct desk *d = &m->desks[rank];

    for (int r = 0; r < m->size; r++) /* kept for another worker, which has not begun it */
        if (m->desks[r].reserved && m->desks[r].block == call->block) {
            downpour_ledger_release(m->ledger, call->block);
            m->desks[r].holds = m->desks[r].reserved = false;
        }
    if (!downpour_ledger_resume(m->ledger, downpour_manager_id(m, rank), call, now))
        return;
    d->state = DESK_COMPUTES;
    d->holds = true;
    d->added = false;
    d->block = call->block;
    downpour_desks_answer(m, rank,
                          &(struct train_answer){.kind = TRAIN_ANSWER_BLOCK, .block = call->block});
}

void downpour_desks_book(struct downpour_manager *m, int rank, const struct downpour_call *call,
                         float **values_p, size_t got, double now)
{
    struct desk *d = &m->desks[rank];

    d->waited = now;
    if (call->kind == DOWNPOUR_CALL_PUSH)
        return book_push(m, rank, call, *values_p, got);
    if (call->kind == DOWNPOUR_CALL_FETCH)
        return book_fetch(m, rank);
    if (call->kind == DOWNPOUR_CALL_RESULT)
        book_result(m, rank, call, values_p, got, now);
    if (call->kind == DOWNPOUR_CALL_ASK && d->reserved && !m->over &&
        downpour_ledger_wants(m->ledger, d->block))
        return give_reserved(m, rank);
    if (d->holds)
        downpour_ledger_release(m->ledger, d->block);
    d->holds = d->reserved = false;
    d->state = call->kind == DOWNPOUR_CALL_BYE ? DESK_GONE : DESK_WAITS;
    if (call->kind == DOWNPOUR_CALL_CONTINUE && !m->over)
        book_continue(m, rank, call, now);
    downpour_desks_serve(m, now);
}
