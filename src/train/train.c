/* SPDX-License-Identifier: MIT
 *
 * The entry: one training, from its job to its result.
 */
#include "train/train.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "base/thread.h"
#include "train/session.h"

/* Seconds that rank 0 may take to write its report and close the run. */
static const double CLOSING = 20;

/* The command with which this run goes on. base_free. */
static char *way_on(const struct train_session *s)
{
    const char *run = s->job->resume != NULL ? s->job->resume : s->run.name; /* may be a path */
    bool elsewhere = strcmp(s->job->runs_dir, train_job_defaults.runs_dir) != 0;

    return base_format("paceline train --resume %s%s%s", run, elsewhere ? " --runs-dir " : "",
                       elsewhere ? s->job->runs_dir : "");
}

static bool was_interrupted(const json_t *result)
{
    return json_is_true(json_object_get(result, "interrupted"));
}

/* How a run that was stopped can go on. */
static void last_words(const struct train_session *s)
{
    const char *saved = s->saved_step == s->state.position.step ? "saved" : "not saved";
    char *command = way_on(s);

    if (!was_interrupted(s->result)) {
        if (s->job->checkpoint)
            base_info("next: paceline eval %s%s", s->run.path,
                      train_session_stale(s) ? " --best" : "");
        goto out;
    }
    if (!s->job->checkpoint)
        base_warn("stopped after step %" PRId64 "; nothing was saved (--no-checkpoint)",
                  s->state.position.step);
    else
        base_warn("stopped after step %" PRId64 " (%s); go on with: %s", s->state.position.step,
                  saved, command);
out:
    base_free(command);
}

/* The disk is full or has failed, or a file of the data cannot be read: rank 0, and no other
 * worker, adds from where the run can go on to the kept message. */
static void add_way_on(const struct train_session *s)
{
    char *words = base_strdup(base_message()), *command = way_on(s);
    struct store_checkpoint newest = {0};

    if (s->leader == train_team_id(&s->team) && store_has_checkpoint(s->run.checkpoints) &&
        store_checkpoint_open(s->run.checkpoints, false, &newest) == BASE_OK)
        base_keep_message("%s; %s goes on from step %llu", words, command,
                          (unsigned long long)newest.step);
    else
        base_keep_message("%s", words);
    store_checkpoint_close(&newest);
    base_free(command);
    base_free(words);
}

/* The run's folder tells how it ended, also when it failed. */
static base_status close_run(struct train_session *s, base_status st, json_t *result)
{
    char *message = base_strdup(base_message());
    base_status closed = train_journal_close(&s->journal), saved;

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
    saved = train_run_save(&s->run, st != BASE_OK             ? "failed"
                                    : was_interrupted(result) ? "interrupted"
                                                              : "done");
    if (st != BASE_OK) /* the first failure is the one to report */
        st = base_fail(st, "%s", message);
    else
        st = saved;
    base_free(message);
    return st;
}

static base_status conclude(struct train_session *s)
{
    base_status st = BASE_OK;

    TRY(train_session_report(s));
    train_fault_at(&s->fault, "report", s->state.position.step);
    last_words(s);
    s->run_started = false;
    TRY(close_run(s, BASE_OK, s->result));
out:
    return st;
}

/* The run as its folder has it: is it still "running", or "lost" because rank 0 is gone? A folder
 * that is on another host is neither. */
static bool folder_says(const struct train_session *s, const char *status)
{
    struct train_run now = {0};
    bool yes = train_run_open(s->job->runs_dir, s->run.path, &now) == BASE_OK &&
               strcmp(train_run_status(&now), status) == 0;

    train_run_close(&now);
    return yes;
}

/* Rank 0 may be lost between the last step and the last write of run.json, when the others are done
 * and meet no more. So the next rank stays until the run is closed, and closes it if rank 0 died.
 */
static base_status stand_by(struct train_session *s)
{
    base_status st = BASE_OK;
    double deadline = base_now() + CLOSING;

    while (folder_says(s, "running") && base_now() < deadline)
        base_sleep_until(base_now() + 5e-3);
    if (folder_says(s, "failed"))
        TRY(base_fail(BASE_ERR_PEER_LOST, "rank 0 could not close the run"));
    if (!folder_says(s, "lost"))
        goto out;
    TRY(train_run_lock(&s->run, 0));
    TRY(train_journal_open(&s->journal, &s->run, s->state.position.step));
    train_journal_catch_up(&s->journal, &s->run, s->state.position.step);
    TRY(conclude(s));
out:
    return st;
}

base_status train_session_finish(struct train_session *s)
{
    base_status st = BASE_OK;

    TRY(train_session_gather_ranks(s));
    json_decref(s->result);
    s->result = train_session_result(s);
    if (train_team_leads(&s->team))
        TRY(conclude(s));
    else if (s->team.exchange.rank == 1)
        TRY(stand_by(s));
out:
    return st;
}

base_status train_job_run(const struct train_job *job, struct cluster_worker *worker,
                          json_t **result_p)
{
    struct train_session s;
    base_status st = BASE_OK;

    *result_p = NULL;
    TRY(train_session_open(job, worker, &s));
    if (worker == NULL) /* a worker's signals are its agent's business */
        base_stop_install(BASE_STOP_STEP);
    TRY(train_loop(&s));
    *result_p = json_incref(s.result);
out:
    if (s.run_started && (st == BASE_ERR_IO || (st != BASE_OK && s.data_failed)))
        add_way_on(&s);
    if (s.run_started)
        st = close_run(&s, st, NULL);
    train_session_close(&s);
    return st;
}
