/* SPDX-License-Identifier: MIT */
#include "lab/sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define VALIDATION \
    0.1 /* share of the training data that judges, unless --validation says another */

#define LARGEST 1e15 /* whole number, that a double still counts one by one */

/* ---- a range ---- */

/* Are these bytes one number and nothing else? "16..64" would read as "16." and ".64". */
static bool read_number(const char *text, size_t length, double *number_p)
{
    char *copy = base_strndup(text, length), *end = NULL;
    bool whole;

    *number_p = strtod(copy, &end);
    whole = end != copy && *end == '\0' && isfinite(*number_p);
    base_free(copy);
    return whole;
}

base_status lab_range(const char *option, const char *text, bool *is_range_p, double *low_p,
                      double *high_p)
{
    const char *dots = strstr(text, "..");
    bool first = dots != NULL && read_number(text, (size_t)(dots - text), low_p);
    bool second = dots != NULL && read_number(dots + 2, strlen(dots + 2), high_p);

    *is_range_p = first && second;
    if (!first && !second)
        return BASE_OK;
    if (!first || !second || *low_p < 0 || *low_p >= *high_p ||
        (*low_p > 0 && !isfinite(*high_p / *low_p)))
        return base_fail(BASE_ERR_USAGE,
                         "--%s %s is no range: A..B are numbers from 0 on, A below B", option,
                         text);
    return BASE_OK;
}

/* Value `index` of so many: by logarithm where that exists. A name is made of it, so it has few
 * digits. */
static double value_at(double low, double high, int64_t index, int64_t points)
{
    double share = (double)index / (double)(points - 1), value;
    char text[32];

    if (index == 0 || index == points - 1)
        return index == 0 ? low : high;
    value = low > 0 ? low * pow(high / low, share) : low + share * (high - low);
    snprintf(text, sizeof text, "%.4g", value);
    return strtod(text, NULL);
}

static json_t *values_of(double low, double high, int64_t points, bool whole)
{
    json_t *list = json_array();
    double last = NAN;

    for (int64_t i = 0; i < points; i++) {
        double value = value_at(low, high, i, points);

        if (whole)
            value = round(value);
        if (value > last || isnan(last))
            json_array_append_new(list, whole ? json_integer((json_int_t)value) : json_real(value));
        last = value;
    }
    return list;
}

/* ---- the file ---- */

/* What the given options are: one value each, or a list of a range. The names of ranges are
 * added to `ranges`. */
static base_status read_given(const struct lab_sweep *sweep, json_t *common, json_t *lists)
{
    base_status st = BASE_OK;
    struct base_option row;

    for (int i = 0; i < sweep->given_count; i++) {
        const struct base_given *given = &sweep->given[i];
        bool is_range = false, whole, number;
        double low = NAN, high = NAN;

        base_option_find(sweep->options, given->name, strlen(given->name), &row);
        whole = row.kind == BASE_INT;
        number = whole || row.kind == BASE_REAL;
        if (number)
            TRY(lab_range(given->name, given->text, &is_range, &low, &high));
        if (is_range && whole && (low != floor(low) || high != floor(high) || high > LARGEST))
            TRY(base_fail(BASE_ERR_USAGE, "--%s %s is no range of whole numbers", given->name,
                          given->text));
        if (json_object_get(common, given->name) != NULL ||
            json_object_get(lists, given->name) != NULL)
            TRY(base_fail(BASE_ERR_USAGE, "--%s is given twice", given->name));
        if (is_range)
            json_object_set_new(lists, given->name, values_of(low, high, sweep->points, whole));
        else
            json_object_set_new(common, given->name, base_json_text(given->text));
    }
    if (json_object_size(lists) == 0)
        TRY(base_fail(BASE_ERR_USAGE, "lab sweep needs a range, as in --lr 0.001..0.3"));
out:
    return st;
}

/* The judge over the first range, a line for each value of the second. */
static json_t *plot_of(const struct lab_sweep *sweep, const json_t *lists)
{
    void *first = json_object_iter((json_t *)(uintptr_t)lists);
    void *second = json_object_iter_next((json_t *)(uintptr_t)lists, first);
    const json_t *values = json_object_iter_value(first);
    json_t *plot = json_pack("{s:s, s:s, s:s, s:s, s:b}", "name", "sweep", "kind", "lines", "x",
                             json_object_iter_key(first), "y", sweep->judge, "log_x",
                             json_number_value(json_array_get(values, 0)) > 0);

    if (second != NULL)
        json_object_set_new(plot, "series", json_string(json_object_iter_key(second)));
    return plot;
}

static char *about_of(const json_t *lists)
{
    struct base_str about = {0};
    const char *key;
    json_t *values;

    json_object_foreach((json_t *)(uintptr_t)lists, key, values)
    {
        base_str_add(&about, "%s%s of %zu values", about.length > 0 ? ", " : "a sweep: ", key,
                     json_array_size(values));
    }
    return base_str_take(&about);
}

base_status lab_sweep(const struct lab_sweep *sweep, json_t **file_p)
{
    base_status st = BASE_OK;
    json_t *common = json_object(), *lists = json_object();
    char *about = NULL;

    *file_p = NULL;
    if (sweep->points < 2 || sweep->points > LAB_SWEEP_MOST)
        TRY(base_fail(BASE_ERR_USAGE, "--points is 2 to %d", LAB_SWEEP_MOST));
    TRY(read_given(sweep, common, lists));
    if (json_object_get(common, "validation") == NULL &&
        json_object_get(lists, "validation") == NULL)
        json_object_set_new(common, "validation", json_real(VALIDATION));
    if (json_object_get(common, "test") == NULL)
        json_object_set_new(common, "test", json_false());
    if (json_object_get(common, "checkpoint") == NULL)
        json_object_set_new(common, "checkpoint", json_false());
    about = about_of(lists);
    *file_p = json_pack("{s:i, s:s, s:O, s:[{s:O}], s:s, s:[s, s, s, s], s:[o]}", "schema", 1,
                        "about", about, "train", common, "cases", "train", lists, "best",
                        sweep->judge, "columns", sweep->judge, "validation_accuracy", "loss",
                        "seconds", "plots", plot_of(sweep, lists));
out:
    base_free(about);
    json_decref(common);
    json_decref(lists);
    return st;
}
