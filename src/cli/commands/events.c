/* SPDX-License-Identifier: MIT
 *
 * paceline events RUN: what its events tell, kind by kind. paceline events RUN --csv [SERIES …]:
 * the same as a table for other programs. A series is a kind of event or, KIND.FIELD, one of its
 * fields.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/event_reader.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "train/run.h"

enum { MOST_SERIES = 32, MOST_KINDS = 32, MOST_COLUMNS = 64 };

/* A kind of event, with the fields that its events have had, in the order in which they came. */
struct kind {
    char *name;
    char *fields[BASE_EVENT_FIELDS];
    size_t field_count, count;
    bool wanted; /* some field of it is a column */
};

struct args {
    struct cli_runs_args common;
    bool csv;
};

struct look {
    const struct args *args;
    const struct train_run *run;
    struct kind kinds[MOST_KINDS];
    size_t kind_count, damaged;
    bool left_out;       /* there was no room for a kind, or for a field of one */
    const char **series; /* as given */
    const char *columns[MOST_COLUMNS];
    size_t series_count, column_count, wanted_kinds;
};

typedef void see_line(struct look *look, const struct base_event_line *line);

static base_status cmd_events_read(struct look *look, const char *path, see_line *see)
{
    base_status st = BASE_OK;
    struct base_event_reader *reader = NULL;
    const struct base_event_line *line;

    TRY(base_event_reader_open(path, &reader));
    while ((line = base_event_next(reader)) != NULL)
        see(look, line);
    look->damaged += base_event_reader_damaged(reader);
out:
    base_event_reader_close(reader);
    return st;
}

/* The events of the run, then those of its coordinator where there was one. */
static base_status cmd_events_each(struct look *look, see_line *see)
{
    base_status st = BASE_OK;
    char *cluster = base_format("%s/cluster.jsonl", look->run->path);

    look->damaged = 0;
    TRY(cmd_events_read(look, look->run->events, see));
    if (base_exists(cluster))
        TRY(cmd_events_read(look, cluster, see));
out:
    base_free(cluster);
    return st;
}

static struct kind *cmd_events_kind(struct look *look, const struct base_event_line *line)
{
    for (size_t i = 0; i < look->kind_count; i++)
        if (base_event_is(line, look->kinds[i].name))
            return &look->kinds[i];
    return NULL;
}

static void cmd_events_learn_field(struct look *look, struct kind *kind,
                                   const struct base_event_field *field)
{
    for (size_t i = 0; i < kind->field_count; i++)
        if (base_event_key_is(field, kind->fields[i]))
            return;
    if (kind->field_count == BASE_EVENT_FIELDS)
        look->left_out = true;
    else
        kind->fields[kind->field_count++] = base_strndup(field->key, field->key_length);
}

static void cmd_events_learn(struct look *look, const struct base_event_line *line)
{
    struct kind *kind = cmd_events_kind(look, line);

    if (kind == NULL && look->kind_count < MOST_KINDS) {
        kind = &look->kinds[look->kind_count++];
        kind->name = base_strndup(line->fields[0].value + 1, line->fields[0].value_length - 2);
    }
    if (kind == NULL) {
        look->left_out = true;
        return;
    }
    kind->count++;
    for (size_t i = 1; i < line->field_count; i++)
        cmd_events_learn_field(look, kind, &line->fields[i]);
}

/* ---- CSV ---- */

/* Is this field among the series? "step" has all fields of the kind, "step.loss" one. */
static bool cmd_events_is_wanted(const char *series, const char *kind, const char *field)
{
    size_t length = strlen(kind);

    if (strncmp(series, kind, length) != 0)
        return false;
    return series[length] == '\0' ||
           (series[length] == '.' && strcmp(series + length + 1, field) == 0);
}

static base_status cmd_events_add_column(struct look *look, const char *name)
{
    for (size_t i = 0; i < look->column_count; i++)
        if (strcmp(look->columns[i], name) == 0)
            return BASE_OK;
    if (look->column_count == MOST_COLUMNS)
        return base_fail(BASE_ERR_USAGE, "these series have more than %d columns; name fewer",
                         MOST_COLUMNS);
    look->columns[look->column_count++] = name;
    return BASE_OK;
}

static base_status cmd_events_unknown(const struct look *look, const char *series)
{
    const char *names[MOST_KINDS * BASE_EVENT_FIELDS];
    size_t count = 0;

    for (size_t k = 0; k < look->kind_count; k++) {
        const struct kind *kind = &look->kinds[k];
        size_t length = strlen(kind->name);

        if (strncmp(series, kind->name, length) != 0 || series[length] != '.')
            continue;
        for (size_t f = 0; f < kind->field_count; f++)
            names[count++] = kind->fields[f];
        return base_unknown(BASE_ERR_USAGE, "field", series + length + 1, names, count);
    }
    for (size_t k = 0; k < look->kind_count; k++)
        names[count++] = look->kinds[k].name;
    return base_unknown(BASE_ERR_USAGE, "series", series, names, count);
}

/* The columns of the series; one that is not there is an error. */
static base_status cmd_events_choose(struct look *look)
{
    base_status st = BASE_OK;

    for (size_t s = 0; s < look->series_count; s++) {
        bool found = false;

        for (size_t k = 0; k < look->kind_count; k++) {
            struct kind *kind = &look->kinds[k];

            for (size_t f = 0; f < kind->field_count; f++)
                if (cmd_events_is_wanted(look->series[s], kind->name, kind->fields[f])) {
                    TRY(cmd_events_add_column(look, kind->fields[f]));
                    look->wanted_kinds += !kind->wanted;
                    found = kind->wanted = true;
                }
        }
        if (!found)
            TRY(cmd_events_unknown(look, look->series[s]));
    }
out:
    return st;
}

/* A null is empty, and a list or an object its JSON. */
static void cmd_events_print_value(const struct base_event_field *field)
{
    json_t *value;
    char *raw;

    if (strchr("-0123456789", field->value[0]) != NULL) { /* most of them */
        fwrite(field->value, 1, field->value_length, stdout);
        return;
    }
    value = json_loadb(field->value, field->value_length, JSON_DECODE_ANY, NULL);
    raw = base_strndup(field->value, field->value_length);
    if (!json_is_null(value))
        cli_csv_field(json_is_string(value) ? json_string_value(value) : raw, stdout);
    base_free(raw);
    json_decref(value);
}

static void cmd_events_print_line(struct look *look, const struct base_event_line *line)
{
    const struct kind *kind = cmd_events_kind(look, line);

    if (kind == NULL || !kind->wanted)
        return;
    if (look->wanted_kinds > 1) {
        cli_csv_field(kind->name, stdout);
        putchar(',');
    }
    for (size_t c = 0; c < look->column_count; c++) {
        const struct base_event_field *field = base_event_field(line, look->columns[c]);
        bool wanted = false;

        for (size_t s = 0; s < look->series_count; s++)
            wanted |= cmd_events_is_wanted(look->series[s], kind->name, look->columns[c]);
        if (c > 0)
            putchar(',');
        if (wanted && field != NULL)
            cmd_events_print_value(field);
    }
    putchar('\n');
}

static base_status cmd_events_csv(struct look *look)
{
    base_status st = BASE_OK;

    TRY(cmd_events_choose(look));
    if (look->wanted_kinds > 1)
        printf("event,");
    for (size_t c = 0; c < look->column_count; c++) {
        if (c > 0)
            putchar(',');
        cli_csv_field(look->columns[c], stdout);
    }
    putchar('\n');
    TRY(cmd_events_each(look, cmd_events_print_line));
    if (fflush(stdout) != 0 || ferror(stdout))
        TRY(base_fail(BASE_ERR_IO, "cannot write the table: %m"));
out:
    return st;
}

/* ---- the kinds ---- */

static base_status cmd_events_list(const struct look *look)
{
    base_status st = BASE_OK;
    json_t *list = json_array(), *object;

    for (size_t k = 0; k < look->kind_count; k++) {
        const struct kind *kind = &look->kinds[k];
        json_t *fields = json_array();

        if (!look->args->common.json)
            printf("%-12s %9zu ", kind->name, kind->count);
        for (size_t f = 0; f < kind->field_count; f++) {
            json_array_append_new(fields, base_json_text(kind->fields[f]));
            if (!look->args->common.json)
                printf(" %s", kind->fields[f]);
        }
        if (!look->args->common.json)
            printf("\n");
        json_array_append_new(list,
                              json_pack("{s:o, s:I, s:o}", "event", base_json_text(kind->name),
                                        "count", (json_int_t)kind->count, "fields", fields));
    }
    object = json_pack("{s:i, s:o}", "schema", 1, "events", list);
    if (look->args->common.json)
        st = base_json_print(object);
    json_decref(object);
    return st;
}

static void cmd_events_fini(struct look *look)
{
    for (size_t k = 0; k < look->kind_count; k++) {
        for (size_t f = 0; f < look->kinds[k].field_count; f++)
            base_free(look->kinds[k].fields[f]);
        base_free(look->kinds[k].name);
    }
    base_free(look);
}

static base_status cmd_events(void *args, const struct cli_positional *positional)
{
    static const char *const all_steps[] = {"step"};
    base_status st = BASE_OK;
    const struct args *a = args;
    struct train_run run = {0};
    struct look *look = base_calloc(1, sizeof *look);
    bool named = positional->count > 1;

    *look =
        (struct look){.args = a,
                      .run = &run,
                      .series = named ? positional->at + 1 : (const char **)(uintptr_t)all_steps,
                      .series_count = named ? (size_t)positional->count - 1 : 1};
    if (a->csv && a->common.json)
        TRY(base_fail(BASE_ERR_USAGE, "--csv and --json do not go together"));
    if (named && !a->csv)
        TRY(base_fail(BASE_ERR_USAGE, "series are written with --csv: paceline events %s --csv %s",
                      positional->at[0], positional->at[1]));
    TRY(train_run_open(a->common.runs_dir, positional->at[0], &run));
    TRY(cmd_events_each(look, cmd_events_learn));
    TRY(a->csv ? cmd_events_csv(look) : cmd_events_list(look));
    if (look->left_out)
        base_warn("there are more than %d kinds of events, or more than %d fields of a kind: the "
                  "first ones are here",
                  MOST_KINDS, BASE_EVENT_FIELDS);
    if (look->damaged > 0)
        base_warn("%zu line%s of the events cannot be read and %s left out", look->damaged,
                  base_plural((int64_t)look->damaged), look->damaged == 1 ? "is" : "are");
out:
    train_run_close(&run);
    cmd_events_fini(look);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "csv", .kind = BASE_FLAG, .offset = AT(csv),
     .help = "a table of the series, each KIND or KIND.FIELD; without any, of step", .local = true},
    {.table = cli_runs_options, .offset = AT(common)},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_events = {
    .name = "events",
    .help = "what the events of a run tell, and any series of them as CSV",
    .usage = "paceline events RUN [options]\n"
             "       paceline events RUN --csv [SERIES …] [options]",
    .examples = "  paceline events vgg11-cifar10-1\n"
                "  paceline events vgg11-cifar10-1 --csv step.step step.loss >loss.csv\n"
                "  paceline events vgg11-cifar10-1 --csv heartbeat >monitor.csv\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.common = {.runs_dir = "runs"}},
    .min_positional = 1,
    .max_positional = 1 + MOST_SERIES,
    .run = cmd_events,
};
