/* SPDX-License-Identifier: MIT
 *
 * Server 0: what it makes of pushes and of what other servers have. It makes the entries of the log
 * and tells workers how to go on.
 */
#include "base/log.h"
#include "train/step.h"
#include "train/strategies/ps/server_private.h"

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
                                 .refusal = v->diverged ? v->last_refusal : PS_ACCEPTED,
                                 .block = q->of[rank].block,
                                 .whole = q->whole,
                                 .number = q->number,
                                 .loss_sum = entered->loss_sum,
                                 .correct = entered->correct,
                                 .seen = entered->seen};

    ps_progress_position(&v->progress, &at);
    body.step = at.step;
    body.clock = v->progress.pushes[rank];
    if (over) {
        v->over = true;
        body.block.from = at.cursor;
    } else {
        ps_server_grant_read(v, rank);
    }
    if (over && !v->diverged) { /* otherwise the loss that has */
        body.loss_sum = at.loss_sum;
        body.correct = at.correct;
        body.seen = at.seen;
    }
    if (rank != v->rank) {
        ps_server_send(v, rank, TRAIN_PS_ANSWER, &body);
        return;
    }
    ps_server_keep_answer(v, &body);
}

static void count_staleness(struct ps_server *v, const struct train_log_entry *e)
{
    for (int i = 0; i < e->count; i++) {
        uint64_t age = e->number - 1 - e->of[i].read;

        v->staleness.pushes[age < TRAIN_STALENESS ? age : TRAIN_STALENESS - 1]++;
        if (v->reads != NULL)
            fprintf(v->reads, "%d %lld %llu %llu\n", e->of[i].rank, (long long)e->of[i].clock,
                    (unsigned long long)e->of[i].read, (unsigned long long)e->number);
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

    *e = (struct train_log_entry){
        .number = v->sequencer.number, .readers = ps_server_take_readers(v), .count = count};
    for (int i = 0; i < count; i++) {
        e->of[i] = v->outlines[workers[i]];
        samples += e->of[i].block.count;
        all.loss_sum += e->of[i].loss_sum;
        all.correct += e->of[i].correct;
        all.seen += e->of[i].seen;
    }
    for (int i = 0; i < count; i++)
        v->entered[workers[i]] = all;
    e->lr = ps_server_rate(v, samples, e->of[0].shared);
    e->update = (uint64_t)(done / ps_sequencer_unit(&v->sequencer)) + 1;
    return all.seen == 0 || !train_loss_diverged(v->session, all.loss_sum / (double)all.seen);
}

/* Processes that only serve need not wait any more: there will be no more entries. */
static void dismiss_servers(struct ps_server *v)
{
    for (int rank = 0; !v->dismissed && rank < v->sequencer.first_worker; rank++)
        answer(v, rank, true);
    v->dismissed = true;
}

/* All workers are sent home; pushes that are under way count no more. */
static void give_up(struct ps_server *v)
{
    struct ps_sequencer *q = &v->sequencer;

    v->diverged = true;
    for (int i = 0; i < v->size; i++)
        if (q->of[i].work == TRAIN_ASKS || q->of[i].work == TRAIN_PUSHED ||
            q->of[i].work == TRAIN_REFUSED) {
            q->of[i].work = TRAIN_LEFT;
            answer(v, i, true);
        }
    dismiss_servers(v);
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
            ps_server_send_entry(v, to, &entry);
        ps_server_learn(v, &entry, 1);
    }
    if (v->servers == 1)
        q->durable = q->number;
    while ((grant = ps_sequencer_grant(q, &rank)) != TRAIN_GRANT_NONE)
        answer(v, rank, grant == TRAIN_GRANT_OVER);
    if (v->over && q->durable == q->number)
        dismiss_servers(v);
}

void ps_server_take_ask(struct ps_server *v, int rank)
{
    ps_sequencer_ask(&v->sequencer, rank);
    go_on(v);
}

/* The push of a worker is rubbish: another one gets its block. */
static void refuse(struct ps_server *v, int rank)
{
    const struct train_outline *o = &v->outlines[rank];
    uint64_t bit = UINT64_C(1) << rank;

    v->staleness.refused++;
    v->entered[rank] = (struct train_outcome){o->loss_sum, o->correct, o->seen};
    v->last_refusal = v->refused[rank];
    ps_sequencer_refuse(&v->sequencer, rank);
    /* With --sync-bn a worker cannot compute without the others. */
    v->diverged = v->sequencer.hopeless || v->session->job->sync_bn;
    if (!v->diverged && (v->told_of & bit) == 0)
        base_warn("worker %u pushed %s: they do not count, and its block is given out again",
                  v->session->team.worker != NULL ? v->session->team.view.members[rank].id : 0,
                  ps_refusal_texts[v->refused[rank]]);
    v->told_of |= bit;
}

void ps_server_take_got(struct ps_server *v, int rank, enum ps_refusal refusal)
{
    const struct train_outline *o = &v->outlines[rank];

    if (refusal != PS_ACCEPTED)
        v->refused[rank] = refusal;
    if (++v->got[rank] < v->servers)
        return;
    v->got[rank] = 0;
    if (v->diverged) { /* no entry will have this push: its worker is sent home */
        v->sequencer.of[rank].work = TRAIN_PUSHED;
        go_on(v);
        return;
    }
    if (!v->over) { /* later all workers must hear what the first heard: the next leg asks again */
        v->stop |= o->stop;
        v->renew |= o->renew;
        v->news |= o->news;
    }
    if (v->refused[rank] != PS_ACCEPTED) {
        refuse(v, rank);
    } else {
        ps_sequencer_push(&v->sequencer, rank);
        if (v->sequencer.of[rank].work == TRAIN_ASKS)
            v->staleness.reissued++;
    }
    v->refused[rank] = PS_ACCEPTED;
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
