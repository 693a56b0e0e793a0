/* SPDX-License-Identifier: MIT */
#include "report/page.h"

#include <stdio.h>
#include <time.h>

#include "base/file.h"
#include "report/html.h"

static void put_status(const struct report_story *s, struct base_str *html)
{
    base_str_add(html, "<span class=\"status ");
    report_xml_text(html, s->status);
    base_str_add(html, "\">");
    report_xml_text(html, s->status);
    base_str_add(html, "</span>");
}

void report_made(char text[REPORT_MADE])
{
    time_t now = time(NULL);
    struct tm parts;

    gmtime_r(&now, &parts);
    strftime(text, REPORT_MADE, PACELINE_VERSION ", %Y-%m-%d %H:%M:%S UTC", &parts);
}

/* The first column has names that must be told apart. */
static void put_row(const struct report_table *t, size_t row, struct base_str *html)
{
    for (size_t column = 0; column < t->columns; column++) {
        base_str_add(html, row == 0 ? "<th>" : "<td>");
        report_xml_short(html, t->cells[row * t->columns + column], column == 0 ? 120 : 48);
        base_str_add(html, row == 0 ? "</th>" : "</td>");
    }
    base_str_add(html, "</tr>\n");
}

void report_page_table(const struct report_table *t, const char *key, size_t marked,
                       struct base_str *html)
{
    base_str_add(html, "<div class=\"card table\"><table data-card=\"%s\"><thead>", key);
    for (size_t row = 0; row < t->rows; row++) {
        base_str_add(html, row == 1 ? "</thead><tbody>\n" : "");
        base_str_add(html, row > 0 && row == marked ? "<tr class=\"marked\">" : "<tr>");
        put_row(t, row, html);
    }
    base_str_add(html, "</tbody></table></div>\n");
}

void report_table_fini(struct report_table *t)
{
    base_names_free(t->cells, t->rows * t->columns);
    *t = (struct report_table){0};
}

static void put_comparison(const struct report_page *page, struct base_str *html)
{
    base_str_add(html,
                 "<div class=\"head\"><h1>%zu runs</h1></div>\n<p class=\"lead\">Settings that "
                 "differ and figures of each; speed-up and efficiency against the first.</p>\n"
                 "<section>\n",
                 page->count);
    report_page_table(page->compared, "compared", 0, html);
    if (page->damage != NULL) {
        base_str_add(html,
                     "<h2>Damage</h2>\n<p class=\"lead\">What attacks on purpose did, and what "
                     "defences cost, against the first run.</p>\n");
        report_page_table(page->damage, "damage", 0, html);
    }
    base_str_add(html, "<div class=\"grid four\">\n");
    page_compared_curves(page, html);
    base_str_add(html, "</div>\n</section>\n<section><h2>Each run</h2>\n");
    for (size_t i = 0; i < page->count && i < REPORT_DETAILED_RUNS; i++) {
        base_str_add(html, "<details class=\"run\"><summary>");
        report_xml_text(html, page->runs[i].story.name);
        base_str_add(html, " ");
        put_status(&page->runs[i].story, html);
        base_str_add(html, "</summary>\n");
        page_summary(&page->runs[i], html);
        base_str_add(html, "</details>\n");
    }
    if (page->count > REPORT_DETAILED_RUNS)
        base_str_add(html,
                     "<p class=\"lead\">Of the other %zu runs the page has the comparison "
                     "alone.</p>\n",
                     page->count - REPORT_DETAILED_RUNS);
    base_str_add(html, "</section>\n");
}

void page_title(const struct report_story *s, struct base_str *html)
{
    base_str_add(html, "<div class=\"head\"><h1>");
    report_xml_text(html, s->name);
    base_str_add(html, "</h1>");
    put_status(s, html);
    base_str_add(html, "</div>\n");
}

static void put_one(const struct report_page_run *run, struct base_str *html)
{
    page_title(&run->story, html);
    page_summary(run, html);
}

void report_page_begin(const char *title, const char *over, struct base_str *html)
{
    base_str_add(html, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" "
                       "href=\"data:,\">\n<title>");
    report_xml_text(html, title);
    base_str_add(html, " · paceline</title>\n<style>\n%s</style></head>\n<body><main>\n",
                 report_page_css);
    base_str_add(html, "<p class=\"over\">paceline %s</p>\n", over);
}

void report_page_end(const char *made, const char *note, struct base_str *html)
{
    base_str_add(html, "<footer>Written by paceline ");
    report_xml_text(html, made);
    base_str_add(html, ". %s</footer>\n</main></body></html>\n", note);
}

void report_page(const struct report_page *page, struct base_str *html)
{
    char title[32];

    snprintf(title, sizeof title, "%zu runs", page->count);
    report_page_begin(page->count == 1 ? page->runs[0].story.name : title, "report", html);
    if (page->compared != NULL)
        put_comparison(page, html);
    else
        put_one(&page->runs[0], html);
    report_page_end(page->made,
                    "Times of curves are those of the steps themselves, without tests and "
                    "checkpoints between them.",
                    html);
}
