/* SPDX-License-Identifier: MIT
 *
 * Model parallel: the network's layers are cut into stages that lie on the workers one after the
 * other (ring/cut.h), once or in several laps around. A batch goes through them in micro-batches,
 * activations forward and gradients back, from neighbour to neighbour (ring/mail.h), by a rule that
 * needs no scheduler (ring/rule.h). The bits are those of one worker with --accumulate.
 *
 * Every worker also has a replica of the stages of the worker before it. When the gradients of its
 * own stages are complete it sends them to the worker after it, and both make the same update: so
 * the loss of a worker costs a step. Where two neighbours are lost at once, or without replicas,
 * all go back to the newest checkpoint.
 *
 * Commit: after that the workers tell each other what they must know, loss, a stop, a newer view,
 * the gradients' norm; then, in a meeting, that they know it. None writes a weight before. One that
 * loses another in that meeting cannot know whether the others went on. It keeps its gradients and
 * so has both versions; the next view decides (ring_settle).
 */
#include <inttypes.h>
#include <math.h>

#include "base/log.h"
#include "base/mem.h"
#include "nn/simd/simd.h"
#include "train/forecast.h"
#include "train/step.h"
#include "train/strategies/ring/divide.h"
#include "train/strategies/ring/holds.h"

enum { USUAL_PIECES = 8 }; /* until they are chosen */

struct ring {
    struct ring_stages stages;
    struct ring_profile profile; /* what this worker has measured */
    struct ring_outlook outlook; /* what to expect of this view's steps … */
    bool measured;               /* … in seconds; otherwise in flops */
    struct train_step step;      /* that waits for ring_settle … */
    bool waits;                  /* … if any does */
    struct train_update lacked;  /* by replicas: by this one from this float on, and by the next */
    int lacking;
    size_t lacking_from;
};

static int64_t ring_pieces(const void *options)
{
    int64_t pieces = ((const struct ring_options *)options)->microbatches;

    return pieces > 0 ? pieces : USUAL_PIECES;
}

static void ring_memory(const struct train_memory_question *q, struct train_memory *m)
{
    const struct ring_options *options = q->options;
    struct ring_bytes bytes;
    struct ring_cut cut;

    ring_cut_make(q->sizes->graph, options, q->seat.workers, &cut);
    if (ring_stages_memory(q->sizes->graph, options, &cut, q->seat.rank, ring_pieces(options),
                           q->sizes->samples, &bytes) != BASE_OK)
        return; /* the whole model's stand in for them */
    m->of[TRAIN_MEMORY_ACTIVATIONS].own = bytes.activations;
    m->of[TRAIN_MEMORY_GRADIENTS].own += bytes.gradients;
    m->of[TRAIN_MEMORY_COMMUNICATION].own += bytes.messages;
}

/* Activations travel while other micro-batches are computed, what replicas need does not. The
 * gradients of micro-batches are added up in memory. */
static void ring_cost(const struct train_memory_question *q, struct train_cost *cost)
{
    const struct ring_options *options = q->options;
    const struct nn_graph *graph = q->sizes->graph;
    double n = q->seat.workers, pieces = (double)ring_pieces(options), bytes = q->sizes->weights;
    double copies = options->replicate && n > 1 ? 2 : 1, crossing = 0, laps, mail, replicas;
    struct ring_cut cut;
    struct ring_costs costs;

    ring_cut_make(graph, options, q->seat.workers, &cut);
    ring_costs_estimate(graph, q->sizes->samples, &costs);
    laps = ceil(cut.stages / n);
    for (int stage = 1; stage < cut.stages; stage++)
        crossing = fmax(crossing, (double)ring_cut_crossing(graph, cut.first[stage]));
    mail = pieces * q->sizes->samples * crossing * sizeof(float);
    replicas = (copies - 1) * bytes / n;
    cost->work = ring_costs_unevenness(&costs, &cut) / n;
    ring_costs_fini(&costs);
    cost->bubble =
        (n - 1) / ((ring_options_split(options, (int)n) ? 3 : 1) * laps * pieces + n - 1);
    cost->updates = copies / n;
    cost->sent = mail * laps + replicas;
    cost->hidden = cost->sent > 0 ? 1 - replicas / cost->sent : 0;
    cost->moved = 3 * (pieces - 1) * bytes + 4 * (cut.stages - 1) * mail + 2 * n * replicas;
}

/* ---- updates ---- */

/* Floats [at, at + count) of a stage's weights. */
static void ring_update_range(struct train_session *s, const struct train_update *u,
                              const struct ring_stage *stage, size_t at, size_t count)
{
    size_t from = stage->weights.from + at;
    float *weights = train_state_at(&s->state, TRAIN_WEIGHTS, 0, from, count);
    struct nn_update part = {
        .count = count, .gradient = stage->sum + at, .weight_in = weights, .weight_out = weights};

    if (count == 0)
        return;
    for (int slot = 0; slot < u->optimiser->slots; slot++)
        part.slot_in[slot] = part.slot_out[slot] =
            train_state_at(&s->state, TRAIN_SLOTS, slot, from, count);
    u->optimiser->update(&u->hyper, &part);
}

/* A part of what replicas lack of the last step; false: they lack nothing. */
static bool ring_update_some(void *context)
{
    enum { SOME = 1 << 16 }; /* floats: a fraction of a millisecond */
    struct train_session *s = context;
    struct ring *ring = s->strategy_state;
    const struct ring_stage *stage;
    size_t left;

    if (ring->lacking >= ring->stages.kept_count)
        return false;
    train_trace_enter(&s->trace, TRAIN_DOING_UPDATE);
    stage = &ring->stages.kept[ring->lacking];
    left = stage->weights.count - ring->lacking_from;
    ring_update_range(s, &ring->lacked, stage, ring->lacking_from, left < SOME ? left : SOME);
    ring->lacking_from += SOME;
    if (left <= SOME) {
        ring->lacking++;
        ring->lacking_from = 0;
    }
    return true;
}

/* Replicas become as new as this worker's own stages. */
static void ring_update_replicas(struct train_session *s)
{
    while (ring_update_some(s))
        ;
}

/* ---- a step ---- */

/* Adds the gradients and running statistics of some stages to a list of messages. */
static size_t ring_list(struct train_session *s, struct ring_stage *stages, int count, int peer,
                        bool sends, struct train_message *list)
{
    size_t messages = 0;

    for (int i = 0; i < count; i++) {
        const struct nn_range *statistics = &stages[i].statistics;

        if (stages[i].weights.count > 0)
            list[messages++] =
                (struct train_message){peer, sends, stages[i].sum, stages[i].weights.count};
        if (statistics->count > 0)
            list[messages++] = (struct train_message){
                peer, sends, s->state.statistics + statistics->from, statistics->count};
    }
    return messages;
}

/* To the worker after this one, and from the one before it. */
static base_status ring_replicate(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ring *ring = s->strategy_state;
    const struct ring_options *options = s->options;
    const struct train_exchange *x = &s->team.exchange;
    struct train_message list[4 * RING_MAX_LAPS];
    enum train_category was = train_clock_enter(&s->clock, TRAIN_COMMUNICATE);
    size_t count;

    train_fault_at(&s->fault, "replicate", x->step);
    if (!options->replicate || x->size == 1)
        goto out;
    count = ring_list(s, ring->stages.at, ring->stages.count, (x->rank + 1) % x->size, true, list);
    count += ring_list(s, ring->stages.kept, ring->stages.kept_count,
                       ring_cut_before(&ring->stages.cut, x->rank), false, list + count);
    TRY(train_team_pass(&s->team, list, count));
out:
    train_clock_enter(&s->clock, was);
    return st;
}

/* What a worker tells the others when its gradients are complete. */
struct ring_word {
    struct train_outcome outcome; /* of the worker with the last layer; zeros of the others */
    int64_t stop, renew;
};

static base_status ring_agree(struct train_session *s, struct train_step *step)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &s->team.exchange;
    enum train_category was = train_clock_enter(&s->clock, TRAIN_WAIT);
    struct ring_word all[COMM_MAX_WORKERS], mine = {.outcome = step->outcome,
                                                    .stop = train_team_stopping(&s->team),
                                                    .renew = train_team_outdated(&s->team)};

    train_fault_at(&s->fault, "combine", x->step);
    TRY(train_team_gather(&s->team, &mine, sizeof mine, all));
    s->verdict.stop = s->verdict.renew = false;
    for (int i = 0; i < x->size; i++) {
        s->verdict.stop |= all[i].stop;
        s->verdict.renew |= all[i].renew;
        if (all[i].outcome.seen > 0)
            step->outcome = all[i].outcome;
    }
    train_clock_enter(&s->clock, was);
out:
    return st;
}

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

/* The step comes into the weights of this worker's stages, and counts. Its replicas follow where
 * the next step leaves time for that, at the latest before their gradients come anew. */
static void ring_commit(struct train_session *s, const struct train_step *step)
{
    struct ring *ring = s->strategy_state;
    const struct ring_stages *r = &ring->stages;

    train_trace_enter(&s->trace, TRAIN_DOING_UPDATE);
    for (int i = 0; i < r->count; i++)
        ring_update_range(s, &step->update, &r->at[i], 0, r->at[i].weights.count);
    ring->lacked = step->update;
    ring->lacking = 0;
    ring->lacking_from = 0;
    train_step_advance(s, step);
    /* A sample counts where its loss is computed. */
    train_step_count(s, &step->outcome, ring_stages_judge(r) ? step->batch.count : 0);
    train_step_tell(s, step);
}

/* All know that all know, or none writes a weight. */
static base_status ring_meet(struct train_session *s, const struct train_step *step)
{
    base_status st = BASE_OK;
    struct ring *ring = s->strategy_state;
    enum train_category was = train_clock_enter(&s->clock, TRAIN_WAIT);
    struct train_version now = train_state_version(&s->state);

    train_fault_at(&s->fault, "meet", s->team.exchange.step);
    if (s->team.exchange.coll != NULL)
        st = coll_barrier(s->team.exchange.coll);
    if (st == BASE_OK) {
        train_clock_enter(&s->clock, was);
        return st;
    }
    if (st != BASE_ERR_PEER_LOST) {
        train_step_undo(s, step, st);
        return st;
    }
    train_clock_lost(&s->clock, &step->before);
    ring->step = *step;
    ring->waits = true;
    s->state.claims.count = 0;
    ring_claim(&ring->stages, s, now);
    ring_claim(&ring->stages, s, (struct train_version){now.step + 1, now.epoch});
    return st;
}

static void ring_settle(struct train_session *s, struct train_version version)
{
    struct ring *ring = s->strategy_state;
    struct train_version now = train_state_version(&s->state);

    if (!ring->waits)
        return;
    ring->waits = false;
    s->state.claims.count = 0;
    if (version.step == now.step + 1 && version.epoch == now.epoch) {
        ring_commit(s, &ring->step);
        ring_update_replicas(s);
    } else {
        s->team.exchange.step = now.step + 1;
        s->task->undo(s);
    }
    ring_claim(&ring->stages, s, train_state_version(&s->state));
}

static base_status ring_step(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_step step;

    TRY(train_step_compute(s, &step)); /* next batch, forward, backward */
    ring_update_replicas(s);           /* by the former gradients, whose place the next ones take */
    TRY(ring_replicate(s));
    TRY(ring_agree(s, &step));
    if (step.update.clip > 0)
        TRY(ring_clip(s, &step.update));
    train_fault_at(&s->fault, "update", s->team.exchange.step);
    TRY(train_step_judge(s, &step));
out:
    if (st != BASE_OK) {
        train_step_undo(s, &step, st);
        return st;
    }
    if ((st = ring_meet(s, &step)) != BASE_OK)
        return st;
    ring_commit(s, &step);
    train_fault_at(&s->fault, "slice", s->team.exchange.step);
    return st;
}

static base_status ring_leg(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    const struct ring *ring = s->strategy_state;

    while (s->state.position.step < goal && !train_session_halts(s))
        TRY(ring_step(s));
    TRY(train_session_unite(s)); /* the next view's stages may be others */
out:
    ring_update_replicas(s);
    if (st != BASE_OK && s->state.claims.count == 0)
        ring_claim(&ring->stages, s, train_state_version(&s->state));
    return st;
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

    if (now->microbatches == 0)
        now->microbatches = then->microbatches;
}

static base_status ring_divide_model(struct train_session *s, int source)
{
    struct ring *ring = s->strategy_state;

    return ring_divide(s, source, &ring->profile, &ring->outlook, &ring->measured);
}

static void ring_discard(struct train_session *s)
{
    struct ring *ring = s->strategy_state;

    ring_stages_close(&ring->stages);
}

static base_status ring_fit(struct train_session *s, int piece)
{
    struct ring *ring = s->strategy_state;

    ring_discard(s);
    return ring_stages_open(&ring->stages, s, piece);
}

static base_status ring_compute_batch(struct train_session *s, const struct data_batch *batch,
                                      struct train_outcome *outcome)
{
    struct ring *ring = s->strategy_state;

    return ring_stages_learn(&ring->stages, s, batch, outcome);
}

static base_status ring_score_batch(struct train_session *s, const struct data_batch *batch,
                                    struct train_tally *tally)
{
    struct ring *ring = s->strategy_state;

    return ring_stages_score(&ring->stages, s, batch, tally);
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
    ring->stages.chore = (struct ring_chore){ring_update_some, s};
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
    {.name = "split", .kind = BASE_FLAG, .offset = AT(split),
     .help = "gradients of weights wait for moments without other work: less waiting, more memory"},
    {.name = "replicate", .kind = BASE_FLAG, .offset = AT(replicate),
     .help = "each worker keeps a copy of its neighbour's stages: a lost worker costs a step"},
    {0},
};
/* clang-format on */

const struct train_strategy train_strategy_ring = {
    .name = "ring",
    .help = "the layers are divided between the workers, and only neighbours talk",
    .commit_unit = "step, with replicate=off a checkpoint",
    .least = 1,
    .options = table,
    .options_size = sizeof(struct ring_options),
    .defaults = &(const struct ring_options){.order = RING_ANY, .replicate = true, .split = true},
    .examples = (const char *const[]){"", "replicate=off,split=off",
                                      "microbatches=3,laps=2,place=fold", NULL},
    .state_size = sizeof(struct ring),
    .fini = ring_fini,
    .place = ring_place,
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
    .leg = ring_leg,
    .unite = ring_unite,
};
