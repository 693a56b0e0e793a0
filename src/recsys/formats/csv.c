/* SPDX-License-Identifier: MIT
 *
 * Tables whose first line names a column of users, one of items and one of ratings, as MovieLens'
 * "userId,movieId,rating,timestamp". Names are compared without case and marks. Other columns are
 * left out.
 */
#include <ctype.h>
#include <string.h>

#include "recsys/recsys_private.h"

static const char *const names[RECSYS_ROLES][12] = {
    [RECSYS_USER] = {"user", "userid", "uid", "customer", "customerid", "reviewerid"},
    [RECSYS_ITEM] = {"item", "itemid", "movie", "movieid", "product", "productid", "book", "bookid",
                     "isbn", "anime", "animeid"},
    [RECSYS_RATING] = {"rating", "score", "stars", "bookrating"},
    [RECSYS_TIME] = {"time", "timestamp", "date", "datetime"},
};

static int role_of(struct recsys_field field)
{
    char plain[32];
    size_t length = 0;

    for (size_t i = 0; i < field.length && length + 1 < sizeof plain; i++)
        if (isalnum((unsigned char)field.at[i]))
            plain[length++] = (char)tolower((unsigned char)field.at[i]);
    plain[length] = '\0';
    for (int role = 0; role < RECSYS_ROLES; role++)
        for (size_t i = 0; i < 12 && names[role][i] != NULL; i++)
            if (strcmp(plain, names[role][i]) == 0)
                return role;
    return RECSYS_SKIP;
}

/* The roles of the columns that the line names: of two with one role, the first has it. */
static bool read_names(struct recsys_field line, struct recsys_layout *layout)
{
    bool seen[RECSYS_ROLES + 1] = {0};

    layout->columns = recsys_count_fields(layout->separator, line.at, line.length);
    if (layout->columns < 3 || layout->columns > RECSYS_MAX_COLUMNS)
        return false;
    for (int column = 0; column < layout->columns; column++) {
        struct recsys_layout one = {.columns = layout->columns};
        struct recsys_field field[RECSYS_ROLES] = {0};
        int role;

        memcpy(one.separator, layout->separator, sizeof one.separator);
        memset(one.role, RECSYS_SKIP, sizeof one.role);
        one.role[column] = 0;
        recsys_cut(&one, line.at, line.length, field);
        role = role_of(field[0]);
        layout->role[column] = (unsigned char)(seen[role] ? RECSYS_SKIP : role);
        seen[role] = true;
    }
    return seen[RECSYS_USER] && seen[RECSYS_ITEM] && seen[RECSYS_RATING];
}

static bool csv_recognise(const char *text, size_t count, struct recsys_layout *layout)
{
    static const char *const separators[] = {",", ";", "\t"};
    struct recsys_field line = recsys_first_line(text, count);

    for (size_t i = 0; i < 3; i++) {
        *layout = (struct recsys_layout){.titled = true};
        layout->separator[0] = separators[i][0];
        if (read_names(line, layout))
            return true;
    }
    return false;
}

const struct recsys_format recsys_format_csv = {
    .name = "csv",
    .help = "a table whose first line names user, item, rating and perhaps time (MovieLens)",
    .files = (const char *const[]){"ratings.csv", NULL},
    .recognise = csv_recognise,
};
