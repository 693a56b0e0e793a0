/* SPDX-License-Identifier: MIT
 *
 * paceline predict: what a trained model says about images or rows of a table, one or a million.
 */
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "base/str.h"
#include "cli/answers.h"
#include "cli/cli.h"
#include "nn/threads.h"

struct args {
    const char *runs_dir, *part;
    int64_t top, errors, batch, threads, skip_bad;
    bool best, json, csv, quiet;
};

struct source {
    struct data_set *set;
    enum data_part part;
};

struct prediction {
    const struct args *args;
    struct model model;
    struct source *sources;
    size_t count;
    uint64_t total; /* samples of all sources */
    int batch, threads;
    struct cli_answers answers;
    struct cli_worst worst;
    double begin;
    uint64_t done, bad, labelled, correct; /* samples so far */
    double loss_sum, error_sum;            /* error_sum: absolute errors of numbers */
    bool begun;                            /* something was written to standard output */
    bool progress; /* not if answers go to a terminal: they are progress themselves */
};

/* ---- sources ---- */

static base_status cmd_predict_open_source(struct prediction *p, const char *const *places,
                                           size_t count, bool files)
{
    base_status st = BASE_OK;
    struct data_options options = model_data_options(&p->model);
    struct source s = {.part = DATA_TEST};

    options.any_class = options.whole = true;
    if (options.table != NULL) /* opening a table finds the lines that cannot be used */
        options.skip_bad =
            (uint32_t)(p->args->skip_bad < UINT32_MAX ? p->args->skip_bad : UINT32_MAX);
    if (files && options.table != NULL)
        TRY(base_fail(BASE_ERR_DATA,
                      "%s is no table, but the model was trained on one; give rows "
                      "in a .csv or .tsv file",
                      places[0]));
    if (files) {
        TRY(data_open_files(places, count, &options, &s.set));
    } else {
        s.part = strcmp(p->args->part, "train") == 0 ? DATA_TRAIN : DATA_TEST;
        TRY(data_open(places[0], &options, &s.set));
    }
    data_warn(s.set);
    TRY(model_check_data(&p->model, data_describe(s.set)));
    if (data_describe(s.set)->count[s.part] == 0)
        TRY(base_fail(BASE_ERR_DATA, "%s has no %s samples", places[0], p->args->part));
    p->total += data_describe(s.set)->count[s.part];
    p->sources = base_realloc(p->sources, p->count + 1, sizeof *p->sources);
    p->sources[p->count++] = s;
    s.set = NULL;
out:
    data_close(s.set);
    return st;
}

/* Files that are named one after the other become one set, so that batches are full. */
static base_status cmd_predict_open_sources(struct prediction *p, const char *const *places,
                                            int count)
{
    base_status st = BASE_OK;

    for (int i = 0, next; i < count; i = next) {
        bool files = data_is_files(places[i]);

        next = i + 1;
        while (files && next < count && data_is_files(places[next]))
            next++;
        TRY(cmd_predict_open_source(p, places + i, (size_t)(next - i), files));
    }
out:
    return st;
}

static bool cmd_predict_has_label(const struct source *s)
{
    const struct data_info *info = data_describe(s->set);

    for (uint32_t i = 0; i < info->count[s->part]; i++)
        if (data_is_regression(info) ? !isnan(data_target(s->set, s->part, i))
                                     : data_label(s->set, s->part, i) != DATA_NO_LABEL)
            return true;
    return false;
}

/* Refuses --errors if no sample has a label. */
static base_status cmd_predict_check_labels(const struct prediction *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (cmd_predict_has_label(&p->sources[i]))
            return BASE_OK;
    return base_fail(BASE_ERR_USAGE, "--errors compares with labels, and there are none: give %s",
                     p->model.about.table != NULL
                         ? "rows with the column that is predicted"
                         : "a data set, or a folder with a folder of images for each class");
}

/* ---- answers ---- */

static void cmd_predict_show_progress(const struct prediction *p)
{
    double seconds = base_now() - p->begin, pace = (double)p->done / (seconds > 0 ? seconds : 1);
    uint64_t left = p->total - p->done;

    if (p->progress)
        base_progress(left == 0, "predicted %llu of %llu, %.0f/s, %.0f s left",
                      (unsigned long long)p->done, (unsigned long long)p->total, pace,
                      (double)left / pace);
}

static void cmd_predict_count_label(struct prediction *p, const struct model_answer *answer)
{
    p->labelled++;
    p->loss_sum += answer->loss;
    if (model_about_is_regression(&p->model.about))
        p->error_sum += fabs(answer->number - answer->truth);
    else
        p->correct += answer->classes[0] == answer->label;
}

static base_status cmd_predict_take(void *context, const struct model_answer *answer)
{
    struct prediction *p = context;

    p->done++;
    p->bad += answer->bad != NULL;
    if (answer->bad != NULL)
        base_warn("%s", answer->bad);
    if (answer->bad == NULL && !isnan(answer->loss))
        cmd_predict_count_label(p, answer);
    if (p->args->errors > 0)
        cli_worst_add(&p->worst, answer);
    if (p->args->errors == 0 || (answer->bad != NULL && p->args->json))
        cli_answers_write(&p->answers, answer);
    if (ferror(stdout))
        return base_fail(BASE_ERR_IO, "cannot write to standard output: %m");
    cmd_predict_show_progress(p);
    return BASE_OK;
}

/* ---- the result ---- */

static json_t *cmd_predict_head_of(const struct prediction *p,
                                   const struct cli_positional *positional)
{
    json_t *data = json_array();

    for (int i = 1; i < positional->count; i++)
        json_array_append_new(data, base_json_text(positional->at[i]));
    return json_pack("{s:i, s:s, s:o}", "schema", 1, "run", p->model.checkpoint.path, "data", data);
}

static double cmd_predict_share(double part, uint64_t whole)
{
    return part / (double)whole; /* 0/0 is NAN, which is null in JSON */
}

static json_t *cmd_predict_tail_of(const struct prediction *p, base_status st)
{
    double seconds = base_now() - p->begin;
    uint64_t answered = p->done - p->bad;
    json_t *tail = json_pack(
        "{s:I, s:I, s:I, s:o, s:o, s:i, s:i, s:f, s:f, s:I, s:b}", "samples", (json_int_t)answered,
        "bad", (json_int_t)p->bad, "labelled", (json_int_t)p->labelled, "accuracy",
        base_json_number(cmd_predict_share((double)p->correct, p->labelled)), "loss",
        base_json_number(cmd_predict_share(p->loss_sum, p->labelled)), "threads", p->threads,
        "batch", p->batch, "seconds", seconds, "samples_per_second", (double)p->done / seconds,
        "peak_memory_bytes", (json_int_t)base_peak_memory(), "interrupted",
        base_stop_signal() != 0);

    if (model_about_is_regression(&p->model.about)) {
        json_object_del(tail, "accuracy");
        json_object_set_new(tail, "mae",
                            base_json_number(cmd_predict_share(p->error_sum, p->labelled)));
    }
    if (st != BASE_OK && st != BASE_ERR_INTERRUPTED)
        json_object_set_new(tail, "error",
                            json_pack("{s:s, s:o}", "code", base_code_name(st), "message",
                                      base_json_text(base_message())));
    return tail;
}

static void cmd_predict_tell(const struct prediction *p)
{
    struct base_str s = {0};

    base_str_add(&s, "%llu of %llu predicted", (unsigned long long)(p->done - p->bad),
                 (unsigned long long)p->total);
    if (p->done > p->bad)
        base_str_add(&s, ", %.0f/s", (double)p->done / (base_now() - p->begin));
    if (p->labelled > 0 && model_about_is_regression(&p->model.about))
        base_str_add(&s, "; MAE %.5g, loss %.4f of %llu with a label",
                     cmd_predict_share(p->error_sum, p->labelled),
                     cmd_predict_share(p->loss_sum, p->labelled), (unsigned long long)p->labelled);
    else if (p->labelled > 0)
        base_str_add(&s, "; accuracy %.2f %%, loss %.4f of %llu with a label",
                     100 * cmd_predict_share((double)p->correct, p->labelled),
                     cmd_predict_share(p->loss_sum, p->labelled), (unsigned long long)p->labelled);
    base_progress_clear();
    base_info("%s", s.text);
    base_str_fini(&s);
}

/* With --json the object on standard output is complete even after a failure, and main must not
 * print another one: so this prints the failure's message. */
static base_status cmd_predict_finish(struct prediction *p, base_status st)
{
    json_t *tail;

    if (st == BASE_OK || st == BASE_ERR_INTERRUPTED)
        cli_worst_write(&p->worst, &p->answers);
    if (st == BASE_OK && p->bad > (uint64_t)p->args->skip_bad)
        st = base_fail(BASE_ERR_DATA, "%llu of %llu could not be read", (unsigned long long)p->bad,
                       (unsigned long long)p->done);
    tail = cmd_predict_tail_of(p, st);
    cli_answers_end(&p->answers, tail);
    json_decref(tail);
    if ((fflush(stdout) != 0 || ferror(stdout)) && st == BASE_OK)
        st = base_fail(BASE_ERR_IO, "cannot write to standard output: %m");
    cmd_predict_tell(p); /* after the answers, also where both go to one file */
    if (st != BASE_OK && p->args->json) {
        base_warn("%s", base_message());
        st = base_fail(st, "%s", "");
    }
    return st;
}

/* ---- the command ---- */

static base_status cmd_predict_all(struct prediction *p, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    struct model_predictor *predictor = NULL;
    json_t *head = NULL;

    p->batch = (int)((uint64_t)p->args->batch < p->total ? (uint64_t)p->args->batch : p->total);
    TRY(model_predictor_new(&p->model, p->batch, p->answers.top, &predictor));
    head = cmd_predict_head_of(p, positional);
    base_stop_install(NULL);
    p->begin = base_now();
    p->progress = p->args->errors > 0 || !isatty(STDOUT_FILENO);
    cli_answers_begin(&p->answers, head);
    p->begun = true;
    for (size_t i = 0; i < p->count; i++)
        TRY(model_predict(predictor, p->sources[i].set, p->sources[i].part,
                          (struct model_answers){cmd_predict_take, p}));
out:
    json_decref(head);
    model_predictor_free(predictor);
    return st;
}

static base_status cmd_predict(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct prediction p = {.args = a};

    if (a->quiet)
        base_log_level(BASE_WARN);
    if (a->json && a->csv)
        TRY(base_fail(BASE_ERR_USAGE, "--json and --csv are two forms; take one"));
    p.threads = nn_threads_set((int)a->threads);
    TRY(model_open(positional->at[0], a->runs_dir, a->best, &p.model));
    p.answers = (struct cli_answers){
        .form = a->json  ? &cli_answers_json
                : a->csv ? &cli_answers_csv
                         : &cli_answers_text,
        .model = &p.model,
        .out = stdout,
        .top = (int)(a->top < p.model.about.classes ? a->top : p.model.about.classes),
    };
    TRY(cmd_predict_open_sources(&p, positional->at + 1, positional->count - 1));
    if (a->errors > 0)
        TRY(cmd_predict_check_labels(&p));
    cli_worst_init(&p.worst, (size_t)a->errors);
    st = cmd_predict_all(&p, positional);
    if (p.begun)
        st = cmd_predict_finish(&p, st);
out:
    cli_worst_fini(&p.worst);
    for (size_t i = 0; i < p.count; i++)
        data_close(p.sources[i].set);
    base_free(p.sources);
    model_close(&p.model);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "top", .argument = "K", .kind = BASE_INT, .offset = AT(top), .min = 1, .max = 65536,
     .help = "the likeliest classes of each", .local = true},
    {.name = "errors", .argument = "N", .kind = BASE_INT, .offset = AT(errors), .max = 1e6,
     .help = "only the N of the largest loss, the worst first; needs labels", .local = true},
    {.name = "part", .argument = "NAME", .kind = BASE_NAME, .offset = AT(part),
     .names = (const char *const[]){"test", "train", NULL},
     .help = "of a data set that has both", .local = true},
    {.name = "best", .kind = BASE_FLAG, .offset = AT(best),
     .help = "the checkpoint with the best validation loss instead of the newest", .local = true},
    {.name = "skip-bad", .argument = "N", .kind = BASE_INT, .offset = AT(skip_bad), .max = 1e12,
     .help = "up to N images or lines that cannot be read are no failure; they are always told", .local = true},
    {.name = "batch", .alias = "batch-size", .argument = "N", .kind = BASE_INT, .offset = AT(batch), .min = 1,
     .max = 1e5, .help = "samples computed at once", .local = true},
    {.name = "threads", .argument = "N", .kind = BASE_INT, .offset = AT(threads), .max = 1024,
     .help = "compute threads; 0: one per core", .local = true},
    {.name = "runs-dir", .argument = "DIR", .kind = BASE_TEXT, .offset = AT(runs_dir),
     .help = "where runs are kept", .local = true},
    {.name = "csv", .kind = BASE_FLAG, .offset = AT(csv),
     .help = "a table on standard output, with a line of titles", .local = true},
    {.name = "json", .kind = BASE_FLAG, .offset = AT(json),
     .help = "one JSON object on standard output", .local = true},
    {.name = "quiet", .kind = BASE_FLAG, .offset = AT(quiet),
     .help = "of messages only warnings and errors", .local = true},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_predict = {
    .name = "predict",
    .help = "classes and probabilities of images or rows of a table, by a trained model",
    .usage = "paceline predict RUN|CHECKPOINT FILE|FOLDER|DATASET… [options]",
    .examples = "  paceline predict vgg11-cifar10-1 cat.jpg dog.png\n"
                "  paceline predict vgg11-cifar10-1 photos --top 1 --csv > photos.csv\n"
                "  paceline predict vgg11-cifar10-1 cifar10 --errors 20\n"
                "  paceline predict houses new-houses.csv --csv      # rows of a table\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.runs_dir = "runs", .part = "test", .top = 5, .batch = 64},
    .min_positional = 2,
    .max_positional = INT_MAX,
    .run = cmd_predict,
};
