/* SPDX-License-Identifier: MIT */
#include "train/job.h"

#include <string.h>

#include "comm/transport.h"
#include "nn/conv.h"
#include "nn/optimiser.h"
#include "nn/schedule.h"
#include "train/strategy.h"

const struct train_job train_job_defaults = {
    .epochs = 5,
    .steps = -1,
    .batch = 64,
    .accumulate = 1,
    .optimiser = "sgd",
    .lr = 0.01,
    .momentum = 0.9,
    .beta1 = 0.9,
    .beta2 = 0.999,
    .epsilon = 1e-8,
    .schedule = "constant",
    .decay_every = 10,
    .decay = 0.1,
    .normalise = true,
    .seed = 1,
    .kernels = "auto",
    .log_every = 20,
    .eval_every = 1,
    .test = true,
    .checkpoint = true,
    .keep = 3,
    .runs_dir = "runs",
    .cluster = CLUSTER_FLAGS,
};

#define AT(field) offsetof(struct train_job, field)

const struct base_option train_job_options[] = {
    {"model", "M", BASE_TEXT, AT(model), 0, 0, "a model of the zoo, or a model file", false},
    {"data", "D", BASE_TEXT, AT(data), 0, 0,
     "a data set `data get` knows, a file or folder, or synthetic[:…]", false},
    {"epochs", "N", BASE_INT, AT(epochs), 0, 1e6, "passes over the training data", false},
    {"steps", "N", BASE_INT, AT(steps), -1, 1e12,
     "stop after N steps, in whichever epoch; -1: by --epochs alone", false},
    {"batch", "N", BASE_INT, AT(batch), 1, 1e6, "samples of a step, of all workers together",
     false},
    {"batch-per-worker", "N", BASE_INT, AT(batch_per_worker), 0, 1e6,
     "samples of a step for each of the first workers, in place of --batch", false},
    {"accumulate", "M", BASE_INT, AT(accumulate), 1, 4096,
     "compute each batch in M pieces, with less memory", false},
    {"lr", "X", BASE_REAL, AT(lr), 0, 1e6, "learning rate", false},
    {"momentum", "X", BASE_REAL, AT(momentum), 0, 0.99999, "of sgd", false},
    {"nesterov", NULL, BASE_FLAG, AT(nesterov), 0, 0, "Nesterov's momentum", false},
    {"weight-decay", "X", BASE_REAL, AT(weight_decay), 0, 1e3, "weight decay", false},
    {"optimiser", "NAME", BASE_TEXT, AT(optimiser), 0, 0, "how weights are updated", false,
     nn_optimiser_registry, &nn_optimiser_count},
    {"beta1", "X", BASE_REAL, AT(beta1), 0, 0.999999, "of adamw", false},
    {"beta2", "X", BASE_REAL, AT(beta2), 0, 0.9999999, "of adamw", false},
    {"epsilon", "X", BASE_REAL, AT(epsilon), 1e-30, 1, "of adamw", false},
    {"clip", "X", BASE_REAL, AT(clip), 0, 1e9, "scale gradients down to this norm; 0: never",
     false},
    {"schedule", "NAME", BASE_TEXT, AT(schedule), 0, 0, "of the learning rate", false,
     nn_schedule_registry, &nn_schedule_count},
    {"warmup", "E", BASE_REAL, AT(warmup), 0, 1e6, "epochs of linear rise before the schedule",
     false},
    {"decay-every", "E", BASE_REAL, AT(decay_every), 1e-6, 1e6, "step: epochs between decays",
     false},
    {"decay", "X", BASE_REAL, AT(decay), 1e-6, 1, "step: factor of each decay", false},
    {"final-lr", "X", BASE_REAL, AT(final_lr), 0, 1,
     "cosine, one-cycle: where they end, as a share of --lr", false},
    {"validation", "X", BASE_REAL, AT(validation), 0, 0.9,
     "share of the training data kept apart; its loss chooses the best checkpoint", false},
    {"patience", "N", BASE_INT, AT(patience), 0, 1e6,
     "stop after N epochs without a better validation loss; 0: never", false},
    {"pad", "N", BASE_INT, AT(pad), 0, 64, "augment: pad by N pixels and crop anywhere", false},
    {"flip", NULL, BASE_FLAG, AT(flip), 0, 0, "augment: mirror every second time", false},
    {"balanced", NULL, BASE_FLAG, AT(balanced), 0, 0, "every batch has its share of every class",
     false},
    {"normalise", NULL, BASE_FLAG, AT(normalise), 0, 0,
     "mean 0, deviation 1 per channel; without it pixels are 0 … 1", false},
    {"seed", "N", BASE_INT, AT(seed), 0, 9e15, "of all randomness", false},
    {"threads", "N", BASE_INT, AT(threads), 0, 1024,
     "compute threads; 0: the cores, divided by the workers of this host", false},
    {"strategy", "NAME", BASE_TEXT, AT(strategy), 0, 0,
     "how the work is divided, NAME or NAME:option=value,… "
     "[single; of several workers ddp]",
     false, train_strategy_registry, &train_strategy_count},
    {"sync-bn", NULL, BASE_FLAG, AT(sync_bn), 0, 0,
     "batch-norm over the samples of all workers, so that they equal one", false},
    {"kernels", "NAME", BASE_TEXT, AT(kernels), 0, 0,
     "a convolution kernel wherever it serves, or auto, the fastest of", false, nn_conv_registry,
     &nn_conv_count},
    {"log-every", "N", BASE_INT, AT(log_every), 0, 1e9, "steps between log lines; 0: none", false},
    {"eval-every", "N", BASE_INT, AT(eval_every), 0, 1e6,
     "epochs between tests; 0: only at the end", false},
    {"test", NULL, BASE_FLAG, AT(test), 0, 0, "evaluate on the test data", false},
    {"checkpoint", NULL, BASE_FLAG, AT(checkpoint), 0, 0, "write checkpoints", false},
    {"checkpoint-every", "N", BASE_INT, AT(checkpoint_every), 0, 1e12,
     "steps between checkpoints; 0: at each epoch's end", false},
    {"keep", "K", BASE_INT, AT(keep), 0, 1e6, "newest checkpoints to keep; 0: all", false},
    {"record", "LAYER", BASE_TEXTS, AT(record), 0, 0,
     "write statistics of a layer's activations into the events", false},
    {"init", "C", BASE_TEXT, AT(init), 0, 0,
     "start from a checkpoint or a .safetensors file; layers that differ start new", false},
    {"run", "NAME", BASE_TEXT, AT(run), 0, 0, "name of the run [MODEL-DATA-N]", true},
    {"runs-dir", "DIR", BASE_TEXT, AT(runs_dir), 0, 0, "where runs are kept", true},
    {"resume", "RUN", BASE_TEXT, AT(resume), 0, 0, "go on with a run, in its folder", true},
    {"like", "RUN", BASE_TEXT, AT(like), 0, 0, "take a run's settings as the defaults", true},
    {"json", NULL, BASE_FLAG, AT(json), 0, 0, "one JSON object on standard output", true},
    {"quiet", NULL, BASE_FLAG, AT(quiet), 0, 0, "only warnings and errors", true},
    {"restart-workers", NULL, BASE_FLAG, AT(restart), 0, 0,
     "start a new worker in place of one that died", true},
    CLUSTER_OPTIONS(struct train_job, cluster),
    {0},
};

base_status train_job_check(const struct train_job *job)
{
    int64_t batch = job->batch_per_worker > 0 ? job->batch_per_worker : job->batch;

    if (job->model == NULL)
        return base_fail(BASE_ERR_USAGE, "--model is missing: a zoo name such as mnist-cnn, or a "
                                         "model file");
    if (job->data == NULL)
        return base_fail(BASE_ERR_USAGE, "--data is missing: a name such as fashion-mnist, or a "
                                         "folder or file");
    if (job->accumulate > batch)
        return base_fail(BASE_ERR_USAGE, "--accumulate %lld cuts a batch of %lld into nothing",
                         (long long)job->accumulate, (long long)batch);
    if (job->accumulate > 1 && job->sync_bn)
        return base_fail(BASE_ERR_USAGE, "--sync-bn lets batch-norm see the whole batch, "
                                         "--accumulate cuts it into pieces; leave one out");
    if (job->patience > 0 && job->validation == 0)
        return base_fail(BASE_ERR_USAGE,
                         "--patience needs a validation part: add --validation 0.1");
    if (job->resume != NULL && job->run != NULL)
        return base_fail(BASE_ERR_USAGE,
                         "--run names a new run, but --resume goes on in the folder of %s; leave "
                         "one out",
                         job->resume);
    if (job->nesterov && job->momentum == 0)
        return base_fail(BASE_ERR_USAGE, "--nesterov needs --momentum above 0");
    return BASE_OK;
}

bool train_job_may_change(const char *name)
{
    static const char *const free_names[] = {
        "epochs",           "steps", "threads", "log-every", "eval-every", "test", "checkpoint",
        "checkpoint-every", "keep",  "record",  "patience",  "strategy",
    };

    for (size_t i = 0; i < sizeof free_names / sizeof *free_names; i++)
        if (strcmp(name, free_names[i]) == 0)
            return true;
    return false;
}

const char *train_job_strategy(const struct train_job *job, bool several)
{
    if (job->strategy != NULL)
        return job->strategy;
    return several ? "ddp" : "single";
}

json_t *train_job_to_json(const struct train_job *job)
{
    return json_pack("{s:o, s:s?, s:s, s:s?, s:b}", "settings",
                     base_options_to_json(train_job_options, job), "run", job->run, "runs_dir",
                     job->runs_dir, "resume", job->resume, "quiet", job->quiet);
}

base_status train_job_from_json(const json_t *object, struct train_job *job_p)
{
    base_status st = BASE_OK;
    json_t *settings = NULL;

    *job_p = train_job_defaults;
    TRY(base_json_object(object, "settings", &settings));
    TRY(base_options_from_json(train_job_options, settings, job_p));
    TRY(base_json_string(object, "runs_dir", &job_p->runs_dir));
    job_p->run = json_string_value(json_object_get(object, "run"));
    job_p->resume = json_string_value(json_object_get(object, "resume"));
    job_p->quiet = json_is_true(json_object_get(object, "quiet"));
out:
    return st;
}
