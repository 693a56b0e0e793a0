/* SPDX-License-Identifier: MIT
 *
 * Any lines of fields, whose columns a person names: "user,item,rating,time", with a name that is
 * none of these for a column to leave out.
 */
#include <stdio.h>
#include <string.h>

#include "recsys/recsys_private.h"

static const char *const roles[] = {"user", "item", "rating", "time"};

static base_status read_roles(const char *columns, struct recsys_layout *layout)
{
    base_status st = BASE_OK;
    bool seen[RECSYS_ROLES] = {0};

    for (const char *at = columns;; at++) {
        size_t length = strcspn(at, ",");
        unsigned char role = 0;

        if (layout->columns == RECSYS_MAX_COLUMNS)
            TRY(base_fail(BASE_ERR_USAGE, "--columns names more than %d columns",
                          RECSYS_MAX_COLUMNS));
        while (role < RECSYS_ROLES &&
               !(strlen(roles[role]) == length && strncmp(roles[role], at, length) == 0))
            role++;
        if (role < RECSYS_ROLES && seen[role])
            TRY(base_fail(BASE_ERR_USAGE, "--columns %s names '%s' twice", columns, roles[role]));
        if (role < RECSYS_ROLES)
            seen[role] = true;
        layout->role[layout->columns++] = role;
        at += length;
        if (*at == '\0')
            break;
    }
    if (!seen[RECSYS_USER] || !seen[RECSYS_ITEM])
        TRY(base_fail(BASE_ERR_USAGE,
                      "--columns %s must name user and item, as in: user,item,rating,time",
                      columns));
out:
    return st;
}

/* The first of the usual separators that cuts the first line into so many fields. */
static base_status find_separator(const char *columns, const char *text, size_t count,
                                  struct recsys_layout *layout)
{
    static const char *const usual[] = {"::", ",", "\t", ";", "|", " "};
    struct recsys_field line = recsys_first_line(text, count);

    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        snprintf(layout->separator, sizeof layout->separator, "%s", usual[i]);
        if (recsys_count_fields(usual[i], line.at, line.length) == layout->columns)
            return BASE_OK;
    }
    return base_fail(BASE_ERR_DATA,
                     "the first line, '%.*s', is not %d fields between ::, commas, tabs, "
                     "semicolons, bars or blanks, as --columns %s says",
                     (int)(line.length < 60 ? line.length : 60), line.at, layout->columns, columns);
}

base_status recsys_columns(const char *columns, const char *separator, const char *text,
                           size_t count, struct recsys_layout *layout)
{
    base_status st = BASE_OK;
    struct recsys_layout titled;

    *layout = (struct recsys_layout){0};
    TRY(read_roles(columns, layout));
    if (separator != NULL && (separator[0] == '\0' || strlen(separator) > RECSYS_MAX_SEPARATOR ||
                              strpbrk(separator, "\r\n\"") != NULL))
        TRY(base_fail(BASE_ERR_USAGE,
                      "--separator must be 1 to %d characters other than quotes "
                      "and line ends",
                      RECSYS_MAX_SEPARATOR));
    if (separator != NULL)
        snprintf(layout->separator, sizeof layout->separator, "%s", separator);
    else
        TRY(find_separator(columns, text, count, layout));
    titled = *layout;
    titled.titled = true; /* a first line that is no rating, while those below it are */
    layout->titled = !recsys_fits_line(layout, recsys_first_line(text, count)) &&
                     recsys_fits(&titled, text, count);
out:
    return st;
}

const struct recsys_format recsys_format_columns = {
    .name = "columns",
    .help = "any lines of fields, whose columns are named by --columns",
};
