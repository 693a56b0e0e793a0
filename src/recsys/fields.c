/* SPDX-License-Identifier: MIT
 *
 * A line of text as fields, and fields as numbers and times. Nothing here reads past the end of
 * what it is given.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recsys/recsys_private.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct recsys_field trimmed(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    while (at < end && is_blank(end[-1]))
        end--;
    return (struct recsys_field){at, (size_t)(end - at)};
}

/* The separator that ends the field at `at`, or the line's end. */
static const char *find_separator(const char *separator, const char *at, const char *end)
{
    size_t length = strlen(separator);

    if (separator[0] == ' ') {
        while (at < end && !is_blank(*at))
            at++;
        return at;
    }
    for (; at < end; at++) {
        at = memchr(at, separator[0], (size_t)(end - at));
        if (at == NULL)
            return end;
        if ((size_t)(end - at) >= length && memcmp(at, separator, length) == 0)
            return at;
    }
    return end;
}

static const char *after_separator(const char *separator, const char *at, const char *end)
{
    if (separator[0] != ' ')
        return at + strlen(separator);
    while (at < end && is_blank(*at))
        at++;
    return at;
}

/* One field, with or without quotes around it; its separator or the line's end. NULL: a quote is
 * not closed, or text follows it. */
static const char *take_field(const char *separator, const char *at, const char *end,
                              struct recsys_field *field_p)
{
    const char *close, *stop;

    if (at == end || *at != '"') {
        stop = find_separator(separator, at, end);
        *field_p = trimmed(at, stop);
        return stop;
    }
    close = memchr(at + 1, '"', (size_t)(end - at - 1));
    if (close == NULL)
        return NULL;
    *field_p = trimmed(at + 1, close);
    stop = find_separator(separator, close + 1, end);
    return trimmed(close + 1, stop).length == 0 ? stop : NULL;
}

int recsys_cut(const struct recsys_layout *layout, const char *line, size_t length,
               struct recsys_field fields[RECSYS_ROLES])
{
    const char *at = line, *end = line + length;

    if (layout->separator[0] == ' ') {
        struct recsys_field whole = trimmed(at, end);

        at = whole.at;
        end = whole.at + whole.length;
    }
    for (int column = 0;; column++) {
        struct recsys_field field;
        const char *stop = take_field(layout->separator, at, end, &field);

        if (stop == NULL)
            return 0;
        if (column < layout->columns && layout->role[column] < RECSYS_ROLES)
            fields[layout->role[column]] = field;
        if (stop == end)
            return column + 1;
        at = after_separator(layout->separator, stop, end);
    }
}

int recsys_count_fields(const char *separator, const char *line, size_t length)
{
    struct recsys_layout layout = {0};
    struct recsys_field fields[RECSYS_ROLES];

    strncpy(layout.separator, separator, RECSYS_MAX_SEPARATOR);
    return recsys_cut(&layout, line, length, fields);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool recsys_number(struct recsys_field field, uint32_t most, uint32_t *number_p)
{
    uint64_t number = 0;

    if (field.length == 0 || field.length > 10 || (field.at[0] == '0' && field.length > 1))
        return false;
    for (size_t i = 0; i < field.length; i++) {
        if (!is_digit(field.at[i]))
            return false;
        number = 10 * number + (uint64_t)(field.at[i] - '0');
    }
    *number_p = (uint32_t)number;
    return number <= most;
}

bool recsys_real(struct recsys_field field, float *value_p)
{
    char text[64], *end;

    if (field.length == 0 || field.length >= sizeof text)
        return false;
    for (size_t i = 0; i < field.length; i++) /* strtod would take hexadecimal and names, too */
        if (!is_digit(field.at[i]) && (field.at[i] == '\0' || strchr("+-.eE", field.at[i]) == NULL))
            return false;
    memcpy(text, field.at, field.length);
    text[field.length] = '\0';
    *value_p = (float)strtod(text, &end);
    if (*value_p == 0)
        *value_p = 0; /* not -0: values are compared by their bits */
    return *end == '\0' && isfinite(*value_p);
}

/* Days from 1970-01-01 in the proleptic Gregorian calendar; years begin in March. */
bool recsys_date(unsigned year, unsigned month, unsigned day, uint32_t *seconds_p)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    unsigned y = year - (month <= 2), m = month > 2 ? month - 3 : month + 9;
    int64_t count;

    if (year < 1970 || year > 9999 || month < 1 || month > 12 || day < 1 ||
        day > days[month - 1] + (unsigned)(month == 2 && leap))
        return false;
    count = (int64_t)365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
    *seconds_p = (uint32_t)(count * 86400);
    return count >= 0 && count < UINT32_MAX / 86400; /* all of the day fits */
}

/* `count` digits at `at`; -1: they are not all digits. */
static int digits(const char *at, int count)
{
    int number = 0;

    for (int i = 0; i < count; i++) {
        if (!is_digit(at[i]))
            return -1;
        number = 10 * number + (at[i] - '0');
    }
    return number;
}

/* "HH:MM" or "HH:MM:SS", and what may follow: fractions and zones are ignored. */
static bool time_of_day(const char *at, size_t length, uint32_t *seconds_p)
{
    int hours, minutes, seconds = 0;

    if (length < 5 || at[2] != ':')
        return false;
    hours = digits(at, 2);
    minutes = digits(at + 3, 2);
    if (length >= 8 && at[5] == ':')
        seconds = digits(at + 6, 2);
    *seconds_p += (uint32_t)(hours * 3600 + minutes * 60 + seconds);
    return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60 && seconds >= 0 &&
           seconds <= 60;
}

static bool is_calendar(struct recsys_field field)
{
    return field.length >= 10 && field.at[4] == '-' && field.at[7] == '-';
}

bool recsys_time(struct recsys_field field, uint32_t *seconds_p)
{
    uint64_t number = 0;
    size_t i = 0;

    *seconds_p = 0;
    if (is_calendar(field)) {
        int year = digits(field.at, 4), month = digits(field.at + 5, 2);
        int day = digits(field.at + 8, 2);

        return year >= 0 && month >= 0 && day >= 0 &&
               recsys_date((unsigned)year, (unsigned)month, (unsigned)day, seconds_p) &&
               (field.length == 10 ||
                (field.length > 11 && (field.at[10] == ' ' || field.at[10] == 'T') &&
                 time_of_day(field.at + 11, field.length - 11, seconds_p)));
    }
    for (; i < field.length && i < 14 && is_digit(field.at[i]); i++)
        number = 10 * number + (uint64_t)(field.at[i] - '0');
    if (i == 0)
        return false;
    if (i < field.length && field.at[i] == '.') /* fractions of seconds */
        for (i++; i < field.length && is_digit(field.at[i]);)
            i++;
    if (number > UINT32_MAX)
        number /= 1000;
    *seconds_p = (uint32_t)number;
    return i == field.length && number <= UINT32_MAX;
}
