/* SPDX-License-Identifier: MIT
 *
 * paceline report RUN … [-o FILE.html]: runs as one page to look at.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/compared.h"
#include "cli/damage.h"
#include "cli/stories.h"

struct args {
    struct cli_runs_args common;
    const char *out;
};

/* Where the page goes: as asked, or into the folder of the only run, or here. */
static char *cmd_report_path(const struct args *a, const struct cli_stories *stories)
{
    if (a->out != NULL)
        return base_strdup(a->out);
    return stories->count == 1 ? base_format("%s/report.html", stories->runs[0].path)
                               : base_strdup("report.html");
}

/* Does a file begin as our pages do? Their title tells. */
static bool cmd_report_is_page(const char *path)
{
    static const char title[] = " · paceline</title>";
    FILE *file = fopen(path, "rb");
    char text[2048];
    size_t count = file != NULL ? fread(text, 1, sizeof text, file) : 0;

    if (file != NULL)
        fclose(file);
    return memmem(text, count, title, sizeof title - 1) != NULL;
}

static bool cmd_report_is_in(const char *path, const char *folder)
{
    char *copy = base_strdup(path), *slash = strrchr(copy, '/'), *a, *b;
    bool same;

    if (slash != NULL)
        *slash = '\0';
    a = realpath(slash == NULL ? "." : slash == copy ? "/" : copy, NULL);
    b = realpath(folder, NULL);
    same = a != NULL && b != NULL && strcmp(a, b) == 0;
    free(a);
    free(b);
    base_free(copy);
    return same;
}

/* A link to what `paceline trace` has written into the run's folder; NULL: nothing. */
static char *cmd_report_trace(const struct train_run *run, const char *page)
{
    static const char *const names[] = {"trace.json", "trace.svg"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = base_format("%s/%s", run->path, names[i]), *whole = realpath(path, NULL);
        char *link = NULL;

        if (whole != NULL)
            link = base_strdup(cmd_report_is_in(page, run->path) ? names[i] : whole);
        free(whole);
        base_free(path);
        if (link != NULL)
            return link;
    }
    return NULL;
}

static void cmd_report_html(const struct cli_stories *stories, struct base_str *html)
{
    struct report_table table = {0}, damage = {0};
    char made[REPORT_MADE];
    json_t *keys = NULL, *list = NULL, *damages = NULL;

    report_made(made);
    if (stories->count > 1) {
        list = cli_compared(stories->runs, stories->count, &keys);
        table = cli_compared_table(list, keys);
    }
    if (stories->count > 1 && cli_damage_is(stories->runs, stories->count)) {
        damages = cli_damage(stories->runs, stories->count);
        damage = cli_damage_table(damages);
    }
    report_page(&(struct report_page){.runs = stories->pages,
                                      .count = (size_t)stories->count,
                                      .compared = stories->count > 1 ? &table : NULL,
                                      .damage = damages != NULL ? &damage : NULL,
                                      .made = made},
                html);
    report_table_fini(&table);
    report_table_fini(&damage);
    json_decref(damages);
    json_decref(list);
    json_decref(keys);
}

static base_status cmd_report_tell(const struct args *a, const char *path, int runs, size_t bytes)
{
    base_status st = BASE_OK;
    json_t *object;

    if (!a->common.json) {
        printf("%s: %d run%s, %zu kB; open it in a browser\n", path, runs, base_plural(runs),
               (bytes + 999) / 1000);
        return BASE_OK;
    }
    object = json_pack("{s:i, s:o, s:i, s:I}", "schema", 1, "file", base_json_text(path), "runs",
                       runs, "bytes", (json_int_t)bytes);
    st = base_json_print(object);
    json_decref(object);
    return st;
}

static base_status cmd_report(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct cli_stories stories = {0};
    struct base_str html = {0};
    char *path = NULL;

    if (a->out != NULL && !cli_ends(a->out, ".html"))
        TRY(base_fail(BASE_ERR_USAGE, "-o names the page to write, FILE.html; not %s", a->out));
    TRY(cli_stories_read(a->common.runs_dir, positional, &stories));
    path = cmd_report_path(a, &stories);
    if (a->out == NULL && base_exists(path) && !cmd_report_is_page(path))
        TRY(base_fail(BASE_ERR_USAGE,
                      "%s is there and no page of paceline report; name the page with -o FILE.html",
                      path));
    for (int i = 0; i < stories.count; i++)
        stories.pages[i].trace = cmd_report_trace(&stories.runs[i], path);
    cmd_report_html(&stories, &html);
    TRY(base_file_replace(path, html.text, html.length));
    TRY(cmd_report_tell(a, path, stories.count, html.length));
out:
    base_free(path);
    base_str_fini(&html);
    cli_stories_fini(&stories);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "out", .alias = "o", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(out),
     .help = "the page to write, FILE.html [report.html in the run's folder; of several runs, here]",
     .local = true},
    {.table = cli_runs_options, .offset = AT(common)},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_report = {
    .name = "report",
    .help = "runs as one HTML page: curves, time by worker, losses, confusion, comparison",
    .usage = "paceline report RUN … [-o FILE.html] [options]",
    .examples = "  paceline report vgg11-cifar10-1\n"
                "  paceline report one-worker two-workers -o scaling.html\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.common = {.runs_dir = "runs"}},
    .min_positional = 1,
    .max_positional = CLI_MAX_STORIES,
    .run = cmd_report,
};
