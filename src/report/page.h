/* SPDX-License-Identifier: MIT
 *
 * Runs as one HTML page that stands alone: inline pictures, no script, nothing from elsewhere,
 * dark or light as the reader's system is. Whatever comes from files is escaped.
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "report/story.h"

/* Texts in rows and columns; the first row has the titles. */
struct report_table {
    char **cells;
    size_t rows, columns;
};

struct report_page_run {
    struct report_story story;
    char *trace; /* a link to what `paceline trace` has written; NULL: nothing */
};

struct report_page {
    const struct report_page_run *runs;
    size_t count;
    const struct report_table *compared; /* runs side by side; NULL: there is one run only */
    const struct report_table *damage;   /* what attacks did to them; NULL: there were none */
    const char *made;                    /* when: a date for people */
};

enum { REPORT_MADE = 64 };
/* "1.2.0, 2026-11-18 20:04:05 UTC": this program, now. */
void report_made(char text[REPORT_MADE]);

/* What is around every page: its head up to <main>, with a line over the title, and its foot. */
void report_page_begin(const char *title, const char *over, struct base_str *html);
void report_page_end(const char *made, const char *note, struct base_str *html);
/* `key` tells a program what the table is. Row `marked` stands out; 0: none does. */
void report_page_table(const struct report_table *table, const char *key, size_t marked,
                       struct base_str *html);
void report_table_fini(struct report_table *table); /* accepts zeros */

enum { REPORT_DETAILED_RUNS = 12 }; /* of more runs, the page has the comparison alone */

void report_page(const struct report_page *page, struct base_str *html);

extern const char report_page_css[];

#endif
