/* SPDX-License-Identifier: MIT
 *
 * What came out of a training: the JSON object and the report.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "train/figures.h"

base_status train_session_gather_ranks(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_rank mine = {.id = train_team_id(&s->team),
                              .times = train_clock_times(&s->clock),
                              .samples = s->samples - s->lost_samples,
                              .bytes_sent = train_team_bytes_sent(&s->team),
                              .roles = train_strategy_roles(s, s->team.exchange.rank),
                              .peak_memory = base_peak_memory()};

    gethostname(mine.host, sizeof mine.host);
    mine.host[sizeof mine.host - 1] = '\0';
    base_free(s->ranks);
    s->ranks = base_calloc((size_t)s->team.exchange.size, sizeof *s->ranks);
    TRY(train_team_gather(&s->team, &mine, sizeof mine, s->ranks));
    TRY(train_figures_gather(s));
    TRY(train_trace_gather(s));
out:
    return st;
}

struct learnt {
    double loss, accuracy;
};

/* What the last epoch taught, complete or not; NAN: there was none. */
static struct learnt last_epoch(const struct train_session *s)
{
    const struct train_position *p = &s->state.position;
    struct learnt learnt = {NAN, NAN};

    if (p->seen > 0)
        learnt =
            (struct learnt){p->loss_sum / (double)p->seen, (double)p->correct / (double)p->seen};
    else if (p->epoch > 0)
        learnt = (struct learnt){p->epoch_loss, p->epoch_accuracy};
    if (!s->journal.grade->counted)
        learnt.accuracy = NAN;
    if (s->journal.grade->scored)
        learnt.loss = NAN;
    return learnt;
}

static int hosts_of(const struct train_session *s)
{
    int hosts = 1;

    for (uint32_t i = 1; i < s->team.view.size; i++) {
        bool known = false;

        for (uint32_t j = 0; j < i; j++)
            known |= s->team.view.members[j].host == s->team.view.members[i].host;
        hosts += !known;
    }
    return hosts;
}

/* One object for each worker of the last view; none where they could not be asked. */
static json_t *ranks_of(const struct train_session *s)
{
    json_t *list = json_array();

    for (int i = 0; s->ranks != NULL && i < s->team.exchange.size; i++) {
        const struct train_rank *r = &s->ranks[i];
        json_t *rank = json_pack("{s:I, s:i, s:s, s:o}", "id", (json_int_t)r->id, "rank", i, "host",
                                 r->host, "roles", cluster_roles_json(r->roles));
        json_t *times = train_times_json(&r->times);
        double idle = (r->times.communicate + r->times.wait) / fmax(1e-9, r->times.total);

        json_object_update(rank, times);
        json_decref(times);
        json_object_set_new(rank, "idle", json_real(idle));
        json_object_set_new(rank, "samples", json_integer(r->samples));
        json_object_set_new(rank, "bytes_sent", json_integer((json_int_t)r->bytes_sent));
        json_object_set_new(rank, "peak_memory_bytes", json_integer((json_int_t)r->peak_memory));
        json_array_append_new(list, rank);
    }
    return list;
}

/* The field "PART_accuracy" or "PART_r2" of an epoch. */
static json_t *graded(const struct train_session *s, const json_t *epoch, const char *part)
{
    char *key = base_format("%s_%s", part, s->journal.grade->key);
    json_t *value = json_object_get(epoch, key);

    base_free(key);
    return value;
}

/* Loss and grade of the validation part after the best step; null: there is none. */
static json_t *best_validation(const struct train_session *s)
{
    const json_t *epochs = json_object_get(s->run.json, "epochs"), *epoch;
    size_t index;

    json_array_foreach(epochs, index, epoch)
    {
        if (json_is_number(json_object_get(epoch, "validation_loss")) &&
            json_integer_value(json_object_get(epoch, "step")) == s->state.position.best_step)
            return json_pack("{s:O, s:O?}", "loss", json_object_get(epoch, "validation_loss"),
                             s->journal.grade->key, graded(s, epoch, "validation"));
    }
    return json_null();
}

static json_t *common_result(const struct train_session *s)
{
    struct train_pace_summary pace = train_pace_summary(&s->journal.pace);
    struct train_times times = train_clock_times(&s->clock);
    const struct train_position *p = &s->state.position;
    struct learnt train = last_epoch(s);

    return json_pack(
        "{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:f, "
        "s:{s:o, s:o}, s:o, s:o, s:o, s:o, s:O?, s:o, s:I, s:b, s:s}",
        "schema", 1, "model", s->job->model, "data", s->job->data, "strategy", s->strategy->name,
        "workers", s->team.exchange.size, "hosts", hosts_of(s), "threads", s->threads, "batch",
        (json_int_t)s->plan.batch, "steps", (json_int_t)p->step, "lost_steps",
        (json_int_t)s->lost_steps, "epochs", (json_int_t)p->epoch, "best_step",
        p->best_validation < 0 ? json_null() : json_integer(p->best_step), "parameters",
        (json_int_t)s->state.parameters, "step_seconds", train_pace_json(&s->journal.pace),
        "samples_per_second", pace.samples_per_second, "train", "loss",
        base_json_number(train.loss), "accuracy", base_json_number(train.accuracy), "validation",
        best_validation(s), "test", s->tested ? s->task->score_json(s, s->test) : json_null(),
        "time", train_times_json(&times), "ranks", ranks_of(s), "figures", s->figures, "memory",
        train_memory_json(&s->memory, train_team_neighbours(&s->team)), "peak_memory_bytes",
        (json_int_t)base_peak_memory(), "interrupted", train_session_stopped(s), "run",
        s->run.path);
}

json_t *train_session_result(const struct train_session *s)
{
    json_t *result = common_result(s);

    if (s->task->result != NULL)
        s->task->result(s, result);
    return result;
}

/* A cell of twelve places. */
static void add_grade(struct base_str *text, const struct train_grade *grade, const json_t *value)
{
    if (json_is_number(value))
        base_str_add(text, " %*.*f%s", 12 - (int)strlen(grade->unit), grade->decimals,
                     grade->scale * json_number_value(value), grade->unit);
    else
        base_str_add(text, " %12s", "-");
}

/* Every epoch of the run, those before a resume included. */
static void add_epochs(const struct train_session *s, struct base_str *text)
{
    const struct train_grade *grade = s->journal.grade;
    const json_t *epochs = json_object_get(s->run.json, "epochs"), *epoch;
    size_t index;

    if (json_array_size(epochs) > 0) {
        base_str_add(text, "\n%6s %8s %12s ", "epoch", "step", "train loss");
        if (grade->counted)
            base_str_add(text, "%12s ", grade->title);
        base_str_add(text, "%12s ", "validation");
        base_str_column(text, grade->title, 12);
        base_str_add(text, " %12s\n", "test");
    }
    json_array_foreach(epochs, index, epoch)
    {
        const json_t *validation = json_object_get(epoch, "validation_loss");

        base_str_add(text, "%6lld %8lld", json_integer_value(json_object_get(epoch, "epoch")),
                     json_integer_value(json_object_get(epoch, "step")));
        if (grade->scored)
            base_str_add(text, " %12s", "-");
        else
            base_str_add(text, " %12.4f", json_number_value(json_object_get(epoch, "loss")));
        if (grade->counted)
            add_grade(text, grade, json_object_get(epoch, grade->key));
        if (json_is_number(validation))
            base_str_add(text, " %12.4f", json_number_value(validation));
        else
            base_str_add(text, " %12s", "-");
        add_grade(text, grade, graded(s, epoch, "validation"));
        add_grade(text, grade, graded(s, epoch, "test"));
        base_str_add(text, "\n");
    }
}

/* "12.3 s", "4:05 min", "2:04:05 h" */
static void add_time(struct base_str *text, double seconds)
{
    long whole = lround(seconds);

    if (seconds < 60)
        base_str_add(text, "%.1f s\n", seconds);
    else if (whole < 3600)
        base_str_add(text, "%ld:%02ld min\n", whole / 60, whole % 60);
    else
        base_str_add(text, "%ld:%02ld:%02ld h\n", whole / 3600, whole / 60 % 60, whole % 60);
}

base_status train_session_report(const struct train_session *s)
{
    struct train_pace_summary pace = train_pace_summary(&s->journal.pace);
    const struct train_position *p = &s->state.position;
    struct learnt train = last_epoch(s);
    struct base_str text = {0};
    base_status st;

    base_str_add(&text, "%s on %s: %" PRId64 " step%s, %" PRId64 " epoch%s in ", s->job->model,
                 s->job->data, p->step, base_plural(p->step), p->epoch, base_plural(p->epoch));
    add_time(&text, train_clock_times(&s->clock).total);
    if (pace.first > 0)
        base_str_add(&text, "seconds a step: first %.4f", pace.first);
    if (pace.mean > 0) /* there were more steps */
        base_str_add(&text, ", then mean %.4f, median %.4f; %.0f samples a second", pace.mean,
                     pace.median, pace.samples_per_second);
    if (pace.first > 0)
        base_str_add(&text, "\n");
    if (!isnan(train.loss))
        base_str_add(&text, "train loss %.4f", train.loss);
    if (!isnan(train.accuracy)) {
        base_str_add(&text, ", ");
        train_grade_text(s->journal.grade, train.accuracy, &text);
    }
    if (!isnan(train.loss))
        base_str_add(&text, "\n");
    if (s->tested) {
        if (s->tested_step != p->step)
            base_str_add(&text, "the best weights, of step %" PRId64 ": ", s->tested_step);
        base_str_add(&text, "test ");
        s->task->score_text(s, s->test, &text);
    }
    base_info("\n%s", text.text);
    add_epochs(s, &text);
    st = train_run_write(&s->run, "report.txt", text.text);
    base_str_fini(&text);
    return st;
}
