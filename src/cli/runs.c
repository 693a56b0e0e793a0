/* SPDX-License-Identifier: MIT
 *
 * What the commands that look at runs share: options, sorting, tables, CSV.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"

const struct base_option cli_runs_options[] = {
    {.name = "runs-dir",
     .argument = "DIR",
     .kind = BASE_TEXT,
     .offset = offsetof(struct cli_runs_args, runs_dir),
     .help = "where runs are kept",
     .local = true},
    {.name = "json",
     .kind = BASE_FLAG,
     .offset = offsetof(struct cli_runs_args, json),
     .help = "one JSON object on standard output",
     .local = true},
    {0},
};

const struct cli_runs_args cli_runs_defaults = {.runs_dir = "runs"};

char *cli_run_socket(const char *runs_dir, const char *name)
{
    struct stat file;

    if (stat(name, &file) == 0 && S_ISSOCK(file.st_mode))
        return base_strdup(name);
    if (base_is_dir(name))
        return base_format("%s/status", name);
    return base_format("%s/%s/status", runs_dir, name);
}

static bool high_is_good(const char *key)
{
    static const char *const keys[] = {"accuracy",          "test_accuracy", "r2",
                                       "test_r2",           "speedup",       "efficiency",
                                       "samples_per_second"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static int by_key(const void *a, const void *b, void *key)
{
    const json_t *x = json_object_get(*(json_t *const *)a, key);
    const json_t *y = json_object_get(*(json_t *const *)b, key);
    double difference = json_number_value(x) - json_number_value(y);

    if (json_is_string(x) && json_is_string(y))
        return strcmp(json_string_value(x), json_string_value(y));
    if (!json_is_number(x) || !json_is_number(y)) /* a value comes before a missing one */
        return (x == NULL || json_is_null(x)) - (y == NULL || json_is_null(y));
    if (high_is_good(key))
        difference = -difference;
    return (difference > 0) - (difference < 0);
}

void cli_sort(json_t *list, const char *key)
{
    size_t count = json_array_size(list);
    json_t **items = base_calloc(count + 1, sizeof *items);

    for (size_t i = 0; i < count; i++)
        items[i] = json_incref(json_array_get(list, i));
    qsort_r(items, count, sizeof *items, by_key, (void *)(uintptr_t)key);
    json_array_clear(list);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, items[i]);
    base_free(items);
}

/* Counts the characters of a UTF-8 text: the bytes that begin one. */
static size_t characters(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

void cli_table(FILE *out, char **cells, size_t rows, size_t columns)
{
    size_t *width = base_calloc(columns + 1, sizeof *width);

    for (size_t i = 0; i < rows * columns; i++)
        if (characters(cells[i]) > width[i % columns])
            width[i % columns] = characters(cells[i]);
    for (size_t i = 0; i < rows * columns; i++) {
        int fill = (int)(width[i % columns] - characters(cells[i]));

        if (i % columns == 0)
            fprintf(out, "%s%*s", cells[i], fill, "");
        else
            fprintf(out, "  %*s%s", fill, "", cells[i]);
        if ((i + 1) % columns == 0)
            fputc('\n', out);
        base_free(cells[i]);
    }
    base_free(width);
}

void cli_csv_field(const char *text, FILE *out)
{
    if (strpbrk(text, ",\"\r\n") == NULL && text[0] != ' ') {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}
