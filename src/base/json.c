/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/mem.h"

base_status base_json_parse(const char *text, size_t count, json_t **value_p)
{
    json_error_t error;

    *value_p = json_loadb(text, count, JSON_REJECT_DUPLICATES, &error);
    if (*value_p == NULL)
        return base_fail(BASE_ERR_DATA, "not valid JSON, line %d: %s", error.line, error.text);
    return BASE_OK;
}

base_status base_json_load(const char *path, size_t limit, json_t **value_p)
{
    char *text = NULL;
    size_t count = 0;
    base_status st;

    *value_p = NULL;
    st = base_file_read(path, limit, &text, &count);
    if (st == BASE_OK)
        st = base_prefix(base_json_parse(text, count, value_p), "%s", path);
    base_free(text);
    return st;
}

static base_status want(const json_t *value, json_type type, const char *key, const char *what)
{
    if (value != NULL && json_typeof(value) == type)
        return BASE_OK;
    return base_fail(BASE_ERR_DATA, "\"%s\" is %s, %s expected", key,
                     value == NULL ? "missing" : "of the wrong type", what);
}

base_status base_json_string(const json_t *object, const char *key, const char **text_p)
{
    const json_t *value = json_object_get(object, key);

    *text_p = json_string_value(value);
    return want(value, JSON_STRING, key, "a string");
}

base_status base_json_integer(const json_t *object, const char *key, int64_t *number_p)
{
    const json_t *value = json_object_get(object, key);

    *number_p = json_integer_value(value);
    return want(value, JSON_INTEGER, key, "a whole number");
}

base_status base_json_bounded(const json_t *object, const char *key, int64_t min, int64_t max,
                              int64_t *number_p)
{
    base_status st = base_json_integer(object, key, number_p);

    if (st == BASE_OK && (*number_p < min || *number_p > max))
        st = base_fail(BASE_ERR_DATA, "\"%s\" is %lld, not between %lld and %lld", key,
                       (long long)*number_p, (long long)min, (long long)max);
    return st;
}

base_status base_json_flag(const json_t *object, const char *key, bool *flag_p)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_boolean(value))
        return base_fail(BASE_ERR_DATA, "\"%s\" is missing, or is neither true nor false", key);
    *flag_p = json_is_true(value);
    return BASE_OK;
}

base_status base_json_real(const json_t *object, const char *key, double *number_p)
{
    const json_t *value = json_object_get(object, key);

    *number_p = json_number_value(value);
    if (json_is_number(value))
        return BASE_OK;
    return want(value, JSON_REAL, key, "a number");
}

base_status base_json_object(const json_t *object, const char *key, json_t **object_p)
{
    *object_p = json_object_get(object, key);
    return want(*object_p, JSON_OBJECT, key, "an object");
}

base_status base_json_array(const json_t *object, const char *key, json_t **array_p)
{
    *array_p = json_object_get(object, key);
    return want(*array_p, JSON_ARRAY, key, "a list");
}

json_t *base_json_number(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

bool base_is_utf8(const char *text)
{
    json_t *probe = json_string(text);
    bool yes = probe != NULL;

    json_decref(probe);
    return yes;
}

json_t *base_json_text(const char *text)
{
    json_t *string = json_string(text);
    char *copy;

    if (string != NULL)
        return string;
    copy = base_strdup(text);
    for (char *at = copy; *at != '\0'; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    string = json_string(copy);
    base_free(copy);
    return string;
}

base_status base_json_print(const json_t *value)
{
    if (json_dumpf(value, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) != 0 ||
        fputc('\n', stdout) == EOF || fflush(stdout) != 0)
        return base_fail(BASE_ERR_IO, "cannot write to standard output: %m");
    return BASE_OK;
}
