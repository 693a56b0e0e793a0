/* SPDX-License-Identifier: MIT
 *
 * Parameter servers (Smola & Narayanamurthy 2010; Li et al., OSDI 2014): the first processes of the
 * view also serve, or, `apart`, do nothing else. Each serves a slice of the weights, with the
 * optimiser's state for it, and keeps a replica of the slice of the server before it
 * (train/strategies/ps/server.h). A worker computes a block of samples, pushes its gradients to the
 * servers and pulls the weights for its next one; how far workers may be apart is the consistency
 * (train/strategies/ps/sequencer.h).
 *
 * Every process has a working copy of the weights; at a meeting all copies are the same. Inside a
 * leg only what servers keep counts. When a worker is lost the servers that are left know together
 * which entries of the log were made, and each completes what it lacks (ps_reconcile). With one
 * server its loss costs all that came after the newest checkpoint.
 */
#include "train/strategies/ps/ps.h"
#include "base/clock.h"
#include "base/mem.h"
#include "train/step.h"

/* ---- a leg ---- */

/* A server's process tells its journal of every step whose samples are all in the weights. */
void ps_tell(struct train_session *s)
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
        train_fault_at(&s->fault, "serve", told[i].step);
        p->told = base_now();
        p->told_clock = s->clock;
    }
    if (!p->serves && s->team.worker != NULL)
        cluster_worker_step(s->team.worker, p->client.answer.step);
    base_free(told);
}

/* Is the push that was answered in the weights? If not, it leaves no trace. */
static void ps_settle_push(struct train_session *s)
{
    struct ps *p = s->strategy_state;
    bool counts = p->client.answer.clock == p->clock;

    if (!p->computing)
        return;
    p->computing = false;
    ps_parcel_settle(&p->parcel, counts);
    if (counts)
        s->samples += p->outline.block.count;
    else
        s->task->undo(s);
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
        ps_settle_push(s);
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

/* In a process that only serves: until the leg is over. */
static base_status ps_attend(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;
    const struct train_ps_body *a = &p->client.answer;
    enum train_category was = train_clock_enter(&s->clock, TRAIN_WAIT);
    bool over = false;

    p->told = base_now();
    p->told_clock = s->clock;
    while (!over) {
        TRY(ps_server_attend(&p->server, &p->client.answer, &over));
        ps_tell(s);
    }
    train_clock_enter(&s->clock, was);
    if (!a->diverged)
        TRY(ps_client_pull(&p->client, a->number));
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
    if (all[root] < 0 || all[root] > TRAIN_MAX_SPANS)
        TRY(base_fail(BASE_ERR_DATA, "worker %u has %lld spans of samples",
                      s->team.view.members[root].id, (long long)all[root]));
    TRY(train_team_broadcast(&s->team, root, p->left, (size_t)all[root] * sizeof *p->left));
    p->left_count = (int)all[root];
    if (!train_spans_ascend(p->left, p->left_count, s->state.position.cursor, s->count[DATA_TRAIN]))
        TRY(base_fail(BASE_ERR_DATA, "worker %u says that samples are done that cannot be",
                      s->team.view.members[root].id));
out:
    return st;
}

static base_status ps_begin(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    const struct ps_options *options = s->options;
    struct ps *p = s->strategy_state;
    const struct train_exchange *x = &s->team.exchange;
    const struct train_position *at = &s->state.position;
    struct train_rules rules = options->rules;
    struct ps_seats seats = ps_seats(options, x->size);
    size_t bucket = (size_t)options->bucket / sizeof(float);
    int64_t end = at->cursor + (goal - at->step) * s->plan.batch;

    if (end > s->count[DATA_TRAIN])
        end = s->count[DATA_TRAIN];
    if (rules.backup >= x->size - seats.first_worker)
        rules.backup = x->size - seats.first_worker - 1;
    if (s->state.ahead == 0) /* all went back to a checkpoint */
        p->left_count = 0;
    train_fault_at(&s->fault, "leg", at->step + 1);
    TRY(ps_share_left(s));
    TRY(ps_parcel_begin(&p->parcel, s));
    if (x->size > 1)
        TRY(comm_engine_begin(s->team.group));
    p->dirty = true; /* from here on what servers keep is what counts */
    p->view = s->team.view.number;
    p->rank = x->rank;
    ps_client_open(&p->client, s, seats, x->rank < seats.servers ? &p->server : NULL, &p->parcel,
                   bucket);
    p->client.exact = options->correct;
    p->client.overlaps = ps_overlaps(options, x->one_host, s->job->clip != 0);
    p->works = x->rank >= seats.first_worker;
    if (x->rank >= seats.servers)
        goto out;
    p->serves = true;
    TRY(ps_server_open(&p->server, s, seats, p->number, rules, end, p->left, p->left_count));
    if (options->correct)
        TRY(ps_server_correct(&p->server, options->lambda));
    p->server.told_of = p->told_of;
    p->server.bucket = bucket;
    p->server.wiring = ps_parcel_packs(&p->parcel) ? &p->parcel.wiring : NULL;
    p->server.region = p->client.shelf.of[x->rank];
    ps_progress_begin(&p->server.progress, &p->unfinished, &p->server.told);
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
    TRY(ps_client_leave_first(&p->client));
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

/* Why there is no use in going on, where this worker's own loss does not tell. */
static const char *ps_why(const struct train_ps_body *answer)
{
    switch (answer->refusal) {
    case PS_NOT_FINITE:
        return "no worker is left whose gradients are finite";
    case PS_WRONG_SIZE:
    case PS_WRONG_BLOCK:
    case PS_UNREADABLE:
        return "no worker is left whose gradients can be used";
    default:
        return "the loss of another worker has diverged";
    }
}

static base_status ps_leg(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;

    p->computing = false;
    TRY(ps_begin(s, goal));
    TRY(p->works ? ps_work(s) : ps_attend(s));
    TRY(ps_end(s));
    if (p->client.answer.diverged) {
        p->step.outcome = (struct train_outcome){p->client.answer.loss_sum,
                                                 p->client.answer.correct, p->client.answer.seen};
        st = train_step_judge(s, &p->step);
        if (st == BASE_OK)
            st = base_fail(BASE_ERR_DIVERGED, "%s; try a lower --lr or --clip 1",
                           ps_why(&p->client.answer));
        goto out;
    }
    ps_arrive(s);
    ps_close_server(p);
out:
    if (st != BASE_OK)
        ps_fail(s, st);
    return st;
}

static base_status ps_open(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct ps_options *options = s->options;
    struct ps *p = s->strategy_state;
    struct ps_seats seats = ps_seats(options, s->team.exchange.size);

    p->number = 0;
    p->clock = 0;
    p->blocks = false;
    p->told_of = 0;
    if (options->apart && options->servers >= s->team.exchange.size && s->team.view.number <= 1)
        TRY(base_fail(BASE_ERR_USAGE,
                      "ps:apart,servers=%lld needs more than %lld processes (--workers), one of "
                      "them for the work; there %s %d",
                      (long long)options->servers, (long long)options->servers,
                      s->team.exchange.size == 1 ? "is" : "are", s->team.exchange.size));
    TRY(ps_parcel_open(&p->parcel, options->wire, s, seats));
    TRY(ps_shelf_open(&p->client.shelf, &s->team, s->state.floats, seats.servers));
out:
    return st;
}

/* What a server knows stays; it serves no more. */
static void ps_close(struct train_session *s)
{
    struct ps *p = s->strategy_state;

    p->server.region = NULL;
    ps_shelf_close(&p->client.shelf);
}

static void ps_fini(void *state)
{
    struct ps *p = state;

    ps_close_server(p);
    ps_client_fini(&p->client);
    ps_parcel_fini(&p->parcel);
}

static const char *const *ps_extras(const void *options)
{
    static const char *const residual[] = {PS_PARCEL_RESIDUAL, NULL};

    return train_wire_is_lossy(((const struct ps_options *)options)->wire) ? residual : NULL;
}

static base_status ps_saving(struct train_session *s)
{
    return ps_parcel_saving(&((struct ps *)s->strategy_state)->parcel, s);
}

static void ps_saved(struct train_session *s)
{
    ps_parcel_saved(&((struct ps *)s->strategy_state)->parcel, s);
}

static base_status ps_check(const void *struct_of)
{
    const struct ps_options *options = struct_of;

    if (options->rules.backup > 0 && options->rules.consistency != TRAIN_BSP)
        return base_fail(BASE_ERR_USAGE,
                         "backup is for consistency=bsp: under %s no worker waits "
                         "for the slowest",
                         train_consistency_names[options->rules.consistency]);
    if (options->correct && options->rules.consistency == TRAIN_BSP)
        return base_fail(BASE_ERR_USAGE, "correct=on is for consistency=ssp or asp: under bsp no "
                                         "gradient is stale");
    return train_wire_check(options->wire);
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
    return json_pack("{s:o, s:I, s:I, s:I, s:I}", "staleness", ages, "reissued",
                     (json_int_t)p->staleness.reissued, "refused", (json_int_t)p->staleness.refused,
                     "bytes_pushed", (json_int_t)p->client.pushed, "bytes_pulled",
                     (json_int_t)p->client.pulled);
}

/* What corrections need is counted at the start (ps_memory). */
static base_status ps_suits(const void *struct_of, const void *first_struct,
                            const struct train_job *job)
{
    const struct ps_options *options = struct_of, *first = first_struct;

    if (job->sync_bn &&
        (options->rules.consistency != TRAIN_BSP || options->rules.backup > 0 || options->apart))
        return base_fail(BASE_ERR_USAGE, "--sync-bn needs processes that compute at the same time: "
                                         "ps:consistency=bsp without backup and apart");
    if (options->overlap == PS_OVERLAP_ON && job->clip > 0)
        return base_fail(BASE_ERR_USAGE, "ps:overlap=on does not go with --clip, whose norm is of "
                                         "the whole gradient; leave out one of them");
    if (options->correct && !first->correct)
        return base_fail(BASE_ERR_USAGE,
                         "correct=on needs memory that this job has not counted; it can be set to "
                         "off, and on again, in a job that was started with it");
    return BASE_OK;
}

#define AT(field) offsetof(struct ps_options, field)

/* clang-format off */
static const struct base_option table[] = {
    {.name = "servers", .argument = "K", .kind = BASE_INT, .offset = AT(servers), .max = COMM_MAX_WORKERS,
     .help = "processes that serve, too; 0: 2 of three processes and more, otherwise 1"},
    {.name = "apart", .kind = BASE_FLAG, .offset = AT(apart),
     .help = "these do nothing else: the other processes work"},
    {.name = "consistency", .argument = "NAME", .kind = BASE_ENUM, .offset = AT(rules.consistency), .live = true,
     .names = train_consistency_names,
     .help = "bsp: all workers in step; asp: each at its own pace; ssp: not too far apart"},
    {.name = "staleness", .argument = "S", .kind = BASE_INT, .offset = AT(rules.staleness), .max = 1e6, .live = true,
     .help = "ssp: blocks that a worker may be ahead of the slowest one"},
    {.name = "backup", .argument = "B", .kind = BASE_INT, .offset = AT(rules.backup), .max = COMM_MAX_WORKERS,
     .live = true,
     .help = "bsp: a step does not wait for the slowest B workers"},
    {.name = "wire", .argument = "NAME[/O=V]", .kind = BASE_TEXT, .offset = AT(wire),
     .registry = train_wire_registry, .help = "format in which gradients travel to the servers"},
    {.name = "bucket", .argument = "BYTES", .kind = BASE_SIZE, .offset = AT(bucket), .min = 1024, .max = 1e12,
     .help = "of gradients that are sent together; with a wire a server's slice is"},
    {.name = "overlap", .argument = "WHEN", .kind = BASE_ENUM, .offset = AT(overlap),
     .names = (const char *const[]){[PS_OVERLAP_AUTO] = "auto", [PS_OVERLAP_ON] = "on", [PS_OVERLAP_OFF] = "off", NULL},
     .help = "push while backward goes on (auto: only between hosts)"},
    {.name = "correct", .kind = BASE_FLAG, .offset = AT(correct), .live = true,
     .help = "ssp, asp: a stale gradient is corrected for what became of the weights since they were read"},
    {.name = "lambda", .argument = "L", .kind = BASE_REAL, .offset = AT(lambda), .max = 1e6, .live = true,
     .help = "how strongly correct does that"},
    {0},
};
/* clang-format on */

const struct train_strategy train_strategy_ps = {
    .name = "ps",
    .help = "parameter servers: workers push gradients and pull weights, in step or not",
    .commit_unit = "update",
    .least = 1,
    .options = table,
    .options_size = sizeof(struct ps_options),
    .defaults = &(const struct ps_options){.rules = {.consistency = TRAIN_BSP, .staleness = 3},
                                           .bucket = 2 << 20,
                                           .lambda = 8},
    .check = ps_check,
    .suits = ps_suits,
    .examples = (const char *const[]){"", "servers=1", "servers=3", "consistency=asp",
                                      "consistency=ssp,staleness=1,servers=2,overlap=on,bucket=4K",
                                      "backup=1", "consistency=asp,correct=on",
                                      "apart=on,consistency=ssp", "wire=sparse",
                                      "apart=on,backup=1,wire=int8", "overlap=on,bucket=1K", NULL},
    .place = ps_place,
    .reconcile = ps_reconcile,
    .settle = ps_settle,
    .extras = ps_extras,
    .saving = ps_saving,
    .saved = ps_saved,
    .memory = ps_memory,
    .cost = ps_cost,
    .first_worker = ps_first_worker,
    .roles = ps_roles,
    .figures = ps_figures,
    .state_size = sizeof(struct ps),
    .fini = ps_fini,
    .open = ps_open,
    .close = ps_close,
    .leg = ps_leg,
    .await = ps_await,
    .ready = ps_ready,
};
