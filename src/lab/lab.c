/* SPDX-License-Identifier: MIT */
#include "lab/lab.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "lab/figures.h"
#include "lab/lab_private.h"

base_status lab_check_keys(const json_t *object, const char *const *keys)
{
    size_t count = 0;
    const char *key;
    const json_t *value;

    while (keys[count] != NULL)
        count++;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        size_t i = 0;

        while (i < count && strcmp(key, keys[i]) != 0)
            i++;
        if (i == count)
            return base_unknown(BASE_ERR_DATA, "key", key, keys, count);
    }
    return BASE_OK;
}

/* An object that may be missing: *object_p is NULL then. */
static base_status optional_object(const json_t *file, const char *key, json_t **object_p)
{
    *object_p = NULL;
    return json_object_get(file, key) == NULL ? BASE_OK : base_json_object(file, key, object_p);
}

static base_status optional_text(const json_t *object, const char *key, const char **text_p)
{
    *text_p = NULL;
    return json_object_get(object, key) == NULL ? BASE_OK : base_json_string(object, key, text_p);
}

static base_status optional_flag(const json_t *object, const char *key, bool *flag_p)
{
    *flag_p = false;
    return json_object_get(object, key) == NULL ? BASE_OK : base_json_flag(object, key, flag_p);
}

/* ---- seeds ---- */

static base_status count_seeds(struct lab *lab, int64_t count)
{
    if (count < 1 || count > LAB_MAX_SEEDS)
        return base_fail(BASE_ERR_DATA, "\"seeds\" is %lld, not between 1 and %d", (long long)count,
                         LAB_MAX_SEEDS);
    lab->seed_count = (size_t)count;
    for (int64_t i = 0; i < count; i++)
        lab->seeds[i] = i + 1;
    return BASE_OK;
}

static base_status add_seed(struct lab *lab, const json_t *item)
{
    json_int_t seed = json_integer_value(item);

    if (!json_is_integer(item) || seed < 0)
        return base_fail(BASE_ERR_DATA, "\"seeds\" takes whole numbers from 0");
    for (size_t i = 0; i < lab->seed_count; i++)
        if (lab->seeds[i] == seed)
            return base_fail(BASE_ERR_DATA, "\"seeds\" has %lld twice", (long long)seed);
    lab->seeds[lab->seed_count++] = seed;
    return BASE_OK;
}

/* How many, or a list of them. */
static base_status read_seeds(struct lab *lab, const json_t *value)
{
    base_status st = BASE_OK;
    size_t count = json_array_size(value);

    if (value == NULL)
        return count_seeds(lab, 1);
    if (json_is_integer(value))
        return count_seeds(lab, json_integer_value(value));
    if (count < 1 || count > LAB_MAX_SEEDS)
        return base_fail(BASE_ERR_DATA, "\"seeds\" takes a number of seeds or a list of 1 to %d",
                         LAB_MAX_SEEDS);
    lab->seed_count = 0;
    for (size_t i = 0; i < count; i++)
        TRY(add_seed(lab, json_array_get(value, i)));
out:
    return st;
}

/* ---- what is asked of the results ---- */

static base_status read_columns(struct lab *lab)
{
    static const char *const usual[] = {"accuracy", "seconds", "samples_per_second"};
    base_status st = BASE_OK;
    json_t *list = NULL;
    size_t count;

    if (json_object_get(lab->file, "columns") == NULL) {
        lab->column_count = sizeof usual / sizeof *usual;
        memcpy(lab->columns, usual, sizeof usual);
        return BASE_OK;
    }
    TRY(base_json_array(lab->file, "columns", &list));
    count = json_array_size(list);
    if (count < 1 || count > LAB_MAX_COLUMNS)
        TRY(base_fail(BASE_ERR_DATA, "\"columns\" takes a list of 1 to %d figures",
                      LAB_MAX_COLUMNS));
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (name == NULL)
            TRY(base_fail(BASE_ERR_DATA, "\"columns\" takes names of figures"));
        TRY(base_prefix(lab_figure_check(name), "\"columns\""));
        lab->columns[lab->column_count++] = name;
    }
out:
    return st;
}

/* In a quick form less is done than others did, and where a first look is taken: nothing stands
 * beside it, and its runs are started without launchers. */
static base_status check_theirs(const struct lab *lab, bool quick)
{
    const char *key;
    json_t *value;

    for (size_t i = 0; i < lab->point_count; i++) {
        json_object_foreach((json_t *)(uintptr_t)lab->points[i].theirs, key, value)
        {
            base_status st = lab_figure_check(key);

            if (st == BASE_OK && !json_is_number(value))
                st =
                    base_fail(BASE_ERR_DATA, "\"%s\" is of the wrong type, a number expected", key);
            if (st != BASE_OK)
                return base_prefix(st, "\"theirs\" of %s", lab->points[i].name);
        }
        if (quick)
            lab->points[i].theirs = lab->points[i].launch = NULL;
    }
    return BASE_OK;
}

static base_status read_baseline(struct lab *lab)
{
    base_status st = BASE_OK;
    const char **names = base_calloc(lab->point_count + 1, sizeof *names), *name = NULL;

    TRY(optional_text(lab->file, "baseline", &name));
    for (size_t i = 0; i < lab->point_count; i++) {
        names[i] = lab->points[i].name;
        if (name != NULL && strcmp(name, names[i]) == 0)
            lab->baseline = &lab->points[i];
    }
    if (name != NULL && lab->baseline == NULL)
        TRY(base_unknown(BASE_ERR_DATA, "baseline", name, names, lab->point_count));
    for (size_t i = 0; i < lab->column_count; i++)
        if (strcmp(lab->columns[i], "speedup") == 0 && lab->baseline == NULL)
            TRY(base_fail(BASE_ERR_DATA,
                          "the column speedup needs a \"baseline\": the name of a case"));
out:
    base_free(names);
    return st;
}

/* ---- plots ---- */

/* A file of its own in the lab's folder, and no other. */
static base_status check_plot_name(const struct lab *lab, const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    if (name[0] == '\0' || strlen(name) > 64 || name[strspn(name, letters)] != '\0')
        return base_fail(BASE_ERR_DATA,
                         "\"name\" is '%s', not 1 to 64 letters, digits, hyphens and underscores",
                         name);
    for (size_t i = 0; i < lab->plot_count; i++)
        if (strcmp(lab->plots[i].name, name) == 0)
            return base_fail(BASE_ERR_DATA, "another plot has the name '%s'", name);
    return BASE_OK;
}

/* Bars have a row a case, and no x; a scatter's x is a figure. */
static base_status read_plot_axes(const json_t *object, struct lab_plot *plot)
{
    base_status st = BASE_OK;

    TRY(optional_text(object, "series", &plot->series));
    TRY(optional_flag(object, "log_x", &plot->log_x));
    TRY(optional_flag(object, "log_y", &plot->log_y));
    if (plot->kind != LAB_BARS)
        TRY(base_json_string(object, "x", &plot->x));
    else if (json_object_get(object, "x") != NULL || plot->series != NULL || plot->log_x ||
             plot->log_y)
        TRY(base_fail(BASE_ERR_DATA, "\"x\", \"series\", \"log_x\" and \"log_y\" are of lines; "
                                     "bars have a row a case"));
    if (plot->kind == LAB_SCATTER && plot->series != NULL)
        TRY(base_fail(BASE_ERR_DATA, "\"series\" is of lines; a scatter has a dot a case"));
    if (plot->kind == LAB_SCATTER)
        TRY(lab_figure_check(plot->x));
out:
    return st;
}

static base_status check_plot_of_steps(const struct lab_plot *plot)
{
    if (!lab_figure_has_steps(plot->y))
        return base_fail(BASE_ERR_DATA, "'%s' is not known of every step; loss is", plot->y);
    if (plot->series != NULL)
        return base_fail(BASE_ERR_DATA, "\"series\" is not for steps, over which each case has a "
                                        "line");
    return BASE_OK;
}

static base_status read_plot_only(const json_t *object, struct lab_plot *plot)
{
    base_status st = BASE_OK;
    json_t *list = NULL;
    bool texts = true;

    if (json_object_get(object, "only") == NULL)
        return BASE_OK;
    TRY(base_json_array(object, "only", &list));
    for (size_t i = 0; i < json_array_size(list); i++)
        texts &= json_is_string(json_array_get(list, i));
    if (!texts || json_array_size(list) == 0)
        TRY(base_fail(BASE_ERR_DATA, "\"only\" is not a list of parts of cases' names"));
    plot->only = list;
out:
    return st;
}

static base_status read_plot(struct lab *lab, const json_t *object)
{
    static const char *const keys[] = {"name",   "title", "kind",  "x",    "y",
                                       "series", "log_x", "log_y", "only", NULL};
    static const char *const kinds[] = {
        [LAB_BARS] = "bars", [LAB_LINES] = "lines", [LAB_SCATTER] = "scatter"};
    base_status st = BASE_OK;
    struct lab_plot plot = {0};
    const char *kind = NULL;

    if (!json_is_object(object))
        TRY(base_fail(BASE_ERR_DATA, "not an object"));
    TRY(lab_check_keys(object, keys));
    TRY(base_json_string(object, "name", &plot.name));
    TRY(check_plot_name(lab, plot.name));
    TRY(base_json_string(object, "kind", &kind));
    while (strcmp(kind, kinds[plot.kind]) != 0)
        if (++plot.kind > LAB_SCATTER)
            TRY(base_unknown(BASE_ERR_DATA, "kind", kind, kinds, LAB_SCATTER + 1));
    TRY(base_json_string(object, "y", &plot.y));
    TRY(lab_figure_check(plot.y));
    TRY(optional_text(object, "title", &plot.title));
    TRY(read_plot_axes(object, &plot));
    TRY(read_plot_only(object, &plot));
    if (plot.kind == LAB_LINES && strcmp(plot.x, "step") == 0)
        TRY(check_plot_of_steps(&plot));
    if (plot.kind == LAB_LINES && strcmp(plot.x, "epoch") == 0 && !lab_figure_has_epochs(plot.y))
        TRY(base_fail(BASE_ERR_DATA, "'%s' is not known of every epoch; %s are", plot.y,
                      LAB_EPOCH_FIGURES));
    lab->plots[lab->plot_count++] = plot;
out:
    return st;
}

static base_status read_plots(struct lab *lab)
{
    base_status st = BASE_OK;
    json_t *list = NULL;

    if (json_object_get(lab->file, "plots") == NULL)
        return BASE_OK;
    TRY(base_json_array(lab->file, "plots", &list));
    if (json_array_size(list) > LAB_MAX_PLOTS)
        TRY(base_fail(BASE_ERR_DATA, "more than %d plots", LAB_MAX_PLOTS));
    for (size_t i = 0; i < json_array_size(list); i++)
        TRY(base_prefix(read_plot(lab, json_array_get(list, i)), "plot %zu", i + 1));
out:
    return st;
}

/* ---- cases ---- */

/* "NAME=VALUE" of a command line: numbers and booleans are such, other values texts. */
static base_status add_set(json_t *forced, const char *text)
{
    const char *equals = strchr(text, '=');
    char *name;
    json_t *value;

    if (equals == NULL || equals == text)
        return base_fail(BASE_ERR_USAGE, "--set takes NAME=VALUE with an option of train, not '%s'",
                         text);
    name = base_strndup(text, (size_t)(equals - text));
    value = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
    if (!json_is_number(value) && !json_is_boolean(value)) {
        json_decref(value);
        value = base_json_text(equals + 1);
    }
    json_object_set_new(forced, name, value);
    base_free(name);
    return BASE_OK;
}

/* Options that count more than those of cases: of "quick", then of the call. Also the seeds. */
static base_status read_changes(struct lab *lab, const struct lab_changes *changes, json_t *forced)
{
    static const char *const keys[] = {"train", "seeds", NULL};
    base_status st = BASE_OK;
    json_t *quick = NULL, *train = NULL;

    TRY(read_seeds(lab, json_object_get(lab->file, "seeds")));
    TRY(optional_object(lab->file, "quick", &quick));
    if (quick != NULL)
        TRY(base_prefix(lab_check_keys(quick, keys), "\"quick\""));
    if (changes->quick && quick == NULL)
        TRY(base_fail(BASE_ERR_USAGE, "this lab has no \"quick\" form"));
    TRY(base_prefix(optional_object(quick, "train", &train), "\"quick\""));
    if (changes->quick && train != NULL)
        json_object_update(forced, train);
    if (changes->quick && json_object_get(quick, "seeds") != NULL)
        TRY(base_prefix(read_seeds(lab, json_object_get(quick, "seeds")), "\"quick\""));
    if (changes->seeds > 0)
        TRY(count_seeds(lab, changes->seeds));
    for (int i = 0; i < changes->sets.count; i++)
        TRY(add_set(forced, changes->sets.at[i]));
out:
    return st;
}

/* A case with a launcher of its own, slow links for example, is about that launcher: without it the
 * run would be another case's. */
static bool has_launcher(const json_t *a_case)
{
    return json_array_size(json_object_get(a_case, "launch")) > 0;
}

static base_status read_cases(struct lab *lab, const struct lab_changes *changes)
{
    base_status st = BASE_OK;
    json_t *common = NULL, *cases = NULL, *forced = json_object();

    TRY(optional_object(lab->file, "train", &common));
    TRY(base_json_array(lab->file, "cases", &cases));
    TRY(read_changes(lab, changes, forced));
    if (json_array_size(cases) == 0)
        TRY(base_fail(BASE_ERR_DATA, "\"cases\" is empty: nothing to train"));
    for (size_t i = 0; i < json_array_size(cases); i++)
        if (!changes->quick || !has_launcher(json_array_get(cases, i)))
            TRY(lab_expand(lab, common, json_array_get(cases, i), i + 1, forced));
    if (lab->point_count == 0)
        TRY(base_fail(BASE_ERR_DATA,
                      "the quick form has no launchers, and every case has its own"));
    if (lab->point_count * lab->seed_count > LAB_MAX_RUNS)
        TRY(base_fail(BASE_ERR_DATA, "%zu cases with %zu seeds are more than %d runs",
                      lab->point_count, lab->seed_count, LAB_MAX_RUNS));
out:
    json_decref(forced);
    return st;
}

/* Some case must have the option. */
static base_status check_across(const struct lab *lab)
{
    for (size_t i = 0; i < lab->point_count; i++)
        if (lab->across == NULL || json_object_get(lab->points[i].options, lab->across) != NULL)
            return BASE_OK;
    return base_fail(BASE_ERR_DATA, "\"across\" is '%s', an option that no case has", lab->across);
}

base_status lab_open(const char *name, json_t *file, const struct lab_changes *changes,
                     struct lab *lab_p)
{
    static const char *const keys[] = {"schema",   "about",   "train",    "cases", "seeds",
                                       "parallel", "columns", "baseline", "plots", "quick",
                                       "launch",   "across",  "best",     NULL};
    base_status st = BASE_OK;
    int64_t schema;

    *lab_p = (struct lab){.name = base_strdup(name), .file = json_incref(file)};
    if (!json_is_object(file))
        TRY(base_fail(BASE_ERR_DATA, "not a JSON object"));
    TRY(lab_check_keys(file, keys));
    TRY(base_json_bounded(file, "schema", 1, 1, &schema));
    TRY(base_json_string(file, "about", &lab_p->about));
    TRY(optional_flag(file, "parallel", &lab_p->parallel));
    TRY(optional_text(file, "across", &lab_p->across));
    TRY(optional_text(file, "best", &lab_p->best));
    if (lab_p->best != NULL)
        TRY(base_prefix(lab_figure_check(lab_p->best), "\"best\""));
    TRY(read_cases(lab_p, changes));
    TRY(check_across(lab_p));
    TRY(check_theirs(lab_p, changes->quick));
    TRY(read_columns(lab_p));
    TRY(read_baseline(lab_p));
    TRY(read_plots(lab_p));
out:
    return base_prefix(st, "lab %s", name);
}

base_status lab_select(struct lab *lab, const struct base_texts *filters)
{
    const char *names[LAB_MAX_POINTS];
    bool any = filters->count == 0;

    for (size_t i = 0; i < lab->point_count; i++) {
        struct lab_point *point = &lab->points[i];

        names[i] = point->name;
        point->selected = filters->count == 0;
        for (int f = 0; f < filters->count; f++)
            point->selected |= strstr(point->name, filters->at[f]) != NULL;
        any |= point->selected;
    }
    return any ? BASE_OK
               : base_unknown(BASE_ERR_USAGE, "case", filters->at[0], names, lab->point_count);
}

size_t lab_seeds_of(const struct lab *lab, const struct lab_point *point)
{
    return point->most_seeds > 0 && point->most_seeds < lab->seed_count ? point->most_seeds
                                                                        : lab->seed_count;
}

size_t lab_runs(const struct lab *lab)
{
    size_t runs = 0;

    for (size_t i = 0; i < lab->point_count; i++)
        runs += lab->points[i].selected ? lab_seeds_of(lab, &lab->points[i]) : 0;
    return runs;
}

void lab_close(struct lab *lab)
{
    for (size_t i = 0; i < lab->point_count; i++) {
        base_free(lab->points[i].name);
        base_free(lab->points[i].group);
        base_free(lab->points[i].row);
        json_decref(lab->points[i].options);
    }
    base_free(lab->points);
    base_free(lab->name);
    json_decref(lab->file);
    *lab = (struct lab){0};
}
