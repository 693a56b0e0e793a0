/* SPDX-License-Identifier: MIT
 *
 * The training loop: epochs of steps, with what happens between them (log, validation, test,
 * checkpoints, early stopping, stopping on request). A step allocates nothing and makes no
 * system call of its own.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "nn/simd/simd.h"
#include "train/evaluate.h"
#include "train/train_private.h"

/* A loss this many times the first one is divergence even while it is a number. */
static const double DIVERGED = 1e4;

base_status train_session_save(struct train_session *s)
{
    base_status st = BASE_OK;
    double began = base_now(), cpu = base_thread_cpu();
    json_t *about = NULL;

    if (!s->job->checkpoint || s->saved_step == s->state.position.step)
        goto out;
    if (!train_state_finite(&s->state))
        TRY(base_fail(BASE_ERR_DIVERGED,
                      "the weights are no longer finite after step %" PRId64
                      "; try a lower --lr or --clip 1",
                      s->state.position.step));
    about = train_session_about(s);
    TRY(train_state_save(&s->state, s->run.checkpoints, about, (unsigned)s->job->keep));
    s->saved_step = s->state.position.step;
    base_event(s->events, "{\"event\":\"checkpoint\",\"step\":%" PRId64 ",\"seconds\":%.6f}",
               s->saved_step, base_now() - began);
out:
    json_decref(about);
    s->times.wait += base_now() - began;
    s->wait_cpu += base_thread_cpu() - cpu;
    return st;
}

/* Forward and backward of one batch, in pieces; gradients of the batch's mean loss. */
static base_status compute(struct train_session *s, const struct data_batch *b,
                           struct nn_ready ready, double *loss_sum_p, int64_t *correct_p)
{
    size_t sample = (size_t)s->info->channels * (size_t)s->info->height * (size_t)s->info->width;
    float scale = 1.0f / (float)b->count;
    base_status st = BASE_OK;

    for (uint32_t at = 0; at < b->count;) {
        uint32_t n = b->count - at < (uint32_t)s->piece ? b->count - at : (uint32_t)s->piece;
        bool last = at + n == b->count;
        struct nn_outcome outcome;
        struct nn_batch piece = {
            .n = (int)n,
            .x = b->x + at * sample,
            .samples = {.labels = b->labels + at,
                        .ids = b->ids + at,
                        .epoch = (uint32_t)s->state.position.epoch,
                        .seed = (uint64_t)s->job->seed},
        };

        TRY(nn_net_forward(s->net, &piece, true, &outcome));
        for (size_t i = 0; i < nn_graph_stats(s->graph); i++)
            s->state.tracked[i]++; /* like PyTorch: each forward moves the running statistics */
        *loss_sum_p += outcome.loss_sum;
        *correct_p += outcome.correct;
        /* With several pieces only their sum is a gradient that a strategy may use. */
        TRY(nn_net_backward(s->net, scale,
                            b->count <= (uint32_t)s->piece ? ready : (struct nn_ready){0}));
        if (!last && at == 0)
            memcpy(s->accumulated, s->state.gradients, s->state.floats * sizeof(float));
        else if (!last)
            nn_simd()->add(s->state.floats, s->accumulated, s->state.gradients, s->accumulated);
        else if (at > 0)
            nn_simd()->add(s->state.floats, s->accumulated, s->state.gradients, s->state.gradients);
        at += n;
    }
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
        .floats = s->state.floats,
        .weights = s->state.weights,
        .gradients = s->state.gradients,
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

static base_status one_step(struct train_session *s, const struct data_batch *b,
                            double data_seconds)
{
    base_status st = BASE_OK;
    struct train_step step = describe_step(s);
    struct nn_ready ready = {s->strategy->ready, &step};
    struct train_position *p = &s->state.position;
    double began = base_now(), loss_sum = 0, seconds;
    int64_t correct = 0;

    train_record_arm(s->record, s->job->log_every > 0 && (p->step + 1) % s->job->log_every == 0,
                     p->step + 1);
    TRY(compute(s, b, ready, &loss_sum, &correct));
    train_record_arm(s->record, false, 0); /* evaluations are not recorded */
    TRY(check_loss(s, loss_sum / b->count));
    TRY(s->strategy->finish(&step));
    s->tested = false; /* the test's figures were of the former weights */
    p->step++;
    p->cursor += b->count;
    p->loss_sum += loss_sum;
    p->correct += correct;
    p->seen += b->count;
    seconds = base_now() - began + data_seconds;
    train_pace_add(&s->pace, seconds, b->count);
    s->window_loss += loss_sum;
    s->window_correct += correct;
    s->window_seen += b->count;
    s->window_seconds += seconds;
    s->window_steps++;
    base_event(s->events,
               "{\"event\":\"step\",\"step\":%" PRId64 ",\"epoch\":%" PRId64
               ",\"loss\":%.9g,\"correct\":%" PRId64 ",\"samples\":%u,\"lr\":%.9g,"
               "\"seconds\":%.6f,\"data\":%.6f}",
               p->step, p->epoch + 1, loss_sum / b->count, correct, b->count, step.hyper.lr,
               seconds, data_seconds);
out:
    return st;
}

static void bar(char *text, size_t width, double share)
{
    size_t filled = (size_t)(share * (double)width);

    memset(text, ' ', width);
    memset(text, '=', filled < width ? filled : width);
    if (filled < width)
        text[filled] = '>';
    text[width] = '\0';
}

static void show_progress(const struct train_session *s)
{
    const struct train_position *p = &s->state.position;
    double done = (double)(p->step - s->first_timed_step);
    double left = (base_now() - s->started) / fmax(1, done) * (double)(s->last_step - p->step);
    char text[25];

    bar(text, sizeof text - 1, (double)p->step / (double)s->last_step);
    base_progress(
        false,
        "[%s] step %" PRId64 "/%" PRId64 "  epoch %" PRId64
        "  loss %.4f  %.0f samples/s  %d:%02d left",
        text, p->step, s->last_step, p->epoch + 1, s->window_loss / fmax(1, (double)s->window_seen),
        (double)s->window_seen / fmax(1e-9, s->window_seconds), (int)(left / 60), (int)left % 60);
}

static void log_window(struct train_session *s)
{
    const struct train_position *p = &s->state.position;

    if (s->job->log_every > 0 && p->step % s->job->log_every == 0 && s->window_seen > 0) {
        base_info("step %6" PRId64 "  epoch %" PRId64 "  loss %.4f  accuracy %5.2f %%  %.1f ms a "
                  "step  %.0f samples/s",
                  p->step, p->epoch + 1, s->window_loss / (double)s->window_seen,
                  100.0 * (double)s->window_correct / (double)s->window_seen,
                  1e3 * s->window_seconds / (double)s->window_steps,
                  (double)s->window_seen / s->window_seconds);
        s->window_loss = s->window_seconds = 0;
        s->window_correct = s->window_seen = s->window_steps = 0;
    }
    show_progress(s);
}

static base_status evaluate(struct train_session *s, enum data_part part, struct train_metrics *m)
{
    train_metrics_fini(m);
    train_metrics_init(m, s->info->classes);
    base_progress(true, "evaluating …");
    return train_evaluate(s->net, s->set, part, s->piece, m, &s->times.data, NULL);
}

base_status train_session_test(struct train_session *s)
{
    base_status st = evaluate(s, DATA_TEST, &s->test);

    s->tested = st == BASE_OK;
    return st;
}

/* Validation decides what is best and when to give up. *better_p: this epoch is the best. */
static base_status validate(struct train_session *s, double *loss_p, bool *better_p)
{
    struct train_position *p = &s->state.position;
    struct train_metrics m = {0};
    base_status st = BASE_OK;

    TRY(evaluate(s, DATA_VALIDATION, &m));
    *loss_p = train_metrics_loss(&m);
    *better_p = isfinite(*loss_p) && (p->best_validation < 0 || *loss_p < p->best_validation);
    if (*better_p) {
        p->best_validation = *loss_p;
        p->best_step = p->step;
        p->stale_epochs = 0;
    } else {
        p->stale_epochs++;
    }
    s->stopped_early = train_session_stale(s);
out:
    train_metrics_fini(&m);
    return st;
}

bool train_session_stale(const struct train_session *s)
{
    return s->job->patience > 0 && s->state.position.stale_epochs >= s->job->patience;
}

static void tell_epoch(const struct train_session *s, double validation)
{
    const struct train_position *p = &s->state.position;
    struct base_str line = {0};

    base_str_add(&line, "epoch %" PRId64 "  train loss %.4f, accuracy %.2f %%", p->epoch,
                 p->epoch_loss, 100 * p->epoch_accuracy);
    if (s->job->validation > 0)
        base_str_add(&line, "  validation loss %.4f%s", validation,
                     p->best_step == p->step ? " (best)" : "");
    if (s->tested)
        base_str_add(&line, "  test loss %.4f, accuracy %.2f %%", train_metrics_loss(&s->test),
                     100 * train_metrics_accuracy(&s->test));
    base_info("%s", line.text);
    base_str_fini(&line);
}

static json_t *or_null(bool there, double number)
{
    return there ? base_json_number(number) : json_null();
}

/* Into the events and, so that a resumed run's report has them all, into run.json. */
static base_status record_epoch(struct train_session *s, double validation)
{
    const struct train_position *p = &s->state.position;
    json_t *epoch =
        json_pack("{s:I, s:I, s:f, s:f, s:o, s:o}", "epoch", (json_int_t)p->epoch, "step",
                  (json_int_t)p->step, "loss", p->epoch_loss, "accuracy", p->epoch_accuracy,
                  "validation_loss", or_null(s->job->validation > 0, validation), "test_accuracy",
                  or_null(s->tested, train_metrics_accuracy(&s->test)));
    char *text = json_dumps(epoch, JSON_COMPACT | JSON_REAL_PRECISION(9));

    base_event(s->events, "{\"event\":\"epoch\",%s", text + 1);
    base_free(text);
    json_array_append_new(json_object_get(s->run.json, "epochs"), epoch);
    return train_run_save(&s->run, "running");
}

static void close_epoch(struct train_position *p)
{
    p->epoch_loss = p->loss_sum / (double)p->seen;
    p->epoch_accuracy = (double)p->correct / (double)p->seen;
    p->epoch++;
    p->cursor = p->correct = p->seen = 0;
    p->loss_sum = 0;
}

/* Interrupted in the validation, the epoch stays open, all its samples seen: a resumed run begins
 * with the validation. Behind it only the test can be interrupted, which changes nothing. */
static base_status end_epoch(struct train_session *s)
{
    const struct train_job *job = s->job;
    struct train_position *p = &s->state.position;
    base_status st = BASE_OK;
    double validation = -1;
    bool better = false, ended;

    if (job->validation > 0)
        TRY(validate(s, &validation, &better));
    close_epoch(p);
    if (job->checkpoint_every == 0 || p->step % job->checkpoint_every == 0 || better)
        TRY(train_session_save(s));
    if (better && job->checkpoint)
        TRY(store_mark_best(s->run.checkpoints, (uint64_t)p->step));
    ended = p->step >= s->last_step || s->stopped_early;
    if (job->test && s->info->count[DATA_TEST] > 0 &&
        (ended || (job->eval_every > 0 && p->epoch % job->eval_every == 0)))
        st = train_session_test(s);
    if (st == BASE_OK || st == BASE_ERR_INTERRUPTED) {
        base_status recorded;

        tell_epoch(s, validation);
        recorded = record_epoch(s, validation);
        st = st == BASE_OK ? recorded : st;
    }
out:
    return st;
}

/* The steps of the current epoch from its cursor on. */
static base_status run_epoch(struct train_session *s)
{
    struct train_position *p = &s->state.position;
    int64_t count = s->info->count[DATA_TRAIN];
    base_status st = BASE_OK;

    data_order(s->set, DATA_TRAIN, (uint64_t)s->job->seed, (uint32_t)p->epoch, s->job->balanced,
               s->order);
    TRY(data_loader_begin(s->loader, (uint32_t)p->epoch, s->order + p->cursor,
                          (size_t)(count - p->cursor)));
    while (p->cursor < count && p->step < s->last_step && base_stop_signal() == 0) {
        struct data_batch b;
        double asked = base_now(), data_seconds;

        TRY(data_loader_next(s->loader, &b));
        data_seconds = base_now() - asked;
        s->times.data += data_seconds;
        TRY(one_step(s, &b, data_seconds));
        log_window(s);
        if (s->job->checkpoint_every > 0 && p->step % s->job->checkpoint_every == 0 &&
            p->cursor < count)
            TRY(train_session_save(s));
    }
    if (p->cursor == count)
        TRY(end_epoch(s));
out:
    return st;
}

/* What the last epoch taught, complete or not. */
static void sum_up(struct train_session *s)
{
    const struct train_position *p = &s->state.position;

    s->train_loss = p->seen > 0    ? p->loss_sum / (double)p->seen
                    : p->epoch > 0 ? p->epoch_loss
                                   : NAN;
    s->train_accuracy = p->seen > 0    ? (double)p->correct / (double)p->seen
                        : p->epoch > 0 ? p->epoch_accuracy
                                       : NAN;
}

base_status train_loop(struct train_session *s)
{
    struct train_position *p = &s->state.position;
    double began = base_now(), cpu = base_thread_cpu(), busy;
    base_status st = BASE_OK;

    while ((p->step < s->last_step || p->cursor == s->info->count[DATA_TRAIN]) &&
           !s->stopped_early && base_stop_signal() == 0)
        TRY(run_epoch(s));
    if (s->stopped_early)
        base_info("no better validation loss for %" PRId64 " epochs: stopped", p->stale_epochs);
    TRY(train_session_save(s));
    if (s->job->test && !s->tested && base_stop_signal() == 0 && s->info->count[DATA_TEST] > 0)
        TRY(train_session_test(s));
out:
    if (st == BASE_ERR_INTERRUPTED) /* inside an evaluation: the step is complete all the same */
        st = train_session_save(s);
    sum_up(s);
    base_progress_clear();
    s->times.total = base_now() - began;
    busy = s->times.total - s->times.data - s->times.wait;
    s->times.stolen = fmax(0, busy - (base_thread_cpu() - cpu - s->wait_cpu));
    s->times.compute = busy - s->times.stolen;
    return st;
}
