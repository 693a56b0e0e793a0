/* SPDX-License-Identifier: MIT
 *
 * Distributed stochastic gradient descent for factorisations (Gemulla et al., KDD 2011), for sweeps
 * that go by rotations (train/task.h). Every worker has rows of its own, which stay: users with
 * their ratings. The rest of the weights, the items, is cut into two bundles for each worker. In
 * turn t worker p of N trains bundle (2p + t) mod 2N with its rows and passes it on to worker p -
 * 1, which wants it two turns later: one bundle travels while one is trained. When the last
 * rotation is over the bundles are where they were at first.
 *
 * Training does not touch the state: rows are trained in a copy, items in their bundles; when the
 * sweep is committed, the copy and the state's memory change places (rotate/versions.h). At the end
 * of a sweep every worker gets all bundles, and, with replicas=2, the rows of the worker before it,
 * which it keeps, too. On one host both are in memory that the workers share, and messages only say
 * that they are there. So a lost worker costs the sweep under way; two neighbours that are lost at
 * once take their rows with them, and all go back to the newest checkpoint.
 *
 * Commit: no worker writes the state before all have everything, which they tell each other in a
 * meeting. One that loses another in that meeting cannot know whether the others went on. It has
 * both versions, the next view decides (rotate_settle).
 */
#include "train/strategies/rotate/rotate.h"

#include "base/clock.h"
#include "base/mem.h"
#include "train/strategies/rotate/place.h"

enum { LEAST = 3 }; /* A worker's speed is known after so many sweeps with the same shares. */

/* ---- a sweep ---- */

static void rotate_add(struct train_message *messages, size_t *count, int peer, bool sends,
                       float *at, size_t floats)
{
    if (floats > 0)
        messages[(*count)++] = (struct train_message){peer, sends, at, floats};
}

/* All bundles to all workers; trained rows to the next one. */
static base_status rotate_pass(struct train_session *s)
{
    const struct rotate *r = s->strategy_state;
    const struct rotate_options *options = s->options;
    const struct train_exchange *x = &s->team.exchange;
    struct train_message *messages = base_calloc(2 * (size_t)x->size, sizeof *messages);
    const size_t floats = ROTATE_AHEAD * s->task->sweeps->rotation->floats(s);
    size_t count = 0;
    base_status st;

    for (int peer = 0; peer < x->size; peer++)
        for (int sends = 0; sends < (peer != x->rank ? 2 : 0); sends++)
            rotate_add(messages, &count, peer, sends == 1,
                       r->versions.bundles + floats * (size_t)(sends == 1 ? x->rank : peer),
                       floats);
    if (options->replicas > 1 && x->size > 1) {
        rotate_add(messages, &count, (x->rank + 1) % x->size, true,
                   rotate_versions_at(&r->versions, &r->own), r->own.count);
        rotate_add(messages, &count, (x->rank + x->size - 1) % x->size, false,
                   rotate_versions_at(&r->versions, &r->other), r->other.count);
    }
    st = train_team_pass(&s->team, messages, count);
    base_free(messages);
    return st;
}

/* What bundles from … to-1 hold becomes a part of the next version. */
static void rotate_put(const struct train_session *s, uint32_t from, uint32_t to)
{
    const struct rotate *r = s->strategy_state;

    s->task->sweeps->rotation->end(s, from, to, r->versions.bundles,
                                   rotate_versions_at(&r->versions, &r->rest));
}

/* On return this worker has all that it is to have of the next version. */
static base_status rotate_gather(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct rotate *r = s->strategy_state;

    if (rotate_versions_shared(&r->versions)) {
        rotate_put(s, rotate_bundle_of(s, 0), rotate_bundle_of(s, 0) + r->home);
        TRY(coll_barrier(s->team.exchange.coll));
    } else {
        TRY(rotate_pass(s));
        rotate_put(s, 0, r->bundles);
    }
out:
    return st;
}

/* Of this worker's users. */
static int64_t rotate_ratings(const struct train_session *s)
{
    const struct rotate *r = s->strategy_state;
    const struct train_stays stays = s->task->sweeps->rotation->stays(s);

    return (int64_t)(stays.work[r->to] - stays.work[r->from]);
}

/* All workers have what they need: from here on there is nothing that can fail. */
static base_status rotate_commit(struct train_session *s, const struct train_step *step)
{
    struct rotate *r = s->strategy_state;
    base_status st;

    rotate_versions_swap(&r->versions, &s->state);
    st = s->task->sweeps->finish(s);
    train_step_advance(s, step);
    train_step_count(s, &step->outcome, rotate_ratings(s));
    train_step_tell(s, step);
    return st;
}

/* ---- a worker is lost in the meeting ---- */

/* All that this worker has, it has at both versions: as it was, and as it would be. */
static void rotate_keep(struct train_session *s, const struct train_step *step)
{
    struct rotate *r = s->strategy_state;
    struct train_holds all;

    train_state_holds(&s->state, &all);
    s->state.claims = all;
    for (uint32_t i = 0; i < all.count; i++) {
        all.at[i].version.step++;
        s->state.claims.at[s->state.claims.count++] = all.at[i];
    }
    r->step = *step;
    r->waits = true;
}

/* What a view has taken. */
static void rotate_free(struct train_session *s)
{
    struct rotate *r = s->strategy_state;

    rotate_versions_close(&r->versions, &s->state);
    base_free(r->receives);
    base_free(r->sends);
    *r = (struct rotate){0};
}

/* Without a version to go by (the session ends) either will do, but one in shared memory may have
 * been written over by those that went on: the newer one is whole in any case. */
static void rotate_settle(struct train_session *s, struct train_version version)
{
    const struct rotate *r = s->strategy_state;

    if (!r->waits)
        return;
    s->state.claims.count = 0;
    if (version.step == s->state.position.step + 1 ||
        (version.step < 0 && rotate_versions_shared(&r->versions)))
        base_ignore(rotate_commit(s, &r->step));
    rotate_free(s);
}

static base_status rotate_meet(struct train_session *s, const struct train_step *step)
{
    base_status st = BASE_OK;
    struct train_outcome none = {0};
    struct train_exchange *x = &s->team.exchange;

    train_fault_at(&s->fault, "meet", x->step);
    train_head_fill(s, &none);
    if (x->size > 1)
        TRY(train_exchange_head(x));
    train_head_read(s, x->mine, &none);
out:
    if (st != BASE_OK)
        rotate_keep(s, step);
    return st;
}

static base_status rotate_sweep(struct train_session *s)
{
    base_status st = BASE_OK;
    struct rotate *r = s->strategy_state;
    struct train_step step = {.began = base_now(), .before = s->clock};

    step.batch.whole = s->count[DATA_TRAIN];
    step.outcome.seen = step.batch.whole;
    s->team.exchange.step = s->state.position.step + 1;
    train_trace_begin(&s->trace, s->team.exchange.step);
    train_clock_enter(&s->clock, TRAIN_COMPUTE);
    s->task->sweeps->rotation->begin(s, rotate_bundle_of(s, 0), rotate_bundle_of(s, 0) + r->home,
                                     r->versions.bundles);
    train_state_get(&s->state, TRAIN_WEIGHTS, 0, r->own.from, r->own.count,
                    rotate_versions_at(&r->versions, &r->own));
    TRY(rotate_turns(s));
    train_fault_at(&s->fault, "combine", s->team.exchange.step);
    train_clock_enter(&s->clock, TRAIN_COMMUNICATE);
    TRY(rotate_gather(s));
    train_clock_enter(&s->clock, TRAIN_COMPUTE);
    TRY(rotate_meet(s, &step));
    train_fault_at(&s->fault, "update", s->team.exchange.step);
    TRY(rotate_commit(s, &step));
out:
    if (st == BASE_ERR_PEER_LOST)
        train_clock_lost(&s->clock, &step.before);
    else
        train_clock_enter(&s->clock, TRAIN_COMPUTE);
    if (st != BASE_OK)
        train_trace_drop(&s->trace);
    return st;
}

/* Of this worker in the last sweep. */
static struct train_effort rotate_effort(const struct train_session *s)
{
    const struct rotate *r = s->strategy_state;

    return (struct train_effort){.samples = (double)rotate_ratings(s), .seconds = r->seconds};
}

static base_status rotate_leg(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;

    while (s->state.position.step < goal && !train_session_halts(s)) {
        TRY(rotate_sweep(s));
        TRY(train_shares_tell(s, rotate_effort(s), LEAST));
    }
out:
    return st;
}

/* ---- views ---- */

/* The most threads that a worker has: all must lay out the same groups. */
static base_status rotate_threads(struct train_session *s, uint32_t *most_p)
{
    base_status st = BASE_OK;
    uint32_t mine = (uint32_t)s->threads, all[COMM_MAX_WORKERS];

    TRY(train_team_gather(&s->team, &mine, sizeof mine, all));
    *most_p = 1;
    for (int i = 0; i < s->team.exchange.size; i++)
        *most_p = all[i] > *most_p ? all[i] : *most_p;
out:
    return st;
}

static struct train_extent rotate_rows_of(const struct train_session *s, int rank)
{
    const struct train_stays stays = s->task->sweeps->rotation->stays(s);
    const uint32_t from = rotate_begin(&stays, &s->team.shares, rank);
    const uint32_t to = rotate_begin(&stays, &s->team.shares, rank + 1);

    return (struct train_extent){from * stays.width, (to - from) * stays.width};
}

/* Whose weights are where. */
static void rotate_divide(struct train_session *s)
{
    struct rotate *r = s->strategy_state;
    const struct rotate_options *options = s->options;
    const struct train_exchange *x = &s->team.exchange;
    const struct train_stays stays = s->task->sweeps->rotation->stays(s);
    const size_t rest = stays.rows * stays.width;

    r->from = rotate_begin(&stays, &s->team.shares, x->rank);
    r->to = rotate_begin(&stays, &s->team.shares, x->rank + 1);
    r->own = rotate_rows_of(s, x->rank);
    if (x->size > 1 && options->replicas > 1)
        r->other = rotate_rows_of(s, (x->rank + x->size - 1) % x->size);
    r->rest = (struct train_extent){rest, s->state.floats - rest};
    r->home = x->size > 1 ? ROTATE_AHEAD : 1;
    r->bundles = r->home * (uint32_t)x->size;
    r->turns = r->bundles * s->task->sweeps->rotation->count(s);
}

static base_status rotate_open(struct train_session *s)
{
    base_status st = BASE_OK;
    struct rotate *r = s->strategy_state;
    const struct train_exchange *x = &s->team.exchange;
    const struct train_rotation *rotation = s->task->sweeps->rotation;
    uint32_t threads = 1;

    if (rotation->stays(s).rows == 0)
        TRY(base_fail(BASE_ERR_USAGE, "strategy rotate does not serve %s; it is for %s",
                      s->job->model, s->task->sweeps->rotating()));
    rotate_free(s);
    if (x->size > 1)
        TRY(rotate_threads(s, &threads));
    rotate_divide(s);
    TRY(rotation->lay_out(s, r->from, r->to, r->bundles, threads));
    TRY(rotate_versions_open(&r->versions, x, r->bundles * rotation->floats(s), &r->own, &r->rest,
                             &s->state));
    r->receives = base_calloc(r->turns + ROTATE_AHEAD, sizeof *r->receives);
    r->sends = base_calloc(r->turns, sizeof *r->sends);
    if (x->size > 1 && !rotate_versions_shared(&r->versions))
        TRY(comm_engine_begin(coll_group(x->coll)));
out:
    return st;
}

static void rotate_close(struct train_session *s)
{
    struct rotate *r = s->strategy_state;

    if (s->team.group != NULL)
        base_ignore(comm_engine_end(s->team.group)); /* says what ended the group, which is known */
    if (!r->waits)
        rotate_free(s);
}

#define AT(field) offsetof(struct rotate_options, field)

/* clang-format off */
static const struct base_option table[] = {
    {.name = "replicas", .argument = "R", .kind = BASE_INT, .offset = AT(replicas), .min = 1,
     .max = 2, .help = "workers that keep each user's row; with 2 a lost worker costs a sweep, not "
     "a checkpoint"},
    {0},
};
/* clang-format on */

const struct train_strategy train_strategy_rotate = {
    .name = "rotate",
    .help = "of rating model mf: each worker has users and their ratings, items go round",
    .commit_unit = "sweep; with replicas=1 a checkpoint",
    .sweeps = true,
    .shares = TRAIN_SHARES_BATCHES,
    .least = 1,
    .options = table,
    .options_size = sizeof(struct rotate_options),
    .defaults = &(const struct rotate_options){.replicas = 2},
    .examples = (const char *const[]){"", "replicas=1", NULL},
    .state_size = sizeof(struct rotate),
    .place = rotate_place,
    .settle = rotate_settle,
    .memory = rotate_memory,
    .open = rotate_open,
    .close = rotate_close,
    .leg = rotate_leg,
};
