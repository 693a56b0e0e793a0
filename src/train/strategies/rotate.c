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
 * sweep is committed, the copy and the state's memory change places. At the end of a sweep every
 * worker gets all bundles, and, with replicas=2, the rows of the worker before it,
 * which it keeps, too. So a lost worker costs the sweep under way; two neighbours that are lost at
 * once take their rows with them, and all go back to the newest checkpoint.
 *
 * Commit: no worker writes the state before all have everything, which they tell each other in a
 * meeting. One that loses another in that meeting cannot know whether the others went on. It has
 * both versions, the next view decides (rotate_settle).
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/engine.h"
#include "train/memory.h"
#include "train/step.h"

enum {
    AHEAD = 2, /* turns from the end of a bundle's training to its next one: bundles a worker */
    LEAST = 3, /* A worker's speed is known after so many sweeps with the same shares. */
};

struct options {
    int64_t replicas;
};

/* Rows of one worker, as the sweep under way has left them: in the spare memory. */
struct rotate_rows {
    uint32_t from, to;
    float *trained;
};

struct rotate {
    struct rotate_rows own, before; /* `before`: of the worker before this one; or none */
    size_t width;
    struct train_state spare; /* memory as the state's, which a sweep writes to */
    uint32_t bundles, turns;
    struct comm_task *receives, *sends; /* of each turn; those of the two turns after the last … */
    uint32_t received, sent;            /* … bring the bundles home; so many were handed over */
    double seconds;                     /* of this worker's training in the sweep under way */
    bool waits;                         /* a sweep waits for rotate_settle … */
    struct train_step step;             /* … which is this one */
};

/* ---- who has what ---- */

static void rotate_want(struct train_holds *wanted, enum train_group group, size_t from, size_t end)
{
    struct train_hold *last = wanted->count > 0 ? &wanted->at[wanted->count - 1] : NULL;

    if (from >= end)
        return;
    if (last != NULL && last->group == group && last->from + last->count == from)
        last->count += end - from;
    else
        wanted->at[wanted->count++] =
            (struct train_hold){.group = group, .from = from, .count = end - from};
}

/* Where the rows of the worker of that rank begin; of rank `size`: where all end. */
static uint32_t rotate_begin(const struct train_stays *stays, const struct train_shares *shares,
                             int rank)
{
    const bool beyond = rank == shares->size;
    const struct data_share share = train_shares_of(shares, beyond ? rank - 1 : rank);

    return train_rows_begin(stays->work, stays->rows, beyond ? share.to : share.from, share.total);
}

static void rotate_place(const struct train_placing *p, int rank, struct train_holds *wanted)
{
    const struct options *options = p->options;
    const struct train_stays *stays = &p->stays;
    const int replicas = options->replicas < p->size ? (int)options->replicas : p->size;
    const int first = rank - replicas + 1;

    for (enum train_group g = TRAIN_WEIGHTS; g <= TRAIN_SLOTS; g++) {
        size_t begin[3] = {0};

        for (int i = 0; i < 3; i++) {
            const int of = i == 0 ? first : i == 1 ? rank + 1 : first + p->size;

            begin[i] = stays->width * rotate_begin(stays, p->shares,
                                                   of < 0         ? 0
                                                   : of > p->size ? p->size
                                                                  : of);
        }
        if (p->floats[g] == 0)
            continue;
        rotate_want(wanted, g, begin[0], begin[1]);
        if (first < 0)
            rotate_want(wanted, g, begin[2], stays->width * stays->rows);
        rotate_want(wanted, g, stays->width * stays->rows, p->floats[g]);
    }
}

static void rotate_memory(const struct train_memory_question *q, struct train_memory *m)
{
    const struct options *options = q->options;
    const struct train_stays *stays = &q->sizes->stays;
    const double all = (double)stays->rows * (double)stays->width * sizeof(float);
    const bool copies = options->replicas > 1 && q->seat.workers > 1;

    m->of[TRAIN_MEMORY_SPARE].own +=
        all / q->seat.workers * (copies ? 2 : 1) + q->sizes->weights - all;
}

/* ---- a sweep ---- */

static uint32_t rotate_bundle_of(const struct train_session *s, uint32_t turn)
{
    const struct rotate *r = s->strategy_state;

    return (AHEAD * (uint32_t)s->team.exchange.rank + turn) % r->bundles;
}

static void rotate_receive(struct train_session *s, uint32_t turn)
{
    struct rotate *r = s->strategy_state;
    const struct train_exchange *x = &s->team.exchange;
    size_t floats;
    float *bundle = s->task->sweeps->rotation->bundle(s, rotate_bundle_of(s, turn), &floats);

    comm_engine_receive(comm_group_engine(s->team.group), (x->rank + 1) % x->size, COMM_FORWARD,
                        turn, bundle, floats * sizeof(float), &r->receives[turn]);
    r->received = turn + 1;
}

static void rotate_send(struct train_session *s, uint32_t turn)
{
    struct rotate *r = s->strategy_state;
    const struct train_exchange *x = &s->team.exchange;
    size_t floats;
    const float *bundle = s->task->sweeps->rotation->bundle(s, rotate_bundle_of(s, turn), &floats);

    comm_engine_send(comm_group_engine(s->team.group), (x->rank + x->size - 1) % x->size,
                     COMM_FORWARD, turn + AHEAD, bundle, floats * sizeof(float), &r->sends[turn]);
    r->sent = turn + 1;
}

static base_status rotate_wait(struct train_session *s, struct comm_task *task)
{
    const enum train_category was = train_clock_enter(&s->clock, TRAIN_COMMUNICATE);
    const base_status st = comm_engine_wait(comm_group_engine(s->team.group), task, INFINITY);

    train_clock_enter(&s->clock, was);
    return st;
}

/* Until no message is under way; those of a group that has ended are not. */
static base_status rotate_drain(struct train_session *s)
{
    struct rotate *r = s->strategy_state;
    base_status st = BASE_OK, ended;

    for (uint32_t turn = AHEAD; turn < r->received; turn++)
        if ((ended = rotate_wait(s, &r->receives[turn])) != BASE_OK)
            st = ended;
    for (uint32_t turn = 0; turn < r->sent; turn++)
        if ((ended = rotate_wait(s, &r->sends[turn])) != BASE_OK)
            st = ended;
    r->received = r->sent = 0;
    return st;
}

static base_status rotate_turns(struct train_session *s)
{
    base_status st = BASE_OK;
    struct rotate *r = s->strategy_state;
    const bool travels = s->team.exchange.size > 1;
    double began;

    r->seconds = 0;
    for (uint32_t turn = 0; turn < r->turns; turn++) {
        if (travels)
            rotate_receive(s, turn + AHEAD);
        if (travels && turn >= AHEAD)
            TRY(rotate_wait(s, &r->receives[turn]));
        began = base_now();
        s->task->sweeps->rotation->train(s, r->own.trained, turn / r->bundles,
                                         rotate_bundle_of(s, turn));
        r->seconds += base_now() - began;
        train_fault_nth(&s->fault, "turn", (int)turn + 1, s->team.exchange.step);
        if (travels)
            rotate_send(s, turn);
    }
out:
    if (st == BASE_OK)
        st = rotate_drain(s);
    else
        base_ignore(rotate_drain(s)); /* says the same */
    return st;
}

static void rotate_add(struct train_message *messages, size_t *count, int peer, bool sends,
                       float *at, size_t floats)
{
    if (floats > 0)
        messages[(*count)++] = (struct train_message){peer, sends, at, floats};
}

/* All bundles to all workers; trained rows to the next one. */
static base_status rotate_gather(struct train_session *s)
{
    const struct rotate *r = s->strategy_state;
    const struct options *options = s->options;
    const struct train_exchange *x = &s->team.exchange;
    struct train_message *messages = base_calloc(2 * (size_t)x->size, sizeof *messages);
    size_t count = 0, floats;
    float *bundles = s->task->sweeps->rotation->bundle(s, 0, &floats);
    base_status st;

    for (int peer = 0; peer < x->size; peer++)
        for (int sends = 0; sends < (peer != x->rank ? 2 : 0); sends++)
            rotate_add(messages, &count, peer, sends == 1,
                       bundles + AHEAD * floats * (size_t)(sends == 1 ? x->rank : peer),
                       AHEAD * floats);
    if (options->replicas > 1 && x->size > 1) {
        rotate_add(messages, &count, (x->rank + 1) % x->size, true, r->own.trained,
                   (r->own.to - r->own.from) * r->width);
        rotate_add(messages, &count, (x->rank + x->size - 1) % x->size, false, r->before.trained,
                   (r->before.to - r->before.from) * r->width);
    }
    st = train_team_pass(&s->team, messages, count);
    base_free(messages);
    return st;
}

static float *rotate_spare(const struct rotate *r, const struct rotate_rows *rows)
{
    return train_state_at(&r->spare, TRAIN_WEIGHTS, 0, rows->from * r->width,
                          (rows->to - rows->from) * r->width);
}

/* What the sweep has written becomes the state's memory, without a copy. */
static void rotate_swap(struct train_session *s)
{
    struct rotate *r = s->strategy_state;
    const struct train_state before = s->state;

    s->state.weights = r->spare.weights;
    s->state.parts[TRAIN_WEIGHTS] = r->spare.parts[TRAIN_WEIGHTS];
    r->spare.weights = before.weights;
    r->spare.parts[TRAIN_WEIGHTS] = before.parts[TRAIN_WEIGHTS];
    r->own.trained = rotate_spare(r, &r->own);
    r->before.trained = rotate_spare(r, &r->before);
}

/* Of this worker's users. */
static int64_t rotate_ratings(const struct train_session *s)
{
    const struct rotate *r = s->strategy_state;
    const struct train_stays stays = s->task->sweeps->rotation->stays(s);

    return (int64_t)(stays.work[r->own.to] - stays.work[r->own.from]);
}

/* All workers have what they need: from here on there is nothing that can fail. */
static base_status rotate_commit(struct train_session *s, const struct train_step *step)
{
    base_status st;

    rotate_swap(s);
    st = s->task->sweeps->rotation->end(s);
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

static void rotate_settle(struct train_session *s, struct train_version version)
{
    struct rotate *r = s->strategy_state;

    if (!r->waits)
        return;
    r->waits = false;
    s->state.claims.count = 0;
    if (version.step == s->state.position.step + 1)
        base_ignore(rotate_commit(s, &r->step));
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
    if (st == BASE_ERR_PEER_LOST)
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
    s->task->sweeps->rotation->begin(s);
    train_state_get(&s->state, TRAIN_WEIGHTS, 0, r->own.from * r->width,
                    (r->own.to - r->own.from) * r->width, r->own.trained);
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

static void rotate_rows_of(const struct train_session *s, int rank, struct rotate_rows *rows)
{
    const struct train_stays stays = s->task->sweeps->rotation->stays(s);

    rows->from = rotate_begin(&stays, &s->team.shares, rank);
    rows->to = rotate_begin(&stays, &s->team.shares, rank + 1);
    rows->trained = rotate_spare(s->strategy_state, rows);
}

static base_status rotate_make_spare(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_state spare = s->state;
    struct train_holds held;

    train_state_holds(&s->state, &held);
    TRY(train_state_make_room(&spare, TRAIN_WEIGHTS, &held));
    ((struct rotate *)s->strategy_state)->spare = spare;
out:
    return st;
}

/* What a view has taken. */
static void rotate_free(struct rotate *r)
{
    train_state_drop(&r->spare, TRAIN_WEIGHTS);
    base_free(r->receives);
    base_free(r->sends);
    *r = (struct rotate){0};
}

static base_status rotate_open(struct train_session *s)
{
    base_status st = BASE_OK;
    struct rotate *r = s->strategy_state;
    const struct options *options = s->options;
    const struct train_exchange *x = &s->team.exchange;
    const struct train_rotation *rotation = s->task->sweeps->rotation;
    uint32_t threads = 1;

    if (rotation->stays(s).rows == 0)
        TRY(base_fail(BASE_ERR_USAGE, "strategy rotate does not serve %s; it is for %s",
                      s->job->model, s->task->sweeps->rotating()));
    rotate_free(r);
    if (x->size > 1)
        TRY(rotate_threads(s, &threads));
    r->width = rotation->stays(s).width;
    r->bundles = x->size > 1 ? AHEAD * (uint32_t)x->size : 1;
    r->turns = r->bundles * rotation->count(s);
    TRY(rotate_make_spare(s));
    rotate_rows_of(s, x->rank, &r->own);
    if (x->size > 1 && options->replicas > 1)
        rotate_rows_of(s, (x->rank + x->size - 1) % x->size, &r->before);
    TRY(rotation->lay_out(s, r->own.from, r->own.to, r->bundles, threads));
    r->receives = base_calloc(r->turns + AHEAD, sizeof *r->receives);
    r->sends = base_calloc(r->turns, sizeof *r->sends);
    if (x->size > 1)
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
        rotate_free(r);
}

#define AT(field) offsetof(struct options, field)

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
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.replicas = 2},
    .examples = (const char *const[]){"", "replicas=1", NULL},
    .state_size = sizeof(struct rotate),
    .place = rotate_place,
    .settle = rotate_settle,
    .memory = rotate_memory,
    .open = rotate_open,
    .close = rotate_close,
    .leg = rotate_leg,
};
