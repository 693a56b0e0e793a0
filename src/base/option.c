/* SPDX-License-Identifier: MIT */
#include "base/option.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

size_t base_options_count(const struct base_option *options)
{
    size_t count = 0;

    while (options != NULL && options[count].name != NULL)
        count++;
    return count;
}

static bool same_name(const char *known, const char *name, size_t length)
{
    if (strlen(known) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (known[i] != (name[i] == '_' ? '-' : name[i]))
            return false;
    return true;
}

int base_option_find(const struct base_option *options, const char *name, size_t length)
{
    for (size_t i = 0; i < base_options_count(options); i++)
        if (same_name(options[i].name, name, length) ||
            (options[i].alias != NULL && same_name(options[i].alias, name, length)))
            return (int)i;
    return -1;
}

static void *field(const struct base_option *option, const void *settings)
{
    return (char *)(uintptr_t)settings + option->offset;
}

static size_t field_size(enum base_kind kind)
{
    static const size_t sizes[] = {
        [BASE_FLAG] = sizeof(bool),    [BASE_INT] = sizeof(int64_t),
        [BASE_SIZE] = sizeof(int64_t), [BASE_REAL] = sizeof(double),
        [BASE_TEXT] = sizeof(char *),  [BASE_TEXTS] = sizeof(struct base_texts),
    };
    return sizes[kind];
}

void base_option_copy(const struct base_option *option, const void *from, void *to)
{
    memcpy(field(option, to), field(option, from), field_size(option->kind));
}

static base_status in_range(const struct base_option *option, double value)
{
    bool bounded = option->min != 0 || option->max != 0;

    if (!bounded || (value >= option->min && value <= option->max))
        return BASE_OK;
    return base_fail(BASE_ERR_USAGE, "--%s takes %s from %g to %g, not %g", option->name,
                     option->kind == BASE_INT ? "a whole number" : "a number", option->min,
                     option->max, value);
}

static base_status set_int(const struct base_option *option, void *at, const char *text)
{
    char *end = NULL;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0)
        return base_fail(BASE_ERR_USAGE, "--%s takes a whole number, not '%s'", option->name, text);
    memcpy(at, &(int64_t){value}, sizeof(int64_t));
    return in_range(option, (double)value);
}

static base_status set_size(const struct base_option *option, void *at, const char *text)
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
        return base_fail(BASE_ERR_USAGE, "--%s takes bytes, such as 65536, 64K or 2M, not '%s'",
                         option->name, text);
    memcpy(at, &(int64_t){(int64_t)value}, sizeof(int64_t));
    return in_range(option, value);
}

static base_status set_real(const struct base_option *option, void *at, const char *text)
{
    char *end = NULL;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(value))
        return base_fail(BASE_ERR_USAGE, "--%s takes a number, not '%s'", option->name, text);
    memcpy(at, &value, sizeof value);
    return in_range(option, value);
}

static base_status set_flag(const struct base_option *option, void *at, const char *text)
{
    bool on = strcmp(text, "true") == 0;

    if (!on && strcmp(text, "false") != 0)
        return base_fail(BASE_ERR_USAGE, "--%s is true or false, not '%s'", option->name, text);
    memcpy(at, &on, sizeof on);
    return BASE_OK;
}

static base_status add_text(const struct base_option *option, void *at, const char *text)
{
    struct base_texts *texts = at;

    if (texts->count == BASE_MAX_TEXTS)
        return base_fail(BASE_ERR_USAGE, "--%s is given more than %d times", option->name,
                         BASE_MAX_TEXTS);
    texts->at[texts->count++] = text;
    return BASE_OK;
}

base_status base_option_set(const struct base_option *option, void *settings, const char *text)
{
    void *at = field(option, settings);

    switch (option->kind) {
    case BASE_FLAG:
        return set_flag(option, at, text);
    case BASE_INT:
        return set_int(option, at, text);
    case BASE_SIZE:
        return set_size(option, at, text);
    case BASE_REAL:
        return set_real(option, at, text);
    case BASE_TEXT:
        memcpy(at, &text, sizeof text);
        return BASE_OK;
    case BASE_TEXTS:
        return add_text(option, at, text);
    }
    return base_fail(BASE_ERR_INTERNAL, "option --%s has no kind", option->name);
}

char *base_option_text(const struct base_option *option, const void *settings)
{
    const void *at = field(option, settings);
    const char *text = NULL;
    int64_t whole;
    double real;
    bool on;

    switch (option->kind) {
    case BASE_FLAG:
        memcpy(&on, at, sizeof on);
        return base_strdup(on ? "on" : "off");
    case BASE_INT:
        memcpy(&whole, at, sizeof whole);
        return base_format("%lld", (long long)whole);
    case BASE_SIZE:
        memcpy(&whole, at, sizeof whole);
        if (whole > 0 && whole % (1 << 20) == 0)
            return base_format("%lldM", (long long)whole >> 20);
        if (whole > 0 && whole % (1 << 10) == 0)
            return base_format("%lldK", (long long)whole >> 10);
        return base_format("%lld", (long long)whole);
    case BASE_REAL:
        memcpy(&real, at, sizeof real);
        return base_format("%g", real);
    case BASE_TEXT:
        memcpy(&text, at, sizeof text);
        return text != NULL ? base_strdup(text) : NULL;
    case BASE_TEXTS:
        break;
    }
    return NULL;
}

static json_t *field_json(const struct base_option *option, const void *settings)
{
    const void *at = field(option, settings);
    const struct base_texts *texts = at;
    json_t *list;

    switch (option->kind) {
    case BASE_FLAG:
        return json_boolean(*(const bool *)at);
    case BASE_INT:
    case BASE_SIZE:
        return json_integer(*(const int64_t *)at);
    case BASE_REAL:
        return json_real(*(const double *)at);
    case BASE_TEXT:
        return *(const char *const *)at != NULL ? json_string(*(const char *const *)at)
                                                : json_null();
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

    for (size_t i = 0; i < base_options_count(options); i++)
        if (!options[i].local)
            json_object_set_new(object, options[i].name, field_json(&options[i], settings));
    return object;
}

static base_status read_texts(const struct base_option *option, const json_t *value, void *at)
{
    struct base_texts texts = {0};
    size_t index;
    json_t *item;

    json_array_foreach(value, index, item)
    {
        if (!json_is_string(item) || texts.count == BASE_MAX_TEXTS)
            return base_fail(BASE_ERR_DATA, "setting \"%s\" is not a list of texts", option->name);
        texts.at[texts.count++] = json_string_value(item);
    }
    memcpy(at, &texts, sizeof texts);
    return BASE_OK;
}

static base_status read_field(const struct base_option *option, const json_t *value, void *settings)
{
    void *at = field(option, settings);

    if (option->kind == BASE_FLAG && json_is_boolean(value)) {
        memcpy(at, &(bool){json_is_true(value)}, sizeof(bool));
        return BASE_OK;
    }
    if ((option->kind == BASE_INT || option->kind == BASE_SIZE) && json_is_integer(value)) {
        memcpy(at, &(int64_t){json_integer_value(value)}, sizeof(int64_t));
        return in_range(option, (double)json_integer_value(value));
    }
    if (option->kind == BASE_REAL && json_is_number(value)) {
        memcpy(at, &(double){json_number_value(value)}, sizeof(double));
        return in_range(option, json_number_value(value));
    }
    if (option->kind == BASE_TEXT && (json_is_string(value) || json_is_null(value))) {
        memcpy(at, &(const char *){json_string_value(value)}, sizeof(char *));
        return BASE_OK;
    }
    if (option->kind == BASE_TEXTS && json_is_array(value))
        return read_texts(option, value, at);
    return base_fail(BASE_ERR_DATA, "setting \"%s\" is of the wrong type", option->name);
}

base_status base_options_from_json(const struct base_option *options, const json_t *object,
                                   void *settings)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        int index = base_option_find(options, key, strlen(key));
        base_status st;

        if (index < 0 || options[index].local)
            return base_fail(BASE_ERR_DATA, "unknown setting \"%s\"", key);
        if ((st = read_field(&options[index], value, settings)) != BASE_OK)
            return st;
    }
    return BASE_OK;
}
