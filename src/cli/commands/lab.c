/* SPDX-License-Identifier: MIT
 *
 * paceline lab FILE.json|NAME: a grid of trainings, their means and deviations, pictures
 * (docs/labs.md). All options are shown to train's own parser before the first run starts.
 */
#include "lab/lab.h"

#include <stdio.h>
#include <string.h>

#include "base/cpus.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "cli/cli.h"
#include "cli/lab_print.h"
#include "cli/lab_rate.h"
#include "cli/train_check.h"
#include "cluster/process.h"
#include "lab/page.h"
#include "lab/sweep.h"
#include "train/task.h"

struct args {
    struct lab_changes changes;
    struct base_texts only;
    const char *out, *csv;
    int64_t points;
    bool list, print, dry_run, fresh, json, quiet;
};

/* Labs that are made of options of train and not of a file. */
#define SWEEP "sweep"
#define RATE "lr"

/* ---- before the first run ---- */

/* Is it a training? And how many cores will it keep busy? */
static base_status check_point(struct lab_point *point, int64_t seed, int cores, bool fetches)
{
    base_status st = BASE_OK;
    char **words = lab_words(point, seed);
    struct train_job job;
    int64_t workers, busy;

    TRY(cli_train_words(words, &job));
    workers = job.cluster.workers > 0 ? job.cluster.workers : 1;
    busy = job.threads > 0 ? workers * job.threads : workers < cores ? cores : workers;
    point->cores = busy < cores ? (int)busy : cores;
    if (fetches)
        TRY(cli_train_fetch(job.data));
out:
    lab_words_free(words);
    return st;
}

static base_status check_points(struct lab *lab, int cores, bool fetches)
{
    base_status st = BASE_OK;

    for (size_t i = 0; i < lab->point_count; i++)
        TRY(base_prefix(
            check_point(&lab->points[i], lab->seeds[0], cores, fetches && lab->points[i].selected),
            "lab %s: case '%s'", lab->name, lab->points[i].name));
out:
    return st;
}

/* ---- afterwards ---- */

/* What a call has made beside its table. */
struct made {
    json_t *plots; /* paths */
    char *page;    /* the same; NULL: it could not be written */
};

static json_t *object_of(const struct lab_work *work, const struct made *made, base_status st)
{
    const struct lab *lab = work->lab;
    const struct lab_point *best = lab_best(lab, work->results);
    json_t *object = json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:O, s:o, s:s?, s:O, s:s?, s:b}", "schema", 1, "lab",
        lab->name, "about", lab->about, "folder", work->results->folder, "version",
        PACELINE_VERSION, "runs", (json_int_t)work->total, "done", (json_int_t)work->done,
        "failures", work->failures, "cases", lab_summary(lab, work->results), "best",
        best != NULL ? best->name : NULL, "plots", made->plots, "report", made->page, "interrupted",
        st == BASE_ERR_INTERRUPTED);

    if (st != BASE_OK && st != BASE_ERR_INTERRUPTED)
        json_object_set_new(object, "error",
                            json_pack("{s:s, s:o}", "code", base_code_name(st), "message",
                                      base_json_text(base_message())));
    return object;
}

static base_status write_page(const struct args *a, const struct lab_work *work, char **path_p)
{
    char *command = cli_own_command();
    base_status st = lab_page_write(
        &(struct lab_page){.work = work, .command = command, .quick = a->changes.quick}, path_p);

    base_free(command);
    return st;
}

/* Whatever happened, what is there is shown. With --json the object is the only thing on standard
 * output, so that a failure's message is told here. */
static base_status conclude(const struct args *a, const struct lab_work *work, base_status st)
{
    struct made made = {0};
    json_t *object = NULL;
    char *message = base_strdup(base_message());
    size_t failed = json_array_size(work->failures);
    base_status drawn = lab_draw(work->lab, work->results, &made.plots);

    if (drawn == BASE_OK)
        drawn = write_page(a, work, &made.page);
    if (drawn == BASE_OK && a->csv != NULL)
        drawn = cli_lab_csv(work->lab, work->results, a->csv);
    if (st == BASE_OK)
        st = drawn;
    else
        st = base_fail(st, "%s", message);
    if (st == BASE_OK && failed > 0)
        st = base_fail(BASE_ERR_DATA, "%zu of %zu runs failed; the same command%s tries them again",
                       failed, work->total, work->fresh ? " without --fresh" : "");
    if (a->json) {
        object = object_of(work, &made, st);
        if (base_json_print(object) == BASE_OK && st != BASE_OK) {
            base_warn("%s", base_message());
            st = base_fail(st, "%s", "");
        }
    } else {
        cli_lab_tables(work->lab, work->results);
        fflush(stdout);
        if (made.page != NULL)
            base_info("results are in %s; open %s in a browser", work->results->folder, made.page);
    }
    json_decref(object);
    json_decref(made.plots);
    base_free(made.page);
    base_free(message);
    return st;
}

/* ---- the command ---- */

static base_status run_lab(const struct args *a, struct lab *lab, const char *folder)
{
    base_status st = BASE_OK;
    struct lab_results results = {.lock = -1};
    struct lab_work work = {
        .lab = lab, .results = &results, .cores = base_cpus(cluster_cores()), .fresh = a->fresh};

    TRY(lab_select(lab, &a->only));
    TRY(check_points(lab, work.cores, !a->dry_run));
    TRY(lab_results_open(folder, lab->name, a->fresh && !a->dry_run, a->dry_run, &results));
    if (a->dry_run) {
        TRY(cli_lab_plan(&work, a->json));
    } else {
        base_stop_install("ending the run under way; Ctrl-C again quits at once");
        st = lab_work(&work);
        st = conclude(a, &work, st);
    }
out:
    json_decref(work.failures);
    lab_results_close(&results);
    return st;
}

/* Options of train are for labs that are made of them. */
static base_status check_passed(const struct args *a, const struct cli_positional *positional,
                                const char *which)
{
    bool sweep = strcmp(which, SWEEP) == 0, rate = strcmp(which, RATE) == 0;

    if (positional->passed_count > 0 && !sweep && !rate)
        return base_fail(BASE_ERR_USAGE,
                         "--%s is an option of train; of lab %s it is changed with --set %s=VALUE",
                         positional->passed[0].name, which, positional->passed[0].name);
    if (cli_given(positional, "points") && !sweep)
        return base_fail(BASE_ERR_USAGE, "--points is of lab sweep");
    if (rate && (a->changes.quick || a->changes.seeds > 0 || a->changes.sets.count > 0 ||
                 a->only.count > 0 || a->print || a->dry_run || a->fresh || a->csv != NULL))
        return base_fail(BASE_ERR_USAGE, "lab lr is one training: of the options of labs it takes "
                                         "--out, --json and --quiet");
    return BASE_OK;
}

/* The figure that tells which of several models is best, without their tests. */
static const char *judge_of(const struct cli_positional *positional)
{
    const char *model = "";

    for (int i = 0; i < positional->passed_count; i++)
        if (strcmp(positional->passed[i].name, "model") == 0)
            model = positional->passed[i].text;
    return train_task_of(model)->sweeps != NULL ? "validation_rmse" : "validation_loss";
}

/* The file that the call names or, for a sweep, is. */
static base_status find_file(const struct args *a, const struct cli_positional *positional,
                             json_t **file_p, char **name_p)
{
    *file_p = NULL;
    *name_p = NULL;
    if (strcmp(positional->at[0], SWEEP) != 0)
        return lab_find(positional->at[0], file_p, name_p);
    *name_p = base_strdup(SWEEP);
    return lab_sweep(&(struct lab_sweep){.options = train_job_options,
                                         .given = positional->passed,
                                         .given_count = positional->passed_count,
                                         .points = a->points,
                                         .judge = judge_of(positional)},
                     file_p);
}

static base_status run(void *args, const struct cli_positional *positional)
{
    const struct args *a = args;
    base_status st = BASE_OK;
    json_t *file = NULL;
    struct lab lab = {0};
    char *name = NULL, *folder = NULL;

    if (a->quiet)
        base_log_level(BASE_WARN);
    if (a->list)
        return cli_lab_list(a->json);
    if (positional->count == 0)
        TRY(base_fail(BASE_ERR_USAGE, "lab needs a name or a file; --list shows the names"));
    TRY(check_passed(a, positional, positional->at[0]));
    if (strcmp(positional->at[0], RATE) == 0)
        return cli_lab_rate(positional, a->out != NULL ? a->out : "labs-out/" RATE, a->json);
    TRY(find_file(a, positional, &file, &name));
    if (a->print) {
        if (json_dumpf(file, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0 ||
            fputc('\n', stdout) == EOF)
            TRY(base_fail(BASE_ERR_IO, "cannot write to standard output: %m"));
        goto out;
    }
    TRY(lab_open(name, file, &a->changes, &lab));
    folder = a->out != NULL ? base_strdup(a->out)
                            : base_format("labs-out/%s%s", name, a->changes.quick ? "-quick" : "");
    TRY(run_lab(a, &lab, folder));
out:
    lab_close(&lab);
    json_decref(file);
    base_free(folder);
    base_free(name);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "list", .kind = BASE_FLAG, .offset = AT(list),
     .help = "the labs that come with the program", .local = true},
    {.name = "print", .kind = BASE_FLAG, .offset = AT(print),
     .help = "the lab's file on standard output, to be changed and given as FILE.json",
     .local = true},
    {.name = "dry-run", .kind = BASE_FLAG, .offset = AT(dry_run),
     .help = "check everything and show what would be run, how often, and what is done",
     .local = true},
    {.name = "only", .argument = "TEXT", .kind = BASE_TEXTS, .offset = AT(only),
     .help = "only cases whose names contain it; may be given several times", .local = true},
    {.name = "seeds", .argument = "N", .kind = BASE_INT, .offset = AT(changes.seeds),
     .max = LAB_MAX_SEEDS, .help = "seeds 1 … N for each case; 0: those of the lab",
     .local = true},
    {.name = "quick", .kind = BASE_FLAG, .offset = AT(changes.quick),
     .help = "the lab's quick form, for a first look", .local = true},
    {.name = "set", .argument = "NAME=VALUE", .kind = BASE_TEXTS, .offset = AT(changes.sets),
     .help = "an option of train for all runs, in place of the lab's", .local = true},
    {.name = "points", .argument = "N", .kind = BASE_INT, .offset = AT(points), .min = 2,
     .max = LAB_SWEEP_MOST, .help = "of lab sweep: values of each range A..B", .local = true},
    {.name = "fresh", .kind = BASE_FLAG, .offset = AT(fresh),
     .help = "forget what was done before", .local = true},
    {.name = "out", .argument = "DIR", .kind = BASE_TEXT, .offset = AT(out),
     .help = "folder of the results [labs-out/NAME]", .local = true},
    {.name = "csv", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(csv),
     .help = "write a table with a line for each run", .local = true},
    {.name = "json", .kind = BASE_FLAG, .offset = AT(json),
     .help = "one JSON object on standard output", .local = true},
    {.name = "quiet", .kind = BASE_FLAG, .offset = AT(quiet),
     .help = "only warnings and errors", .local = true},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_lab = {
    .name = "lab",
    .help = "a grid of trainings: means and deviations over seeds, tables, pictures",
    .usage = "paceline lab FILE.json|NAME [options]\n       paceline lab --list\n"
             "       paceline lab sweep --lr A..B [--OPTION A..B …] [options of train and lab]\n"
             "       paceline lab lr [--lr A..B] [--steps N] [options of train]",
    .examples =
        "  paceline lab --list\n"
        "  paceline lab s4 --dry-run                        # what would be run\n"
        "  paceline lab s4 --csv s4.csv                     # again after Ctrl-C: goes on\n"
        "  paceline lab s3 --quick --set data=synthetic:shape=3x32x32,classes=10\n"
        "  paceline lab s4 --only local --seeds 5\n"
        "  paceline lab s4 --print > mine.json && paceline lab mine.json\n"
        "  paceline lab lr --model mnist-cnn --data mnist    # a learning rate to begin with\n"
        "  paceline lab sweep --lr 0.001..0.3 --model mnist-cnn --data mnist --epochs 2\n",
    .completes = "LAB",
    .options = options,
    .args_size = sizeof(struct args),
    .passes = train_job_options,
    .defaults = &(const struct args){.points = 7},
    .max_positional = 1,
    .run = run,
};
