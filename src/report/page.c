/* SPDX-License-Identifier: MIT */
#include "report/page.h"

#include "report/html.h"

static void put_status(const struct report_story *s, struct base_str *html)
{
    base_str_add(html, "<span class=\"status ");
    report_xml_text(html, s->status);
    base_str_add(html, "\">");
    report_xml_text(html, s->status);
    base_str_add(html, "</span>");
}

static void put_table(const struct report_table *t, const char *key, struct base_str *html)
{
    base_str_add(html, "<div class=\"card table\"><table data-card=\"%s\"><thead>", key);
    for (size_t row = 0; row < t->rows; row++) {
        base_str_add(html, row == 1 ? "</thead><tbody>\n<tr>" : "<tr>");
        for (size_t column = 0; column < t->columns; column++) {
            base_str_add(html, row == 0 ? "<th>" : "<td>");
            report_xml_short(html, t->cells[row * t->columns + column], 48);
            base_str_add(html, row == 0 ? "</th>" : "</td>");
        }
        base_str_add(html, "</tr>\n");
    }
    base_str_add(html, "</tbody></table></div>\n");
}

static void put_comparison(const struct report_page *page, struct base_str *html)
{
    base_str_add(html,
                 "<div class=\"head\"><h1>%zu runs</h1></div>\n<p class=\"lead\">Settings that "
                 "differ and figures of each; speed-up and efficiency against the first.</p>\n"
                 "<section>\n",
                 page->count);
    put_table(page->compared, "compared", html);
    if (page->damage != NULL) {
        base_str_add(html,
                     "<h2>Damage</h2>\n<p class=\"lead\">What attacks on purpose did, and what "
                     "defences cost, against the first run.</p>\n");
        put_table(page->damage, "damage", html);
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

void report_page(const struct report_page *page, struct base_str *html)
{
    base_str_add(html, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" "
                       "href=\"data:,\">\n<title>");
    if (page->count == 1)
        report_xml_text(html, page->runs[0].story.name);
    else
        base_str_add(html, "%zu runs", page->count);
    base_str_add(html, " · paceline</title>\n<style>\n%s</style></head>\n<body><main>\n",
                 report_page_css);
    base_str_add(html, "<p class=\"over\">paceline report</p>\n");
    if (page->compared != NULL)
        put_comparison(page, html);
    else
        put_one(&page->runs[0], html);
    base_str_add(html, "<footer>Written by paceline ");
    report_xml_text(html, page->made);
    base_str_add(html, ". Times of curves are those of the steps themselves, without tests and "
                       "checkpoints between them.</footer>\n</main></body></html>\n");
}
