/* SPDX-License-Identifier: MIT
 *
 * Pieces of the page: texts, numbers as people write them, cards.
 */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "base/json.h"
#include "report/page.h"

enum { HTML_CHART = 440, HTML_CHART_HEIGHT = 210, HTML_NUMBER = 48 };

/* Members of members: html_at(result, "test", "accuracy"); NULL ends the path early. */
const json_t *html_at(const json_t *object, const char *a, const char *b);

/* "12,345", "0.1234", "1.235e-05": `digits` after the point, whole numbers with thousands apart. */
void html_number(double value, int digits, char text[HTML_NUMBER]);
/* "1.3 s", "12 min", "3.4 h" */
void html_duration(double seconds, char text[HTML_NUMBER]);
/* "34.9 MB" */
void html_bytes(double bytes, char text[HTML_NUMBER]);
/* A JSON value as a person would write it; base_free. */
char *html_value(const json_t *value);

/* A figure of a list of definitions. `key` tells a program what it is. */
void html_tile(struct base_str *html, const char *key, const char *title, const char *value,
               const char *below);
void html_fact(struct base_str *html, const char *title, const char *text);
/* A card with a title and, beside it, what its numbers are. */
void html_card(struct base_str *html, const char *key, const char *title, const char *hint);
void html_card_end(struct base_str *html);
void html_note(struct base_str *html, const char *text);
/* What ends a path in a link, and the sign that begins a code, become codes. */
void html_link(struct base_str *html, const char *path, const char *text);

/* page.c: the run's name and its state. */
void page_title(const struct report_story *story, struct base_str *html);
/* page_charts.c, page_results.c: the cards of a run, where it has what they show. */
void page_curves(const struct report_story *story, struct base_str *html);
void page_workers(const struct report_story *story, struct base_str *html);
void page_results(const struct report_story *story, struct base_str *html);
void page_kernels(const struct report_story *story, struct base_str *html);
void page_details(const struct report_story *story, struct base_str *html);
/* Of all runs in one chart. */
void page_compared_curves(const struct report_page *page, struct base_str *html);
/* page_summary.c: what was trained and how it went, in a sentence and figures; and all of it. */
void page_tiles(const struct report_story *story, struct base_str *html);
void page_summary(const struct report_page_run *run, struct base_str *html);

#endif
