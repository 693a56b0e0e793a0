/* SPDX-License-Identifier: MIT
 *
 * The training loop: views, in them epochs of steps (step.c), with what happens between those (log,
 * validation, test, checkpoints, early stopping, stopping on request). A step allocates nothing and
 * makes no system call of its own.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "train/evaluate.h"
#include "train/train_private.h"

/* Seconds: of a lost rank 0 to be gone; after 30 this worker is ended, too. */
static const double LAST_WORDS = 20;

bool train_session_stopped(const struct train_session *s)
{
    return s->team.worker != NULL ? s->stop : base_stop_signal() != 0;
}

/* Every worker's running statistics are of its own samples; from here on they are of all. */
static base_status average_statistics(struct train_session *s)
{
    base_status st = BASE_OK;
    size_t count = nn_graph_stat_floats(s->graph);

    if (s->team.exchange.size == 1 || s->job->sync_bn || s->averaged_step == s->state.position.step)
        return BASE_OK;
    memcpy(s->statistics_before, s->state.statistics, count * sizeof(float));
    TRY(train_team_mean(&s->team, s->statistics_before, count,
                        s->own_samples - s->averaged_samples));
    s->averaged_samples = s->own_samples;
    memcpy(s->state.statistics, s->statistics_before, count * sizeof(float));
    s->averaged_step = s->state.position.step;
out:
    return st;
}

static base_status write_checkpoint(struct train_session *s)
{
    base_status st = BASE_OK;
    double began = base_now();
    json_t *about = NULL;

    if (!train_state_finite(&s->state))
        TRY(base_fail(BASE_ERR_DIVERGED,
                      "the weights are no longer finite after step %" PRId64
                      "; try a lower --lr or --clip 1",
                      s->state.position.step));
    about = train_session_about(s);
    TRY(train_state_save(&s->state, s->run.checkpoints, about, (unsigned)s->job->keep));
    base_event(s->events, "{\"event\":\"checkpoint\",\"step\":%" PRId64 ",\"seconds\":%.6f}",
               s->state.position.step, base_now() - began);
out:
    json_decref(about);
    return st;
}

base_status train_session_save(struct train_session *s)
{
    base_status st = BASE_OK;
    double began = base_now(), cpu = base_thread_cpu();

    if (!s->job->checkpoint || s->saved_step == s->state.position.step)
        goto out;
    TRY(average_statistics(s));
    train_fault_at(&s->fault, "checkpoint", s->state.position.step);
    if (train_team_leads(&s->team))
        TRY(write_checkpoint(s));
    s->saved_step = s->state.position.step;
out:
    s->times.wait += base_now() - began;
    s->wait_cpu += base_thread_cpu() - cpu;
    return st;
}

base_status train_session_mark_best(struct train_session *s)
{
    const struct train_position *p = &s->state.position;

    if (!s->job->checkpoint || s->job->validation == 0 || p->best_validation < 0 ||
        p->best_step != p->step || !train_team_leads(&s->team))
        return BASE_OK;
    return store_mark_best(s->run.checkpoints, (uint64_t)p->step);
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
    base_progress(false,
                  "[%s] step %" PRId64 "/%" PRId64 "  epoch %" PRId64
                  "  loss %.4f  %.0f samples/s  %d:%02d left",
                  text, p->step, s->last_step, p->epoch + 1,
                  s->window_loss / fmax(1, (double)s->window_seen),
                  (double)s->window_samples / fmax(1e-9, s->window_seconds), (int)(left / 60),
                  (int)left % 60);
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
                  (double)s->window_samples / s->window_seconds);
        s->window_loss = s->window_seconds = 0;
        s->window_correct = s->window_seen = s->window_samples = s->window_steps = 0;
    }
    show_progress(s);
}

/* Adds up what every worker has found in its share. */
static base_status add_metrics(struct train_session *s, struct train_metrics *m)
{
    base_status st = BASE_OK;
    size_t words = train_metrics_words(m), size = (size_t)s->team.exchange.size;
    double began = base_now();
    uint64_t *mine = NULL, *all = NULL;

    if (size == 1)
        return BASE_OK;
    TRY(base_tensor(words, sizeof *mine, "metrics", &mine));
    TRY(base_tensor(words * size, sizeof *all, "metrics of all workers", &all));
    train_metrics_pack(m, mine);
    TRY(train_team_gather(&s->team, mine, words * sizeof *mine, all));
    train_metrics_fini(m);
    train_metrics_init(m, s->info->classes);
    for (size_t i = 0; i < size; i++)
        train_metrics_add_packed(m, all + i * words);
out:
    s->times.wait += base_now() - began;
    base_free(mine);
    base_free(all);
    return st;
}

static base_status evaluate(struct train_session *s, enum data_part part, struct train_metrics *m)
{
    base_status st = BASE_OK;
    struct data_share share = {(uint32_t)s->team.exchange.rank, (uint32_t)s->team.exchange.size};

    train_metrics_fini(m);
    train_metrics_init(m, s->info->classes);
    base_progress(true, "evaluating …");
    TRY(average_statistics(s));
    TRY(train_evaluate(s->net, s->set, part, share, s->piece, m, &s->times.data, NULL));
    train_fault_at(&s->fault, "evaluation", s->state.position.step);
    TRY(add_metrics(s, m));
out:
    return st;
}

base_status train_session_test(struct train_session *s)
{
    base_status st = evaluate(s, DATA_TEST, &s->test);

    s->tested = st == BASE_OK;
    return st;
}

static base_status validate(struct train_session *s, double *loss_p)
{
    struct train_metrics m = {0};
    base_status st = evaluate(s, DATA_VALIDATION, &m);

    *loss_p = train_metrics_loss(&m);
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
    return train_team_leads(&s->team) ? train_run_save(&s->run, "running") : BASE_OK;
}

/* Validation decides what is best and when to give up; true: this epoch is the best. */
static bool judge(struct train_session *s, double validation)
{
    struct train_position *p = &s->state.position;
    bool better =
        isfinite(validation) && (p->best_validation < 0 || validation < p->best_validation);

    p->stale_epochs = better ? 0 : p->stale_epochs + 1;
    if (better) {
        p->best_validation = validation;
        p->best_step = p->step;
    }
    s->stopped_early = train_session_stale(s);
    return better;
}

static void close_epoch(struct train_position *p)
{
    p->epoch_loss = p->loss_sum / (double)p->seen;
    p->epoch_accuracy = (double)p->correct / (double)p->seen;
    p->epoch++;
    p->cursor = p->correct = p->seen = 0;
    p->loss_sum = 0;
}

static bool test_is_due(const struct train_session *s)
{
    const struct train_job *job = s->job;
    int64_t epoch = s->state.position.epoch + 1;

    return job->test && s->info->count[DATA_TEST] > 0 &&
           (s->state.position.step >= s->last_step ||
            (job->eval_every > 0 && epoch % job->eval_every == 0));
}

/* Up to the comparison the epoch is open, all its samples seen: who is interrupted, resumed or in
 * a view that loses a member begins with the validation. Behind it nobody waits for another. The
 * test alone may be cut short by a signal: that changes nothing. */
static base_status end_epoch(struct train_session *s)
{
    const struct train_job *job = s->job;
    struct train_position *p = &s->state.position;
    base_status st = BASE_OK, tested = BASE_OK;
    double validation = -1;
    bool better;

    if (job->validation > 0)
        TRY(validate(s, &validation));
    if (test_is_due(s))
        tested = train_session_test(s);
    if (tested != BASE_ERR_INTERRUPTED)
        TRY(tested);
    TRY(average_statistics(s));
    TRY(train_session_compare(s));
    better = job->validation > 0 && judge(s, validation);
    close_epoch(p);
    TRY(train_session_mark(s));
    if (job->checkpoint_every == 0 || p->step % job->checkpoint_every == 0 || better)
        TRY(train_session_save(s));
    TRY(train_session_mark_best(s));
    tell_epoch(s, validation);
    TRY(record_epoch(s, validation));
    st = tested;
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
    while (p->cursor < count && p->step < s->last_step && !train_session_stopped(s) && !s->renew) {
        struct data_batch b;
        double asked = base_now(), data_seconds;

        TRY(data_loader_next(s->loader, &b));
        data_seconds = base_now() - asked;
        s->times.data += data_seconds;
        TRY(train_session_step(s, &b, data_seconds));
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

/* The times of the loop so far; what is left when all else is told apart is compute. */
static void sum_times(struct train_session *s)
{
    struct train_times *t = &s->times;
    double busy;

    t->total = base_now() - s->loop_began;
    busy = t->total - t->data - t->wait - t->communicate;
    t->stolen = fmax(0, busy - (base_thread_cpu() - s->loop_cpu - s->wait_cpu));
    t->compute = busy - t->stolen;
}

static base_status gather_ranks(struct train_session *s)
{
    struct train_rank mine = {.id = train_team_id(&s->team),
                              .samples = s->own_samples,
                              .bytes_sent = train_team_bytes_sent(&s->team),
                              .peak_memory = base_peak_memory()};

    sum_times(s);
    mine.times = s->times;
    gethostname(mine.host, sizeof mine.host);
    mine.host[sizeof mine.host - 1] = '\0';
    base_free(s->ranks);
    s->ranks = base_calloc((size_t)s->team.exchange.size, sizeof *s->ranks);
    return train_team_gather(&s->team, &mine, sizeof mine, s->ranks);
}

/* Everything from the position to the run's end, in this view. */
static base_status run_view(struct train_session *s)
{
    struct train_position *p = &s->state.position;
    base_status st = BASE_OK;

    while ((p->step < s->last_step || p->cursor == s->info->count[DATA_TRAIN]) &&
           !s->stopped_early && !train_session_stopped(s) && !s->renew)
        TRY(run_epoch(s));
    if (s->renew)
        return BASE_OK;
    TRY(train_session_save(s));
    if (s->job->test && !s->tested && !train_session_stopped(s) && s->info->count[DATA_TEST] > 0)
        TRY(train_session_test(s));
    TRY(gather_ranks(s));
out:
    return st;
}

/* From view to view: after a loss, and when workers have come. */
static base_status run_views(struct train_session *s)
{
    base_status st = BASE_OK;

    for (;;) {
        double began, cpu;

        st = run_view(s);
        if ((st != BASE_OK && st != BASE_ERR_PEER_LOST) || (st == BASE_OK && !s->renew))
            break;
        if (st == BASE_ERR_PEER_LOST)
            base_info("%s", base_message());
        began = base_now();
        cpu = base_thread_cpu();
        TRY(train_session_enter(s));
        s->times.wait += base_now() - began;
        s->wait_cpu += base_thread_cpu() - cpu;
    }
out:
    return st;
}

/* The job has ended under this worker (BASE_ERR_INTERRUPTED, and nobody had agreed to stop). The
 * group is void; whoever gets the folder saves what it has. The lost rank 0 may still be at its
 * end, and whether it has saved what was due only the folder knows. */
static base_status save_alone(struct train_session *s)
{
    base_status st = BASE_OK;
    char *words = base_strdup(base_message());
    int64_t step = s->state.position.step;
    bool due = s->saved_step == step, there = false;

    if (!s->whole || !s->job->checkpoint || s->run.path == NULL)
        goto out;
    if (!s->run.locked && train_run_lock(&s->run, LAST_WORDS) != BASE_OK) {
        base_warn("step %" PRId64 " is not saved: %s", step, base_message());
        goto out;
    }
    there = store_checkpoint_is_there(s->run.checkpoints, (uint64_t)step);
    if (there && !due) /* another survivor was here */
        goto out;
    s->run_started = true; /* how it ended is this worker's to write */
    if (!there)
        TRY(write_checkpoint(s));
    base_warn("saved after step %" PRId64 "; go on with: paceline train --resume %s", step,
              s->run.name);
out:
    if (st == BASE_OK)
        st = base_fail(BASE_ERR_PEER_LOST, "%s", words);
    base_free(words);
    return st;
}

base_status train_loop(struct train_session *s)
{
    base_status st;

    s->loop_began = base_now();
    s->loop_cpu = base_thread_cpu();
    st = run_views(s);

    if (s->stopped_early)
        base_info("no better validation loss for %" PRId64 " epochs: stopped",
                  s->state.position.stale_epochs);
    if (st == BASE_ERR_INTERRUPTED && s->team.worker != NULL)
        st = save_alone(s);
    else if (st == BASE_ERR_INTERRUPTED) /* inside an evaluation: the step is complete */
        st = train_session_save(s);
    sum_up(s);
    base_progress_clear();
    sum_times(s);
    return st;
}
