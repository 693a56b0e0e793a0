/* SPDX-License-Identifier: MIT
 *
 * From cases to points: lists of values become all their combinations, the last list changing
 * fastest. A point is called by its case's name and what the lists have chosen.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "lab/lab_private.h"

char *lab_value_text(const json_t *value)
{
    if (json_is_string(value))
        return base_strdup(json_string_value(value));
    if (json_is_boolean(value))
        return base_strdup(json_is_true(value) ? "on" : "off");
    if (json_is_integer(value))
        return base_format("%lld", (long long)json_integer_value(value));
    return base_format("%.15g", json_real_value(value));
}

char **lab_words(const struct lab_point *point, int64_t seed)
{
    char **words = base_calloc(json_object_size(point->options) + 2, sizeof *words);
    size_t count = 0;
    const char *key;
    json_t *value;

    json_object_foreach(point->options, key, value)
    {
        char *text = lab_value_text(value);

        words[count++] = base_format("--%s=%s", key, text);
        base_free(text);
    }
    words[count] = base_format("--seed=%lld", (long long)seed);
    return words;
}

void lab_words_free(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++)
        base_free(words[i]);
    base_free(words);
}

/* ---- options ---- */

static bool is_value(const json_t *value)
{
    return json_is_string(value) || json_is_number(value) || json_is_boolean(value);
}

/* Options that are the lab's to set, or make no sense in a lab. */
static base_status check_option(const char *key, const json_t *value)
{
    static const char *const own[] = {"seed",      "run",       "runs-dir", "runs_dir", "resume",
                                      "like",      "override",  "json",     "quiet",    "num-nodes",
                                      "num_nodes", "rank",      "port",     "nnodes",   "master-ip",
                                      "master_ip", "node-rank", "node_rank"};
    size_t count = json_array_size(value);

    if (strcmp(key, own[0]) == 0)
        return base_fail(BASE_ERR_DATA, "seed is no option of a case; \"seeds\" says which");
    for (size_t i = 1; i < sizeof own / sizeof *own; i++)
        if (strcmp(key, own[i]) == 0)
            return base_fail(BASE_ERR_DATA, "the lab itself sets %s; leave it out", key);
    if (!json_is_array(value) && !is_value(value))
        return base_fail(BASE_ERR_DATA,
                         "\"%s\" takes a text, a number, true or false, or a list of these", key);
    if (json_is_array(value) && (count < 1 || count > LAB_MAX_POINTS))
        return base_fail(BASE_ERR_DATA, "the list of \"%s\" has %zu values, not 1 to %d", key,
                         count, LAB_MAX_POINTS);
    for (size_t i = 0; i < count; i++)
        if (!is_value(json_array_get(value, i)))
            return base_fail(BASE_ERR_DATA,
                             "value %zu of \"%s\" is neither text, number, true nor false", i + 1,
                             key);
    return BASE_OK;
}

static base_status check_options(const json_t *options)
{
    base_status st = BASE_OK;
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)options, key, value)
    {
        TRY(check_option(key, value));
    }
out:
    return st;
}

/* ---- combinations ---- */

/* A text tells what it is; a number needs its option's name. */
static void add_word(struct base_str *name, const char *key, const json_t *value)
{
    char *text = lab_value_text(value);

    base_str_add(name, "%s%s%s%s", name->length > 0 ? " " : "", json_is_string(value) ? "" : key,
                 json_is_string(value) ? "" : "=", text);
    base_free(text);
}

/* Owns the point's parts from here on. */
static base_status add_point(struct lab *lab, struct lab_point point)
{
    lab->points = base_realloc(lab->points, lab->point_count + 1, sizeof *lab->points);
    lab->points[lab->point_count++] = point;
    for (size_t i = 0; i + 1 < lab->point_count; i++)
        if (strcmp(lab->points[i].name, point.name) == 0)
            return base_fail(BASE_ERR_DATA, "two cases are called '%s'; give one a \"name\"",
                             point.name);
    if (lab->point_count > LAB_MAX_POINTS)
        return base_fail(BASE_ERR_DATA, "more than %d cases", LAB_MAX_POINTS);
    return BASE_OK;
}

/* Combination `number` of the lists in `all`: every option with one value. */
static json_t *combination(json_t *all, size_t combinations, size_t number)
{
    json_t *options = json_object(), *value;
    const char *key;

    json_object_foreach(all, key, value)
    {
        size_t index = 0;

        if (json_is_array(value)) {
            combinations /= json_array_size(value);
            index = number / combinations % json_array_size(value);
        }
        json_object_set(options, key, json_is_array(value) ? json_array_get(value, index) : value);
    }
    return options;
}

/* "ddp workers=3": the case's name, or where it has none its options as it has them; then what was
 * chosen from lists. `lists`: these words, too, or else the case alone; but not what was chosen for
 * option `without` (NULL: all). base_free. */
static char *name_of(const json_t *a_case, json_t *all, const json_t *options, bool lists,
                     const char *without)
{
    const char *given = json_string_value(json_object_get(a_case, "name")), *key;
    json_t *own = json_object_get(a_case, "train"), *value;
    struct base_str name = {0};

    base_str_add(&name, "%s", given != NULL ? given : "");
    json_object_foreach(own, key, value)
    {
        bool listed = json_is_array(json_object_get(all, key));

        if (without != NULL && strcmp(key, without) == 0)
            continue;
        if (listed ? lists : given == NULL)
            add_word(&name, key, json_object_get(options, key));
    }
    json_object_foreach(all, key, value)
    {
        if (lists && json_is_array(value) && json_object_get(own, key) == NULL &&
            (without == NULL || strcmp(key, without) != 0))
            add_word(&name, key, json_object_get(options, key));
    }
    if (name.length == 0)
        base_str_add(&name, "all");
    return base_str_take(&name);
}

base_status lab_read_launch(const json_t *object, const json_t **launch_p)
{
    base_status st = BASE_OK;
    json_t *list = NULL;

    *launch_p = NULL;
    if (json_object_get(object, "launch") == NULL)
        return BASE_OK;
    TRY(base_json_array(object, "launch", &list));
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i)))
            TRY(base_fail(BASE_ERR_DATA, "\"launch\" takes a list of words"));
    if (json_array_size(list) > 0) /* an empty one: as if there were none */
        *launch_p = list;
out:
    return st;
}

static base_status read_case(const json_t *a_case, json_t **train_p, int64_t *seeds_p)
{
    static const char *const keys[] = {"name", "train", "theirs", "seeds", "launch", NULL};
    base_status st = BASE_OK;
    const char *name = NULL;
    json_t *object = NULL;

    *train_p = NULL;
    *seeds_p = 0;
    if (!json_is_object(a_case))
        TRY(base_fail(BASE_ERR_DATA, "not an object"));
    TRY(lab_check_keys(a_case, keys));
    if (json_object_get(a_case, "name") != NULL)
        TRY(base_json_string(a_case, "name", &name));
    if (name != NULL && name[0] == '\0')
        TRY(base_fail(BASE_ERR_DATA, "\"name\" is empty"));
    if (json_object_get(a_case, "theirs") != NULL)
        TRY(base_json_object(a_case, "theirs", &object));
    if (json_object_get(a_case, "seeds") != NULL)
        TRY(base_json_bounded(a_case, "seeds", 1, LAB_MAX_SEEDS, seeds_p));
    TRY(base_json_object(a_case, "train", train_p));
out:
    return st;
}

base_status lab_expand(struct lab *lab, const json_t *common, const json_t *a_case, size_t number,
                       const json_t *forced)
{
    base_status st = BASE_OK;
    json_t *all = json_object(), *own = NULL, *value;
    const json_t *launch = NULL;
    size_t combinations = 1;
    int64_t seeds;
    const char *key;

    TRY(read_case(a_case, &own, &seeds));
    TRY(lab_read_launch(json_object_get(a_case, "launch") != NULL ? a_case : lab->file, &launch));
    json_object_update(all, (json_t *)(uintptr_t)common); /* NULL: nothing happens */
    json_object_update(all, own);
    json_object_update(all, (json_t *)(uintptr_t)forced);
    TRY(check_options(all));
    json_object_foreach(all, key, value)
    {
        if (json_is_array(value))
            combinations *= json_array_size(value);
        if (combinations > LAB_MAX_POINTS)
            TRY(base_fail(BASE_ERR_DATA, "its lists have more than %d combinations",
                          LAB_MAX_POINTS));
    }
    if (combinations > 1 && json_object_get(a_case, "theirs") != NULL)
        TRY(base_fail(BASE_ERR_DATA,
                      "\"theirs\" is of one point, but its lists have %zu combinations",
                      combinations));
    for (size_t i = 0; i < combinations; i++) {
        json_t *options = combination(all, combinations, i);

        TRY(add_point(lab,
                      (struct lab_point){.name = name_of(a_case, all, options, true, NULL),
                                         .group = name_of(a_case, all, options, false, NULL),
                                         .row = name_of(a_case, all, options, true, lab->across),
                                         .options = options,
                                         .launch = launch,
                                         .theirs = json_object_get(a_case, "theirs"),
                                         .selected = true,
                                         .most_seeds = (size_t)seeds,
                                         .cores = 1}));
    }
out:
    json_decref(all);
    return base_prefix(st, "case %zu", number);
}
