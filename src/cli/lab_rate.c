/* SPDX-License-Identifier: MIT */
#include "cli/lab_rate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "cli/cli.h"
#include "cli/stories.h"
#include "cli/train_check.h"
#include "lab/rate.h"
#include "lab/sweep.h"

enum { USUAL_STEPS = 200 };
#define USUAL_LOW 1e-6
#define USUAL_HIGH 10.0

static base_status read_steps(const char *text, int64_t *steps_p)
{
    char *end = NULL;

    *steps_p = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || *steps_p < LAB_RATE_LEAST || *steps_p > LAB_RATE_MOST)
        return base_fail(BASE_ERR_USAGE, "--steps of lab lr is %d to %d, not '%s'", LAB_RATE_LEAST,
                         LAB_RATE_MOST, text);
    return BASE_OK;
}

/* An option that is the test's own: its range and its steps, or one that it sets itself. */
static base_status take_own(const struct base_given *given, struct lab_rate *rate, bool *own_p)
{
    static const char *const sets[] = {"schedule", "final-lr", "warmup",     "run",   "runs-dir",
                                       "resume",   "test",     "checkpoint", "watch", "eval-every"};
    bool is_range = false;

    *own_p = true;
    if (strcmp(given->name, "steps") == 0)
        return read_steps(given->text, &rate->steps);
    if (strcmp(given->name, "lr") == 0) {
        if (lab_range("lr", given->text, &is_range, &rate->low, &rate->high) != BASE_OK)
            return BASE_ERR_USAGE;
        if (!is_range || rate->low <= 0)
            return base_fail(BASE_ERR_USAGE,
                             "--lr of lab lr is a range A..B above 0, as in --lr 1e-6..10, not "
                             "'%s'",
                             given->text);
        return BASE_OK;
    }
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strcmp(given->name, sets[i]) == 0)
            return base_fail(BASE_ERR_USAGE, "lab lr itself sets --%s; leave it out", sets[i]);
    *own_p = false;
    return BASE_OK;
}

/* "--NAME=VALUE" of what is left for train, NULL-ended. base_names_free. */
static base_status options_of(const struct cli_positional *given, struct lab_rate *rate,
                              char **words, size_t *count_p)
{
    base_status st = BASE_OK;

    for (int i = 0; i < given->passed_count; i++) {
        const struct base_given *option = &given->passed[i];
        bool own;

        TRY(take_own(option, rate, &own));
        if (!own)
            words[(*count_p)++] = base_format("--%s=%s", option->name, option->text);
    }
out:
    return st;
}

static json_t *object_of(const struct lab_rate *rate, const char *folder, const char *picture)
{
    json_t *points = json_array();

    for (size_t i = 0; i < rate->count; i++)
        json_array_append_new(points, json_pack("{s:f, s:f, s:f}", "lr", rate->rates[i], "loss",
                                                rate->losses[i], "smoothed", rate->smooth[i]));
    return json_pack("{s:i, s:s, s:s, s:o, s:o, s:f, s:f, s:I, s:b, s:s, s:o}", "schema", 1, "lab",
                     "lr", "folder", folder, "suggested", base_json_number(rate->suggested),
                     "lowest", base_json_number(rate->lowest), "from", rate->low, "to", rate->high,
                     "steps", (json_int_t)rate->steps, "diverged", rate->diverged, "plot", picture,
                     "points", points);
}

static base_status tell(const struct lab_rate *rate, const char *folder, bool json)
{
    base_status st = BASE_OK;
    struct report_series series[2];
    struct report_mark mark;
    struct report_chart chart = lab_rate_chart(rate, series, &mark);
    char *path = base_format("%s/lr.svg", folder);
    struct base_str svg = {0};
    json_t *object = NULL;

    report_svg_lines(&chart, &svg);
    TRY(base_file_replace(path, svg.text, svg.length));
    if (json) {
        object = object_of(rate, folder, path);
        TRY(base_json_print(object));
        goto out;
    }
    cli_print_chart(&chart);
    if (isnan(rate->suggested))
        printf("the loss falls nowhere between %g and %g: no suggestion\n", rate->low, rate->high);
    else
        printf("suggested: --lr %.2g (the loss falls fastest there; it is lowest at %.2g%s)\n",
               rate->suggested, rate->lowest, rate->diverged ? ", and rises for good later" : "");
    fflush(stdout);
    base_info("the picture is %s", path);
out:
    json_decref(object);
    base_str_fini(&svg);
    base_free(path);
    return st;
}

base_status cli_lab_rate(const struct cli_positional *given, const char *folder, bool json)
{
    base_status st = BASE_OK;
    struct lab_rate rate = {.low = USUAL_LOW, .high = USUAL_HIGH, .steps = USUAL_STEPS};
    size_t count = 0;
    char **words = base_calloc((size_t)given->passed_count + 1, sizeof *words);
    struct train_job job;
    int lock = -1;

    TRY(options_of(given, &rate, words, &count));
    TRY(cli_train_words(words, &job));
    TRY(cli_train_fetch(job.data));
    TRY(base_make_dirs(folder));
    lock = base_lock(folder);
    if (lock < 0)
        TRY(base_fail(BASE_ERR_IO,
                      "another paceline lab is at work in %s; --out names another folder", folder));
    base_stop_install("ending the run under way; Ctrl-C again quits at once");
    TRY(lab_rate_run(folder, words, &rate));
    TRY(tell(&rate, folder, json));
out:
    if (lock >= 0)
        close(lock);
    lab_rate_fini(&rate);
    base_names_free(words, count);
    return st;
}
