/* SPDX-License-Identifier: MIT
 *
 * Rank 0's business: the run's folder, made or taken over from a worker that is gone, with run.json
 * and events.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "train/session.h"

json_t *train_session_about(const struct train_session *s)
{
    struct train_job settings = *s->job;
    struct model_about about;
    char *strategy = NULL;
    json_t *json;

    settings.threads = s->threads; /* resuming to the same bits needs the same number */
    if (s->task->sweeps == NULL)
        settings.batch = s->plan.batch;
    settings.batch_per_worker = 0;
    if (s->strategy->stages != NULL) /* … and as many pieces of a batch */
        settings.strategy = strategy = train_strategy_text(s->strategy, s->options);
    s->task->about(s, base_options_to_json(train_job_options, &settings), &about);
    json = model_about_to_json(&about);
    model_about_fini(&about);
    base_free(strategy);
    return json;
}

/* "mnist-cnn-fashion-mnist" from a model name or file and a data name or path without ".csv"; what
 * no name of a run should have becomes a hyphen, several of them one. */
static char *run_stem(const struct train_job *job)
{
    const char *model = strrchr(job->model, '/'), *data;
    char *path = base_strdup(job->data), *stem, *end;
    size_t length;

    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    model = model != NULL ? model + 1 : job->model;
    data = strrchr(path, '/');
    data = data != NULL ? data + 1 : path;
    length = strcspn(data, ":");
    if (length > 4 && strncmp(data + length - 4, ".csv", 4) == 0)
        length -= 4;
    stem = base_format("%.*s-%.*s", (int)strcspn(model, "."), model, (int)length, data);
    base_free(path);
    end = stem;
    for (char *at = stem; *at != '\0'; at++) {
        bool hyphen = *at == '/' || *at == ':' || *at == '-' || (unsigned char)*at < ' ';

        if (!hyphen)
            *end++ = *at;
        else if (end > stem && end[-1] != '-')
            *end++ = '-';
    }
    while (end > stem && end[-1] == '-')
        end--;
    *end = '\0';
    if (stem[0] == '.')
        stem[0] = '_';
    return stem;
}

void train_session_forget_epochs(struct train_session *s)
{
    json_t *epochs = json_object_get(s->run.json, "epochs");

    if (!json_is_array(epochs)) {
        json_object_set_new(s->run.json, "epochs", json_array());
        return;
    }
    for (size_t i = json_array_size(epochs); i-- > 0;)
        if (json_integer_value(json_object_get(json_array_get(epochs, i), "epoch")) >
            s->state.position.epoch)
            json_array_remove(epochs, i);
}

/* The folder of another host has at most the logs of its workers. */
static bool is_here(const struct train_session *s)
{
    char *path = base_format("%s/run.json", s->run.path);
    bool yes = base_exists(path);

    base_free(path);
    return yes;
}

/* The socket of `paceline status` outlives an agent that was killed. A worker that has the run's
 * lock and begins a job knows that the former one answers no more. */
static void remove_old_socket(const struct train_session *s)
{
    char *path = base_format("%s/status", s->run.path);
    struct stat about;

    if (lstat(path, &about) == 0 && S_ISSOCK(about.st_mode))
        unlink(path);
    base_free(path);
}

/* A new folder, or the one that another worker had; that may have been on another host. */
static base_status take_folder(struct train_session *s, bool takes_over)
{
    base_status st = BASE_OK;
    char *stem = run_stem(s->job);
    bool fresh = s->run.path == NULL;

    if (fresh)
        TRY(train_run_create(s->job->runs_dir, s->job->run, stem, takes_over, &s->run));
    else if (takes_over && !is_here(s))
        base_warn("the run goes on in %s of this host", s->run.path);
    TRY(base_make_dirs(s->run.path));
    if (!s->run.locked)
        TRY(train_run_lock(&s->run, takes_over ? TRAIN_TAKE_OVER : 0));
    if (!takes_over)
        remove_old_socket(s);
    if (!s->about_waits)
        json_object_set_new(s->run.json, "about", train_session_about(s));
    if (s->excluded[0] != '\0')
        json_object_set_new(s->run.json, "excluded", json_string(s->excluded));
    json_object_set_new(s->run.json, "launch", cluster_worker_launch(s->team.worker));
    train_session_forget_epochs(s);
    st = train_run_save(&s->run, "running");
    if (st != BASE_OK && fresh)
        rmdir(s->run.path); /* empty: nothing is left that looks like a run */
out:
    base_free(stem);
    return st;
}

base_status train_session_lead(struct train_session *s, bool takes_over)
{
    base_status st = BASE_OK;
    const json_t *about;

    TRY(take_folder(s, takes_over));
    s->run_started = true;
    if (s->team.worker != NULL)
        cluster_worker_folder(s->team.worker, s->run.path);
    else if (s->job->on_folder != NULL)
        s->job->on_folder(s->run.path);
    TRY(train_journal_open(&s->journal, &s->run, s->state.position.step));
    about = json_object_get(s->run.json, "about");
    if (takes_over)
        train_journal_catch_up(&s->journal, &s->run, s->state.position.step);
    else
        base_event(s->journal.events,
                   "{\"event\":\"%s\",\"step\":%lld,\"threads\":%d,\"kernels\":\"%s\"}",
                   s->job->resume != NULL ? "resume" : "start", (long long)s->state.position.step,
                   s->threads, json_string_value(json_object_get(about, "kernels")));
out:
    return st;
}

base_status train_session_keep_folder(struct train_session *s)
{
    base_status st = BASE_OK;

    if (train_run_is_there(&s->run))
        return BASE_OK;
    base_warn("the folder %s was removed or moved while the run trains; the run goes on in a new "
              "one, without what was in the former",
              s->run.path);
    train_run_unlock(&s->run);
    base_ignore(train_journal_close(&s->journal)); /* that of the former folder */
    TRY(base_make_dirs(s->run.path));
    TRY(train_session_lead(s, true));
out:
    return st;
}
