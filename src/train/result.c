/* SPDX-License-Identifier: MIT
 *
 * What came out of a training: the JSON object and the report.
 */
#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "train/session.h"

base_status train_session_gather_ranks(struct train_session *s)
{
    struct train_rank mine = {.id = train_team_id(&s->team),
                              .times = train_clock_times(&s->clock),
                              .samples = s->samples,
                              .bytes_sent = train_team_bytes_sent(&s->team),
                              .peak_memory = base_peak_memory()};

    gethostname(mine.host, sizeof mine.host);
    mine.host[sizeof mine.host - 1] = '\0';
    base_free(s->ranks);
    s->ranks = base_calloc((size_t)s->team.exchange.size, sizeof *s->ranks);
    return train_team_gather(&s->team, &mine, sizeof mine, s->ranks);
}

struct learnt {
    double loss, accuracy;
};

/* What the last epoch taught, complete or not; NAN: there was none. */
static struct learnt last_epoch(const struct train_position *p)
{
    if (p->seen > 0)
        return (struct learnt){p->loss_sum / (double)p->seen, (double)p->correct / (double)p->seen};
    if (p->epoch > 0)
        return (struct learnt){p->epoch_loss, p->epoch_accuracy};
    return (struct learnt){NAN, NAN};
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
        json_t *rank =
            json_pack("{s:I, s:i, s:s}", "id", (json_int_t)r->id, "rank", i, "host", r->host);
        json_t *times = train_times_json(&r->times);

        json_object_update(rank, times);
        json_decref(times);
        json_object_set_new(rank, "samples", json_integer(r->samples));
        json_object_set_new(rank, "bytes_sent", json_integer((json_int_t)r->bytes_sent));
        json_object_set_new(rank, "peak_memory_bytes", json_integer((json_int_t)r->peak_memory));
        json_array_append_new(list, rank);
    }
    return list;
}

/* Loss and accuracy of the validation part after the best step; null: there is none. */
static json_t *best_validation(const struct train_session *s)
{
    const json_t *epochs = json_object_get(s->run.json, "epochs"), *epoch;
    size_t index;

    json_array_foreach(epochs, index, epoch)
    {
        if (json_is_number(json_object_get(epoch, "validation_loss")) &&
            json_integer_value(json_object_get(epoch, "step")) == s->state.position.best_step)
            return json_pack("{s:O, s:O?}", "loss", json_object_get(epoch, "validation_loss"),
                             "accuracy", json_object_get(epoch, "validation_accuracy"));
    }
    return json_null();
}

json_t *train_session_result(const struct train_session *s)
{
    struct train_pace_summary pace = train_pace_summary(&s->journal.pace);
    struct train_times times = train_clock_times(&s->clock);
    const struct train_position *p = &s->state.position;
    struct learnt train = last_epoch(p);

    return json_pack(
        "{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:o, s:I, s:o, s:f, "
        "s:{s:o, s:o}, s:o, s:o, s:o, s:o, s:I, s:b, s:s}",
        "schema", 1, "model", s->job->model, "data", s->job->data, "strategy", s->strategy->name,
        "workers", s->team.exchange.size, "hosts", hosts_of(s), "threads", s->threads, "batch",
        (json_int_t)s->plan.batch, "steps", (json_int_t)p->step, "epochs", (json_int_t)p->epoch,
        "best_step", p->best_validation < 0 ? json_null() : json_integer(p->best_step),
        "parameters", (json_int_t)nn_graph_parameters(s->state.graph), "step_seconds",
        train_pace_json(&s->journal.pace), "samples_per_second", pace.samples_per_second, "train",
        "loss", base_json_number(train.loss), "accuracy", base_json_number(train.accuracy),
        "validation", best_validation(s), "test",
        s->tested ? s->task->score_json(s, s->test) : json_null(), "time", train_times_json(&times),
        "ranks", ranks_of(s), "peak_memory_bytes", (json_int_t)base_peak_memory(), "interrupted",
        train_session_stopped(s), "run", s->run.path);
}

static void add_share(struct base_str *text, const json_t *share)
{
    if (json_is_number(share))
        base_str_add(text, " %10.2f %%", 100 * json_number_value(share));
    else
        base_str_add(text, " %12s", "-");
}

/* Every epoch of the run, those before a resume included. */
static void add_epochs(const struct train_session *s, struct base_str *text)
{
    const json_t *epochs = json_object_get(s->run.json, "epochs"), *epoch;
    size_t index;

    if (json_array_size(epochs) > 0)
        base_str_add(text, "\n%6s %8s %12s %12s %12s %12s %12s\n", "epoch", "step", "train loss",
                     "accuracy", "validation", "accuracy", "test");
    json_array_foreach(epochs, index, epoch)
    {
        const json_t *validation = json_object_get(epoch, "validation_loss");

        base_str_add(text, "%6lld %8lld %12.4f %10.2f %%",
                     json_integer_value(json_object_get(epoch, "epoch")),
                     json_integer_value(json_object_get(epoch, "step")),
                     json_number_value(json_object_get(epoch, "loss")),
                     100 * json_number_value(json_object_get(epoch, "accuracy")));
        if (json_is_number(validation))
            base_str_add(text, " %12.4f", json_number_value(validation));
        else
            base_str_add(text, " %12s", "-");
        add_share(text, json_object_get(epoch, "validation_accuracy"));
        add_share(text, json_object_get(epoch, "test_accuracy"));
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
    struct learnt train = last_epoch(p);
    struct base_str text = {0};
    base_status st;

    base_str_add(&text, "%s on %s: %" PRId64 " step%s, %" PRId64 " epoch%s in ", s->job->model,
                 s->job->data, p->step, base_plural(p->step), p->epoch, base_plural(p->epoch));
    add_time(&text, train_clock_times(&s->clock).total);
    base_str_add(&text,
                 "seconds a step: first %.4f, then mean %.4f, median %.4f; %.0f samples a second\n",
                 pace.first, pace.mean, pace.median, pace.samples_per_second);
    if (!isnan(train.loss))
        base_str_add(&text, "train loss %.4f, accuracy %.2f %%\n", train.loss,
                     100 * train.accuracy);
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
