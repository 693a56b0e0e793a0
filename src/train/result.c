/* SPDX-License-Identifier: MIT
 *
 * What came out of a training: the JSON object, the report, the last words.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "train/train.h"
#include "train/train_private.h"

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

/* One object for each worker of the last view; NULL where they could not be asked. */
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

json_t *train_session_result(const struct train_session *s)
{
    struct train_pace_summary t = train_pace_summary(&s->pace);
    const struct train_position *p = &s->state.position;
    json_t *result = json_pack(
        "{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:o, s:f, "
        "s:{s:o, s:o}, s:o, s:o, s:o, s:I, s:b, s:s}",
        "schema", 1, "model", s->job->model, "data", s->job->data, "strategy", s->strategy->name,
        "workers", s->team.exchange.size, "hosts", hosts_of(s), "threads", s->threads, "batch",
        (json_int_t)s->batch, "steps", (json_int_t)p->step, "epochs", (json_int_t)p->epoch,
        "parameters", (json_int_t)nn_graph_parameters(s->graph), "step_seconds",
        train_pace_json(&s->pace), "samples_per_second", t.samples_per_second, "train", "loss",
        base_json_number(s->train_loss), "accuracy", base_json_number(s->train_accuracy), "test",
        s->tested ? train_metrics_json(&s->test) : json_null(), "time", train_times_json(&s->times),
        "ranks", ranks_of(s), "peak_memory_bytes", (json_int_t)base_peak_memory(), "interrupted",
        train_session_stopped(s), "run", s->run.path);

    return result;
}

/* Every epoch of the run, those before a resume included. */
static void add_epochs(const struct train_session *s, struct base_str *text)
{
    const json_t *epochs = json_object_get(s->run.json, "epochs"), *epoch;
    size_t index;

    if (json_array_size(epochs) > 0)
        base_str_add(text, "\n%6s %8s %12s %12s %12s %12s\n", "epoch", "step", "train loss",
                     "accuracy", "validation", "test");
    json_array_foreach(epochs, index, epoch)
    {
        const json_t *validation = json_object_get(epoch, "validation_loss");
        const json_t *test = json_object_get(epoch, "test_accuracy");

        base_str_add(text, "%6lld %8lld %12.4f %10.2f %%",
                     json_integer_value(json_object_get(epoch, "epoch")),
                     json_integer_value(json_object_get(epoch, "step")),
                     json_number_value(json_object_get(epoch, "loss")),
                     100 * json_number_value(json_object_get(epoch, "accuracy")));
        if (json_is_number(validation))
            base_str_add(text, " %12.4f", json_number_value(validation));
        else
            base_str_add(text, " %12s", "-");
        if (json_is_number(test))
            base_str_add(text, " %10.2f %%\n", 100 * json_number_value(test));
        else
            base_str_add(text, " %12s\n", "-");
    }
}

base_status train_session_report(struct train_session *s)
{
    struct train_pace_summary t = train_pace_summary(&s->pace);
    struct base_str text = {0};
    base_status st;

    base_str_add(&text, "%s on %s: %" PRId64 " steps, %" PRId64 " epochs\n", s->job->model,
                 s->job->data, s->state.position.step, s->state.position.epoch);
    base_str_add(&text,
                 "seconds a step: first %.4f, then mean %.4f, median %.4f; %.0f samples a second\n",
                 t.first, t.mean, t.median, t.samples_per_second);
    if (!isnan(s->train_loss))
        base_str_add(&text, "train loss %.4f, accuracy %.2f %%\n", s->train_loss,
                     100 * s->train_accuracy);
    if (s->tested) {
        base_str_add(&text, "test loss %.4f, accuracy %.2f %% (%llu samples)\n\n",
                     train_metrics_loss(&s->test), 100 * train_metrics_accuracy(&s->test),
                     (unsigned long long)s->test.count);
        train_metrics_text(&s->test, s->info->class_names, &text);
    }
    base_info("\n%s", text.text);
    add_epochs(s, &text);
    st = train_run_write(&s->run, "report.txt", text.text);
    base_str_fini(&text);
    return st;
}

static void last_words(const struct train_session *s)
{
    const char *saved = s->saved_step == s->state.position.step ? "saved" : "not saved";
    const char *run = s->job->resume != NULL ? s->job->resume : s->run.name; /* may be a path */
    bool elsewhere = strcmp(s->job->runs_dir, train_job_defaults.runs_dir) != 0;

    if (!train_session_stopped(s))
        return;
    if (!s->job->checkpoint)
        base_warn("stopped after step %" PRId64 "; nothing was saved (--no-checkpoint)",
                  s->state.position.step);
    else
        base_warn("stopped after step %" PRId64 " (%s); go on with: paceline train --resume %s%s%s",
                  s->state.position.step, saved, run, elsewhere ? " --runs-dir " : "",
                  elsewhere ? s->job->runs_dir : "");
}

/* The run's folder tells how it ended, also when it failed. */
static base_status close_run(struct train_session *s, base_status st, json_t *result)
{
    char *message = base_strdup(base_message());
    base_status closed = base_events_close(s->events), saved;

    s->events = NULL;
    if (st == BASE_OK && closed != BASE_OK) {
        st = closed;
        base_free(message);
        message = base_strdup(base_message());
    }
    json_object_del(s->run.json, "error"); /* of an earlier try */
    if (st != BASE_OK)
        json_object_set_new(s->run.json, "error",
                            json_pack("{s:s, s:o}", "code", base_code_name(st), "message",
                                      base_json_text(message)));
    if (result != NULL)
        json_object_set(s->run.json, "result", result);
    saved = train_run_save(&s->run, st != BASE_OK              ? "failed"
                                    : train_session_stopped(s) ? "interrupted"
                                                               : "done");
    if (st != BASE_OK) /* the first failure is the one to report */
        st = base_fail(st, "%s", message);
    else
        st = saved;
    base_free(message);
    return st;
}

base_status train_job_run(const struct train_job *job, struct cluster_worker *worker,
                          json_t **result_p)
{
    struct train_session s;
    base_status st = BASE_OK;

    *result_p = NULL;
    TRY(train_session_open(job, worker, &s));
    if (worker == NULL) /* of a worker's signals its agent is the judge */
        base_stop_install();
    TRY(train_loop(&s));
    *result_p = train_session_result(&s);
    if (!train_team_leads(&s.team))
        goto out;
    TRY(train_session_report(&s));
    last_words(&s);
out:
    if (s.run_started)
        st = close_run(&s, st, *result_p);
    train_session_close(&s);
    return st;
}
