/* SPDX-License-Identifier: MIT
 *
 * paceline trace RUN -o FILE: what each worker of a run did when, as trace events for Perfetto or
 * chrome://tracing, or as a picture of one step.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/stories.h"
#include "report/svg.h"
#include "train/run.h"
#include "train/trace.h"

struct args {
    struct cli_runs_args common;
    const char *out;
    int64_t step;
};

static double cmd_trace_began(const struct train_traces *traces)
{
    double first = INFINITY;

    for (size_t i = 0; i < traces->count; i++)
        first = fmin(first, traces->at[i].began);
    return first;
}

/* ---- trace events ---- */

static json_t *cmd_trace_event(const struct train_traced *t, double first)
{
    json_t *about = json_pack("{s:I}", "step", (json_int_t)t->step);
    char name[64];

    snprintf(name, sizeof name, "%s", train_doing_names[t->what.doing]);
    if (train_doing_is_of_piece(t->what.doing)) {
        snprintf(name, sizeof name, "%s %d", train_doing_names[t->what.doing], t->what.piece);
        json_object_set_new(about, "stage", json_integer(t->what.stage));
        json_object_set_new(about, "microbatch", json_integer(t->what.piece));
    }
    return json_pack("{s:s, s:s, s:s, s:f, s:f, s:I, s:I, s:o}", "name", name, "cat",
                     train_doing_names[t->what.doing], "ph", "X", "ts", 1e6 * (t->began - first),
                     "dur", 1e6 * t->seconds, "pid", (json_int_t)t->worker, "tid",
                     (json_int_t)t->worker, "args", about);
}

/* Perfetto shows a worker as a process of this name. */
static json_t *cmd_trace_name(const struct train_traced *t)
{
    char *name = base_format("worker %" PRId64 " (rank %" PRId64 ")", t->worker, t->rank);
    json_t *event =
        json_pack("{s:s, s:s, s:I, s:I, s:{s:s}}", "name", "process_name", "ph", "M", "pid",
                  (json_int_t)t->worker, "tid", (json_int_t)t->worker, "args", "name", name);

    base_free(name);
    return event;
}

static void cmd_trace_events(const struct train_traces *traces, struct base_str *text)
{
    double first = cmd_trace_began(traces);
    json_t *events = json_array(), *object;
    char *dumped;

    for (size_t i = 0; i < traces->count; i++) {
        if (i == 0 || traces->at[i].worker != traces->at[i - 1].worker)
            json_array_append_new(events, cmd_trace_name(&traces->at[i]));
        json_array_append_new(events, cmd_trace_event(&traces->at[i], first));
    }
    object = json_pack("{s:o, s:s}", "traceEvents", events, "displayTimeUnit", "ms");
    dumped = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
    base_str_add(text, "%s\n", dumped);
    base_free(dumped);
    json_decref(object);
}

/* ---- a picture ---- */

/* Time in which a worker waits is left white. The order is that of the legend. */
static const enum train_doing drawn[] = {
    TRAIN_DOING_FORWARD, TRAIN_DOING_BACKWARD,    TRAIN_DOING_WEIGHTS, TRAIN_DOING_COMPUTE,
    TRAIN_DOING_UPDATE,  TRAIN_DOING_COMMUNICATE, TRAIN_DOING_DATA};
enum { DRAWN = sizeof drawn / sizeof *drawn };

struct picture {
    struct report_series series[DRAWN];
    size_t series_of[TRAIN_DOINGS]; /* SIZE_MAX: not drawn */
    const char **rows;
    struct report_box *boxes;
    size_t series_count, row_count, box_count;
};

static void cmd_trace_choose_series(const struct train_traces *traces, struct picture *p)
{
    for (int doing = 0; doing < TRAIN_DOINGS; doing++)
        p->series_of[doing] = SIZE_MAX;
    for (size_t k = 0; k < DRAWN; k++) {
        bool there = false;

        for (size_t i = 0; i < traces->count; i++)
            there |= traces->at[i].what.doing == drawn[k];
        if (!there)
            continue;
        p->series_of[drawn[k]] = p->series_count;
        p->series[p->series_count++].name = train_doing_names[drawn[k]];
    }
}

static void cmd_trace_place_boxes(const struct train_traces *traces, struct picture *p)
{
    double first = cmd_trace_began(traces);

    for (size_t i = 0; i < traces->count; i++) {
        const struct train_traced *t = &traces->at[i];
        struct report_box *box = &p->boxes[p->box_count];

        if (i == 0 || t->worker != t[-1].worker)
            p->rows[p->row_count++] = base_format("worker %" PRId64, t->worker);
        if (p->series_of[t->what.doing] == SIZE_MAX)
            continue;
        *box = (struct report_box){.row = p->row_count - 1,
                                   .series = p->series_of[t->what.doing],
                                   .from = 1e3 * (t->began - first),
                                   .to = 1e3 * (t->began - first + t->seconds)};
        if (train_doing_is_of_piece(t->what.doing))
            snprintf(box->text, sizeof box->text, "%d", t->what.piece);
        p->box_count++;
    }
}

static void cmd_trace_picture(const struct train_run *run, const struct train_traces *traces,
                              struct base_str *svg)
{
    char *title =
        base_format("%s, step %" PRId64 " (white: waiting)", run->name, traces->at[0].step);
    struct picture p = {.rows = base_calloc(traces->count, sizeof *p.rows),
                        .boxes = base_calloc(traces->count, sizeof *p.boxes)};

    cmd_trace_choose_series(traces, &p);
    cmd_trace_place_boxes(traces, &p);
    report_svg_timeline(&(struct report_chart){.title = title,
                                               .x_title = "ms",
                                               .series = p.series,
                                               .series_count = p.series_count,
                                               .rows = p.rows,
                                               .row_count = p.row_count},
                        p.boxes, p.box_count, svg);
    for (size_t i = 0; i < p.row_count; i++)
        base_free((void *)(uintptr_t)p.rows[i]);
    base_free(p.rows);
    base_free(p.boxes);
    base_free(title);
}

/* ---- the command ---- */

static base_status cmd_trace_tell(const struct args *a, const struct train_traces *traces)
{
    base_status st = BASE_OK;
    int64_t workers = 1;
    json_t *object;

    for (size_t i = 1; i < traces->count; i++)
        workers += traces->at[i].worker != traces->at[i - 1].worker;
    object = json_pack("{s:i, s:s, s:I, s:I}", "schema", 1, "file", a->out, "workers",
                       (json_int_t)workers, "spans", (json_int_t)traces->count);
    if (a->common.json)
        st = base_json_print(object);
    else
        printf("%s: %zu spans of %" PRId64 " worker%s\n", a->out, traces->count, workers,
               base_plural(workers));
    json_decref(object);
    return st;
}

static base_status cmd_trace(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct train_run run = {0};
    struct train_traces traces = {0};
    struct base_str text = {0};
    bool picture;

    if (a->out == NULL || (!cli_ends(a->out, ".json") && !cli_ends(a->out, ".svg")))
        TRY(base_fail(BASE_ERR_USAGE, "-o names the file to write: trace.json for Perfetto or "
                                      "chrome://tracing, or a picture, trace.svg"));
    picture = cli_ends(a->out, ".svg");
    TRY(train_run_open(a->common.runs_dir, positional->at[0], &run));
    TRY(train_traces_read(&run, a->step > 0 ? a->step : picture ? 0 : -1, &traces));
    if (picture)
        cmd_trace_picture(&run, &traces, &text);
    else
        cmd_trace_events(&traces, &text);
    TRY(base_file_replace(a->out, text.text, text.length));
    TRY(cmd_trace_tell(a, &traces));
out:
    base_str_fini(&text);
    train_traces_fini(&traces);
    train_run_close(&run);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "out", .alias = "o", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(out),
     .help = "the file to write: FILE.json for Perfetto, FILE.svg for a picture of one step",
     .local = true},
    {.name = "step", .argument = "N", .kind = BASE_INT, .offset = AT(step), .min = 0, .max = 1e15,
     .help = "that step alone; 0: all of them, for a picture the newest", .local = true},
    {.table = cli_runs_options, .offset = AT(common)},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_trace = {
    .name = "trace",
    .help = "when each worker of a run computed, communicated and waited: for Perfetto, or as SVG",
    .usage = "paceline trace RUN -o FILE.json|FILE.svg [options]",
    .examples = "  paceline trace vgg11-cifar10-1 -o trace.json    (open it at ui.perfetto.dev)\n"
                "  paceline trace ring -o step.svg --step 8\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.common = {.runs_dir = "runs"}},
    .min_positional = 1,
    .max_positional = 1,
    .run = cmd_trace,
};
