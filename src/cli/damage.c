/* SPDX-License-Identifier: MIT */
#include "cli/damage.h"

#include <math.h>
#include <string.h>

#include "base/event_reader.h"
#include "base/mem.h"
#include "base/str.h"
#include "report/html.h"
#include "train/attack.h"

static const json_t *setting(const struct train_run *run, const char *key)
{
    return json_object_get(json_object_get(json_object_get(run->json, "about"), "settings"), key);
}

bool cli_damage_is(const struct train_run *runs, int count)
{
    for (int i = 0; i < count; i++)
        if (json_is_string(setting(&runs[i], "attack")))
            return true;
    return false;
}

/* ---- who was flagged ---- */

/* The list's object of a worker, made where it is missing. */
static json_t *flagged_of(json_t *list, json_int_t worker, double step, bool hostile)
{
    size_t index;
    json_t *row;

    json_array_foreach(list, index, row)
    {
        if (json_integer_value(json_object_get(row, "worker")) == worker)
            return row;
    }
    row = json_pack("{s:I, s:b, s:I, s:i, s:i}", "worker", worker, "hostile", hostile, "first",
                    (json_int_t)step, "unlike", 0, "slow", 0);
    json_array_append_new(list, row);
    return row;
}

static void count_flag(json_t *list, const struct train_attackers *attackers, const json_t *worker,
                       double step, const char *why)
{
    const json_int_t id = json_integer_value(worker);
    json_t *row = flagged_of(list, id, step, train_attackers_find(attackers, (uint32_t)id) != NULL);

    json_object_set_new(row, why, json_integer(1 + json_integer_value(json_object_get(row, why))));
}

/* Workers that the run's events name: updates unlike the others (`suspects`), or slow. */
static json_t *flagged(const struct train_run *run, const struct train_attackers *attackers)
{
    json_t *list = json_array();
    char *path = base_format("%s/events.jsonl", run->path);
    struct base_event_reader *reader = NULL;
    const struct base_event_line *line;

    base_ignore(base_event_reader_open(path, &reader)); /* without events nothing is flagged */
    while (reader != NULL && (line = base_event_next(reader)) != NULL) {
        json_t *event = NULL;
        const double step = base_event_number(line, "step");
        size_t index;
        const json_t *worker;

        if ((!base_event_is(line, "suspects") && !base_event_is(line, "anomaly")) || isnan(step))
            continue;
        event = base_event_json(line);
        json_array_foreach(json_object_get(event, "workers"), index, worker)
        {
            count_flag(list, attackers, worker, step, "unlike");
        }
        if (json_is_true(json_object_get(event, "slow")))
            count_flag(list, attackers, json_object_get(event, "worker"), step, "slow");
        json_decref(event);
    }
    base_event_reader_close(reader);
    base_free(path);
    return list;
}

/* ---- figures ---- */

static double number_at(const struct train_run *run, const char *a, const char *b)
{
    const json_t *value = html_at(json_object_get(run->json, "result"), a, b);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static double bytes_of(const struct train_run *run)
{
    double sum = 0;
    size_t index;
    json_t *rank;

    json_array_foreach(html_at(json_object_get(run->json, "result"), "ranks", NULL), index, rank)
    {
        sum += json_number_value(json_object_get(rank, "bytes_sent"));
    }
    return sum;
}

/* The class of which the fewest tests are right: {"name", "recall"}; null: there are no classes. */
static json_t *worst_class(const struct train_run *run)
{
    const json_t *worst = NULL;
    size_t index;
    json_t *row;

    json_array_foreach(html_at(json_object_get(run->json, "result"), "test", "per_class"), index,
                       row)
    {
        const json_t *recall = json_object_get(row, "recall");

        if (json_integer_value(json_object_get(row, "support")) > 0 && json_is_number(recall) &&
            (worst == NULL ||
             json_number_value(recall) < json_number_value(json_object_get(worst, "recall"))))
            worst = row;
    }
    return worst == NULL ? json_null()
                         : json_pack("{s:O, s:O}", "name", json_object_get(worst, "name"), "recall",
                                     json_object_get(worst, "recall"));
}

static json_t *damage_of(const struct train_run *run, const struct train_run *first)
{
    struct train_attackers attackers = {0};
    const json_t *attack = setting(run, "attack");
    const double accuracy = number_at(run, "test", "accuracy");
    json_t *row;

    /* Attacks of another version of the program may be unknown: then all workers pass for honest.
     */
    base_ignore(train_attackers_parse(json_string_value(attack), 0, &attackers));
    row = json_pack(
        "{s:s, s:O?, s:O?, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", run->name, "attack", attack,
        "aggregate", setting(run, "aggregate"), "accuracy", base_json_number(accuracy), "points",
        base_json_number(100 * (accuracy - number_at(first, "test", "accuracy"))), "worst_class",
        worst_class(run), "backdoor", base_json_number(number_at(run, "backdoor", "success")),
        "flagged", flagged(run, &attackers), "time",
        base_json_number(number_at(run, "time", "total") / number_at(first, "time", "total")),
        "bytes", base_json_number(bytes_of(run) / bytes_of(first)));
    train_attackers_fini(&attackers);
    return row;
}

json_t *cli_damage(const struct train_run *runs, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, damage_of(&runs[i], &runs[0]));
    return list;
}

/* ---- the table ---- */

static char *number_text(const json_t *row, const char *key, double scale, const char *unit)
{
    const json_t *value = json_object_get(row, key);

    return json_is_number(value) ? base_format("%.2f%s", scale * json_number_value(value), unit)
                                 : base_strdup("-");
}

static char *string_text(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));

    return base_strdup(text != NULL ? text : "-");
}

static char *worst_text(const json_t *row)
{
    const json_t *worst = json_object_get(row, "worst_class");

    if (!json_is_object(worst))
        return base_strdup("-");
    return base_format("%.1f %% of %s", 100 * json_number_value(json_object_get(worst, "recall")),
                       json_string_value(json_object_get(worst, "name")));
}

/* "8: 5 times from step 10 on, 9: …" of the workers that attack, or of the honest ones. */
static char *flagged_text(const json_t *row, bool hostile)
{
    struct base_str text = {0};
    size_t index;
    json_t *worker;

    json_array_foreach(json_object_get(row, "flagged"), index, worker)
    {
        if (json_is_true(json_object_get(worker, "hostile")) == hostile)
            base_str_add(&text, "%s%lld: %lld unlike, %lld slow from step %lld on",
                         text.length > 0 ? ", " : "",
                         json_integer_value(json_object_get(worker, "worker")),
                         json_integer_value(json_object_get(worker, "unlike")),
                         json_integer_value(json_object_get(worker, "slow")),
                         json_integer_value(json_object_get(worker, "first")));
    }
    return text.text != NULL ? base_str_take(&text) : base_strdup("-");
}

struct report_table cli_damage_table(const json_t *list)
{
    static const char *const titles[] = {
        "run",      "attack", "aggregate", "accuracy",          "points",        "worst class",
        "backdoor", "time",   "bytes",     "attackers flagged", "honest flagged"};
    enum { COLUMNS = sizeof titles / sizeof *titles };
    char **cells = base_calloc((json_array_size(list) + 1) * COLUMNS, sizeof *cells), **at = cells;
    size_t index;
    json_t *row;

    for (int i = 0; i < COLUMNS; i++)
        *at++ = base_strdup(titles[i]);
    json_array_foreach(list, index, row)
    {
        *at++ = string_text(row, "name");
        *at++ = string_text(row, "attack");
        *at++ = string_text(row, "aggregate");
        *at++ = number_text(row, "accuracy", 100, " %");
        *at++ = number_text(row, "points", 1, "");
        *at++ = worst_text(row);
        *at++ = number_text(row, "backdoor", 100, " %");
        *at++ = number_text(row, "time", 1, "x");
        *at++ = number_text(row, "bytes", 1, "x");
        *at++ = flagged_text(row, true);
        *at++ = flagged_text(row, false);
    }
    return (struct report_table){cells, json_array_size(list) + 1, COLUMNS};
}
