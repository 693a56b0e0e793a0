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
#include "cli/train_check.h"
#include "cluster/process.h"
#include "data/get.h"

struct args {
    struct lab_changes changes;
    struct base_texts only;
    const char *out, *csv;
    bool list, print, dry_run, fresh, json, quiet;
};

/* ---- before the first run ---- */

/* A known data set that is not here would be fetched by the first run, in its time. */
static base_status fetch(const char *data)
{
    base_status st = BASE_OK;
    bool present = true;
    char *path = NULL;

    if (data_get_knows(data)) {
        TRY(data_get_folder(data, &present, &path));
        if (!present)
            TRY(data_get(data));
    }
out:
    base_free(path);
    return st;
}

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
        TRY(fetch(job.data));
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

static json_t *object_of(const struct lab_work *work, const json_t *plots, base_status st)
{
    const struct lab *lab = work->lab;
    json_t *object =
        json_pack("{s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:O, s:o, s:O, s:b}", "schema", 1, "lab",
                  lab->name, "about", lab->about, "folder", work->results->folder, "version",
                  PACELINE_VERSION, "runs", (json_int_t)work->total, "done", (json_int_t)work->done,
                  "failures", work->failures, "cases", lab_summary(lab, work->results), "plots",
                  plots, "interrupted", st == BASE_ERR_INTERRUPTED);

    if (st != BASE_OK && st != BASE_ERR_INTERRUPTED)
        json_object_set_new(object, "error",
                            json_pack("{s:s, s:o}", "code", base_code_name(st), "message",
                                      base_json_text(base_message())));
    return object;
}

/* Whatever happened, what is there is shown. With --json the object is the only thing on standard
 * output, so that a failure's message is told here. */
static base_status conclude(const struct args *a, const struct lab_work *work, base_status st)
{
    json_t *plots = NULL, *object = NULL;
    char *message = base_strdup(base_message());
    size_t failed = json_array_size(work->failures);
    base_status drawn = lab_draw(work->lab, work->results, &plots);

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
        object = object_of(work, plots, st);
        if (base_json_print(object) == BASE_OK && st != BASE_OK) {
            base_warn("%s", base_message());
            st = base_fail(st, "%s", "");
        }
    } else {
        cli_lab_table(work->lab, work->results);
        if (work->lab->across != NULL)
            cli_lab_across(work->lab, work->results);
        fflush(stdout);
        base_info("results are in %s%s", work->results->folder,
                  json_array_size(plots) > 0 ? ", with pictures (*.svg)" : "");
    }
    json_decref(object);
    json_decref(plots);
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
    TRY(lab_find(positional->at[0], &file, &name));
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
    .usage = "paceline lab FILE.json|NAME [options]\n       paceline lab --list",
    .examples = "  paceline lab --list\n"
                "  paceline lab s4 --dry-run                        # what would be run\n"
                "  paceline lab s4 --csv s4.csv                     # again after Ctrl-C: goes on\n"
                "  paceline lab s3 --quick --set data=synthetic:shape=3x32x32,classes=10\n"
                "  paceline lab s4 --only local --seeds 5\n"
                "  paceline lab s4 --print > mine.json && paceline lab mine.json\n",
    .completes = "LAB",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.out = NULL},
    .max_positional = 1,
    .run = run,
};
