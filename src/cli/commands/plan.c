/* SPDX-License-Identifier: MIT
 *
 * paceline plan: what a training would need and how long its steps would take under every strategy,
 * and which one to take. The options are those of `train`, so that a command line becomes a plan by
 * its first word; nothing is trained, and no run is made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/plan_parts.h"
#include "train/job.h"
#include "train/session.h"

struct args {
    struct train_job job;
    const char *link;
    bool deepest;
};

struct plan {
    const struct args *args;
    struct cli_plan made;
};

/* "1G", "100M": bits a second, powers of 1000; *bytes_p: bytes a second. */
static base_status cmd_plan_link(const char *text, double *bytes_p)
{
    char *end;
    double bits;

    *bytes_p = 0;
    if (text == NULL)
        return BASE_OK;
    bits = strtod(text, &end);
    bits *= *end == 'G' ? 1e9 : *end == 'M' ? 1e6 : *end == 'K' ? 1e3 : 1;
    if (end == text || strlen(end) > (strchr("GMK", *end) != NULL ? 1 : 0) || !(bits >= 1e3) ||
        !(bits <= 1e15))
        return base_fail(BASE_ERR_USAGE,
                         "--link %s: how many bits a second, such as 100M, 1G or 2.5G", text);
    *bytes_p = bits / 8;
    return BASE_OK;
}

/* ---- the deepest model that would fit ---- */

static bool cmd_plan_fits(struct plan *p, const struct train_setting *setting, const char *model,
                          const char *strategy)
{
    return train_forecast_model(&p->made.session, &p->made.job, model) == BASE_OK &&
           train_forecast_fits(&p->made.session, setting, strategy);
}

/* Layers of an mlp of that width; 0: not even one fits. */
static int cmd_plan_deepest_mlp(struct plan *p, const struct train_setting *setting, int width,
                                const char *strategy)
{
    enum { MOST = 1024 };
    int fits = 0, depth = 1, too_deep;
    char model[64];

    for (; depth <= MOST; depth *= 2) {
        snprintf(model, sizeof model, "mlp:%dx%d", width, depth);
        if (!cmd_plan_fits(p, setting, model, strategy))
            break;
        fits = depth;
    }
    for (too_deep = depth; fits > 0 && too_deep <= MOST && too_deep - fits > 1;) {
        int middle = (fits + too_deep) / 2;

        snprintf(model, sizeof model, "mlp:%dx%d", width, middle);
        if (cmd_plan_fits(p, setting, model, strategy))
            fits = middle;
        else
            too_deep = middle;
    }
    return fits;
}

static json_t *cmd_plan_deepest(struct plan *p, const struct cli_plan_part *part,
                                const char *strategy)
{
    static const char *const vggs[] = {"vgg16", "vgg11"};
    int width = 1024, depth;
    json_t *deepest = json_object();

    if (sscanf(p->args->job.model, "mlp:%dx", &width) != 1 || width < 1)
        width = 1024;
    depth = cmd_plan_deepest_mlp(p, &part->setting, width, strategy);
    if (depth > 0) {
        char *model = base_format("mlp:%dx%d", width, depth);

        json_object_set_new(deepest, "mlp", json_string(model));
        base_free(model);
    }
    for (size_t i = 0; i < sizeof vggs / sizeof *vggs; i++)
        if (json_object_get(deepest, "vgg") == NULL &&
            cmd_plan_fits(p, &part->setting, vggs[i], strategy))
            json_object_set_new(deepest, "vgg", json_string(vggs[i]));
    return deepest;
}

/* ---- output ---- */

static json_t *cmd_plan_row(struct plan *p, const struct cli_plan_part *part,
                            const struct train_forecast *f)
{
    int locals = part->setting.link > 0 ? 1 : part->setting.workers;
    json_t *row =
        json_pack("{s:s, s:i, s:I, s:i, s:o, s:b, s:b, s:b, s:f, s:f, s:o, s:o}", "strategy",
                  f->text, "workers", part->setting.workers, "batch", (json_int_t)part->batch,
                  "threads", part->setting.threads, "memory", train_memory_json(&f->memory, locals),
                  "fits", f->fits, "exact", f->cost.exact, "frail", f->cost.frail, "link_bytes",
                  part->setting.link > 0 ? f->cost.sent : 0, "shared_bytes",
                  part->setting.link > 0 ? 0 : f->cost.moved, "idle", base_json_number(f->idle),
                  "step_seconds", base_json_number(f->seconds));

    if (p->args->deepest)
        json_object_set_new(row, "deepest", cmd_plan_deepest(p, part, f->text));
    return row;
}

/* The words with which `train` does what was chosen. base_free. */
static char *cmd_plan_command(const struct plan *p)
{
    const struct args *a = p->args;
    const struct cli_plan_part *c = p->made.chosen;

    return c == NULL
               ? NULL
               : base_format("paceline train --model %s --data %s --batch %lld --workers %d "
                             "--threads %d --strategy %s",
                             a->job.model, a->job.data, (long long)c->batch, c->setting.workers,
                             c->setting.threads, c->forecasts.choice->text);
}

static json_t *cmd_plan_json(struct plan *p)
{
    const struct args *a = p->args;
    char *command = cmd_plan_command(p);
    json_t *rows = json_array(), *object;

    for (int i = 0; i < p->made.count; i++)
        for (size_t k = 0; k < p->made.parts[i].forecasts.count; k++)
            json_array_append_new(
                rows, cmd_plan_row(p, &p->made.parts[i], &p->made.parts[i].forecasts.at[k]));
    object = json_pack(
        "{s:i, s:s, s:s, s:o, s:f, s:o, s:o, s:o}", "schema", 1, "model", a->job.model, "data",
        a->job.data, "link", p->made.link > 0 ? json_real(8 * p->made.link) : json_null(),
        "memory_rate", p->made.memory_rate, "strategies", rows, "choice",
        p->made.chosen == NULL
            ? json_null()
            : json_pack("{s:s, s:i, s:i}", "strategy", p->made.chosen->forecasts.choice->text,
                        "workers", p->made.chosen->setting.workers, "threads",
                        p->made.chosen->setting.threads),
        "command", command == NULL ? json_null() : json_string(command));
    base_free(command);
    return object;
}

static const char *cmd_plan_text(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(row, "deepest"), key));

    return text != NULL ? text : "-";
}

static void cmd_plan_print(const struct plan *p, const json_t *object)
{
    static const char *const titles[] = {"strategy", "workers", "MB a worker", "fits",  "MB a step",
                                         "idle",     "ms",      "samples/s",   "losses"};
    enum { COLUMNS = sizeof titles / sizeof *titles };
    const json_t *rows = json_object_get(object, "strategies"), *row;
    size_t width = COLUMNS + (p->args->deepest ? 2 : 0), index, at = 0;
    char **cells = base_calloc((json_array_size(rows) + 1) * width, sizeof *cells);
    const char *command = json_string_value(json_object_get(object, "command"));

    for (size_t i = 0; i < width; i++)
        cells[at++] = base_strdup(i < COLUMNS ? titles[i] : i == COLUMNS ? "deepest mlp" : "vgg");
    json_array_foreach(rows, index, row)
    {
        double seconds = json_number_value(json_object_get(row, "step_seconds"));
        double bytes = json_number_value(json_object_get(row, "link_bytes")) +
                       json_number_value(json_object_get(row, "shared_bytes"));
        const json_t *memory = json_object_get(row, "memory");

        cells[at++] = base_strdup(json_string_value(json_object_get(row, "strategy")));
        cells[at++] = base_format("%lld", json_integer_value(json_object_get(row, "workers")));
        cells[at++] =
            base_format("%.1f", 1e-6 * json_number_value(json_object_get(memory, "worker_bytes")));
        cells[at++] = base_strdup(json_is_true(json_object_get(row, "fits")) ? "yes" : "no");
        cells[at++] = base_format("%.2f", 1e-6 * bytes);
        cells[at++] = base_format("%.0f %%", 100 * json_number_value(json_object_get(row, "idle")));
        cells[at++] = base_format("%.2f", 1e3 * seconds);
        cells[at++] =
            base_format("%.0f", json_number_value(json_object_get(row, "batch")) / seconds);
        cells[at++] = base_strdup(json_is_true(json_object_get(row, "exact")) ? "single's" : "own");
        if (p->args->deepest) {
            cells[at++] = base_strdup(cmd_plan_text(row, "mlp"));
            cells[at++] = base_strdup(cmd_plan_text(row, "vgg"));
        }
    }
    cli_table(stdout, cells, json_array_size(rows) + 1, width);
    base_free(cells);
    if (command != NULL)
        printf("\nthe choice, which fits and has the losses of one worker%s:\n  %s\n",
               train_forecast_price(p->made.chosen->forecasts.choice), command);
    else
        printf("\nno strategy that a plan chooses from fits\n");
}

/* ---- the command ---- */

static base_status cmd_plan(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct plan *p = base_calloc(1, sizeof *p);
    json_t *object = NULL;
    double link;

    (void)positional;
    p->args = a;
    if (a->job.quiet || a->job.json)
        base_log_level(BASE_WARN);
    if (a->job.model == NULL || a->job.data == NULL)
        TRY(base_fail(BASE_ERR_USAGE, "--model and --data say what is to be planned"));
    TRY(cmd_plan_link(a->link, &link));
    TRY(cli_plan_make(&a->job, (int)a->job.cluster.workers, link, &p->made));
    object = cmd_plan_json(p);
    if (a->job.json)
        TRY(base_json_print(object));
    else
        cmd_plan_print(p, object);
out:
    json_decref(object);
    cli_plan_fini(&p->made);
    base_free(p);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "link", .argument = "RATE", .kind = BASE_TEXT, .offset = AT(link),
     .help = "bits a second between workers, each on a host of its own like this one: 100M, 1G "
             "[all workers on this host]", .local = true},
    {.name = "deepest", .kind = BASE_FLAG, .offset = AT(deepest),
     .help = "also the deepest mlp and vgg that would fit", .local = true},
    {.table = train_job_options, .offset = AT(job)},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_plan = {
    .name = "plan",
    .help = "what a training would need under each strategy, how long steps take, what to choose",
    .usage = "paceline plan --model M --data D [--workers N] [options]",
    .examples = "  paceline plan --model vgg11 --data cifar10 --workers 2\n"
                "  paceline plan --model mlp:4096x8 --data mnist --workers 4 --memory 300M\n"
                "  paceline plan --model vgg11 --data cifar10 --workers 4 --link 1G --json\n",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.job = TRAIN_JOB_DEFAULTS},
    .run = cmd_plan,
};
