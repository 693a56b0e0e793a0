/* SPDX-License-Identifier: MIT
 *
 * What a file in recsys/formats/ provides: `const struct recsys_format recsys_format_NAME`. All
 * formats are lines of fields; a format recognises its files by their first bytes and says how
 * lines are cut. The reading itself (recsys/parse.c) is the same for all.
 */
#ifndef RECSYS_FORMAT_H
#define RECSYS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

enum recsys_role { RECSYS_USER, RECSYS_ITEM, RECSYS_RATING, RECSYS_TIME, RECSYS_ROLES };

enum { RECSYS_MAX_COLUMNS = 64, RECSYS_SKIP = RECSYS_ROLES, RECSYS_MAX_SEPARATOR = 7 };

/* How lines are cut into fields, and which field is what. */
struct recsys_layout {
    char separator[RECSYS_MAX_SEPARATOR + 1]; /* " ": any number of blanks and tabs */
    int columns;                              /* that a line must have */
    unsigned char role[RECSYS_MAX_COLUMNS];   /* of each: a recsys_role, or RECSYS_SKIP */
    bool titled;                              /* the first line of a file names the columns */
    bool headings; /* a line "ITEM:" says which item the ratings below it are of */
};

struct recsys_format {
    const char *name, *help;
    /* Names of its files in a folder, as for fnmatch; NULL-ended. Optional. */
    const char *const *files;
    /* Does a file that begins with these bytes look like ours? Then how it is cut. Must not fail.
     * NULL: the format is used only when it is asked for. */
    bool (*recognise)(const char *text, size_t count, struct recsys_layout *layout_p);
};

extern const struct recsys_format *const recsys_format_registry[];
extern const size_t recsys_format_count;

#endif
