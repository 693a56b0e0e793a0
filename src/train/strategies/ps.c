/* SPDX-License-Identifier: MIT
 *
 * Parameter servers (Smola & Narayanamurthy 2010; Li et al., OSDI 2014): the first processes of the
 * view also serve. Each serves a slice of the weights, with the optimiser's state for it, and keeps
 * a replica of the slice of the server before it (train/strategies/ps/server.h). A worker computes
 * a block of samples, pushes its gradients to the servers and pulls the weights for its next one;
 * how far workers may be apart is the consistency (train/strategies/ps/sequencer.h).
 *
 * Every process has a working copy of the weights; at a meeting all copies are the same. Inside a
 * leg only what servers keep counts. When a worker is lost the servers that are left know together
 * which entries of the log were made, and each completes what it lacks (ps_reconcile). With one
 * server its loss costs all that came after the newest checkpoint.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "nn/simd/simd.h"
#include "train/memory.h"
#include "train/settings.h"
#include "train/step.h"
#include "train/strategies/ps/client.h"

struct options {
    int64_t servers; /* 0: by the number of processes */
    struct train_rules rules;
};

struct ps {
    struct ps_server server; /* of this process, if it serves */
    bool serves;             /* the struct above is one */
    struct ps_client client;
    struct train_outline outline; /* of the newest push */
    int64_t clock;                /* of this worker's pushes in this view */
    uint64_t number;              /* of the view's newest entry, at a meeting */
    bool blocks;                  /* the task serves blocks now */

    /* A leg under way, or one that ended half-way: its view and this worker's place in it. */
    bool dirty;
    uint32_t view;
    int rank;
    struct train_step step;
    int64_t step_number;    /* of that block, as the task knows it */
    bool computing, pushed; /* the block under way has no answer; it was pushed */

    struct train_span left[TRAIN_MAX_SPANS + 1]; /* samples above the cursor that are done */
    int left_count;
    struct train_outcome unfinished; /* of the step after the position, from before a loss */
    struct train_staleness staleness;
    double told;                   /* when the journal was told of a step … */
    struct train_clock told_clock; /* … and the clock then */
};

/* ---- who has what ---- */

static int ps_servers(const struct options *options, int size)
{
    int64_t wanted = options->servers > 0 ? options->servers : size > 2 ? 2 : 1;

    return (int)(wanted < size ? wanted : size);
}

static void ps_place(const struct train_placing *p, int rank, struct train_holds *wanted)
{
    int servers = ps_servers(p->options, p->size), count;
    struct train_slice slices[2];

    wanted->at[wanted->count++] =
        (struct train_hold){.group = TRAIN_WEIGHTS, .count = p->floats[TRAIN_WEIGHTS]};
    if (rank >= servers)
        return;
    count = ps_server_slices(p->floats[TRAIN_SLOTS], rank, servers, slices);
    if (count == 2 && slices[1].from < slices[0].from) { /* ascending */
        struct train_slice own = slices[0];

        slices[0] = slices[1];
        slices[1] = own;
    }
    if (count == 2 && slices[0].from + slices[0].count == slices[1].from) {
        slices[0].count += slices[1].count;
        count = 1;
    }
    for (int i = 0; i < count; i++)
        if (slices[i].count > 0)
            wanted->at[wanted->count++] = (struct train_hold){
                .group = TRAIN_SLOTS, .from = slices[i].from, .count = slices[i].count};
}

/* A server has its slices a second time, a push of every worker, and slices on their way. */
static void ps_memory(const struct train_memory_question *q, struct train_memory *m)
{
    int servers = ps_servers(q->options, q->seat.workers);
    double slice = q->sizes->weights / servers, kept = servers > 1 ? 2 * slice : slice;

    if (q->seat.rank >= servers)
        return;
    m->of[TRAIN_MEMORY_SPARE].own += kept;
    m->of[TRAIN_MEMORY_COMMUNICATION].own += q->seat.workers * kept + (q->seat.workers - 1) * slice;
}

/* ---- a block ---- */

/* What a worker pushes is clipped, not the sum: a server sees slices alone. Bounds of shares add up
 * to the bound of the batch. */
static void ps_clip(struct train_session *s, const struct data_batch *batch)
{
    float *gradients = s->team.exchange.mine + TRAIN_HEAD;
    double bound = s->job->clip * batch->count / fmax(1, batch->whole), norm;

    if (s->job->clip == 0)
        return;
    norm = sqrt(nn_simd()->square_sum(s->state.floats, gradients));
    for (size_t i = 0; norm > bound && i < s->state.floats; i++)
        gradients[i] = (float)(gradients[i] * (bound / norm));
}

static base_status ps_prepare(struct train_session *s)
{
    struct ps *p = s->strategy_state;
    const struct train_ps_body *a = &p->client.answer;
    const struct train_block block = {.epoch = s->state.position.epoch,
                                      .from = (size_t)a->block.from,
                                      .count = (size_t)a->block.count,
                                      .batch = (uint32_t)a->block.count};
    bool blocks = !a->shared, change = blocks != p->blocks;

    s->state.position.step = a->step;
    p->blocks = blocks;
    if (blocks)
        return s->task->take(s, &block);
    s->state.position.cursor = a->whole.from;
    return change ? s->task->take(s, NULL) : BASE_OK;
}

static base_status ps_compute(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;
    const struct train_ps_body *a = &p->client.answer;
    struct train_step *step = &p->step;

    TRY(ps_prepare(s));
    p->computing = true;
    p->pushed = false;
    TRY(train_step_compute(s, step));
    p->step_number = s->team.exchange.step;
    train_fault_stall(&s->fault, (uint64_t)p->clock);
    if (step->batch.count != a->block.count)
        TRY(base_fail(BASE_ERR_INTERNAL, "%u samples of a block of %lld", step->batch.count,
                      (long long)a->block.count));
    ps_clip(s, &step->batch);
    p->outline = (struct train_outline){.rank = s->team.exchange.rank,
                                        .shared = a->shared,
                                        .clock = p->clock++,
                                        .read = p->client.read,
                                        .block = a->block,
                                        .loss_sum = step->outcome.loss_sum,
                                        .correct = step->outcome.correct,
                                        .seen = step->outcome.seen,
                                        .stop = train_team_stopping(&s->team),
                                        .renew = train_team_outdated(&s->team),
                                        .news = train_settings_are_news(s)};
out:
    return st;
}

/* ---- a leg ---- */

/* A server's process tells its journal of every step whose samples are all in the weights. */
static void ps_tell(struct train_session *s)
{
    struct ps *p = s->strategy_state;
    struct train_finished *told = NULL;
    int count = p->serves ? ps_server_take_told(&p->server, &told, &p->staleness) : 0;

    for (int i = 0; i < count; i++) {
        struct train_step step = {.began = p->told,
                                  .before = p->told_clock,
                                  .batch = {.whole = (uint32_t)told[i].samples},
                                  .outcome = told[i].outcome,
                                  .update = {.hyper = {.lr = told[i].lr}}};

        s->state.position.step = told[i].step;
        train_step_tell(s, &step);
        p->told = base_now();
        p->told_clock = s->clock;
    }
    if (!p->serves && s->team.worker != NULL)
        cluster_worker_step(s->team.worker, p->client.answer.step);
    base_free(told);
}

static base_status ps_work(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;
    const struct train_ps_body *a = &p->client.answer;

    p->told = base_now();
    p->told_clock = s->clock;
    TRY(ps_client_ask(&p->client));
    for (;;) {
        TRY(ps_client_answer(&p->client));
        if (p->computing && a->clock == p->clock)
            s->samples += p->outline.block.count;
        p->computing = false;
        if (a->diverged)
            break;
        TRY(ps_client_pull(&p->client, a->number));
        ps_tell(s);
        if (a->over)
            break;
        TRY(ps_compute(s));
        train_fault_at(&s->fault, "combine", s->team.exchange.step);
        p->pushed = true;
        ps_client_push(&p->client, &p->outline);
        train_fault_at(&s->fault, "update", s->team.exchange.step);
    }
out:
    return st;
}

/* The samples above the cursor that are done, from the first worker that knows of any. */
static base_status ps_share_left(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;
    int64_t mine = p->left_count, all[COMM_MAX_WORKERS];
    int root = 0;

    TRY(train_team_gather(&s->team, &mine, sizeof mine, all));
    while (root < s->team.exchange.size && all[root] == 0)
        root++;
    if (root == s->team.exchange.size)
        goto out;
    if (all[root] > TRAIN_MAX_SPANS)
        TRY(base_fail(BASE_ERR_DATA, "%lld spans of samples", (long long)all[root]));
    TRY(train_team_broadcast(&s->team, root, p->left, (size_t)all[root] * sizeof *p->left));
    p->left_count = (int)all[root];
out:
    return st;
}

static base_status ps_begin(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    const struct options *options = s->options;
    struct ps *p = s->strategy_state;
    const struct train_exchange *x = &s->team.exchange;
    const struct train_position *at = &s->state.position;
    struct train_rules rules = options->rules;
    int servers = ps_servers(options, x->size);
    int64_t end = at->cursor + (goal - at->step) * s->plan.batch;

    if (end > s->count[DATA_TRAIN])
        end = s->count[DATA_TRAIN];
    if (rules.backup >= x->size)
        rules.backup = x->size - 1;
    if (s->state.ahead == 0) /* all went back to a checkpoint */
        p->left_count = 0;
    train_fault_at(&s->fault, "leg", at->step + 1);
    TRY(ps_share_left(s));
    if (x->size > 1)
        TRY(comm_engine_begin(s->team.group));
    p->dirty = true; /* from here on what servers keep is what counts */
    p->view = s->team.view.number;
    p->rank = x->rank;
    ps_client_open(&p->client, s, servers, x->rank < servers ? &p->server : NULL);
    if (x->rank >= servers)
        goto out;
    p->serves = true;
    TRY(ps_server_open(&p->server, s, servers, p->number, rules, end, p->left, p->left_count));
    ps_server_count(&p->server, &p->unfinished);
    p->unfinished = (struct train_outcome){0};
    TRY(ps_server_start(&p->server));
out:
    return st;
}

/* All workers have the weights at the leg's end: every server may go. */
static base_status ps_end(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;

    TRY(ps_client_leave(&p->client));
    if (p->serves)
        TRY(ps_server_finish(&p->server));
    if (s->team.exchange.size > 1)
        TRY(comm_engine_end(s->team.group));
out:
    return st;
}

static void ps_arrive(struct train_session *s)
{
    struct ps *p = s->strategy_state;
    const struct train_ps_body *a = &p->client.answer;
    struct train_position *at = &s->state.position;

    at->step = a->step;
    at->cursor = a->block.from;
    at->loss_sum = a->loss_sum;
    at->correct = a->correct;
    at->seen = a->seen;
    s->verdict.stop = a->stop;
    s->verdict.renew = a->renew;
    s->verdict.news = a->news;
    p->number = a->number;
    p->left_count = 0;
    s->state.ahead = 0;
    p->dirty = false;
}

static void ps_claim(struct train_session *s, bool current);
static void ps_resolve(struct train_session *s, const struct train_progress *progress);

static void ps_close_server(struct ps *p)
{
    if (p->serves)
        ps_server_close(&p->server);
    p->serves = false;
}

/* The leg ended half-way: what servers keep is what counts. */
static void ps_fail(struct train_session *s, base_status st)
{
    struct ps *p = s->strategy_state;
    bool alone = s->team.exchange.size == 1;

    if (p->serves)
        ps_server_abandon(&p->server);
    if (!alone)
        base_ignore(comm_engine_end(s->team.group)); /* why it failed is known */
    if (st == BASE_ERR_PEER_LOST)
        train_clock_lost(&s->clock, &p->told_clock);
    else
        train_clock_enter(&s->clock, TRAIN_COMPUTE);
    if (!p->dirty) /* the state is the meeting's, whole */
        return;
    if (p->computing && !p->pushed) {
        s->task->undo(s);
        p->computing = false;
    }
    if (p->serves)
        ps_server_land(&p->server);
    if (!alone) {
        ps_claim(s, true);
        return;
    }
    ps_resolve(s, &p->server.progress);
    p->dirty = false;
    ps_close_server(p);
}

static base_status ps_leg(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;

    p->computing = false;
    TRY(ps_begin(s, goal));
    TRY(ps_work(s));
    TRY(ps_end(s));
    if (p->client.answer.diverged) {
        p->step.outcome = (struct train_outcome){p->client.answer.loss_sum,
                                                 p->client.answer.correct, p->client.answer.seen};
        st = train_step_judge(s, &p->step);
        if (st == BASE_OK)
            st = base_fail(BASE_ERR_DIVERGED, "the loss of another worker has diverged; try a "
                                              "lower --lr or --clip 1");
        goto out;
    }
    ps_arrive(s);
    ps_close_server(p);
out:
    if (st != BASE_OK)
        ps_fail(s, st);
    return st;
}

/* ---- after a loss ---- */

static void ps_add_claim(struct train_session *s, enum train_group group, size_t from, size_t count)
{
    s->state.claims.at[s->state.claims.count++] = (struct train_hold){
        .group = group, .from = from, .count = count, .version = train_state_version(&s->state)};
}

/* What this worker has that counts. A server has its slices, if it is `current`; statistics are
 * there on every worker. */
static void ps_claim(struct train_session *s, bool current)
{
    const struct ps *p = s->strategy_state;
    uint64_t size[TRAIN_GROUPS];

    train_state_sizes(&s->state, size);
    s->state.claims.count = 0;
    ps_add_claim(s, TRAIN_STATISTICS, 0, size[TRAIN_STATISTICS]);
    for (int i = 0; p->serves && current && i < p->server.slice_count; i++)
        for (enum train_group g = TRAIN_WEIGHTS; g <= TRAIN_SLOTS; g++)
            ps_add_claim(s, g, p->server.slices[i].from, p->server.slices[i].count);
}

/* Whether the push that has no answer is in the log is known now. */
static void ps_resolve(struct train_session *s, const struct train_progress *progress)
{
    struct ps *p = s->strategy_state;

    if (!p->computing)
        return;
    p->computing = false;
    if (progress->pushes[p->rank] == p->clock) {
        s->samples += p->outline.block.count;
        return;
    }
    s->team.exchange.step = p->step_number;
    s->task->undo(s);
}

struct ps_note {
    uint32_t view, serves; /* view 0: this worker is in no leg */
    uint64_t applied;
    int64_t entries; /* that another server may lack */
};

/* Every server learns what any of them knows of the log; `mine`: what this one does. */
static base_status ps_share_logs(struct train_session *s, const struct ps_note *notes,
                                 uint32_t view, const struct train_log_entry *mine)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;
    int rank = s->team.exchange.rank;
    struct train_log_entry *log = NULL;

    for (int i = 0; i < s->team.exchange.size; i++) {
        size_t count = (size_t)notes[i].entries;

        if (notes[i].view != view || count == 0)
            continue;
        if (count > (size_t)2 * COMM_MAX_WORKERS)
            TRY(base_fail(BASE_ERR_DATA, "a log of %zu entries", count));
        log = base_calloc(count, sizeof *log);
        if (i == rank && mine != NULL) /* then it is: the count is its own */
            memcpy(log, mine, count * sizeof *log);
        TRY(train_team_broadcast(&s->team, i, log, count * sizeof *log));
        for (size_t e = 0; e < count && p->dirty && p->serves && p->view == view; e++)
            if (!ps_server_is_entry(&p->server, &log[e]))
                TRY(base_fail(BASE_ERR_DATA, "an entry of the log that is none"));
        if (p->dirty && p->serves && p->view == view && i != rank)
            ps_server_learn(&p->server, log, (int)count);
        base_free(log);
        log = NULL;
    }
out:
    base_free(log);
    return st;
}

/* Where the samples stand, from a server that has applied every entry. */
static base_status ps_share_progress(struct train_session *s, int source)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;
    struct train_progress *progress = base_calloc(1, sizeof *progress);

    if (s->team.exchange.rank == source)
        *progress = p->server.progress;
    TRY(train_team_broadcast(&s->team, source, progress, sizeof *progress));
    if (!p->dirty)
        goto out;
    if (progress->ledger.done_count < 0 || progress->ledger.done_count > TRAIN_MAX_SPANS)
        TRY(base_fail(BASE_ERR_DATA, "a ledger of %d spans", progress->ledger.done_count));
    train_progress_position(progress, &s->state.position);
    p->left_count = train_progress_spans(progress, p->left);
    s->state.ahead = 0;
    for (int i = 0; i < p->left_count; i++)
        s->state.ahead += p->left[i].count;
    ps_resolve(s, progress);
out:
    base_free(progress);
    return st;
}

static base_status ps_reconcile(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;
    int size = s->team.exchange.size, source = -1;
    struct ps_note mine = {0}, *notes = base_calloc((size_t)size, sizeof *notes);
    struct train_log_entry *known = NULL;
    uint32_t view = 0;
    uint64_t applied = 0;

    if (p->dirty)
        mine = (struct ps_note){.view = p->view, .serves = p->serves};
    if (p->dirty && p->serves)
        mine.entries = ps_server_known(&p->server, &known);
    TRY(train_team_gather(&s->team, &mine, sizeof mine, notes));
    for (int i = 0; i < size; i++)
        view = notes[i].view > view ? notes[i].view : view;
    if (view == 0)
        goto out;
    TRY(ps_share_logs(s, notes, view, known));
    mine.applied = p->dirty && p->serves && p->view == view ? p->server.applied : 0;
    TRY(train_team_gather(&s->team, &mine, sizeof mine, notes));
    for (int i = 0; i < size; i++)
        if (notes[i].view == view && notes[i].serves &&
            (source < 0 || notes[i].applied > applied)) {
            source = i;
            applied = notes[i].applied;
        }
    if (source >= 0)
        TRY(ps_share_progress(s, source));
    if (!p->dirty)
        goto out;
    if (p->serves)
        ps_server_land(&p->server);
    ps_claim(s, p->view == view && mine.applied == applied);
out:
    base_free(known);
    base_free(notes);
    return st;
}

/* The state is agreed on: nothing of the leg is needed any more. A worker that goes by itself, or
 * goes back, may save what it has if that is all of it. */
static void ps_settle(struct train_session *s, struct train_version version)
{
    struct ps *p = s->strategy_state;

    if (!p->dirty)
        return;
    if (p->serves)
        ps_resolve(s, &p->server.progress);
    p->unfinished = (struct train_outcome){0};
    if (version.step >= 0) {
        ps_tell(s); /* steps that were completed after the loss */
        if (p->serves && p->server.told_count > 0)
            p->unfinished = p->server.told[0].outcome;
    }
    if (version.step < 0 && p->serves && p->server.servers <= 2 &&
        train_progress_spans(&p->server.progress, p->left) == 0) {
        s->state.claims.count = 0;
        s->state.ahead = 0;
    }
    p->dirty = p->computing = false;
    ps_close_server(p);
}

static base_status ps_open(struct train_session *s)
{
    const struct options *options = s->options;
    struct ps *p = s->strategy_state;

    p->number = 0;
    p->clock = 0;
    p->blocks = false;
    if (s->job->sync_bn && (options->rules.consistency != TRAIN_BSP || options->rules.backup > 0))
        return base_fail(BASE_ERR_USAGE, "--sync-bn needs workers that compute at the same time: "
                                         "ps:consistency=bsp without backup");
    return BASE_OK;
}

static void ps_fini(void *state)
{
    ps_close_server(state);
}

static base_status ps_check(const void *struct_of)
{
    const struct options *options = struct_of;

    if (options->rules.backup > 0 && options->rules.consistency != TRAIN_BSP)
        return base_fail(BASE_ERR_USAGE,
                         "backup is for consistency=bsp: under %s no worker waits "
                         "for the slowest",
                         train_consistency_names[options->rules.consistency]);
    return BASE_OK;
}

static unsigned ps_roles(const struct train_session *s, int rank)
{
    bool serves = rank < ps_servers(s->options, s->team.exchange.size);

    return CLUSTER_ROLE_WORKER | (serves ? CLUSTER_ROLE_SERVER : 0);
}

static json_t *ps_figures(const struct train_session *s)
{
    const struct ps *p = s->strategy_state;
    json_t *ages = json_array();
    int last = TRAIN_STALENESS;

    while (last > 1 && p->staleness.pushes[last - 1] == 0)
        last--;
    for (int i = 0; i < last; i++)
        json_array_append_new(ages, json_integer(p->staleness.pushes[i]));
    return json_pack("{s:o, s:I}", "staleness", ages, "reissued",
                     (json_int_t)p->staleness.reissued);
}

#define AT(field) offsetof(struct options, field)

/* clang-format off */
static const struct base_option table[] = {
    {.name = "servers", .argument = "K", .kind = BASE_INT, .offset = AT(servers), .max = COMM_MAX_WORKERS,
     .help = "processes that serve, too; 0: 2 of three processes and more, otherwise 1"},
    {.name = "consistency", .argument = "NAME", .kind = BASE_ENUM, .offset = AT(rules.consistency), .live = true,
     .names = train_consistency_names,
     .help = "bsp: all workers in step; asp: each at its own pace; ssp: not too far apart"},
    {.name = "staleness", .argument = "S", .kind = BASE_INT, .offset = AT(rules.staleness), .max = 1e6, .live = true,
     .help = "ssp: blocks that a worker may be ahead of the slowest one"},
    {.name = "backup", .argument = "B", .kind = BASE_INT, .offset = AT(rules.backup), .max = COMM_MAX_WORKERS,
     .live = true,
     .help = "bsp: a step does not wait for the slowest B workers"},
    {0},
};
/* clang-format on */

const struct train_strategy train_strategy_ps = {
    .name = "ps",
    .help = "parameter servers: workers push gradients and pull weights, in step or not",
    .commit_unit = "update",
    .least = 1,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.rules = {.consistency = TRAIN_BSP, .staleness = 3}},
    .check = ps_check,
    .examples = (const char *const[]){"", "servers=1", "servers=3", "consistency=asp",
                                      "consistency=ssp,staleness=1,servers=2", "backup=1", NULL},
    .place = ps_place,
    .reconcile = ps_reconcile,
    .settle = ps_settle,
    .memory = ps_memory,
    .roles = ps_roles,
    .figures = ps_figures,
    .state_size = sizeof(struct ps),
    .fini = ps_fini,
    .open = ps_open,
    .leg = ps_leg,
};
