/* SPDX-License-Identifier: MIT
 *
 * paceline plot RUN … [-o FILE.svg]: one chart of what runs have told, as a picture or, without a
 * file, in the terminal.
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/stories.h"

static const char *const x_names[] = {"step", "epoch", "time", NULL};

struct args {
    struct cli_runs_args common;
    const char *out, *y;
    enum report_x x;
    bool log;
};

/* Figures with short names, in the order in which one is chosen where none was asked for. */
static const char *const figures[] = {"loss", "accuracy", "rmse", "mae", "r2", "lr", "rate"};
enum { FIGURES = sizeof figures / sizeof *figures };

static bool cmd_plot_has(const struct report_story *story, const char *what)
{
    struct report_lines lines = {0};
    bool has;

    report_lines_add(&lines, story, what, REPORT_STEP, NULL, false);
    has = lines.count > 0;
    report_lines_fini(&lines);
    return has;
}

/* What to draw where --y does not say: the loss or, of a run without one, its own figure. */
static const char *cmd_plot_usual(const struct report_story *first)
{
    for (size_t i = 0; i < FIGURES; i++)
        if (cmd_plot_has(first, figures[i]))
            return figures[i];
    return figures[0];
}

/* All that can be drawn of a run: short names, then single curves; base_free. */
static char *cmd_plot_known(const struct report_story *story)
{
    struct base_str text = {0};

    for (size_t i = 0; i < FIGURES; i++)
        if (cmd_plot_has(story, figures[i]))
            base_str_add(&text, "%s%s", text.length > 0 ? ", " : "", figures[i]);
    for (size_t i = 0; i < story->curve_count; i++)
        base_str_add(&text, "%s%s", text.length > 0 ? ", " : "", story->curves[i].name);
    return text.length > 0 ? base_str_take(&text) : base_strdup("nothing yet");
}

static base_status cmd_plot_collect(const struct args *a, const char *y,
                                    const struct cli_stories *stories, struct report_lines *lines)
{
    base_status st = BASE_OK;
    char *known = NULL;

    for (int i = 0; i < stories->count; i++) {
        const struct report_story *story = &stories->pages[i].story;

        report_lines_add(lines, story, y, a->x, stories->count > 1 ? story->name : NULL,
                         stories->count == 1);
    }
    if (lines->count == 0) {
        known = cmd_plot_known(&stories->pages[0].story);
        TRY(base_fail(BASE_ERR_USAGE, "run %s has no %s to draw; it has: %s", stories->runs[0].name,
                      y, known));
    }
    for (int i = 0; i < stories->count; i++)
        if (!cmd_plot_has(&stories->pages[i].story, y))
            base_warn("run %s has no %s and is left out", stories->runs[i].name, y);
out:
    base_free(known);
    return st;
}

static base_status cmd_plot_write(const struct args *a, const struct report_chart *chart)
{
    base_status st = BASE_OK;
    struct base_str svg = {0};
    json_t *object = NULL;

    report_svg_lines(chart, &svg);
    TRY(base_file_replace(a->out, svg.text, svg.length));
    object = json_pack("{s:i, s:o, s:I}", "schema", 1, "file", base_json_text(a->out), "series",
                       (json_int_t)chart->series_count);
    if (a->common.json)
        TRY(base_json_print(object));
    else
        printf("%s: %zu line%s\n", a->out, chart->series_count,
               base_plural((int64_t)chart->series_count));
out:
    json_decref(object);
    base_str_fini(&svg);
    return st;
}

static base_status cmd_plot(void *args, const struct cli_positional *positional)
{
    static const char *const x_titles[] = {"step", "epoch", "seconds of training"};
    base_status st = BASE_OK;
    const struct args *a = args;
    struct cli_stories stories = {0};
    struct report_lines lines = {0};
    struct report_chart chart;
    const char *y;
    char *title = NULL;

    if (a->out != NULL && !cli_ends(a->out, ".svg"))
        TRY(base_fail(BASE_ERR_USAGE, "-o names the picture to write, FILE.svg; not %s", a->out));
    if (a->y != NULL && a->y[0] == '\0')
        TRY(base_fail(BASE_ERR_USAGE, "--y names what to draw, such as loss"));
    if (a->out == NULL && a->common.json)
        TRY(base_fail(BASE_ERR_USAGE, "--json goes with -o FILE.svg; for numbers see 'paceline "
                                      "events RUN --csv'"));
    TRY(cli_stories_read(a->common.runs_dir, positional, &stories));
    y = a->y != NULL ? a->y : cmd_plot_usual(&stories.pages[0].story);
    TRY(cmd_plot_collect(a, y, &stories, &lines));
    title = stories.count == 1 ? base_format("%s: %s", stories.runs[0].name, y) : base_strdup(y);
    chart = (struct report_chart){.title = title,
                                  .x_title = x_titles[a->x],
                                  .y_title = y,
                                  .log_y = a->log,
                                  .series = lines.series,
                                  .series_count = lines.count};
    if (a->out != NULL)
        TRY(cmd_plot_write(a, &chart));
    else
        cli_print_chart(&chart);
out:
    base_free(title);
    report_lines_fini(&lines);
    cli_stories_fini(&stories);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "out", .alias = "o", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(out),
     .help = "the picture to write, FILE.svg [the terminal]", .local = true},
    {.name = "y", .argument = "FIGURE", .kind = BASE_TEXT, .offset = AT(y),
     .help = "what to draw: loss, accuracy, rmse, r2, lr, rate, seconds, or EVENT.FIELD such as epoch.loss [loss; of ratings rmse]", .local = true},
    {.name = "x", .argument = "AXIS", .kind = BASE_ENUM, .offset = AT(x), .names = x_names,
     .help = "over what", .local = true},
    {.name = "log", .kind = BASE_FLAG, .offset = AT(log), .help = "a logarithmic scale", .local = true},
    {.table = cli_runs_options, .offset = AT(common)},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_plot = {
    .name = "plot",
    .help = "one chart of runs, in the terminal or as SVG",
    .usage = "paceline plot RUN … [-o FILE.svg] [options]",
    .examples = "  paceline plot vgg11-cifar10-1\n"
                "  paceline plot one-worker two-workers --y accuracy --x time -o accuracy.svg\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.common = {.runs_dir = "runs"}},
    .min_positional = 1,
    .max_positional = CLI_MAX_STORIES,
    .run = cmd_plot,
};
