/* SPDX-License-Identifier: MIT
 *
 * The real training (src/train), every strategy for several workers, of a model that counts its
 * samples (sim/counting.h).
 */
#include "train/train.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/weights.h"
#include "sim/counting.h"
#include "sim/faults.h"
#include "sim/program.h"
#include "store/checkpoint.h"
#include "train/settings.h"

static struct train_job plan; /* of this history */
const char *sim_wanted_strategy, *sim_wanted_phase;

static base_status train_run(struct cluster_worker *worker, const json_t *description,
                             json_t **result_p)
{
    base_status st = BASE_OK;
    struct train_job job;

    TRY(train_job_from_json(description, &job));
    TRY(train_job_run(&job, worker, result_p));
out:
    return st;
}

/* ---- the plan ---- */

/* An outer step by less than the mean change counts a sample in part; this one is the mean. */
static const char WHOLE_OUTER_STEP[] = "k=auto,base=2,outer-lr=1,outer-momentum=0";

/* What a wire leaves out is in no weights yet, and goes with a worker that is lost; this one, in
 * place of an example's, which comes last there, leaves out nothing. */
static const char WHOLE_WIRE[] = "wire=fp32";

/* A round that goes on without a block leaves its samples out; this one waits for all. */
static const char PATIENT_QUORUM[] = "quorum=0.6,grace=1000000";

/* Running means of changes have more of some samples than of others; this one sends changes. */
static const char PLAIN_CHANGES[] = "split=dirichlet,wire=fp32";

static char *draw_strategy(void)
{
    const struct train_strategy *all[64] = {0}, *s;
    uint32_t count = 0, examples = 0;
    const char *options = "", *wire;

    for (size_t i = 0; i < train_strategy_count; i++)
        if (!train_strategy_registry[i]->alone)
            all[count++] = train_strategy_registry[i];
    s = all[sim_random(count)];
    for (uint32_t i = 0; sim_wanted_strategy != NULL && i < count; i++) {
        const size_t length = strlen(all[i]->name);

        if (strcspn(sim_wanted_strategy, ":") == length &&
            strncmp(all[i]->name, sim_wanted_strategy, length) == 0)
            s = all[i];
    }
    if (s->sweeps)
        plan.model = "sweeping";
    else if (s->stages != NULL)
        plan.model = "layers";
    if (sim_wanted_strategy != NULL && strchr(sim_wanted_strategy, ':') != NULL)
        return base_strdup(sim_wanted_strategy);
    while (s->examples != NULL && s->examples[examples] != NULL)
        examples++;
    if (examples > 0)
        options = s->examples[sim_random(examples)];
    if (strstr(options, "outer-lr") != NULL)
        options = WHOLE_OUTER_STEP;
    else if (strstr(options, "quorum") != NULL)
        options = PATIENT_QUORUM;
    else if (strstr(options, "momentum") != NULL)
        options = PLAIN_CHANGES;
    if (strcmp(s->name, "ddp") == 0 && sim_random(2) == 0)
        options = "overlap=on,bucket=1K,first=1K";
    if (strcmp(s->name, "scattered") == 0)
        return base_format("%s:seed=%u", s->name, sim_random(1000000));
    if ((wire = strstr(options, "wire=int")) != NULL ||
        (wire = strstr(options, "wire=topk")) != NULL)
        return base_format("%s:%.*s%s", s->name, (int)(wire - options), options, WHOLE_WIRE);
    return base_format("%s%s%s", s->name, options[0] != '\0' ? ":" : "", options);
}

/* A model whose layers are divided; some of its workers die at a named phase. */
static void draw_layers(int workers, uint32_t batches)
{
    static const char *const phases[] = {
        "profile", "data",  "forward", "backward-1", "backward-3", "replicate",  "combine",
        "update",  "slice", "renew",   "renewed",    "evaluation", "checkpoint", "saved"};
    struct train_fault *fault = &sim_counting.fault;
    const char *phase = phases[sim_random(sizeof phases / sizeof phases[0])];

    sim_counting.count[DATA_VALIDATION] = 0;
    sim_counting.layers = 1 + (int)sim_random(10);
    if (sim_wanted_phase == NULL && sim_random(2) == 0)
        return;
    snprintf(fault->phase, sizeof fault->phase, "%s",
             sim_wanted_phase != NULL ? sim_wanted_phase : phase);
    fault->step = sim_random((uint32_t)plan.epochs * batches + 1);
    fault->signal = sim_random(5) == 0 ? SIGSTOP : SIGKILL;
    sim_counting.victim = 1 + sim_random((uint32_t)workers);
    sim_counting.victims = 1 + (sim_random(4) == 0);
    sim_trace("%u workers from %u on %s at %s of step %" PRId64, sim_counting.victims,
              sim_counting.victim, fault->signal == SIGKILL ? "die" : "stop", fault->phase,
              fault->step);
}

static bool divides_by_speed(const char *text)
{
    const struct train_strategy *strategy = NULL;
    void *options = NULL;
    const bool found = train_strategy_find(text, &strategy, &options) == BASE_OK;

    base_free(options);
    return found && strategy->shares == TRAIN_SHARES_BATCHES;
}

static json_t *train_plan(int workers)
{
    uint32_t batch = 8u << sim_random(3), batches = 1 + sim_random(workers > 12 ? 3 : 6);

    sim_counting = (struct sim_counting){
        .count = {[DATA_TRAIN] = batch * batches,
                  [DATA_TEST] = sim_random(2) == 0 ? 0 : 1 + sim_random(20),
                  [DATA_VALIDATION] = sim_random(2) == 0 ? 0 : 1 + sim_random(20)},
        .seconds = sim_spread(1e-5, 3e-3),
        .layers = 1};
    plan = train_job_defaults;
    plan.model = "counting";
    plan.data = "samples";
    plan.run = "run";
    plan.runs_dir = "runs";
    plan.strategy = draw_strategy();
    plan.optimiser = "sgd";
    plan.schedule = "constant";
    plan.batch = batch;
    plan.lr = batch;
    plan.momentum = plan.weight_decay = plan.warmup = plan.clip = 0;
    plan.nesterov = false;
    plan.validation = 0;
    plan.epochs = 1 + sim_random(3);
    plan.eval_every = sim_random(2);
    plan.checkpoint_every = sim_random(2) == 0 ? 0 : 1 + sim_random(4);
    plan.seed = sim_random(1000);
    plan.threads = 1;
    if (strcmp(plan.model, "layers") == 0)
        draw_layers(workers, batches);
    if (sim_random(4) == 0 &&
        divides_by_speed(plan.strategy)) { /* and long enough to be measured */
        plan.shares = "speed";
        plan.epochs += 5;
        sim_counting.seconds = sim_spread(1e-2, 3e-2);
    }
    sim_trace("%s, shares %s, %u samples in batches of %u, %" PRId64 " epochs", plan.strategy,
              plan.shares, sim_counting.count[DATA_TRAIN], batch, plan.epochs);
    return train_job_to_json(&plan);
}

/* Any value of a live option of the strategy. */
static bool train_change(const char **name_p, char *value, size_t room)
{
    const struct train_strategy *strategy = NULL;
    void *options = NULL;
    struct base_option row, chosen = {0};
    uint32_t live = 0, choices = 0;

    if (train_strategy_find(plan.strategy, &strategy, &options) != BASE_OK)
        return false;
    base_free(options);
    for (size_t i = 0; base_option_at(strategy->options, i, &row); i++)
        if (row.live && sim_random(++live) == 0)
            chosen = row;
    while (live > 0 && base_option_choice(&chosen, choices) != NULL)
        choices++;
    if (live == 0)
        return false;
    *name_p = chosen.name;
    if (choices > 0 && (chosen.kind != BASE_INT || sim_random(4) == 0))
        snprintf(value, room, "%s", base_option_choice(&chosen, sim_random(choices)));
    else
        snprintf(value, room, "%u", (uint32_t)chosen.min + sim_random(8));
    return true;
}

/* ---- what must hold ---- */

/* Every worker that is done has every sample in its weights, once an epoch, and all have the same
 * ones. (A worker that has agreed with others to stop may be done a step before those that lost one
 * of them in the same moment.) */
static void check_workers(void)
{
    int count;
    const struct sim_worker *w = sim_workers(&count), *first = NULL;

    for (int i = 0; i < count; i++) {
        const struct train_state *notes = w[i].notes, *others;
        char where[32];

        if (!w[i].ended || w[i].st != BASE_OK)
            continue;
        snprintf(where, sizeof where, "worker %u", w[i].id);
        sim_check(notes != NULL, "%s is done without a state", where);
        sim_check(notes->position.epoch == plan.epochs || sim_faults_stopped(),
                  "%s is done after %" PRId64 " epochs", where, notes->position.epoch);
        sim_counting_check(&plan, &notes->position, notes->weights, false, where);
        first = first != NULL ? first : &w[i];
        others = first->notes;
        for (size_t j = 0; j < (size_t)sim_counting.layers * sim_counting_stride(); j++)
            sim_check(notes->position.step != others->position.step || isnan(notes->weights[j]) ||
                          isnan(others->weights[j]) || notes->weights[j] == others->weights[j],
                      "workers %u and %u are done with different weights", first->id, w[i].id);
    }
}

/* The newest checkpoint, as a resumed run would load it. */
static void check_checkpoint(bool done)
{
    struct store_checkpoint checkpoint = {0};
    struct train_state state;
    const struct nn_optimiser *sgd = NULL;
    struct nn_graph *graph = NULL;
    base_status st = BASE_OK;
    struct model_about about = {0};

    if (!store_has_checkpoint("runs/run/checkpoints")) {
        sim_check(!done, "the job is done without a checkpoint");
        return;
    }
    TRY(store_checkpoint_open("runs/run/checkpoints", false, &checkpoint));
    TRY(model_about_from_json(checkpoint.manifest, &about));
    TRY(nn_graph_new(about.model, plan.model, about.input, about.classes, &graph));
    TRY(nn_optimiser_find("sgd", &sgd));
    TRY(train_state_init(&state, graph, sgd));
    TRY(train_state_load(&state, NULL, &checkpoint));
    sim_counting_check(&plan, &state.position, state.weights, false, checkpoint.path);
    sim_check(!done || state.position.epoch == plan.epochs || sim_faults_stopped(),
              "the last checkpoint is of epoch %lld", (long long)state.position.epoch);
out:
    sim_check(st == BASE_OK, "the checkpoint cannot be read: %s", base_message());
    model_about_fini(&about);
    store_checkpoint_close(&checkpoint);
}

static void train_check(const struct sim_job *job, const struct sim_end *end)
{
    bool done = end->over && end->code == BASE_OK;

    (void)job;
    check_workers();
    check_checkpoint(done);
}

const struct sim_program sim_program_train = {
    .name = "train",
    .help = "the training loop with every strategy, on a model that counts its samples",
    .runs = &(const struct cluster_program){.name = "train",
                                            .run = train_run,
                                            .check = train_settings_check},
    .plan = train_plan,
    .change = train_change,
    .check = train_check,
};
