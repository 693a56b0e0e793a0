/* SPDX-License-Identifier: MIT */
#include "train/journal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

void train_journal_init(struct train_journal *j, const struct train_job *job)
{
    *j = (struct train_journal){
        .job = job, .started = base_now(), .told = base_calloc(TRAIN_REMEMBERED, sizeof *j->told)};
}

void train_journal_fini(struct train_journal *j)
{
    train_pace_fini(&j->pace);
    base_free(j->told);
    j->told = NULL;
}

base_status train_journal_open(struct train_journal *j, const struct train_run *run, int64_t step)
{
    base_status st = BASE_OK;

    TRY(base_events_open(run->events, &j->events));
    if (j->job->tensorboard)
        TRY(train_tensorboard_open(run->path, step, &j->board));
out:
    return st;
}

base_status train_journal_close(struct train_journal *j)
{
    base_status st = base_events_close(j->events);

    train_tensorboard_close(j->board);
    j->events = NULL;
    j->board = NULL;
    return st;
}

void train_journal_flush(struct train_journal *j)
{
    base_events_flush(j->events);
    train_tensorboard_flush(j->board);
}

base_status train_journal_plan(struct train_journal *j, int64_t first, int64_t last)
{
    j->first_step = first;
    j->last_step = last;
    return last > first ? train_pace_init(&j->pace, last - first) : BASE_OK;
}

static bool is_logged(const struct train_journal *j, int64_t step)
{
    int64_t every = j->job->log_every < 0 ? 20 : j->job->log_every;

    return every > 0 && step % every == 0;
}

void train_journal_watch(struct train_journal *j, int64_t step)
{
    train_record_arm(j->record, is_logged(j, step), step);
}

void train_journal_unwatch(struct train_journal *j)
{
    train_record_arm(j->record, false, 0);
}

static void draw_bar(char *text, size_t width, double share)
{
    size_t filled = (size_t)(share * (double)width);

    memset(text, ' ', width);
    memset(text, '=', filled < width ? filled : width);
    if (filled < width)
        text[filled] = '>';
    text[width] = '\0';
}

static void show_progress(const struct train_journal *j, const struct train_position *p)
{
    double done = (double)(p->step - j->first_step);
    double left = (base_now() - j->started) / fmax(1, done) * (double)(j->last_step - p->step);
    char bar[25];

    draw_bar(bar, sizeof bar - 1, (double)p->step / (double)j->last_step);
    if (j->grade->scored) {
        base_progress(false, "[%s] sweep %" PRId64 "/%" PRId64 "  %.2f M ratings/s  %d:%02d left",
                      bar, p->step, j->last_step, 1e-6 * j->shown_rate, (int)(left / 60),
                      (int)left % 60);
        return;
    }
    base_progress(false,
                  "[%s] step %" PRId64 "/%" PRId64 "  epoch %" PRId64
                  "  loss %.4f  %.0f samples/s  %d:%02d left",
                  bar, p->step, j->last_step, p->epoch + 1, j->shown_loss, j->shown_rate,
                  (int)(left / 60), (int)left % 60);
}

static void log_window(struct train_journal *j, const struct train_position *p)
{
    const struct train_outcome *o = &j->window.outcome;

    struct base_str line = {0};

    base_str_add(&line, "step %6" PRId64 "  epoch %" PRId64 "  loss %.4f  ", p->step, p->epoch + 1,
                 o->loss_sum / (double)o->seen);
    if (j->grade->counted)
        base_str_add(&line, "%s %5.*f%s  ", j->grade->title, j->grade->decimals,
                     j->grade->scale * (double)o->correct / (double)o->seen, j->grade->unit);
    base_info("%s%.1f ms a step  %.0f samples/s", line.text,
              1e3 * j->window.seconds / (double)j->window.steps,
              (double)j->window.samples / j->window.seconds);
    base_str_fini(&line);
    memset(&j->window, 0, sizeof j->window);
}

static void tell_board(struct train_journal *j, const struct train_told *t)
{
    const struct train_scalar scalars[] = {
        {"loss/train", j->grade->scored || t->samples == 0 ? NAN : t->loss},
        {"accuracy/train", j->grade->counted ? (double)t->correct / (double)t->samples : NAN},
        {"learning_rate", j->grade->scored ? NAN : t->lr}, /* a model of sweeps has none */
        {"samples_per_second", (double)t->samples / t->seconds},
    };

    train_tensorboard_scalars(j->board, t->step, scalars, sizeof scalars / sizeof *scalars);
}

static void tell_step(struct train_journal *j, const struct train_told *t)
{
    char loss[32];

    snprintf(loss, sizeof loss, "%.9g", t->loss);
    base_event(j->events,
               "{\"event\":\"step\",\"step\":%" PRId64 ",\"epoch\":%" PRId64
               ",\"loss\":%s,\"correct\":%" PRId64 ",\"samples\":%" PRId64 ",\"lr\":%.9g,"
               "\"seconds\":%.6f,\"data\":%.6f,\"communicate\":%.6f,\"wait\":%.6f,"
               "\"overlapped\":%.6f}",
               t->step, t->epoch, j->grade->scored ? "null" : loss, t->correct, t->samples, t->lr,
               t->seconds, t->data, t->communicate, t->wait, t->overlapped);
}

/* The files of the lost rank 0 end where each was last written to, and not with the same step. Both
 * are whole up to the last epoch that was told; the steps after it are declared void and told
 * again, as far as they are known. */
static void board_again(struct train_journal *j, const struct train_run *run, int64_t step)
{
    const json_t *epochs = json_object_get(run->json, "epochs");
    size_t count = json_array_size(epochs);
    const json_t *last = count > 0 ? json_array_get(epochs, count - 1) : NULL;
    int64_t whole = json_integer_value(json_object_get(last, "step")), first = step + 1;

    if (whole < step - TRAIN_REMEMBERED)
        whole = step - TRAIN_REMEMBERED;
    while (first > 1 && first - 1 > whole &&
           j->told[(first - 1) % TRAIN_REMEMBERED].step == first - 1)
        first--;
    train_tensorboard_back(j->board, first - 1);
    for (; first <= step; first++)
        tell_board(j, &j->told[first % TRAIN_REMEMBERED]);
}

void train_journal_catch_up(struct train_journal *j, const struct train_run *run, int64_t step)
{
    double age;
    json_t *newest = train_run_newest_step(run, &age);
    int64_t first = json_integer_value(json_object_get(newest, "step")) + 1; /* 1: it has none */

    json_decref(newest);
    if (first <= step - TRAIN_REMEMBERED)
        first = step - TRAIN_REMEMBERED + 1;
    for (; first <= step; first++)
        if (j->told[first % TRAIN_REMEMBERED].step == first)
            tell_step(j, &j->told[first % TRAIN_REMEMBERED]);
    board_again(j, run, step);
}

void train_journal_back(struct train_journal *j, int64_t from, int64_t step)
{
    for (int i = 0; i < TRAIN_REMEMBERED && j->told != NULL; i++)
        if (j->told[i].step > step)
            j->told[i] = (struct train_told){0};
    base_event(j->events, "{\"event\":\"back\",\"from\":%" PRId64 ",\"step\":%" PRId64 "}", from,
               step);
    train_tensorboard_back(j->board, step);
}

void train_journal_step(struct train_journal *j, const struct train_position *p,
                        const struct train_entry *e)
{
    struct train_told *told = &j->told[p->step % TRAIN_REMEMBERED];

    train_pace_add(&j->pace, e->seconds, e->samples);
    j->window.outcome.loss_sum += e->outcome->loss_sum;
    j->window.outcome.correct += e->outcome->correct;
    j->window.outcome.seen += e->outcome->seen;
    j->window.samples += e->samples;
    j->window.seconds += e->seconds;
    j->window.steps++;
    if (j->window.outcome.seen > 0)
        j->shown_loss = j->window.outcome.loss_sum / (double)j->window.outcome.seen;
    j->shown_rate = (double)j->window.samples / fmax(1e-9, j->window.seconds);
    *told = (struct train_told){.step = p->step,
                                .epoch = p->epoch + 1,
                                .correct = e->outcome->correct,
                                .samples = e->outcome->seen,
                                .loss = e->outcome->loss_sum / fmax(1, (double)e->outcome->seen),
                                .lr = e->lr,
                                .seconds = e->seconds,
                                .data = e->data,
                                .communicate = e->communicate,
                                .wait = e->wait,
                                .overlapped = e->overlapped};
    tell_step(j, told);
    tell_board(j, told);
    if (is_logged(j, p->step) && j->window.outcome.seen > 0 && !j->grade->scored &&
        (j->job->log_every > 0 || !base_progress_shown() || j->window.seconds >= TRAIN_LOG_SECONDS))
        log_window(j, p);
    show_progress(j, p);
}

double train_score_mean(const double *score, int index)
{
    return score[TRAIN_SCORE_COUNT] > 0 ? score[index] / score[TRAIN_SCORE_COUNT] : 0;
}

void train_grade_text(const struct train_grade *grade, double value, struct base_str *text)
{
    if (isfinite(value))
        base_str_add(text, "%s %.*f%s", grade->title, grade->decimals, grade->scale * value,
                     grade->unit);
    else
        base_str_add(text, "%s -", grade->title);
}

static void add_score(struct base_str *line, const char *part, const struct train_grade *grade,
                      struct train_scored score)
{
    if (!score.there)
        return;
    base_str_add(line, "  %s ", part);
    if (!grade->scored)
        base_str_add(line, "loss %.4f, ", score.loss);
    train_grade_text(grade, score.grade, line);
}

static void set_score(json_t *epoch, const char *part, const char *key, struct train_scored score,
                      double value)
{
    char *name = base_format("%s_%s", part, key);

    json_object_set_new(epoch, name, score.there ? base_json_number(value) : json_null());
    base_free(name);
}

static json_t *epoch_json(const struct train_journal *j, const struct train_position *p,
                          struct train_scored validation, struct train_scored test)
{
    json_t *epoch =
        json_pack("{s:I, s:I, s:o}", "epoch", (json_int_t)p->epoch, "step", (json_int_t)p->step,
                  "loss", j->grade->scored ? json_null() : json_real(p->epoch_loss));

    if (j->grade->counted)
        json_object_set_new(epoch, j->grade->key, json_real(p->epoch_accuracy));
    set_score(epoch, "validation", "loss", validation, validation.loss);
    set_score(epoch, "validation", j->grade->key, validation, validation.grade);
    set_score(epoch, "test", j->grade->key, test, test.grade);
    return epoch;
}

/* Scores of an epoch's end: "loss/validation", "accuracy/test", "rmse/test". */
static void board_scores(struct train_journal *j, const struct train_position *p,
                         struct train_scored validation, struct train_scored test)
{
    char validated[64], tested[64];
    const struct train_scalar scalars[] = {
        {"loss/validation", validation.there && !j->grade->scored ? validation.loss : NAN},
        {validated, validation.there ? validation.grade : NAN},
        {tested, test.there ? test.grade : NAN},
    };

    snprintf(validated, sizeof validated, "%s/validation", j->grade->key);
    snprintf(tested, sizeof tested, "%s/test", j->grade->key);
    train_tensorboard_scalars(j->board, p->step, scalars, sizeof scalars / sizeof *scalars);
}

json_t *train_journal_epoch(struct train_journal *j, const struct train_position *p,
                            struct train_scored validation, struct train_scored test)
{
    struct base_str line = {0};
    json_t *epoch = epoch_json(j, p, validation, test);
    char *text = json_dumps(epoch, JSON_COMPACT | JSON_REAL_PRECISION(9));

    base_event(j->events, "{\"event\":\"epoch\",%s", text + 1);
    base_free(text);
    board_scores(j, p, validation, test);
    if (j->grade->scored)
        base_str_add(&line, "sweep %" PRId64 "  %.2f M ratings/s", p->epoch, 1e-6 * j->shown_rate);
    else
        base_str_add(&line, "epoch %" PRId64 "  train loss %.4f", p->epoch, p->epoch_loss);
    if (j->grade->counted) {
        base_str_add(&line, ", ");
        train_grade_text(j->grade, p->epoch_accuracy, &line);
    }
    add_score(&line, "validation", j->grade, validation);
    if (validation.there && p->best_step == p->step)
        base_str_add(&line, " (best)");
    add_score(&line, "test", j->grade, test);
    base_info("%s", line.text);
    base_str_fini(&line);
    if (j->grade->scored) /* the next line is of the sweeps until then */
        memset(&j->window, 0, sizeof j->window);
    return epoch;
}

void train_journal_figures(struct train_journal *j, const struct train_position *p,
                           const json_t *figures)
{
    char *text =
        figures != NULL ? json_dumps(figures, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;

    if (text != NULL)
        base_event(j->events,
                   "{\"event\":\"figures\",\"epoch\":%" PRId64 ",\"step\":%" PRId64
                   ",\"figures\":%s}",
                   p->epoch, p->step, text);
    base_free(text);
}

void train_journal_checkpoint(struct train_journal *j, int64_t step, double seconds)
{
    base_event(j->events, "{\"event\":\"checkpoint\",\"step\":%" PRId64 ",\"seconds\":%.6f}", step,
               seconds);
}
