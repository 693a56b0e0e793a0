/* SPDX-License-Identifier: MIT
 *
 * Lists of class names, one a line, as data sets carry them beside their files.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/data_private.h"

/* Without the line ends and blanks after the last name. */
static size_t trimmed(const char *text, size_t count)
{
    while (count > 0 && strchr(" \t\r\n", text[count - 1]) != NULL)
        count--;
    return count;
}

/* Length of the line at `text`; `next_p` is how far the line after it is. */
static size_t line_length(const char *text, size_t count, size_t *next_p)
{
    const char *end = memchr(text, '\n', count);
    size_t length = end != NULL ? (size_t)(end - text) : count;

    *next_p = end != NULL ? length + 1 : length;
    return trimmed(text, length);
}

int data_class_lines(const char *text, size_t count)
{
    int lines = 0;

    count = trimmed(text, count);
    for (size_t at = 0, next; at < count; at += next) {
        line_length(text + at, count - at, &next);
        if (++lines > DATA_MAX_CLASSES)
            return 0;
    }
    return lines;
}

base_status data_class_names(const char *text, size_t count, int classes, char **names)
{
    int lines = data_class_lines(text, count), line = 0;

    if (lines != classes)
        return base_fail(BASE_ERR_DATA, "names %d classes, but there are %d", lines, classes);
    count = trimmed(text, count);
    for (size_t at = 0, next; at < count; at += next, line++) {
        size_t length = line_length(text + at, count - at, &next);

        if (length == 0 || memchr(text + at, '\0', length) != NULL)
            return base_fail(BASE_ERR_DATA, "has no class name on line %d", line + 1);
        names[line] = base_strndup(text + at, length);
    }
    return BASE_OK;
}

base_status data_class_find(const struct data_info *info, const char *text, int32_t *label_p)
{
    char *end = NULL;
    const long number = strtol(text, &end, 10);

    *label_p = 0;
    for (int32_t label = 0; label < info->classes; label++) /* a name may be a number, too */
        if (strcmp(info->class_names[label], text) == 0) {
            *label_p = label;
            return BASE_OK;
        }
    if (end != text && *end == '\0' && number >= 0 && number < info->classes) {
        *label_p = (int32_t)number;
        return BASE_OK;
    }
    return base_unknown(BASE_ERR_USAGE, "class", text, (const char *const *)info->class_names,
                        (size_t)info->classes);
}
