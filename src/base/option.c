/* SPDX-License-Identifier: MIT */
#include "base/option.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"

/* Counts *left down, so that a table inside goes on where the outer one was. */
static bool row_at(const struct base_option *options, size_t *left, struct base_option *row_p)
{
    for (; options->name != NULL || options->table != NULL; options++) {
        if (options->table != NULL) {
            if (row_at(options->table, left, row_p)) {
                row_p->offset += options->offset;
                return true;
            }
        } else if ((*left)-- == 0) {
            *row_p = *options;
            return true;
        }
    }
    return false;
}

bool base_option_at(const struct base_option *options, size_t index, struct base_option *row_p)
{
    *row_p = (struct base_option){0};
    return options != NULL && row_at(options, &index, row_p);
}

size_t base_options_count(const struct base_option *options)
{
    struct base_option row;
    size_t count = 0;

    while (base_option_at(options, count, &row))
        count++;
    return count;
}

static bool same_name(const char *known, const char *name, size_t length)
{
    if (known == NULL || strlen(known) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (known[i] != (name[i] == '_' ? '-' : name[i]))
            return false;
    return true;
}

int base_option_find(const struct base_option *options, const char *name, size_t length,
                     struct base_option *row_p)
{
    for (size_t i = 0; base_option_at(options, i, row_p); i++)
        if (same_name(row_p->name, name, length) || same_name(row_p->alias, name, length))
            return (int)i;
    return -1;
}

const char *base_option_choice(const struct base_option *row, size_t index)
{
    size_t count = 0;

    while (row->names != NULL && row->names[count] != NULL)
        count++;
    if (index < count)
        return row->names[index];
    return row->registry != NULL ? base_registry_name(row->registry, index - count) : NULL;
}

static void *field(const struct base_option *row, const void *settings)
{
    return (char *)(uintptr_t)settings + row->offset;
}

static size_t field_size(enum base_kind kind)
{
    static const size_t sizes[] = {
        [BASE_FLAG] = sizeof(bool),    [BASE_INT] = sizeof(int64_t),
        [BASE_SIZE] = sizeof(int64_t), [BASE_REAL] = sizeof(double),
        [BASE_ENUM] = sizeof(int),     [BASE_NAME] = sizeof(char *),
        [BASE_TEXT] = sizeof(char *),  [BASE_TEXTS] = sizeof(struct base_texts),
    };
    return sizes[kind];
}

void base_option_copy(const struct base_option *row, const void *from, void *to)
{
    memcpy(field(row, to), field(row, from), field_size(row->kind));
}

static bool is_within(const struct base_option *row, double value)
{
    bool bounded = row->min != 0 || row->max != 0;

    return !bounded || (value >= row->min && value <= row->max);
}

static base_status in_range(const struct base_option *row, const char *mark, double value)
{
    bool named = row->kind == BASE_INT && row->names != NULL;

    if (is_within(row, value))
        return BASE_OK;
    return base_fail(BASE_ERR_USAGE, "%s%s takes %s from %g to %g%s%s, not %g", mark, row->name,
                     row->kind == BASE_INT ? "a whole number" : "a number", row->min, row->max,
                     named ? " or " : "", named ? row->names[0] : "", value);
}

static base_status set_flag(const struct base_option *row, const char *mark, const char *text,
                            void *at)
{
    bool on = strcmp(text, "on") == 0 || strcmp(text, "true") == 0;

    if (!on && strcmp(text, "off") != 0 && strcmp(text, "false") != 0)
        return base_fail(BASE_ERR_USAGE, "%s%s takes on or off, not '%s'", mark, row->name, text);
    memcpy(at, &on, sizeof on);
    return BASE_OK;
}

static base_status set_int(const struct base_option *row, const char *mark, const char *text,
                           void *at)
{
    char *end = NULL;
    long long value;

    if (row->names != NULL && strcmp(text, row->names[0]) == 0) {
        memcpy(at, &(int64_t){0}, sizeof(int64_t));
        return BASE_OK;
    }
    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0)
        return base_fail(BASE_ERR_USAGE, "%s%s takes a whole number%s%s, not '%s'", mark, row->name,
                         row->names != NULL ? " or " : "", row->names != NULL ? row->names[0] : "",
                         text);
    memcpy(at, &(int64_t){value}, sizeof(int64_t));
    return in_range(row, mark, (double)value);
}

static base_status set_size(const struct base_option *row, const char *mark, const char *text,
                            void *at)
{
    static const char units[] = "KMG";
    char *end = NULL;
    const char *unit;
    double value;

    errno = 0;
    value = strtod(text, &end);
    unit = end != text && *end != '\0' ? strchr(units, *end) : NULL;
    if (unit != NULL) {
        value = ldexp(value, 10 * (int)(unit - units + 1));
        end++;
    }
    if (end == text || *end != '\0' || errno != 0 || !(value >= 0 && value < 1e18))
        return base_fail(BASE_ERR_USAGE, "%s%s takes bytes, such as 65536, 64K or 2M, not '%s'",
                         mark, row->name, text);
    memcpy(at, &(int64_t){(int64_t)value}, sizeof(int64_t));
    return in_range(row, mark, value);
}

static base_status set_real(const struct base_option *row, const char *mark, const char *text,
                            void *at)
{
    char *end = NULL;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(value))
        return base_fail(BASE_ERR_USAGE, "%s%s takes a number, not '%s'", mark, row->name, text);
    memcpy(at, &value, sizeof value);
    return in_range(row, mark, value);
}

/* BASE_ENUM keeps which name it is, BASE_NAME the name. */
static base_status set_choice(const struct base_option *row, const char *text, void *at)
{
    const char *name, **names;
    size_t count = 0;
    base_status st;

    for (; (name = base_option_choice(row, count)) != NULL; count++)
        if (strcmp(name, text) == 0) {
            if (row->kind == BASE_ENUM)
                memcpy(at, &(int){(int)count}, sizeof(int));
            else
                memcpy(at, &text, sizeof text);
            return BASE_OK;
        }
    names = base_calloc(count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = base_option_choice(row, i);
    st = base_unknown(BASE_ERR_USAGE, row->name, text, names, count);
    base_free(names);
    return st;
}

static base_status add_text(const struct base_option *row, const char *mark, const char *text,
                            void *at)
{
    struct base_texts *texts = at;

    if (texts->count == BASE_MAX_TEXTS)
        return base_fail(BASE_ERR_USAGE, "%s%s is given more than %d times", mark, row->name,
                         BASE_MAX_TEXTS);
    texts->at[texts->count++] = text;
    return BASE_OK;
}

base_status base_option_set(const struct base_option *row, const char *mark, const char *text,
                            void *settings)
{
    void *at = field(row, settings);

    switch (row->kind) {
    case BASE_FLAG:
        return set_flag(row, mark, text, at);
    case BASE_INT:
        return set_int(row, mark, text, at);
    case BASE_SIZE:
        return set_size(row, mark, text, at);
    case BASE_REAL:
        return set_real(row, mark, text, at);
    case BASE_ENUM:
    case BASE_NAME:
        return set_choice(row, text, at);
    case BASE_TEXT:
        memcpy(at, &text, sizeof text);
        return BASE_OK;
    case BASE_TEXTS:
        return add_text(row, mark, text, at);
    }
    return base_fail(BASE_ERR_INTERNAL, "option %s has no kind", row->name);
}

/* One "option=value"; a flag may stand alone. */
static base_status set_named(const struct base_option *options, const char *kind, const char *name,
                             char *text, void *settings)
{
    char *value = strchr(text, '=');
    struct base_option row;

    if (value != NULL)
        *value++ = '\0';
    if (base_option_find(options, text, strlen(text), &row) < 0)
        return base_fail(BASE_ERR_USAGE, "%s %s has no option '%s'", kind, name, text);
    if (value == NULL && row.kind != BASE_FLAG)
        return base_fail(BASE_ERR_USAGE, "%s %s: %s takes a value, %s=%s", kind, name, text, text,
                         row.argument);
    return base_prefix(base_option_set(&row, "", value != NULL ? value : "on", settings), "%s %s",
                       kind, name);
}

base_status base_options_parse(const struct base_option *options, const char *kind,
                               const char *name, const void *defaults, size_t size,
                               const char *text, void **settings_p)
{
    base_status st = BASE_OK;
    /* Texts among the options point into a copy of `text`, which lies after the struct. */
    size_t length = strlen(text) + 1;
    char *settings = base_calloc(1, size + length), *copy = settings + size, *rest = NULL, *list;

    *settings_p = NULL;
    if (defaults != NULL)
        memcpy(settings, defaults, size);
    memcpy(copy, text, length);
    list = strchr(copy, ':');
    for (char *at = list != NULL ? strtok_r(list + 1, ",", &rest) : NULL; at != NULL;
         at = strtok_r(NULL, ",", &rest))
        TRY(set_named(options, kind, name, at, settings));
    *settings_p = settings;
    settings = NULL;
out:
    base_free(settings);
    return st;
}

char *base_options_unnest(const char *text)
{
    char *list = base_strdup(text);

    for (char *at = list, mark = ':'; (at = strchr(at, '/')) != NULL; mark = ',')
        *at = mark;
    return list;
}

char *base_option_text(const struct base_option *row, const void *settings)
{
    const void *at = field(row, settings);
    const char *text = NULL;
    int64_t whole;

    switch (row->kind) {
    case BASE_FLAG:
        return base_strdup(*(const bool *)at ? "on" : "off");
    case BASE_INT:
        whole = *(const int64_t *)at;
        if (whole == 0 && row->names != NULL)
            return base_strdup(row->names[0]);
        return is_within(row, (double)whole) ? base_format("%lld", (long long)whole) : NULL;
    case BASE_SIZE:
        whole = *(const int64_t *)at;
        if (whole > 0 && whole % (1 << 20) == 0)
            return base_format("%lldM", (long long)whole >> 20);
        if (whole > 0 && whole % (1 << 10) == 0)
            return base_format("%lldK", (long long)whole >> 10);
        return base_format("%lld", (long long)whole);
    case BASE_REAL:
        return base_format("%g", *(const double *)at);
    case BASE_ENUM:
        return base_strdup(row->names[*(const int *)at]);
    case BASE_NAME:
    case BASE_TEXT:
        text = *(const char *const *)at;
        return text != NULL ? base_strdup(text) : NULL;
    case BASE_TEXTS:
        break;
    }
    return NULL;
}

static json_t *field_json(const struct base_option *row, const void *settings)
{
    const void *at = field(row, settings);
    const struct base_texts *texts = at;
    const char *text;
    json_t *list;

    switch (row->kind) {
    case BASE_FLAG:
        return json_boolean(*(const bool *)at);
    case BASE_INT:
    case BASE_SIZE:
        return json_integer(*(const int64_t *)at);
    case BASE_REAL:
        return json_real(*(const double *)at);
    case BASE_ENUM:
        return json_string(row->names[*(const int *)at]);
    case BASE_NAME:
    case BASE_TEXT:
        text = *(const char *const *)at;
        return text != NULL ? json_string(text) : json_null();
    case BASE_TEXTS:
        break;
    }
    list = json_array();
    for (int i = 0; i < texts->count; i++)
        json_array_append_new(list, json_string(texts->at[i]));
    return list;
}

json_t *base_options_to_json(const struct base_option *options, const void *settings)
{
    json_t *object = json_object();
    struct base_option row;

    for (size_t i = 0; base_option_at(options, i, &row); i++)
        if (!row.local)
            json_object_set_new(object, row.name, field_json(&row, settings));
    return object;
}

static base_status read_texts(const struct base_option *row, const json_t *value, void *at)
{
    struct base_texts texts = {0};
    size_t index;
    json_t *item;

    json_array_foreach(value, index, item)
    {
        if (!json_is_string(item) || texts.count == BASE_MAX_TEXTS)
            return base_fail(BASE_ERR_DATA, "setting \"%s\" is not a list of texts", row->name);
        texts.at[texts.count++] = json_string_value(item);
    }
    memcpy(at, &texts, sizeof texts);
    return BASE_OK;
}

static base_status read_field(const struct base_option *row, const json_t *value, void *settings)
{
    static const char mark[] = "setting ";
    void *at = field(row, settings);

    if (row->kind == BASE_FLAG && json_is_boolean(value)) {
        memcpy(at, &(bool){json_is_true(value)}, sizeof(bool));
        return BASE_OK;
    }
    if ((row->kind == BASE_INT || row->kind == BASE_SIZE) && json_is_integer(value)) {
        memcpy(at, &(int64_t){json_integer_value(value)}, sizeof(int64_t));
        return in_range(row, mark, (double)json_integer_value(value));
    }
    if (row->kind == BASE_REAL && json_is_number(value)) {
        memcpy(at, &(double){json_number_value(value)}, sizeof(double));
        return in_range(row, mark, json_number_value(value));
    }
    if ((row->kind == BASE_ENUM || row->kind == BASE_NAME) && json_is_string(value))
        return set_choice(row, json_string_value(value), at);
    if (row->kind == BASE_NAME && json_is_null(value)) /* it was not given, and is not now */
        return BASE_OK;
    if (row->kind == BASE_TEXT && (json_is_string(value) || json_is_null(value))) {
        memcpy(at, &(const char *){json_string_value(value)}, sizeof(char *));
        return BASE_OK;
    }
    if (row->kind == BASE_TEXTS && json_is_array(value))
        return read_texts(row, value, at);
    return base_fail(BASE_ERR_DATA, "setting \"%s\" is of the wrong type", row->name);
}

base_status base_options_from_json(const struct base_option *options, const json_t *object,
                                   void *settings)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        struct base_option row;

        if (base_option_find(options, key, strlen(key), &row) < 0 || row.local)
            return base_fail(BASE_ERR_DATA, "unknown setting \"%s\"", key);
        if (read_field(&row, value, settings) != BASE_OK)
            return base_failed(BASE_ERR_DATA); /* whatever is wrong: it is wrong in a file */
    }
    return BASE_OK;
}
