/* SPDX-License-Identifier: MIT
 *
 * Entering a view: its members tell each other which ranges of the state they hold, at which
 * versions (agree.c). The newest version that they have whole between them is what is committed;
 * its description comes from the lowest rank that has some of it, as JSON, and what a worker is to
 * hold and lacks from the lowest rank that has it. Where a lost worker had the only copy of a
 * range no version is whole: all go back to the newest checkpoint (begin.c). Then weights are
 * compared between their holders, and rank 0 has the run's folder. Nothing here depends on which
 * worker was lost or why.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "train/agree.h"
#include "train/carry.h"
#include "train/settings.h"

/* ---- the state ---- */

static json_t *describe(const struct train_session *s)
{
    json_t *tracked = json_array();

    for (size_t i = 0; i < s->state.stats; i++)
        json_array_append_new(tracked, json_integer(s->state.tracked[i]));
    return json_pack("{s:s, s:s, s:I, s:o, s:o, s:f, s:I, s:I, s:I, s:b}", "model",
                     s->task->text(s), "kernels", s->kernels, "batch", (json_int_t)s->plan.batch,
                     "position", train_position_to_json(&s->state.position), "tracked", tracked,
                     "first_loss", s->first_loss, "ahead", (json_int_t)s->state.ahead, "saved_step",
                     (json_int_t)s->saved_step, "leader", (json_int_t)s->leader, "file",
                     train_session_has_file(s));
}

/* A worker without a state makes ready for it; what an earlier view left half-made is of use if it
 * is of the same model. */
static base_status take_model(struct train_session *s, const char *model, const char *kernels,
                              const struct train_position *position)
{
    if (s->whole || (s->state.optimiser != NULL && s->kernels != NULL &&
                     strcmp(s->task->text(s), model) == 0 && strcmp(s->kernels, kernels) == 0))
        return BASE_OK;
    train_session_discard(s);
    return train_session_follow(s, model, kernels, position);
}

static base_status take_description(struct train_session *s, const json_t *d)
{
    base_status st = BASE_OK;
    const char *model = NULL, *kernels = NULL;
    json_t *place = NULL, *tracked = NULL;
    struct train_position position;
    size_t norms;

    TRY(base_json_string(d, "model", &model));
    TRY(base_json_string(d, "kernels", &kernels));
    TRY(base_json_integer(d, "batch", &s->plan.batch));
    TRY(base_json_object(d, "position", &place));
    TRY(train_position_from_json(place, &position));
    TRY(base_json_array(d, "tracked", &tracked));
    if (s->plan.batch < 1)
        TRY(base_fail(BASE_ERR_DATA, "a batch of %" PRId64 " samples", s->plan.batch));
    TRY(take_model(s, model, kernels, &position));
    s->state.position = position;
    norms = s->state.stats;
    if (s->whole) /* the former counts may be needed again */
        s->state.tracked = base_calloc(norms, sizeof *s->state.tracked);
    for (size_t i = 0; i < norms; i++)
        s->state.tracked[i] = json_integer_value(json_array_get(tracked, i));
    TRY(base_json_real(d, "first_loss", &s->first_loss));
    TRY(base_json_integer(d, "ahead", &s->state.ahead));
out:
    return st;
}

/* *file_p: the source has a file that the state is loaded from. */
static base_status share_description(struct train_session *s, const struct train_agreed *a,
                                     bool *file_p)
{
    base_status st = BASE_OK;
    bool source = s->team.exchange.rank == a->source;
    json_t *description = source ? describe(s) : NULL;
    int64_t leader = 0;

    TRY(train_team_tell(&s->team, a->source, &description));
    if (!source &&
        (!s->whole || train_version_compare(train_state_version(&s->state), a->version) != 0))
        TRY(take_description(s, description));
    *file_p = json_is_true(json_object_get(description, "file"));
    TRY(base_json_integer(description, "saved_step", &s->saved_step));
    TRY(base_json_integer(description, "leader", &leader));
    s->leader = (uint32_t)leader;
out:
    json_decref(description);
    return st;
}

/* ---- memory and values ---- */

/* The state while it is replaced: what was stays until what comes is whole. */
struct refill {
    struct train_state before;
    bool kept;               /* `before` is a state to return to */
    bool made[TRAIN_GROUPS]; /* the session's state has new memory */
    float *statistics;       /* that this worker lacked */
};

static bool lacks(const struct train_session *s, const struct train_agreed *a,
                  enum train_group group)
{
    struct train_transfer *list;
    size_t count =
        train_holds_transfers(a->held, a->places, s->team.exchange.size, a->version, &list);
    bool yes = false;

    for (size_t i = 0; i < count; i++)
        yes |= list[i].target == s->team.exchange.rank && list[i].group == group;
    base_free(list);
    return yes;
}

/* Room for those that come from others, beside this worker's own. */
static base_status take_own_statistics(const struct train_session *s, struct refill *r)
{
    base_status st = BASE_OK;
    size_t floats = s->state.stat_floats;

    TRY(base_tensor(floats, sizeof(float), "the statistics of another worker", &r->statistics));
    memcpy(r->statistics, s->state.statistics, floats * sizeof(float));
out:
    return st;
}

static base_status make_room(struct train_session *s, const struct train_agreed *a,
                             struct refill *r)
{
    base_status st = BASE_OK;
    const struct train_holds *wanted = &a->places[s->team.exchange.rank];
    bool anew = a->fresh || a->back;

    for (enum train_group g = TRAIN_WEIGHTS; g <= TRAIN_SLOTS; g++) {
        if (train_state_fits(&s->state, g, wanted) && (anew || !lacks(s, a, g)))
            continue;
        if (!r->kept)
            train_state_drop(&s->state, g);
        TRY(train_state_make_room(&s->state, g, wanted));
        r->made[g] = true;
    }
    if (!anew && lacks(s, a, TRAIN_STATISTICS))
        TRY(take_own_statistics(s, r));
out:
    return st;
}

/* The new values are there: the old ones go. */
static void accept(struct train_session *s, struct refill *r)
{
    if (r->statistics != NULL)
        memcpy(s->state.statistics, r->statistics, s->state.stat_floats * sizeof(float));
    for (enum train_group g = TRAIN_WEIGHTS; r->kept && g <= TRAIN_SLOTS; g++)
        if (r->made[g])
            train_state_drop(&r->before, g);
    if (r->kept && r->before.tracked != s->state.tracked)
        base_free(r->before.tracked);
    s->state.claims.count = 0;
    s->whole = true;
    /* What began at the seed can begin there again, whether this worker knows the run or not. */
    s->begun |= s->job->resume == NULL;
}

/* A worker was lost half-way: what was, is. */
static void go_without(struct train_session *s, struct refill *r)
{
    if (!r->kept)
        return;
    for (enum train_group g = TRAIN_WEIGHTS; g <= TRAIN_SLOTS; g++)
        if (r->made[g])
            train_state_drop(&s->state, g);
    if (r->before.tracked != s->state.tracked)
        base_free(s->state.tracked);
    s->state = r->before;
}

/* The state came from another worker, with extras that are that one's own. */
static void keep_own_extras(struct train_session *s, const struct refill *r)
{
    for (int i = s->state.optimiser->slots; i < train_state_buffers(&s->state, TRAIN_SLOTS); i++) {
        if (r->kept)
            memcpy(s->state.slots[i], r->before.slots[i], s->state.floats * sizeof(float));
        else
            memset(s->state.slots[i], 0, s->state.floats * sizeof(float));
    }
}

/* Everything that this worker is to hold comes into its memory. */
static base_status fill(struct train_session *s, struct train_agreed *a, bool file,
                        struct refill *r)
{
    base_status st = BASE_OK;

    train_agree_places(s, a);
    TRY(make_room(s, a, r));
    TRY(s->task->fit(s));
    if (a->fresh || a->back)
        TRY(train_session_begin_state(
            s, a->places, a->source,
            a->fresh && s->team.exchange.rank == a->source && !r->made[TRAIN_WEIGHTS], file));
    else
        TRY(train_carry_missing(&s->team, a->held, a->places, a->version,
                                r->kept ? &r->before : &s->state, &s->state, r->statistics));
    if (s->strategy->own_extras && !a->fresh && !a->back && lacks(s, a, TRAIN_SLOTS))
        keep_own_extras(s, r);
out:
    return st;
}

/* The values come, and take the place of the former ones once all workers have what they lack. */
static base_status take_places(struct train_session *s, struct train_agreed *a, bool file,
                               struct refill *r)
{
    base_status st = BASE_OK;

    TRY(fill(s, a, file, r));
    if (s->team.exchange.coll != NULL)
        TRY(coll_barrier(s->team.exchange.coll));
    accept(s, r);
out:
    return st;
}

static base_status share_state(struct train_session *s, struct train_agreed *a)
{
    base_status st = BASE_OK;
    bool file = false;
    struct refill r = {.before = s->state, .kept = s->whole};
    /* Gradients that are lent, of stages, or of no use have another place or none. */
    bool none = train_strategy_lends(s->strategy, s->options).gradients ||
                s->strategy->stages != NULL || s->task->sweeps != NULL;

    TRY(share_description(s, a, &file));
    if (s->strategy->stages != NULL)
        TRY(s->strategy->stages->divide(s, a->source));
    TRY(train_team_begin(&s->team, none ? 0 : s->state.floats));
    TRY(take_places(s, a, file, &r));
out:
    if (st != BASE_OK)
        go_without(s, &r);
    base_free(r.statistics);
    return st;
}

static base_status open_strategy(struct train_session *s)
{
    struct train_exchange *x = &s->team.exchange;

    x->options = s->options;
    x->state = s->strategy_state;
    s->opened = true;
    if (s->team.worker != NULL)
        cluster_worker_roles(s->team.worker, train_strategy_roles(s, x->rank));
    return s->strategy->open != NULL ? s->strategy->open(s) : BASE_OK;
}

base_status train_session_move(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_agreed a = {0};
    struct refill r = {.kept = true};

    TRY(train_agree(s, &a));
    if (s->strategy->close != NULL) /* what it has besides the state is of the old places */
        s->strategy->close(s);
    r.before = s->state; /* which that may have moved */
    st = take_places(s, &a, false, &r);
    if (st != BASE_OK)
        go_without(s, &r);
    base_free(r.statistics);
    TRY(st);
    TRY(open_strategy(s));
out:
    train_agreed_fini(&a);
    return st;
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

static base_status share_run(struct train_session *s, const struct train_agreed *a)
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
    json_t *list;
    char *roles;

    if (s->team.worker == NULL)
        return;
    list = json_array();
    for (uint32_t i = 0; i < s->team.view.size; i++) {
        base_str_add(&ids, "%s%u", i > 0 ? "," : "", s->team.view.members[i].id);
        json_array_append_new(list, cluster_roles_json(train_strategy_roles(s, (int)i)));
    }
    roles = json_dumps(list, JSON_COMPACT);
    base_event(s->journal.events,
               "{\"event\":\"view\",\"view\":%u,\"members\":[%s],\"roles\":%s,\"step\":%" PRId64
               ",\"seconds\":%.6f}",
               s->team.view.number, ids.text, roles, s->state.position.step, base_now() - began);
    base_info("view %u: workers %s go on after step %" PRId64, s->team.view.number, ids.text,
              s->state.position.step);
    json_decref(list);
    base_free(roles);
    base_str_fini(&ids);
}

/* Some workers had more than what the others can complete it to. */
static void tell_loss(struct train_session *s)
{
    int64_t from = s->back_from, lost = from - s->state.position.step;

    s->back_from = -1;
    s->lost_samples =
        s->samples - (s->saved_samples_step == s->state.position.step ? s->saved_samples : 0);
    train_session_forget_epochs(s);
    if (lost <= 0)
        return;
    s->lost_steps += lost;
    if (train_team_leads(&s->team))
        base_warn("a lost worker had the only copy of a part of the state after step %" PRId64
                  "; all go back to %s of step %" PRId64,
                  from, s->saved_step >= 0 ? "the checkpoint" : "the beginning, the weights",
                  s->state.position.step);
    train_journal_back(&s->journal, from, s->state.position.step);
}

/* In the view that was met: one state, one run. */
static base_status agree_on_state(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_agreed a = {0};
    uint32_t first = s->team.worker != NULL ? s->team.view.members[0].id : 0;
    bool moved;

    TRY(train_settings_agree(s));
    TRY(train_shares_begin(s));
    if (s->strategy->reconcile != NULL)
        TRY(s->strategy->reconcile(s));
    TRY(train_agree(s, &a));
    if (s->strategy->settle != NULL && s->whole)
        s->strategy->settle(s, a.version);
    if (a.fresh) { /* what is written over is no state to return to */
        s->whole = false;
        s->state.claims.count = 0;
    }
    if (a.fresh && s->team.exchange.rank == a.source) {
        train_session_discard(s);
        TRY(train_session_create(s));
        s->leader = first;
    }
    if (a.back) {
        s->back_from = a.newest.step;
        TRY(train_session_go_back(s, first, &a.source));
    }
    s->reached = -1;
    TRY(share_state(s, &a));
    moved = s->leader != first;
    if (!a.fresh && !a.back && !moved)
        s->saved_step = a.saved_step; /* the others only know that it was due */
    TRY(train_session_compare(s));
    TRY(open_strategy(s));
    TRY(share_run(s, &a));
    if (s->back_from >= 0)
        tell_loss(s);
    s->begun = true;
    train_settings_tell(s);
    /* Whether a save that was due has been made only the former rank 0 knows; after an epoch's
     * end there may have been one because the epoch was the best. */
    if (moved && (train_session_save_is_due(s) || s->state.position.cursor == 0)) {
        s->saved_step = -1;
        TRY(train_session_save(s));
        TRY(train_session_mark_best(s));
    }
    s->leader = first;
out:
    train_agreed_fini(&a);
    return st;
}

void train_session_leave(struct train_session *s)
{
    if (s->opened && s->strategy->close != NULL)
        s->strategy->close(s);
    s->opened = false;
    train_team_leave(&s->team);
    /* What a member of that view had decided with others need not have reached all of them. */
    s->verdict = (struct train_verdict){0};
    s->tested = false;
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
        train_trace_back(&s->trace, s->state.position.step);
        keep_log(s);
        tell_view(s, began);
        train_slow_begin(s);
        train_shares_say(s);
    }
out:
    train_clock_enter(&s->clock, was);
    return st;
}
