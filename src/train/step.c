/* SPDX-License-Identifier: MIT
 *
 * One training step: forward and backward of this worker's share of the batch, the strategy's sum
 * over all workers, the update. What must be agreed on travels in the head of the gradients, so
 * that everybody decides the same at the same step. A step that fails leaves the state as it was.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "nn/simd/simd.h"
#include "train/train_private.h"

/* A loss this many times the first one is divergence even while it is a number. */
static const double DIVERGED = 1e4;

enum head { HEAD_LOSS, HEAD_CORRECT, HEAD_SEEN, HEAD_STOP, HEAD_RENEW };

struct outcome { /* of the batch, in the end of all workers */
    double loss_sum;
    int64_t correct, seen;
};

static void tell_strategy(void *context, size_t offset, size_t count)
{
    struct train_session *s = context;

    if (s->strategy->ready != NULL)
        s->strategy->ready(&s->team.exchange, TRAIN_HEAD + offset, count);
    train_fault_nth(&s->fault, "backward", ++s->ranges_ready, s->state.position.step + 1);
}

static void add_piece(struct train_session *s, bool first, bool last)
{
    float *gradients = s->team.exchange.mine + TRAIN_HEAD;

    if (first && !last)
        memcpy(s->accumulated, gradients, s->state.floats * sizeof(float));
    else if (!first)
        nn_simd()->add(s->state.floats, s->accumulated, gradients,
                       last ? gradients : s->accumulated);
}

/* Forward and backward of the share, in pieces; gradients of the whole batch's mean loss. */
static base_status compute(struct train_session *s, const struct data_batch *b,
                           struct outcome *outcome)
{
    size_t sample = (size_t)s->info->channels * (size_t)s->info->height * (size_t)s->info->width;
    struct nn_ready none = {0}, ready = {tell_strategy, s};
    float scale = 1.0f / (float)b->whole;
    bool joins = b->count == 0 && s->job->sync_bn; /* others wait for this worker's sums */
    base_status st = BASE_OK;

    if (b->count == 0) /* more workers than samples */
        memset(s->team.exchange.mine, 0, s->team.exchange.floats * sizeof(float));
    for (uint32_t at = 0; at < b->count || joins;) {
        uint32_t n = b->count - at < (uint32_t)s->piece ? b->count - at : (uint32_t)s->piece;
        struct nn_outcome o;
        struct nn_batch piece = {
            .n = (int)n,
            .x = b->x + at * sample,
            .samples = {.labels = b->labels + at,
                        .ids = b->ids + at,
                        .epoch = (uint32_t)s->state.position.epoch,
                        .seed = (uint64_t)s->job->seed},
        };

        TRY(nn_net_forward(s->net, &piece, true, &o));
        train_fault_at(&s->fault, "forward", s->state.position.step + 1);
        for (size_t i = 0; i < nn_graph_stats(s->graph); i++)
            s->state.tracked[i]++; /* like PyTorch: each forward moves the running statistics */
        outcome->loss_sum += o.loss_sum;
        outcome->correct += o.correct;
        /* With several pieces only their sum is a gradient that a strategy may use. */
        TRY(nn_net_backward(s->net, scale, b->count <= (uint32_t)s->piece ? ready : none));
        add_piece(s, at == 0, at + n == b->count);
        at += n;
        joins = false;
    }
    TRY(s->team.failure);
    outcome->seen = b->count;
out:
    return st;
}

static void fill_head(const struct train_session *s, const struct outcome *outcome)
{
    float *head = s->team.exchange.mine;

    memset(head, 0, TRAIN_HEAD * sizeof *head);
    head[HEAD_LOSS] = (float)outcome->loss_sum;
    head[HEAD_CORRECT] = (float)outcome->correct;
    head[HEAD_SEEN] = (float)outcome->seen;
    head[HEAD_STOP] = train_team_stopping(&s->team);
    head[HEAD_RENEW] = train_team_outdated(&s->team);
}

/* What everybody has to know. Alone nothing is rounded to float. */
static void read_head(struct train_session *s, const float *head, struct outcome *outcome)
{
    s->stop = head[HEAD_STOP] > 0;
    s->renew = head[HEAD_RENEW] > 0;
    if (s->team.exchange.size > 1)
        *outcome = (struct outcome){head[HEAD_LOSS], (int64_t)head[HEAD_CORRECT],
                                    (int64_t)head[HEAD_SEEN]};
}

/* Everybody's gradients, or between rounds this worker's own. */
static base_status combine(struct train_session *s, struct outcome *outcome)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &s->team.exchange;
    const float *head = x->mine;

    x->wait = x->overlapped = 0;
    x->communicate = s->team.sum_seconds;
    fill_head(s, outcome);
    TRY(s->strategy->combine(x));
    for (int i = 0; i < x->range_count; i++)
        if (x->ranges[i].offset == 0)
            head = x->ranges[i].sum;
    if (s->strategy->settle == NULL)
        read_head(s, head, outcome);
out:
    return st;
}

static base_status check_loss(struct train_session *s, double loss)
{
    if (s->first_loss == 0)
        s->first_loss = fmax(1, loss);
    if (isfinite(loss) && loss <= DIVERGED * s->first_loss)
        return BASE_OK;
    if (s->saved_step >= 0)
        return base_fail(
            BASE_ERR_DIVERGED,
            "the loss is %g at step %" PRId64 " (epoch %" PRId64
            "); the checkpoint of step %" PRId64 " is kept; try a lower --lr or --clip 1",
            loss, s->state.position.step + 1, s->state.position.epoch + 1, s->saved_step);
    return base_fail(BASE_ERR_DIVERGED,
                     "the loss is %g at step %" PRId64 " (epoch %" PRId64
                     "), before the first checkpoint; try a lower --lr or --clip 1",
                     loss, s->state.position.step + 1, s->state.position.epoch + 1);
}

static struct train_step describe_step(const struct train_session *s)
{
    const struct train_job *job = s->job;
    struct train_step step = {
        .weights = s->state.weights,
        .optimiser = s->state.optimiser,
        .clip = job->clip,
        .hyper =
            {
                .lr = job->lr * nn_schedule_factor(s->schedule, &s->schedule_setup,
                                                   (uint64_t)s->state.position.step),
                .momentum = job->momentum,
                .nesterov = job->nesterov,
                .weight_decay = job->weight_decay,
                .beta1 = job->beta1,
                .beta2 = job->beta2,
                .epsilon = job->epsilon,
                .gradient_scale = 1,
                .step = (uint64_t)s->state.position.step + 1,
            },
    };

    memcpy(step.slots, s->state.slots, sizeof step.slots);
    return step;
}

static base_status update(struct train_session *s, struct train_step *step)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &s->team.exchange;

    if (x->slices) {
        train_copies_write(&s->copies, x, step, &s->state);
        train_fault_at(&s->fault, "slice", s->state.position.step + 1);
        TRY(train_copies_turn(&s->copies, x, &s->state));
        nn_net_weights_at(s->net, s->state.weights);
    } else {
        train_update(step, x->ranges, x->range_count);
    }
out:
    return st;
}

static void count_in(struct train_position *p, const struct outcome *o)
{
    p->loss_sum += o->loss_sum;
    p->correct += o->correct;
    p->seen += o->seen;
}

base_status train_session_mark(struct train_session *s)
{
    s->round_loss = 0;
    s->round_correct = s->round_seen = 0;
    return s->strategy->settle != NULL ? train_round_keep(&s->round, &s->state) : BASE_OK;
}

/* All copies become one; what happened since the last round counts for everybody. */
static base_status end_round(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &s->team.exchange;
    struct outcome o = {s->round_loss, s->round_correct, s->round_seen};
    struct train_replica replica = {.floats = s->state.floats,
                                    .statistic_floats = nn_graph_stat_floats(s->graph),
                                    .weights = s->state.weights,
                                    .statistics = s->state.statistics,
                                    .slot_count = s->state.optimiser->slots,
                                    .round = s->round.weights};
    double began = base_now();

    memcpy(replica.slots, s->state.slots, sizeof replica.slots);
    fill_head(s, &o);
    TRY(coll_all_reduce(x->coll, x->mine, TRAIN_HEAD, NULL)); /* whoever is early waits here */
    x->wait += base_now() - began;
    read_head(s, x->mine, &o);
    replica.share = (float)((double)s->round_seen / (double)o.seen);
    TRY(s->strategy->settle(x, &replica));
    count_in(&s->state.position, &o);
    s->own_samples += s->round_seen;
    s->averaged_step = s->state.position.step;
    TRY(train_session_mark(s));
out:
    return st;
}

/* Rounds end where they are due, and where the loop wants one model. */
static bool round_ends(const struct train_session *s)
{
    const struct train_position *p = &s->state.position;
    int64_t every = s->job->checkpoint_every;

    return s->strategy->due(&s->team.exchange, p->step) || p->step >= s->last_step ||
           p->cursor == s->info->count[DATA_TRAIN] || (every > 0 && p->step % every == 0);
}

/* The step is done: in everybody's weights, or in this worker's until the round ends. */
static base_status commit(struct train_session *s, const struct data_batch *b,
                          const struct outcome *o)
{
    struct train_position *p = &s->state.position;

    s->tested = false; /* the test's figures were of the former weights */
    p->step++;
    p->cursor += b->whole;
    if (s->strategy->settle == NULL) {
        count_in(p, o);
        s->own_samples += b->count;
        return BASE_OK;
    }
    s->round_loss += o->loss_sum;
    s->round_correct += o->correct;
    s->round_seen += o->seen;
    return round_ends(s) ? end_round(s) : BASE_OK;
}

static void move_on(struct train_session *s, const struct outcome *o, double seconds)
{
    const struct train_position *p = &s->state.position;

    train_pace_add(&s->pace, seconds, s->team.exchange.whole);
    s->window_loss += o->loss_sum;
    s->window_correct += o->correct;
    s->window_seen += o->seen;
    s->window_samples += s->team.exchange.whole;
    s->window_seconds += seconds;
    s->window_steps++;
    if (s->team.worker != NULL)
        cluster_worker_step(s->team.worker, p->step);
}

static void keep_statistics(struct train_session *s)
{
    memcpy(s->statistics_before, s->state.statistics,
           nn_graph_stat_floats(s->graph) * sizeof(float));
    memcpy(s->tracked_before, s->state.tracked,
           nn_graph_stats(s->graph) * sizeof *s->tracked_before);
}

static void restore_statistics(struct train_session *s)
{
    memcpy(s->state.statistics, s->statistics_before,
           nn_graph_stat_floats(s->graph) * sizeof(float));
    memcpy(s->state.tracked, s->tracked_before,
           nn_graph_stats(s->graph) * sizeof *s->tracked_before);
}

/* A step that failed is nobody's: not in the statistics, and from `combined` on (0: it did not come
 * so far, or failed by itself) it waited for somebody who did not come. */
static void give_up(struct train_session *s, double combined, double cpu)
{
    if (combined > 0) {
        s->times.wait += base_now() - combined;
        s->wait_cpu += base_thread_cpu() - cpu;
    }
    restore_statistics(s);
    train_round_undo(&s->round, &s->state);
}

base_status train_session_step(struct train_session *s, const struct data_batch *b,
                               double data_seconds)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &s->team.exchange;
    struct train_step step = describe_step(s);
    struct train_position *p = &s->state.position;
    struct outcome o = {0};
    double began = base_now(), combined = 0, cpu = 0, combine_cpu = 0, seconds;

    keep_statistics(s);
    s->team.sum_seconds = 0;
    train_record_arm(s->record, s->job->log_every > 0 && (p->step + 1) % s->job->log_every == 0,
                     p->step + 1);
    s->ranges_ready = 0;
    x->step = p->step + 1;
    x->fault = &s->fault;
    x->samples = b->count;
    x->whole = b->whole;
    train_fault_at(&s->fault, "data", p->step + 1);
    TRY(compute(s, b, &o));
    train_record_arm(s->record, false, 0); /* evaluations are not recorded */
    train_fault_at(&s->fault, "combine", p->step + 1);
    if (x->size > 1) {
        combined = base_now();
        cpu = base_thread_cpu();
    }
    TRY(combine(s, &o));
    combine_cpu = x->size > 1 ? base_thread_cpu() - cpu : 0;
    train_fault_at(&s->fault, "update", p->step + 1);
    if (o.seen > 0)
        TRY(check_loss(s, o.loss_sum / (double)o.seen));
    TRY(update(s, &step));
    TRY(commit(s, b, &o));
    s->times.communicate += x->communicate;
    s->times.wait += x->wait;
    s->times.overlapped += x->overlapped;
    s->wait_cpu += combine_cpu;
    seconds = base_now() - began + data_seconds;
    move_on(s, &o, seconds);
    base_event(s->events,
               "{\"event\":\"step\",\"step\":%" PRId64 ",\"epoch\":%" PRId64
               ",\"loss\":%.9g,\"correct\":%" PRId64 ",\"samples\":%" PRId64 ",\"lr\":%.9g,"
               "\"seconds\":%.6f,\"data\":%.6f,\"communicate\":%.6f,\"wait\":%.6f,"
               "\"overlapped\":%.6f}",
               p->step, p->epoch + 1, o.loss_sum / fmax(1, (double)o.seen), o.correct, o.seen,
               step.hyper.lr, seconds, data_seconds, x->communicate, x->wait, x->overlapped);
out:
    if (st != BASE_OK)
        give_up(s, st == BASE_ERR_DIVERGED ? 0 : combined, cpu);
    return st;
}
