/* SPDX-License-Identifier: MIT */
#include "train/strategies/ps/server.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/coll.h"
#include "nn/simd/simd.h"
#include "train/step.h"
#include "train/strategies/ps/server_private.h"

/* ---- progress ---- */

static int64_t steps_of(const struct train_progress *p, int64_t samples)
{
    return samples / p->batch;
}

void train_progress_position(const struct train_progress *p, struct train_position *position)
{
    const struct ps_ledger *l = &p->ledger;
    int64_t done = l->low - p->began.cursor, steps = steps_of(p, done);

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

int train_progress_spans(const struct train_progress *p,
                         struct train_span spans[TRAIN_MAX_SPANS + 1])
{
    struct train_position at;
    int count = 0;

    train_progress_position(p, &at);
    if (p->ledger.low > at.cursor)
        spans[count++] = (struct train_span){at.cursor, p->ledger.low - at.cursor};
    for (int i = 0; i < p->ledger.done_count; i++)
        spans[count++] = p->ledger.done[i];
    return count;
}

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

    for (int64_t i = 0; i < e->count; i++)
        samples += e->of[i].block.count;
    for (int64_t i = 0; i < e->count; i++) {
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
            s->state.optimiser->update(&hyper, &part);
        sum += slice->count;
    }
}

/* ---- the log ---- */

/* The learning rate of the step under way. A block is a part of a batch: it makes an update by its
 * own mean gradient, with that part of the rate. */
static double rate_of(const struct ps_server *v, int64_t samples, bool shared)
{
    const struct train_session *s = v->session;
    const struct train_progress *p = &v->progress;
    int64_t step = p->began.step + steps_of(p, p->outcome.seen);
    double lr =
        s->job->lr * nn_schedule_factor(s->plan.schedule, &s->plan.schedule_setup, (uint64_t)step);

    return shared ? lr : lr * (double)samples / (double)p->batch;
}

/* The step that is told of next, and its samples. */
static struct train_finished *add_told(struct ps_server *v, int64_t step)
{
    const struct train_progress *p = &v->progress;
    int64_t left = p->ledger.end - p->began.cursor - (step - p->began.step - 1) * p->batch;
    struct train_finished told = {.step = step, .samples = left < p->batch ? left : p->batch};

    v->told = base_realloc(v->told, (size_t)v->told_count + 1, sizeof *v->told);
    v->told[v->told_count++] = told;
    return &v->told[v->told_count - 1];
}

/* A step that ended with the one before it: what that had more than its own samples is the new
 * one's, at the same mean. */
static void divide(struct ps_server *v, int64_t step)
{
    struct train_finished *next = add_told(v, step), *former = next - 1;
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

/* The journal is told of a step when its last sample is in the weights; its figures are those of
 * the entries since the step before. An entry that fills a hole may end several steps. */
static void tell(struct ps_server *v, const struct train_log_entry *e, int64_t before,
                 int64_t after)
{
    struct train_finished *last;

    if (v->told_count == 0 || v->told[v->told_count - 1].step <= before)
        add_told(v, before + 1);
    last = &v->told[v->told_count - 1];
    last->lr = rate_of(v, 0, true);
    for (int64_t i = 0; i < e->count; i++) {
        last->outcome.loss_sum += e->of[i].loss_sum;
        last->outcome.correct += e->of[i].correct;
        last->outcome.seen += e->of[i].seen;
    }
    for (int64_t step = before + 2; step <= after; step++)
        divide(v, step);
}

void ps_server_count(struct ps_server *v, const struct train_outcome *outcome)
{
    if (outcome->seen > 0)
        add_told(v, v->progress.began.step + 1)->outcome = *outcome;
}

static void count_entry(struct ps_server *v, const struct train_log_entry *e)
{
    struct train_progress *p = &v->progress;
    struct train_position before, after;

    train_progress_position(p, &before);
    for (int64_t i = 0; i < e->count; i++) {
        const struct train_outline *o = &e->of[i];

        ps_ledger_done(&p->ledger, o->block);
        p->outcome.loss_sum += o->loss_sum;
        p->outcome.correct += o->correct;
        p->outcome.seen += o->seen;
        p->pushes[o->rank] = o->clock + 1;
    }
    train_progress_position(p, &after);
    tell(v, e, before.step, after.step);
}

static bool has_pushes(const struct ps_server *v, const struct train_log_entry *e)
{
    for (int64_t i = 0; i < e->count; i++)
        if (v->outlines[e->of[i].rank].clock != e->of[i].clock)
            return false;
    return true;
}

static void apply_log(struct ps_server *v)
{
    int done = 0;

    while (done < v->log_count && v->log[done].number == v->applied + 1 &&
           has_pushes(v, &v->log[done])) {
        update(v, &v->log[done]);
        count_entry(v, &v->log[done]);
        v->applied_log[v->log[done].number % (uint64_t)v->size] = v->log[done];
        v->applied = v->log[done++].number;
    }
    v->log_count -= done;
    memmove(v->log, v->log + done, (size_t)v->log_count * sizeof *v->log);
    for (int rank = 0; done > 0 && rank < v->size; rank++)
        if (v->pulls[rank] != 0 && v->pulls[rank] - 1 <= v->applied) {
            v->pulls[rank] = 0;
            ps_server_send_weights(v, rank);
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

/* ---- server 0 ---- */

static void answer(struct ps_server *v, int rank, bool over)
{
    const struct ps_sequencer *q = &v->sequencer;
    const struct train_outcome *entered = &v->entered[rank];
    struct train_position at;
    struct train_ps_body body = {.rank = rank,
                                 .over = over,
                                 .shared = q->of[rank].shared,
                                 .stop = v->stop,
                                 .renew = v->renew,
                                 .news = v->news,
                                 .diverged = v->diverged,
                                 .block = q->of[rank].block,
                                 .whole = q->whole,
                                 .number = q->number,
                                 .loss_sum = entered->loss_sum,
                                 .correct = entered->correct,
                                 .seen = entered->seen};

    train_progress_position(&v->progress, &at);
    body.step = at.step;
    body.clock = v->progress.pushes[rank];
    if (over) {
        body.block.from = at.cursor;
        body.loss_sum = at.loss_sum;
        body.correct = at.correct;
        body.seen = at.seen;
    }
    if (rank != v->rank) {
        ps_server_send(v, rank, TRAIN_PS_ANSWER, &body, sizeof body);
        return;
    }
    v->answer = body;
    v->answered = true;
    base_signal_wake(&v->changed);
}

static void count_staleness(struct ps_server *v, const struct train_log_entry *e)
{
    for (int64_t i = 0; i < e->count; i++) {
        uint64_t age = e->number - 1 - e->of[i].read;

        v->staleness.pushes[age < TRAIN_STALENESS ? age : TRAIN_STALENESS - 1]++;
    }
}

/* False: the loss has diverged, and there is no entry. */
static bool describe_entry(struct ps_server *v, const int *workers, int count,
                           struct train_log_entry *e)
{
    const struct train_progress *p = &v->progress;
    struct train_outcome all = {0};
    int64_t samples = 0;
    int64_t done = p->began.step * p->batch + p->outcome.seen;

    *e = (struct train_log_entry){.number = v->sequencer.number, .count = count};
    for (int i = 0; i < count; i++) {
        e->of[i] = v->outlines[workers[i]];
        samples += e->of[i].block.count;
        all.loss_sum += e->of[i].loss_sum;
        all.correct += e->of[i].correct;
        all.seen += e->of[i].seen;
    }
    for (int i = 0; i < count; i++)
        v->entered[workers[i]] = all;
    e->lr = rate_of(v, samples, e->of[0].shared);
    e->update = (uint64_t)(done / ps_sequencer_unit(&v->sequencer)) + 1;
    return all.seen == 0 || !train_loss_diverged(v->session, all.loss_sum / (double)all.seen);
}

/* All workers are sent home; pushes that are under way count no more. */
static void give_up(struct ps_server *v)
{
    struct ps_sequencer *q = &v->sequencer;

    v->diverged = true;
    for (int i = 0; i < v->size; i++)
        if (q->of[i].work == TRAIN_ASKS || q->of[i].work == TRAIN_PUSHED) {
            q->of[i].work = TRAIN_LEFT;
            answer(v, i, true);
        }
}

/* Makes what entries can be made, and tells workers that can go on. */
static void go_on(struct ps_server *v)
{
    struct ps_sequencer *q = &v->sequencer;
    struct train_log_entry entry;
    int workers[COMM_MAX_WORKERS], count, rank;
    enum train_grant grant;

    if (v->diverged) {
        give_up(v);
        return;
    }
    while ((count = ps_sequencer_entry(q, workers)) > 0) {
        if (!describe_entry(v, workers, count, &entry)) {
            q->number--; /* no server hears of it */
            give_up(v);
            return;
        }
        count_staleness(v, &entry);
        for (int to = 1; to < v->servers; to++)
            ps_server_send(v, to, TRAIN_PS_ENTRY, &entry, train_log_entry_bytes(&entry));
        ps_server_learn(v, &entry, 1);
    }
    if (v->servers == 1)
        q->durable = q->number;
    while ((grant = ps_sequencer_grant(q, &rank)) != TRAIN_GRANT_NONE)
        answer(v, rank, grant == TRAIN_GRANT_OVER);
}

void ps_server_take_ask(struct ps_server *v, int rank)
{
    ps_sequencer_ask(&v->sequencer, rank);
    go_on(v);
}

void ps_server_take_got(struct ps_server *v, int rank)
{
    const struct train_outline *o = &v->outlines[rank];

    if (v->diverged) { /* no entry will have this push, so no other server needs it */
        if (v->sequencer.of[rank].work == TRAIN_WORKS) {
            v->sequencer.of[rank].work = TRAIN_PUSHED;
            go_on(v);
        }
        return;
    }
    if (++v->got[rank] < v->servers)
        return;
    v->got[rank] = 0;
    v->stop |= o->stop != 0;
    v->renew |= o->renew != 0;
    v->news |= o->news != 0;
    ps_sequencer_push(&v->sequencer, rank);
    if (v->sequencer.of[rank].work == TRAIN_ASKS)
        v->staleness.reissued++;
    if (v->stop || v->renew || v->news)
        ps_sequencer_end(&v->sequencer);
    go_on(v);
}

void ps_server_take_have(struct ps_server *v, uint64_t number)
{
    if (number > v->sequencer.durable)
        v->sequencer.durable = number;
    go_on(v);
}

/* ---- every server ---- */

void ps_server_take_push(struct ps_server *v, int rank)
{
    const struct train_ps_body got = {.rank = rank, .clock = v->outlines[rank].clock};

    if (v->rank == 0)
        ps_server_take_got(v, rank);
    else
        ps_server_send(v, 0, TRAIN_PS_GOT, &got, sizeof got);
}

void ps_server_take_entry(struct ps_server *v, const struct train_log_entry *entry)
{
    const struct train_ps_body have = {.rank = v->rank, .number = entry->number};

    insert(v, entry);
    ps_server_send(v, 0, TRAIN_PS_HAVE, &have, sizeof have);
    apply_log(v);
}

void ps_server_take_pull(struct ps_server *v, int rank, uint64_t number)
{
    if (v->applied >= number)
        ps_server_send_weights(v, rank);
    else
        v->pulls[rank] = number + 1; /* 0: no pull waits */
}

/* ---- the worker of this process ---- */

void ps_server_ask(struct ps_server *v)
{
    const struct train_ps_body ask = {.rank = v->rank};

    base_mutex_lock(&v->lock);
    if (v->rank == 0)
        ps_server_take_ask(v, 0);
    else
        ps_server_send(v, 0, TRAIN_PS_ASK, &ask, sizeof ask);
    base_mutex_unlock(&v->lock);
}

void ps_server_push(struct ps_server *v, const struct train_outline *outline,
                    const float *gradients)
{
    float *to = v->pushes[v->rank];

    base_mutex_lock(&v->lock);
    v->outlines[v->rank] = *outline;
    for (int i = 0; i < v->slice_count; i++) {
        memcpy(to, gradients + v->slices[i].from, v->slices[i].count * sizeof *to);
        to += v->slices[i].count;
    }
    ps_server_take_push(v, v->rank);
    base_mutex_unlock(&v->lock);
}

base_status ps_server_read(struct ps_server *v, uint64_t number, float *weights, uint64_t *number_p)
{
    const double PATIENCE = 600;
    double deadline = base_now() + PATIENCE;
    base_status st = BASE_OK;

    base_mutex_lock(&v->lock);
    while (v->applied < number && v->failure == BASE_OK && base_now() < deadline)
        base_signal_wait(&v->changed, &v->lock, deadline);
    if (v->applied >= number)
        memcpy(weights + v->slices[0].from, v->slices[0].weights,
               v->slices[0].count * sizeof *weights);
    else if (v->failure != BASE_OK)
        st = base_fail(v->failure, "%s", v->message);
    else
        st = base_fail(BASE_ERR_TIMEOUT, "the server of this process made no update for %g s",
                       PATIENCE);
    *number_p = v->applied;
    base_mutex_unlock(&v->lock);
    return st;
}

int ps_server_take_told(struct ps_server *v, struct train_finished **told_p,
                        struct train_staleness *staleness)
{
    struct train_position at;
    int count = 0;

    base_mutex_lock(&v->lock);
    train_progress_position(&v->progress, &at);
    while (count < v->told_count && v->told[count].step <= at.step)
        count++;
    *told_p = base_calloc((size_t)count, sizeof **told_p);
    if (count > 0)
        memcpy(*told_p, v->told, (size_t)count * sizeof **told_p);
    v->told_count -= count;
    memmove(v->told, v->told + count, (size_t)v->told_count * sizeof *v->told);
    for (int i = 0; i < TRAIN_STALENESS; i++)
        staleness->pushes[i] += v->staleness.pushes[i];
    staleness->reissued += v->staleness.reissued;
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
    train_progress_position(&v->progress, &state->position);
}

base_status ps_server_open(struct ps_server *v, struct train_session *s, int servers,
                           uint64_t number, struct train_rules rules, int64_t end,
                           const struct train_span *done, int done_count)
{
    base_status st = BASE_OK;
    const struct train_exchange *x = &s->team.exchange;
    const struct train_position *p = &s->state.position;

    *v = (struct ps_server){.session = s,
                            .rank = x->rank,
                            .size = x->size,
                            .servers = servers,
                            .view = s->team.view.number,
                            .applied = number,
                            .progress = {.began = *p, .batch = s->plan.batch},
                            .sequencer = {.rules = rules, .workers = x->size}};
    base_mutex_init(&v->lock);
    base_signal_init(&v->changed);
    ps_ledger_init(&v->progress.ledger, p->cursor, end);
    for (int i = 0; i < done_count; i++)
        ps_ledger_done(&v->progress.ledger, done[i]);
    v->sequencer.number = v->sequencer.durable = number;
    ps_sequencer_init(&v->sequencer, s->plan.batch, p->cursor, end, done, done_count);
    v->applied_log = base_calloc((size_t)x->size, sizeof *v->applied_log);
    v->slice_count = ps_server_slices(s->state.floats, x->rank, servers, v->slices);
    for (int i = 0; i < v->slice_count; i++) {
        struct train_slice *slice = &v->slices[i];

        TRY(base_tensor(slice->count, sizeof(float), "served weights", &slice->weights));
        memcpy(slice->weights, s->state.weights + slice->from, slice->count * sizeof(float));
    }
    for (int i = 0; i < x->size; i++) {
        v->outlines[i].clock = -1;
        TRY(base_tensor(ps_server_floats(v), sizeof(float), "pushes", &v->pushes[i]));
    }
out:
    return st;
}
