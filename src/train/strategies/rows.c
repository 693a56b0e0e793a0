/* SPDX-License-Identifier: MIT
 *
 * For tasks that go by sweeps (train/task.h). Of every phase each worker computes a range of the
 * rows, its share of the work; then the workers give each other what they have computed. Rows do
 * not depend on which worker computes them, so any number of workers and any shares give the same
 * bits.
 *
 * A sweep changes the state in place. A copy of what its phases write to, made before it, brings
 * the state back where a worker is lost on the way. What `finish` alone writes comes after the last
 * word between workers, and needs none.
 */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "train/memory.h"
#include "train/step.h"

/* Across views. */
struct rows {
    float *before; /* the first `floats` of the state, as they were when the sweep began */
    size_t floats;
    struct train_effort effort; /* of this worker in the sweep under way: work, not samples */
};

enum { LEAST = 3 }; /* sweeps to know before shares change, again */

/* The rows of a phase that are the worker's of that rank. */
static void rows_of(const struct train_session *s, const struct train_phase *phase, int rank,
                    uint32_t *from_p, uint32_t *to_p)
{
    const struct data_share share = train_shares_of(&s->team.shares, rank);

    *from_p = train_rows_begin(phase->work, phase->rows, share.from, share.total);
    *to_p = train_rows_begin(phase->work, phase->rows, share.to, share.total);
}

/* Every worker's rows go to all others. */
static base_status rows_gather(struct train_session *s, const struct train_phase *phase)
{
    base_status st = BASE_OK;
    const int rank = s->team.exchange.rank, size = s->team.exchange.size;
    const size_t most = 2 * (size_t)(size - 1) * (size_t)phase->write_count;
    struct train_message *messages = base_calloc(most, sizeof *messages);
    size_t count = 0;

    for (int w = 0; w < phase->write_count; w++)
        for (int peer = 0; peer < size; peer++)
            for (int sends = 0; sends < (peer != rank ? 2 : 0); sends++) {
                const struct train_rows *rows = &phase->writes[w];
                uint32_t from, to;

                rows_of(s, phase, sends == 1 ? rank : peer, &from, &to);
                if (to > from)
                    messages[count++] = (struct train_message){.peer = peer,
                                                               .sends = sends == 1,
                                                               .at = rows->at + from * rows->width,
                                                               .count = (to - from) * rows->width};
            }
    st = train_team_pass(&s->team, messages, count);
    base_free(messages);
    return st;
}

static base_status rows_phase(struct train_session *s, int index)
{
    base_status st = BASE_OK;
    struct rows *r = s->strategy_state;
    const struct train_exchange *x = &s->team.exchange;
    struct train_phase phase;
    uint32_t from, to;
    double began;

    TRY(s->task->sweeps->prepare(s, index, &phase));
    rows_of(s, &phase, x->rank, &from, &to);
    began = base_now();
    s->task->sweeps->run(s, index, from, to);
    r->effort.seconds += base_now() - began;
    r->effort.samples +=
        phase.work != NULL ? (double)(phase.work[to] - phase.work[from]) : to - from;
    train_fault_nth(&s->fault, "phase", index + 1, x->step);
    if (x->size > 1) {
        train_clock_enter(&s->clock, TRAIN_COMMUNICATE);
        TRY(rows_gather(s, &phase));
        train_clock_enter(&s->clock, TRAIN_COMPUTE);
    }
out:
    return st;
}

/* What the workers must know of each other, after which nothing can go wrong with the sweep. */
static base_status rows_agree(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &s->team.exchange;
    struct train_outcome none = {0};

    train_head_fill(s, &none);
    if (x->size > 1)
        TRY(train_exchange_head(x));
    train_head_read(s, x->mine, &none);
out:
    return st;
}

static base_status rows_keep(struct train_session *s)
{
    base_status st = BASE_OK;
    struct rows *r = s->strategy_state;

    if (s->team.exchange.size == 1)
        return BASE_OK;
    if (r->floats < s->state.compared) {
        base_free(r->before);
        r->floats = 0;
        TRY(base_tensor(s->state.compared, sizeof(float), "the state before a sweep", &r->before));
        r->floats = s->state.compared;
    }
    memcpy(r->before, s->state.weights, s->state.compared * sizeof(float));
out:
    return st;
}

static void rows_undo(struct train_session *s, const struct train_step *step, base_status st)
{
    const struct rows *r = s->strategy_state;

    if (s->team.exchange.size > 1 && r->floats >= s->state.compared)
        memcpy(s->state.weights, r->before, s->state.compared * sizeof(float));
    train_trace_drop(&s->trace);
    if (st == BASE_ERR_PEER_LOST)
        train_clock_lost(&s->clock, &step->before);
    else
        train_clock_enter(&s->clock, TRAIN_COMPUTE);
}

static base_status rows_sweep(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_step step = {.began = base_now(), .before = s->clock};
    const uint32_t all = s->count[DATA_TRAIN];
    uint32_t first, own;

    s->team.exchange.step = s->state.position.step + 1;
    train_trace_begin(&s->trace, s->team.exchange.step);
    train_clock_enter(&s->clock, TRAIN_COMPUTE);
    ((struct rows *)s->strategy_state)->effort = (struct train_effort){0};
    TRY(rows_keep(s));
    for (int i = 0; i < s->task->sweeps->phases(s); i++)
        TRY(rows_phase(s, i));
    train_fault_at(&s->fault, "combine", s->team.exchange.step);
    TRY(rows_agree(s));
    train_fault_at(&s->fault, "update", s->team.exchange.step);
    TRY(s->task->sweeps->finish(s));
    step.batch.whole = all;
    step.outcome.seen = all;
    data_share_of(train_team_share(&s->team), all, &first, &own);
    train_step_advance(s, &step);
    train_step_count(s, &step.outcome, own);
    train_step_tell(s, &step);
out:
    if (st != BASE_OK)
        rows_undo(s, &step, st);
    return st;
}

static base_status rows_leg(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    const struct rows *r = s->strategy_state;

    while (s->state.position.step < goal && !train_session_halts(s)) {
        TRY(rows_sweep(s));
        TRY(train_shares_tell(s, r->effort, LEAST));
    }
out:
    return st;
}

static base_status rows_open(struct train_session *s)
{
    if (s->team.exchange.size == 1 || s->task->sweeps->divides(s))
        return BASE_OK;
    return base_fail(BASE_ERR_USAGE,
                     "a sweep of %s is one piece, which strategy rows cannot divide between %d "
                     "workers; strategy rotate can",
                     s->job->model, s->team.exchange.size);
}

/* The copy belongs to a view only in so far as one is needed. */
static void rows_close(struct train_session *s)
{
    struct rows *r = s->strategy_state;

    base_free(r->before);
    *r = (struct rows){0};
}

static void rows_memory(const struct train_memory_question *q, struct train_memory *m)
{
    if (q->seat.workers > 1)
        m->of[TRAIN_MEMORY_SPARE].own += q->sizes->early;
}

const struct train_strategy train_strategy_rows = {
    .name = "rows",
    .help = "of rating models: each worker computes a part of the rows, and all get all of them",
    .commit_unit = "sweep",
    .sweeps = true,
    .shares = TRAIN_SHARES_BATCHES,
    .least = 1,
    .memory = rows_memory,
    .state_size = sizeof(struct rows),
    .open = rows_open,
    .close = rows_close,
    .leg = rows_leg,
};
