/* SPDX-License-Identifier: MIT */
#include "train/strategies/ps/server.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/coll.h"
#include "nn/simd/simd.h"
#include "train/strategies/ps/parcel.h"
#include "train/strategies/ps/server_private.h"

/* ---- slices ---- */

int ps_server_slices(size_t floats, int rank, int servers, struct train_slice slices[2])
{
    int copies = servers > 1 ? 2 : 1;

    for (int i = 0; i < copies; i++) {
        int owner = (rank + servers - i) % servers;

        slices[i] = (struct train_slice){0};
        coll_slice(floats, owner, servers, &slices[i].from, &slices[i].count);
    }
    return copies;
}

size_t ps_server_bucket(const struct train_slice *slice, size_t end, size_t most)
{
    return end - slice->from > most ? end - most : slice->from;
}

size_t ps_server_pull_buckets(const struct train_slice *slice, size_t most)
{
    return slice->count / most + (slice->count % most != 0);
}

size_t ps_server_floats(const struct ps_server *v)
{
    size_t floats = 0;

    for (int i = 0; i < v->slice_count; i++)
        floats += v->slices[i].count;
    return floats;
}

static void scale(float *x, size_t count, float by)
{
    for (size_t i = 0; i < count; i++)
        x[i] *= by;
}

/* The sum of an entry's pushes, in the order of ranks, in the memory of the first one. */
static float *sum_pushes(struct ps_server *v, const struct train_log_entry *e)
{
    size_t floats = ps_server_floats(v);
    float *sum = v->pushes[e->of[0].rank];
    int64_t samples = 0;

    for (int i = 0; i < e->count; i++)
        samples += e->of[i].block.count;
    for (int i = 0; i < e->count; i++) {
        const struct train_outline *o = &e->of[i];
        float *push = v->pushes[o->rank];

        if (!o->shared && o->block.count != samples)
            scale(push, floats, (float)((double)o->block.count / (double)samples));
        if (i > 0)
            nn_simd()->add(floats, sum, push, sum);
    }
    return sum;
}

static void update(struct ps_server *v, const struct train_log_entry *e)
{
    const struct train_session *s = v->session;
    const struct train_job *job = s->job;
    const float *sum = sum_pushes(v, e);
    const struct nn_hyper hyper = {.lr = e->lr,
                                   .momentum = job->momentum,
                                   .nesterov = job->nesterov,
                                   .weight_decay = job->weight_decay,
                                   .beta1 = job->beta1,
                                   .beta2 = job->beta2,
                                   .epsilon = job->epsilon,
                                   .gradient_scale = 1,
                                   .step = e->update,
                                   .lazy = s->lazy};

    for (int i = 0; i < v->slice_count; i++) {
        const struct train_slice *slice = &v->slices[i];
        struct nn_update part = {.count = slice->count,
                                 .gradient = sum,
                                 .weight_in = slice->weights,
                                 .weight_out = slice->weights};

        for (int slot = 0; slot < s->state.optimiser->slots; slot++)
            part.slot_in[slot] = part.slot_out[slot] =
                train_state_at(&s->state, TRAIN_SLOTS, slot, slice->from, slice->count);
        if (slice->count > 0)
            nn_optimiser_update(s->state.optimiser, &hyper, &part);
        sum += slice->count;
    }
}

/* ---- the log ---- */

double ps_server_rate(const struct ps_server *v, int64_t samples, bool shared)
{
    const struct train_session *s = v->session;
    const struct train_progress *p = &v->progress;
    int64_t step = p->began.step + ps_progress_steps(p, p->outcome.seen);
    double lr =
        s->job->lr * nn_schedule_factor(s->plan.schedule, &s->plan.schedule_setup, (uint64_t)step);

    return shared ? lr : lr * (double)samples / (double)p->batch;
}

static bool has_pushes(const struct ps_server *v, const struct train_log_entry *e)
{
    for (int i = 0; i < e->count; i++)
        if (v->outlines[e->of[i].rank].clock != e->of[i].clock)
            return false;
    return true;
}

static void apply_log(struct ps_server *v)
{
    int done = 0;

    while (done < v->log_count && v->log[done].number == v->applied + 1 &&
           has_pushes(v, &v->log[done])) {
        ps_server_correct_entry(v, &v->log[done]);
        update(v, &v->log[done]);
        ps_progress_count(&v->progress, &v->log[done], ps_server_rate(v, 0, true), &v->told);
        v->applied_log[v->log[done].number % (uint64_t)v->size] = v->log[done];
        v->applied = v->log[done++].number;
    }
    v->log_count -= done;
    memmove(v->log, v->log + done, (size_t)v->log_count * sizeof *v->log);
    for (int rank = 0; done > 0 && rank < v->size; rank++)
        if (v->pulls[rank] != 0 && v->pulls[rank] - 1 <= v->applied) {
            ps_server_send_weights(v, rank, v->pulls[rank] - 1);
            v->pulls[rank] = 0;
        }
    if (done > 0)
        base_signal_wake(&v->changed);
}

/* In its place of the log, unless it is known. */
static void insert(struct ps_server *v, const struct train_log_entry *e)
{
    int at = 0;

    if (e->number <= v->applied)
        return;
    while (at < v->log_count && v->log[at].number < e->number)
        at++;
    if (at < v->log_count && v->log[at].number == e->number)
        return;
    v->log = base_realloc(v->log, (size_t)v->log_count + 1, sizeof *v->log);
    memmove(v->log + at + 1, v->log + at, (size_t)(v->log_count - at) * sizeof *v->log);
    v->log[at] = *e;
    v->log_count++;
}

void ps_server_learn(struct ps_server *v, const struct train_log_entry *entries, int count)
{
    for (int i = 0; i < count; i++)
        insert(v, &entries[i]);
    apply_log(v);
}

int ps_server_known(const struct ps_server *v, struct train_log_entry **entries_p)
{
    struct train_log_entry *entries =
        base_calloc((size_t)v->size + (size_t)v->log_count, sizeof *entries);
    int count = 0;

    for (int i = 0; v->applied_log != NULL && i < v->size; i++)
        if (v->applied_log[i].number > 0)
            entries[count++] = v->applied_log[i];
    for (int i = 0; i < v->log_count; i++)
        entries[count++] = v->log[i];
    *entries_p = entries;
    return count;
}

/* ---- every server ---- */

float *ps_server_values(const struct ps_server *v, int rank, const struct ps_bucket *b)
{
    float *values = v->pushes[rank];

    for (int i = 0; i < b->slice; i++)
        values += v->slices[i].count;
    return values + (b->from - v->slices[b->slice].from);
}

void ps_server_take_values(struct ps_server *v, int rank, const struct ps_bucket *b,
                           const uint8_t *packed, size_t bytes)
{
    float *values = ps_server_values(v, rank, b);

    if (packed != NULL) {
        if (bytes > train_wire_bound(v->wiring, b->count) ||
            train_wire_decode(v->wiring, packed, bytes, values, b->count) != BASE_OK)
            v->refusals[rank] = PS_UNREADABLE;
    } else if (bytes != b->count * sizeof *values)
        v->refusals[rank] = PS_WRONG_SIZE;
    else if (!isfinite(nn_simd()->square_sum(b->count, values)))
        v->refusals[rank] = PS_NOT_FINITE;
}

/* Server 0 knows which block the worker was given. */
static void check_outline(struct ps_server *v, int rank, const struct train_outline *o)
{
    const struct train_span *given = &v->sequencer.of[rank].block;

    if (!isfinite(o->loss_sum))
        v->refusals[rank] = PS_NOT_FINITE;
    if (o->rank != rank || o->correct > o->seen ||
        (v->rank == 0 && (o->block.from != given->from || o->block.count != given->count)))
        v->refusals[rank] = PS_WRONG_BLOCK;
}

void ps_server_take_push(struct ps_server *v, int rank, const struct train_outline *outline)
{
    struct train_ps_body got = {.rank = rank};

    v->outlines[rank] = *outline;
    check_outline(v, rank, outline);
    got.refusal = v->refusals[rank];
    v->refusals[rank] = PS_ACCEPTED; /* of the next push nothing is known */
    if (v->rank == 0)
        ps_server_take_got(v, rank, got.refusal);
    else
        ps_server_send(v, 0, TRAIN_PS_GOT, &got);
}

void ps_server_take_entry(struct ps_server *v, const struct train_log_entry *entry)
{
    const struct train_ps_body have = {.rank = v->rank, .number = entry->number};

    insert(v, entry);
    ps_server_send(v, 0, TRAIN_PS_HAVE, &have);
    apply_log(v);
}

void ps_server_take_pull(struct ps_server *v, int rank, uint64_t number, bool shared)
{
    uint64_t bit = UINT64_C(1) << rank;

    v->shared_pulls = shared ? v->shared_pulls | bit : v->shared_pulls & ~bit;
    if (v->applied >= number)
        ps_server_send_weights(v, rank, number);
    else
        v->pulls[rank] = number + 1; /* 0: no pull waits */
}

/* ---- the main thread of this process ---- */

void ps_server_keep_answer(struct ps_server *v, const struct train_ps_body *answer)
{
    v->answer = *answer;
    v->answered = true;
    base_signal_wake(&v->changed);
}

void ps_server_ask(struct ps_server *v)
{
    const struct train_ps_body ask = {.rank = v->rank};

    base_mutex_lock(&v->lock);
    if (v->rank == 0)
        ps_server_take_ask(v, 0);
    else
        ps_server_send(v, 0, TRAIN_PS_ASK, &ask);
    base_mutex_unlock(&v->lock);
}

void ps_server_push(struct ps_server *v, const struct train_outline *outline,
                    const float *gradients, const struct ps_parcel *parcel)
{
    base_mutex_lock(&v->lock);
    for (int i = 0; i < v->slice_count; i++) {
        const struct train_slice *slice = &v->slices[i];
        const struct ps_bucket all = {i, slice->from, slice->count};
        int owner = (v->rank + v->servers - i) % v->servers;
        size_t bytes = slice->count * sizeof *gradients;

        if (slice->count == 0) /* more servers than values: nothing was packed for it */
            continue;
        if (v->wiring != NULL) {
            ps_server_take_values(v, v->rank, &all, parcel->bytes + parcel->from[owner],
                                  parcel->length[owner]);
            continue;
        }
        memcpy(ps_server_values(v, v->rank, &all), gradients + slice->from, bytes);
        ps_server_take_values(v, v->rank, &all, NULL, bytes);
    }
    ps_server_take_push(v, v->rank, outline);
    base_mutex_unlock(&v->lock);
}

base_status ps_server_read(struct ps_server *v, uint64_t number, float *weights, uint64_t *number_p)
{
    const double PATIENCE = 600;
    double deadline = base_now() + PATIENCE;
    base_status st = BASE_OK;

    *number_p = 0;
    base_mutex_lock(&v->lock);
    while (v->applied < number && v->failure == BASE_OK && base_now() < deadline)
        base_signal_wait(&v->changed, &v->lock, deadline);
    if (v->applied >= number)
        memcpy(weights + v->slices[0].from, ps_server_weights_for(v, v->rank, number, number_p),
               v->slices[0].count * sizeof *weights);
    else if (v->failure != BASE_OK)
        st = base_fail(v->failure, "%s", v->message);
    else
        st = base_fail(BASE_ERR_TIMEOUT, "the server of this process made no update for %g s",
                       PATIENCE);
    base_mutex_unlock(&v->lock);
    return st;
}

int ps_server_take_told(struct ps_server *v, struct train_finished **told_p,
                        struct train_staleness *staleness)
{
    int count;

    base_mutex_lock(&v->lock);
    count = ps_progress_take(&v->progress, &v->told, told_p);
    for (int i = 0; i < TRAIN_STALENESS; i++)
        staleness->pushes[i] += v->staleness.pushes[i];
    staleness->reissued += v->staleness.reissued;
    staleness->refused += v->staleness.refused;
    v->staleness = (struct train_staleness){0};
    base_mutex_unlock(&v->lock);
    return count;
}

/* ---- a leg ---- */

void ps_server_land(struct ps_server *v)
{
    struct train_state *state = &v->session->state;

    for (int i = 0; i < v->slice_count; i++)
        if (v->slices[i].weights != NULL) /* the server was opened */
            memcpy(state->weights + v->slices[i].from, v->slices[i].weights,
                   v->slices[i].count * sizeof(float));
    ps_progress_position(&v->progress, &state->position);
}

base_status ps_server_open(struct ps_server *v, struct train_session *s, struct ps_seats seats,
                           uint64_t number, struct train_rules rules, int64_t end,
                           const struct train_span *done, int done_count)
{
    base_status st = BASE_OK;
    const struct train_exchange *x = &s->team.exchange;
    const struct train_position *p = &s->state.position;

    *v = (struct ps_server){.session = s,
                            .rank = x->rank,
                            .size = x->size,
                            .servers = seats.servers,
                            .view = s->team.view.number,
                            .applied = number,
                            .progress = {.began = *p, .batch = s->plan.batch},
                            .sequencer = {.rules = rules,
                                          .workers = x->size - seats.first_worker,
                                          .first_worker = seats.first_worker}};
    base_mutex_init(&v->lock);
    base_signal_init(&v->changed);
    ps_ledger_init(&v->progress.ledger, p->cursor, end);
    for (int i = 0; i < done_count; i++)
        ps_ledger_done(&v->progress.ledger, done[i]);
    v->sequencer.number = v->sequencer.durable = number;
    ps_sequencer_init(&v->sequencer, s->plan.batch, p->cursor, end, done, done_count);
    if (x->rank == 0 && s->fault.reads != NULL && (v->reads = fopen(s->fault.reads, "a")) == NULL)
        TRY(base_fail(BASE_ERR_IO, "cannot write to PACELINE_READS, %s: %m", s->fault.reads));
    v->applied_log = base_calloc((size_t)x->size, sizeof *v->applied_log);
    v->slice_count = ps_server_slices(s->state.floats, x->rank, seats.servers, v->slices);
    for (int i = 0; i < v->slice_count; i++) {
        struct train_slice *slice = &v->slices[i];

        TRY(base_tensor(slice->count, sizeof(float), "served weights", &slice->weights));
        memcpy(slice->weights, s->state.weights + slice->from, slice->count * sizeof(float));
    }
    for (int i = seats.first_worker; i < x->size; i++) {
        v->outlines[i].clock = -1;
        TRY(base_tensor(ps_server_floats(v), sizeof(float), "pushes", &v->pushes[i]));
    }
out:
    return st;
}
