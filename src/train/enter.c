/* SPDX-License-Identifier: MIT
 *
 * Entering a view: its members tell each other how far they are; the furthest is what is committed.
 * A worker that is new or less far gets that state from the lowest rank that has it: the
 * description as JSON, the buffers as they are. Then all have the same weights, which is checked,
 * and rank 0 has the run's folder. Nothing here depends on which worker was lost or why.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "train/session.h"
#include "train/snapshot.h"

struct note {            /* what a member says of itself */
    int64_t step, epoch; /* -1: it has no state */
    int64_t saved_step;
    uint32_t has_run, founds; /* founds: was there from the beginning and may make a state */
    char digest[BASE_SHA256_HEX];
};

struct agreed {
    int source, run_source; /* ranks; run_source -1: no worker has a run yet */
    bool fresh;             /* no worker had a state */
    bool behind;            /* this worker needs the source's state */
    bool all_current;       /* no worker does */
    int64_t saved_step;     /* rank 0's */
};

static bool ahead(const struct note *a, const struct note *b)
{
    return a->step != b->step ? a->step > b->step : a->epoch > b->epoch;
}

static struct note note_of(const struct train_session *s)
{
    struct note n = {.step = s->whole ? s->state.position.step : -1,
                     .epoch = s->whole ? s->state.position.epoch : -1,
                     .saved_step = s->saved_step,
                     .has_run = s->run.path != NULL,
                     .founds = train_team_since(&s->team) <= 1};

    memcpy(n.digest, s->digest, sizeof n.digest);
    return n;
}

/* A worker that has other data than the source leaves; the others go on in the view that follows.
 */
static base_status check_data(const struct train_session *s, const struct note *all, int source)
{
    const struct comm_member *members = s->team.view.members;
    int odd = -1, rank = s->team.exchange.rank;

    for (int i = 0; i < s->team.exchange.size; i++)
        if (odd != rank && memcmp(all[i].digest, all[source].digest, sizeof all[i].digest) != 0)
            odd = i;
    if (odd < 0)
        return BASE_OK;
    return base_fail(odd == rank ? BASE_ERR_DATA : BASE_ERR_PEER_LOST,
                     "%s is not the same data for worker %u and worker %u", s->job->data,
                     members[source].id, members[odd].id);
}

static base_status agree(struct train_session *s, struct agreed *agreed_p)
{
    base_status st = BASE_OK;
    struct note mine = note_of(s), all[COMM_MAX_WORKERS];
    struct agreed a = {.run_source = -1, .all_current = true};
    int rank = s->team.exchange.rank, size = s->team.exchange.size;

    TRY(train_team_gather(&s->team, &mine, sizeof mine, all));
    for (int i = 1; i < size; i++)
        if (ahead(&all[i], &all[a.source]))
            a.source = i;
    TRY(check_data(s, all, a.source));
    for (int i = size - 1; i >= 0; i--) {
        if (all[i].has_run && a.run_source != a.source)
            a.run_source = i;
        a.all_current &= !ahead(&all[a.source], &all[i]);
    }
    a.fresh = all[a.source].step < 0;
    a.behind = a.fresh ? rank != a.source : ahead(&all[a.source], &all[rank]);
    a.saved_step = all[0].saved_step;
    if (a.fresh && !all[a.source].founds)
        TRY(base_fail(BASE_ERR_DATA, "no worker is left that knows the state of the training; go "
                                     "on from its last checkpoint with --resume"));
    *agreed_p = a;
out:
    return st;
}

/* ---- the state ---- */

static json_t *describe(const struct train_session *s)
{
    json_t *tracked = json_array();

    for (size_t i = 0; i < nn_graph_stats(s->state.graph); i++)
        json_array_append_new(tracked, json_integer(s->state.tracked[i]));
    return json_pack("{s:s, s:s, s:I, s:o, s:o, s:f, s:I, s:I}", "model", s->task->text(s),
                     "kernels", s->kernels, "batch", (json_int_t)s->plan.batch, "position",
                     train_position_to_json(&s->state.position), "tracked", tracked, "first_loss",
                     s->first_loss, "saved_step", (json_int_t)s->saved_step, "leader",
                     (json_int_t)s->leader);
}

static base_status take_description(struct train_session *s, const json_t *d)
{
    base_status st = BASE_OK;
    const char *model = NULL, *kernels = NULL;
    json_t *position = NULL, *tracked = NULL;

    TRY(base_json_string(d, "model", &model));
    TRY(base_json_string(d, "kernels", &kernels));
    TRY(base_json_integer(d, "batch", &s->plan.batch));
    TRY(base_json_object(d, "position", &position));
    TRY(base_json_array(d, "tracked", &tracked));
    if (s->plan.batch < 1)
        TRY(base_fail(BASE_ERR_DATA, "a batch of %" PRId64 " samples", s->plan.batch));
    if (!s->whole) {
        train_session_discard(s); /* half of a state whose source was lost */
        TRY(train_session_follow(s, model, kernels));
    }
    s->whole = false; /* until the buffers are there, too */
    TRY(train_position_from_json(position, &s->state.position));
    for (size_t i = 0; i < nn_graph_stats(s->state.graph); i++)
        s->state.tracked[i] = json_integer_value(json_array_get(tracked, i));
    TRY(base_json_real(d, "first_loss", &s->first_loss));
out:
    return st;
}

static base_status share_description(struct train_session *s, const struct agreed *a)
{
    base_status st = BASE_OK;
    bool source = s->team.exchange.rank == a->source;
    json_t *description = source ? describe(s) : NULL;
    int64_t leader = 0;

    TRY(train_team_tell(&s->team, a->source, &description));
    if (a->behind)
        TRY(take_description(s, description));
    TRY(base_json_integer(description, "saved_step", &s->saved_step));
    TRY(base_json_integer(description, "leader", &leader));
    s->leader = (uint32_t)leader;
out:
    json_decref(description);
    return st;
}

static base_status share_buffers(struct train_session *s, const struct agreed *a)
{
    base_status st = BASE_OK;
    size_t bytes = s->state.floats * sizeof(float);
    size_t statistics = nn_graph_stat_floats(s->state.graph) * sizeof(float);
    float *into = s->state.statistics, *unused = NULL;

    if (a->all_current && !a->fresh)
        return BASE_OK;
    TRY(train_team_broadcast(&s->team, a->source, s->state.weights, bytes));
    for (int i = 0; i < s->state.optimiser->slots; i++)
        TRY(train_team_broadcast(&s->team, a->source, s->state.slots[i], bytes));
    /* Between evaluations every worker has statistics of its own: the others' are not for it. */
    if (!a->behind && s->team.exchange.rank != a->source) {
        TRY(base_tensor(statistics, 1, "the statistics of another worker", &unused));
        into = unused;
    }
    TRY(train_team_broadcast(&s->team, a->source, into, statistics));
    s->whole = true;
out:
    base_free(unused);
    return st;
}

base_status train_session_compare(struct train_session *s)
{
    char what[64];

    if (s->team.exchange.size == 1)
        return BASE_OK;
    snprintf(what, sizeof what, "the weights after step %" PRId64, s->state.position.step);
    return train_team_compare(
        &s->team, base_crc32c(0, s->state.weights, s->state.floats * sizeof(float)), what);
}

static base_status open_strategy(struct train_session *s)
{
    struct train_exchange *x = &s->team.exchange;

    x->options = s->options;
    x->state = s->strategy_state;
    s->opened = true;
    return s->strategy->open != NULL ? s->strategy->open(s) : BASE_OK;
}

/* ---- the run ---- */

static base_status take_run(struct train_session *s, json_t *about)
{
    base_status st = BASE_OK;
    const char *path = NULL;
    json_t *run = NULL;

    TRY(base_json_string(about, "path", &path));
    TRY(base_json_object(about, "run", &run));
    if (s->run.path == NULL)
        train_run_follow(&s->run, path, run);
    else if (run != s->run.json)
        json_object_update(s->run.json, run); /* epochs that this worker has not heard of */
out:
    return st;
}

static base_status share_run(struct train_session *s, const struct agreed *a)
{
    base_status st = BASE_OK;
    int source = a->run_source < 0 ? 0 : a->run_source;
    json_t *about = NULL;

    if (s->team.exchange.rank == source) {
        if (s->run.path == NULL || a->fresh) /* no worker has one, or it is resumed */
            TRY(train_session_lead(s, !a->fresh));
        train_fault_at(&s->fault, "folder", s->state.position.step);
        about = json_pack("{s:s, s:O}", "path", s->run.path, "run", s->run.json);
    }
    TRY(train_team_tell(&s->team, source, &about));
    TRY(take_run(s, about));
    if (train_team_leads(&s->team) && !s->run_started)
        TRY(train_session_lead(s, true));
out:
    json_decref(about);
    return st;
}

/* All that this worker says goes into the run's folder of its host, too, also what only rank 0
 * shows to a person. */
static void keep_log(struct train_session *s)
{
    base_status st = base_make_dirs(s->run.path);
    char *path = base_format("%s/log-%u.txt", s->run.path, train_team_id(&s->team));

    if (!s->logged && st == BASE_OK)
        st = base_log_copy(path);
    if (!s->logged && st != BASE_OK)
        base_warn("no log of this worker: %s", base_message());
    s->logged = true;
    base_free(path);
}

static void tell_view(struct train_session *s, double began)
{
    struct base_str ids = {0};

    if (s->team.worker == NULL)
        return;
    for (uint32_t i = 0; i < s->team.view.size; i++)
        base_str_add(&ids, "%s%u", i > 0 ? "," : "", s->team.view.members[i].id);
    base_event(s->journal.events,
               "{\"event\":\"view\",\"view\":%u,\"members\":[%s],\"step\":%" PRId64
               ",\"seconds\":%.6f}",
               s->team.view.number, ids.text, s->state.position.step, base_now() - began);
    base_info("view %u: workers %s go on after step %" PRId64, s->team.view.number, ids.text,
              s->state.position.step);
    base_str_fini(&ids);
}

/* In the view that was met: one state, one run. */
static base_status agree_on_state(struct train_session *s)
{
    base_status st = BASE_OK;
    struct agreed a;
    struct train_snapshot before = {0}; /* of a worker whose state is replaced */
    uint32_t first = s->team.worker != NULL ? s->team.view.members[0].id : 0;
    bool moved;

    TRY(agree(s, &a));
    if (a.fresh && s->team.exchange.rank == a.source) {
        train_session_discard(s);
        TRY(train_session_create(s));
        s->leader = first;
    }
    if (a.behind && s->whole)
        TRY(train_snapshot_take(&before, &s->state));
    TRY(share_description(s, &a));
    moved = s->leader != first;
    if (!a.fresh && !moved)
        s->saved_step = a.saved_step; /* the others only know that it was due */
    TRY(train_team_begin(&s->team, s->state.floats));
    TRY(s->task->fit(s));
    TRY(share_buffers(s, &a));
    TRY(train_session_compare(s));
    TRY(open_strategy(s));
    TRY(share_run(s, &a));
    /* Whether a save that was due has been made only the former rank 0 knows; after an epoch's
     * end there may have been one because the epoch was the best. */
    if (moved && (train_session_save_is_due(s) || s->state.position.cursor == 0)) {
        s->saved_step = -1;
        TRY(train_session_save(s));
        TRY(train_session_mark_best(s));
    }
    s->leader = first;
out:
    if (before.tracked != NULL && !s->whole) { /* the source was lost half-way */
        train_snapshot_restore(&before, &s->state);
        s->whole = true;
    }
    train_snapshot_fini(&before);
    return st;
}

void train_session_leave(struct train_session *s)
{
    if (s->opened && s->strategy->close != NULL)
        s->strategy->close(s);
    s->opened = false;
    train_team_leave(&s->team);
    /* What a member of that view had decided with others need not have reached all of them. */
    s->verdict.stop = s->verdict.renew = s->tested = false;
    s->united_step = -1;
}

base_status train_session_enter(struct train_session *s)
{
    double began = base_now();
    enum train_category was = train_clock_enter(&s->clock, TRAIN_WAIT);
    base_status st = BASE_OK;

    do {
        train_session_leave(s);
        TRY(train_team_meet(&s->team));
        TRY(train_strategy_serves(s->strategy, s->team.exchange.size));
        s->team.exchange.clock = &s->clock;
        s->team.exchange.fault = &s->fault;
        if (s->team.worker != NULL) /* one worker speaks; warnings come from all */
            base_log_level(train_team_leads(&s->team) && !s->job->quiet ? BASE_INFO : BASE_WARN);
        st = agree_on_state(s);
    } while (st == BASE_ERR_PEER_LOST);
    if (st == BASE_OK) {
        keep_log(s);
        tell_view(s, began);
    }
out:
    train_clock_enter(&s->clock, was);
    return st;
}
