/* SPDX-License-Identifier: MIT
 *
 * Model parallel: the network's layers are cut into stages that lie on the workers one after the
 * other (ring/cut.h), once or in several laps around. A batch goes through them in micro-batches,
 * activations forward and gradients back, from neighbour to neighbour (ring/mail.h), by a rule that
 * needs no scheduler (ring/rule.h). The bits are those of one worker with --accumulate.
 *
 * A worker that has done its part of a batch begins the next one, while others are still at this
 * one. Its stages have their new weights by then, so that it computes what it would compute if it
 * had waited.
 *
 * Every worker also has replicas of the stages of the worker before it, or of several
 * (ring/replicas.h). When the gradients of its own stages are complete it sends them to the workers
 * that have replicas of these, and all of them make the same update: so the loss of a worker costs
 * a step or two (ring/commit.h). Where all workers that have a stage are lost at once, neighbours
 * in the ring, all others go back to the newest checkpoint.
 */
#include <inttypes.h>
#include <math.h>

#include "base/log.h"
#include "base/mem.h"
#include "nn/simd/simd.h"
#include "train/forecast.h"
#include "train/strategies/ring/async.h"
#include "train/strategies/ring/choose.h"
#include "train/strategies/ring/commit.h"
#include "train/strategies/ring/divide.h"
#include "train/strategies/ring/holds.h"
#include "train/strategies/ring/rare.h"
#include "train/strategies/ring/replicas.h"
#include "train/strategies/ring/spare.h"

enum {
    USUAL_PIECES = 8, /* until they are chosen */
    USUAL_REPLICAS = 2,
};

static int64_t ring_pieces(const void *options)
{
    int64_t pieces = ((const struct ring_options *)options)->microbatches;

    return pieces > 0 ? pieces : USUAL_PIECES;
}

static void ring_memory(const struct train_memory_question *q, struct train_memory *m)
{
    const struct ring_options *options = q->options;
    bool overlaps = ring_options_overlap(options, q->seat.workers, q->clips);
    int64_t every = ring_options_every(options);
    struct ring_bytes bytes;
    struct ring_cut cut;

    ring_cut_make(q->sizes->graph, options, q->seat.workers, &cut);
    if (ring_stages_memory(q->sizes->graph, options, &cut, q->seat.rank, ring_pieces(options),
                           q->sizes->samples, &bytes) != BASE_OK)
        return; /* the whole model's stand in for them */
    m->of[TRAIN_MEMORY_ACTIVATIONS].own = bytes.activations;
    m->of[TRAIN_MEMORY_GRADIENTS].own += bytes.gradients;
    m->of[TRAIN_MEMORY_COMMUNICATION].own += bytes.messages;
    if (options->async)
        m->of[TRAIN_MEMORY_SPARE].own += ring_async_bytes(q->sizes->graph, bytes.weights,
                                                          ring_pieces(options) * q->sizes->samples);
    if (overlaps && every == 1)
        m->of[TRAIN_MEMORY_GRADIENTS].own += bytes.weights;
    if ((overlaps && !options->async) || (every > 1 && q->seat.workers > 1))
        m->of[TRAIN_MEMORY_SPARE].own +=
            (1 + q->sizes->slots) * bytes.weights + 3 * q->sizes->statistics;
    if (every > 1)
        m->of[TRAIN_MEMORY_SPARE].own += q->sizes->slots * bytes.replicas;
}

/* The share of a step in which the worker with the most to do waits. */
static double ring_bubble(const struct ring_costs *costs, const struct ring_cut *cut,
                          const struct ring_options *options, bool overlaps)
{
    struct ring_options played = *options;
    struct ring_outlook outlook;
    double most = 0;

    played.microbatches = ring_pieces(options);
    played.overlapping = overlaps;
    ring_expect(costs, cut, &played, &outlook);
    for (int i = 0; i < cut->workers; i++)
        most = fmax(most, outlook.busy[i]);
    return 1 - most / outlook.seconds;
}

/* Activations travel while other micro-batches are computed, what replicas need does not. The
 * gradients of micro-batches are added up in memory. */
static void ring_cost(const struct train_memory_question *q, struct train_cost *cost)
{
    const struct ring_options *options = q->options;
    const struct nn_graph *graph = q->sizes->graph;
    double n = q->seat.workers, pieces = (double)ring_pieces(options), bytes = q->sizes->weights;
    double every = (double)ring_options_every(options), crossing = 0, laps, mail, replicas = 0;
    double copies = ring_options_copies(options, q->seat.workers);
    struct ring_cut cut;
    struct ring_costs costs;

    ring_cut_make(graph, options, q->seat.workers, &cut);
    ring_costs_estimate(graph, q->sizes->samples, &costs);
    laps = ceil(cut.stages / n);
    for (int stage = 1; stage < cut.stages; stage++)
        crossing = fmax(crossing, (double)ring_cut_crossing(graph, cut.first[stage]));
    mail = pieces * q->sizes->samples * crossing * sizeof(float);
    if (copies > 1) /* gradients at each step, or now and then weights and slots */
        replicas = (copies - 1) * (every > 1 ? (1 + q->sizes->slots) / every : 1) * bytes / n;
    cost->exact = !options->async;
    cost->frail = every == 0 && n > 1;
    cost->work = ring_costs_unevenness(&costs, &cut) / n;
    cost->bubble = ring_bubble(&costs, &cut, options,
                               ring_options_overlap(options, q->seat.workers, q->clips));
    ring_costs_fini(&costs);
    cost->updates = (every == 1 ? copies : 1) / n;
    cost->sent = mail * laps + replicas;
    cost->hidden = cost->sent > 0 ? 1 - replicas / cost->sent : 0;
    cost->moved = 3 * (pieces - 1) * bytes + 4 * (cut.stages - 1) * mail + 2 * n * replicas;
}

/* ---- a step ---- */

/* The squares are summed tensor by tensor, so that the norm does not depend on the cut. It may
 * differ in its last bits from that of the whole gradient at once; the scale that follows is
 * rounded to fp32, where that is lost but in one case of some 10^7. */
static base_status ring_clip(struct train_session *s, struct train_update *update)
{
    base_status st = BASE_OK;
    const struct ring *ring = s->strategy_state;
    const struct nn_graph *graph = s->state.graph;
    size_t count = nn_graph_params(graph), size = (size_t)s->team.exchange.size;
    double *mine = base_calloc(count, sizeof *mine), squares = 0,
           *all = base_calloc(count * size, sizeof *all);

    for (size_t i = 0; i < count; i++) {
        const struct nn_tensor *t = nn_graph_param(graph, i);

        for (int k = 0; k < ring->stages.count; k++) {
            const struct ring_stage *stage = &ring->stages.at[k];

            if (t->offset >= stage->weights.from &&
                t->offset < stage->weights.from + stage->weights.count)
                mine[i] = nn_simd()->square_sum(t->floats,
                                                stage->sum + (t->offset - stage->weights.from));
        }
    }
    TRY(train_team_gather(&s->team, mine, count * sizeof *mine, all));
    for (size_t i = 0; i < count; i++)
        for (size_t rank = 0; rank < size; rank++)
            squares += all[rank * count + i]; /* of one rank; zeros of the others */
    train_update_clip_by(update, squares);
out:
    base_free(mine);
    base_free(all);
    return st;
}

/* A step that all have agreed on before any of them writes a weight. */
static base_status ring_step(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ring *ring = s->strategy_state;
    struct train_step step;

    TRY(train_step_compute(s, &step)); /* next batch, forward, backward */
    ring_update_replicas(s);           /* by the former gradients, whose place the next ones take */
    st = ring_agree(s, &step);
    if (st == BASE_OK && step.update.clip > 0)
        st = ring_clip(s, &step.update);
    if (st == BASE_ERR_PEER_LOST && !ring->rare) { /* another worker may have agreed */
        train_clock_lost(&s->clock, &step.before);
        ring->step = step;
        ring->doubtful = true;
        return st;
    }
    TRY(st);
    train_fault_at(&s->fault, "update", s->team.exchange.step);
    TRY(train_step_judge(s, &step));
    ring_commit(s, &step);
    train_fault_at(&s->fault, "slice", s->team.exchange.step);
out:
    if (st != BASE_OK)
        train_step_undo(s, &step, st);
    return st;
}

/* A step that this worker makes as soon as the step before it counts; it counts when the others
 * have made it, too, which this worker hears of during the next step. */
static base_status ring_step_ahead(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_step step;

    TRY(train_step_compute(s, &step));
    TRY(ring_hear(s));
    ring_update_replicas(s);
    train_fault_at(&s->fault, "update", s->team.exchange.step);
    if (!ring_of(s)->rare)
        ring_spare_keep(s);
    ring_update_own(s, &step.update);
    train_step_advance(s, &step);
    train_step_end(s, &step);
    ring_report(s, &step);
    train_fault_at(&s->fault, "slice", s->team.exchange.step);
out:
    if (st != BASE_OK)
        train_step_undo(s, &step, st);
    return st;
}

/* Steps up to the goal, all of which count at the end. */
static base_status ring_steps(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK, heard;
    bool overlaps = ring_overlaps(s), keeps = overlaps && !ring_of(s)->rare;

    if (keeps)
        ring_spare_begin(s);
    while (st == BASE_OK && s->state.position.step < goal && !train_session_halts(s))
        st = overlaps ? ring_step_ahead(s) : ring_step(s);
    if (overlaps) {
        heard = ring_hear(s);
        st = st == BASE_OK || heard == BASE_ERR_DIVERGED ? heard : st;
    }
    ring_update_replicas(s);
    if (keeps)
        ring_spare_end(s);
    return st;
}

/* The same, with replicas that are renewed after every k steps. */
static base_status ring_steps_rare(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    int64_t every = ring_options_every(s->options);

    ring_rare_begin(s);
    while (s->state.position.step < goal && !train_session_halts(s)) {
        int64_t next = (s->state.position.step / every + 1) * every;

        TRY(ring_steps(s, next < goal ? next : goal));
        TRY(ring_rare_renew(s));
    }
out:
    ring_of(s)->doubtful = st == BASE_ERR_PEER_LOST;
    return st;
}

static base_status ring_leg(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    const struct ring *ring = s->strategy_state;

    TRY(ring_is_async(s) ? ring_async_steps(s, goal)
        : ring->rare     ? ring_steps_rare(s, goal)
                         : ring_steps(s, goal));
    TRY(train_session_unite(s)); /* the next view's stages may be others */
out:
    if (st != BASE_OK && ring_is_async(s)) /* other workers may be a step apart */
        s->state.claims.at[s->state.claims.count++] =
            (struct train_hold){.version = train_state_version(&s->state)};
    else if (st != BASE_OK && !ring->doubtful)
        ring_claim(&ring->stages, s, train_state_version(&s->state));
    return st;
}

static base_status ring_check(const void *options)
{
    const struct ring_options *o = options;

    if (ring_options_every(o) < 0)
        return base_fail(BASE_ERR_USAGE,
                         "replicate=%s: give on, off, or every:K with K from 1 to %d", o->replicate,
                         RING_MAX_EVERY);
    if (ring_options_every(o) == 0 && o->replicas != USUAL_REPLICAS)
        return base_fail(BASE_ERR_USAGE,
                         "replicas=%" PRId64 " does not go with replicate=off, which keeps none; "
                         "leave out one of them",
                         o->replicas);
    if (o->async && ring_options_every(o) != 0)
        return base_fail(BASE_ERR_USAGE,
                         "async=on does not go with replicas, for which a step must count before "
                         "the next one is made; give replicate=off, too");
    if (o->async && o->overlap == RING_OVERLAP_OFF)
        return base_fail(BASE_ERR_USAGE, "async=on lets batches overlap; leave out overlap=off");
    return BASE_OK;
}

static base_status ring_suits(const void *options, const void *first, const struct train_job *job)
{
    const struct ring_options *o = options;

    (void)first;
    if ((o->overlap == RING_OVERLAP_ON || o->async) && job->clip > 0)
        return base_fail(BASE_ERR_USAGE,
                         "ring:%s=on does not go with --clip, whose norm is known only when all "
                         "gradients are; leave out one of them",
                         o->async ? "async" : "overlap");
    return BASE_OK;
}

/* ---- for the task ---- */

static bool ring_choose_open(void *options, const struct nn_graph *graph, int workers,
                             int64_t batch, int64_t least)
{
    return ring_choose(options, graph, workers, batch, least);
}

static void ring_keep(void *options, const void *former)
{
    struct ring_options *now = options;
    const struct ring_options *then = former;

    if (then->microbatches == 0 || (now->microbatches != 0 && !now->free_pieces))
        return;
    now->microbatches = then->microbatches; /* also in place of what this worker has chosen */
    now->free_pieces = false;
}

static base_status ring_divide_model(struct train_session *s, int source)
{
    struct ring *ring = s->strategy_state;

    return ring_divide(s, source, &ring->profile, &ring->outlook, &ring->measured);
}

static void ring_discard(struct train_session *s)
{
    struct ring *ring = s->strategy_state;

    ring_spare_close(ring);
    ring_async_close(ring);
    ring_stages_close(&ring->stages);
}

static base_status ring_fit(struct train_session *s, int piece)
{
    base_status st = BASE_OK;
    struct ring *ring = s->strategy_state;

    ring_discard(s);
    TRY(ring_stages_open(&ring->stages, s, piece));
    TRY(ring_spare_open(s));
    TRY(ring_async_open(s, piece * ring_pieces(s->options)));
out:
    return st;
}

static base_status ring_compute_batch(struct train_session *s, const struct data_batch *batch,
                                      struct train_outcome *outcome)
{
    struct ring *ring = s->strategy_state;

    if (ring_is_async(s)) {
        ring_async_begin(s, batch);
        return BASE_OK;
    }
    return ring_run_learn(&ring->stages, s, batch, outcome);
}

static base_status ring_score_batch(struct train_session *s, const struct data_batch *batch,
                                    struct train_tally *tally)
{
    struct ring *ring = s->strategy_state;

    return ring_run_score(&ring->stages, s, batch, tally);
}

static base_status ring_unite(struct train_session *s)
{
    const struct ring *ring = s->strategy_state;

    return ring_share_statistics(&ring->stages, s);
}

/* ---- views ---- */

/* "ring: 8 micro-batches, 1 lap, 6 % idle expected (workers compute 41/39/40 ms of 45)" */
static void ring_announce(const struct train_session *s, const struct ring *ring)
{
    enum { MOST = 8 }; /* workers that are told one by one */
    const struct ring_cut *cut = &ring->stages.cut;
    const struct ring_outlook *o = &ring->outlook;
    int64_t pieces = ring_pieces(s->options);
    int laps = (cut->stages + cut->workers - 1) / cut->workers;
    struct base_str text = {0};

    base_str_add(&text, "ring: %" PRId64 " micro-batch%s, %d lap%s%s", pieces,
                 pieces == 1 ? "" : "es", laps, base_plural(laps),
                 laps > 1 && cut->order == RING_FOLD ? " folded" : "");
    if (ring_is_async(s))
        base_str_add(&text, ", no flush: each batch lacks the update of the one before it");
    else if (ring_overlaps(s))
        base_str_add(&text, ", steps overlap");
    if (ring->stages.copies > USUAL_REPLICAS)
        base_str_add(&text, ", each stage on %d workers", ring->stages.copies);
    if (cut->workers > 1)
        base_str_add(&text, ", %.0f %% idle expected%s", 100 * o->idle,
                     ring->measured ? "" : " by estimate");
    for (int i = 0; ring->measured && i < cut->workers && i < MOST; i++)
        base_str_add(&text, "%s%.3g", i == 0 ? " (workers compute " : "/", 1e3 * o->busy[i]);
    if (ring->measured)
        base_str_add(&text, "%s ms of %.3g)", cut->workers > MOST ? " …" : "", 1e3 * o->seconds);
    base_info("%s", text.text);
    base_str_fini(&text);
}

static base_status ring_open(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ring *ring = s->strategy_state;

    ring_announce(s, ring);
    ring->lacking = ring->stages.kept_count; /* they lack nothing */
    ring->stages.chore = (struct ring_chore){ring_hear_some, s};
    ring->report.failed = BASE_OK;
    ring->rare = ring_is_rare(s);
    if (s->team.exchange.size == 1)
        return BASE_OK;
    TRY(comm_engine_begin(s->team.group));
    ring->stages.mail.engine = comm_group_engine(s->team.group);
out:
    return st;
}

static void ring_close(struct train_session *s)
{
    if (s->team.group != NULL)
        base_ignore(comm_engine_end(s->team.group)); /* says what ended the group, which is known */
}

static void ring_fini(void *state)
{
    ring_profile_fini(&((struct ring *)state)->profile);
}

#define AT(field) offsetof(struct ring_options, field)

/* clang-format off */
static const char *const automatic[] = {"auto", NULL};

static const struct base_option table[] = {
    {.name = "microbatches", .argument = "M", .kind = BASE_INT, .offset = AT(microbatches),
     .min = 1, .max = RING_MAX_PIECES, .names = automatic,
     .help = "pieces of a batch, which follow each other through the stages"},
    {.name = "laps", .argument = "V", .kind = BASE_INT, .offset = AT(laps),
     .min = 1, .max = RING_MAX_LAPS, .names = automatic,
     .help = "stages of each worker; more of them mean less waiting and more messages"},
    {.name = "place", .argument = "ORDER", .kind = BASE_ENUM, .offset = AT(order),
     .names = (const char *const[]){[RING_AROUND] = "ring", [RING_FOLD] = "fold",
                                    [RING_ANY] = "auto", NULL},
     .help = "a lap begins at the first worker, or where the last one ended"},
    {.name = "overlap", .argument = "WHEN", .kind = BASE_ENUM, .offset = AT(overlap),
     .names = (const char *const[]){[RING_OVERLAP_OFF] = "off", [RING_OVERLAP_ON] = "on",
                                    [RING_OVERLAP_AUTO] = "auto", NULL},
     .help = "a worker begins a batch while others are at the one before; auto: if memory allows"},
    {.name = "split", .kind = BASE_FLAG, .offset = AT(split),
     .help = "gradients of weights wait for moments without other work: less waiting, more memory"},
    {.name = "async", .kind = BASE_FLAG, .offset = AT(async),
     .help = "a batch begins before the one before it is complete, with weights that lack its "
             "update; needs replicate=off"},
    {.name = "replicate", .argument = "WHEN", .kind = BASE_TEXT, .offset = AT(replicate),
     .help = "on, off, every:K: each worker keeps a copy of its neighbour's stages, of each step or "
             "of one in K"},
    {.name = "replicas", .argument = "R", .kind = BASE_INT, .offset = AT(replicas), .min = 2,
     .max = RING_MAX_REPLICAS, .help = "workers that have each stage; with R the loss of R-1 "
     "neighbours at once is healed"},
    {0},
};
/* clang-format on */

const struct train_strategy train_strategy_ring = {
    .name = "ring",
    .help = "the layers are divided between the workers, and only neighbours talk",
    .commit_unit = "step, two where steps overlap; K with replicate=every:K, off: a checkpoint",
    .least = 1,
    .options = table,
    .options_size = sizeof(struct ring_options),
    .defaults = &(const struct ring_options){.order = RING_ANY,
                                             .overlap = RING_OVERLAP_AUTO,
                                             .replicate = "on",
                                             .replicas = USUAL_REPLICAS,
                                             .split = true},
    .check = ring_check,
    .suits = ring_suits,
    .examples = (const char *const[]){"", "overlap=off", "replicate=off,split=off",
                                      "async=on,replicate=off", "replicate=every:3",
                                      "microbatches=3,laps=2,place=fold", "replicas=3", NULL},
    .state_size = sizeof(struct ring),
    .fini = ring_fini,
    .place = ring_place,
    .reconcile = ring_reconcile,
    .settle = ring_settle,
    .stages =
        &(const struct train_stages){
            .pieces = ring_pieces,
            .choose = ring_choose_open,
            .keep = ring_keep,
            .divide = ring_divide_model,
            .fit = ring_fit,
            .discard = ring_discard,
            .compute = ring_compute_batch,
            .score = ring_score_batch,
        },
    .memory = ring_memory,
    .cost = ring_cost,
    .plans = (const char *const[]){"", "laps=2", "replicate=off", NULL},
    .open = ring_open,
    .close = ring_close,
    .figures = ring_async_figures,
    .leg = ring_leg,
    .unite = ring_unite,
};
