/* SPDX-License-Identifier: MIT */
#include "watch/parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/html.h"

/* ---- workers and hosts ---- */

static void put_cell(struct base_str *html, double value, double scale, int digits)
{
    char text[HTML_NUMBER];

    html_number(value * scale, digits, text);
    base_str_add(html, "<td>%s</td>", text);
}

static void put_state(struct base_str *html, const char *state)
{
    base_str_add(html, "<td><span class=\"status %s\">%s</span></td>", state, state);
}

static void put_worker(struct base_str *html, const struct report_story *s,
                       const struct report_node *n)
{
    base_str_add(html, "<tr data-worker=\"%" PRId64 "\"><td>%" PRId64 "</td>", n->id, n->id);
    put_cell(html, n->rank >= 0 ? (double)n->rank : NAN, 1, 0);
    put_cell(html, n->host >= 0 ? (double)n->host : NAN, 1, 0);
    put_state(html, report_node_state(s, n));
    put_cell(html, n->step, 1, 0);
    put_cell(html, n->rate, 1, 2);
    put_cell(html, report_curve_newest(&n->cpu), 100, 0);
    put_cell(html, report_curve_newest(&n->memory), 1e-6, 0);
    base_str_add(html, "<td>");
    report_xml_short(html, n->fate != NULL ? n->fate : "", 60);
    base_str_add(html, "</td></tr>\n");
}

static size_t count_nodes(const struct report_story *s, bool hosts)
{
    size_t count = 0;

    for (size_t i = 0; i < s->node_count; i++)
        count += (s->nodes[i].id <= 0) == hosts && s->nodes[i].session == s->session;
    return count;
}

static void put_workers(const struct watch_look *look, struct base_str *html)
{
    const struct report_story *s = &look->story;

    if (count_nodes(s, false) == 0) {
        base_str_add(html, "<p class=\"lead\">%s</p>\n",
                     s->left_out > 0 ? "There are more workers and hosts than have room here."
                                     : "The run has no workers of its own: one process trains.");
        return;
    }
    base_str_add(html, "<div class=\"card table tall\"><table><thead><tr><th>worker</th><th>rank"
                       "</th><th>host</th><th>state</th><th>step</th><th>steps/s</th><th>CPU %%"
                       "</th><th>MB</th><th>lost because</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < s->node_count; i++)
        if (s->nodes[i].id > 0 && s->nodes[i].session == s->session)
            put_worker(html, s, &s->nodes[i]);
    base_str_add(html, "</tbody></table></div>\n");
}

static void put_hosts(const struct watch_look *look, struct base_str *html)
{
    const struct report_story *s = &look->story;

    if (count_nodes(s, true) == 0)
        return;
    base_str_add(html, "<div class=\"card table tall\"><table><thead><tr><th>host</th><th>name</th>"
                       "<th>state</th><th>CPU %%</th><th>MB</th><th>load</th></tr></thead>"
                       "<tbody>\n");
    for (size_t i = 0; i < s->node_count; i++) {
        const struct report_node *n = &s->nodes[i];

        if (n->id > 0 || n->session != s->session)
            continue;
        base_str_add(html, "<tr data-host=\"%" PRId64 "\"><td>%" PRId64 "</td><td>", n->host,
                     n->host);
        report_xml_short(html, n->name != NULL ? n->name : "–", 40);
        base_str_add(html, "</td>");
        put_state(html, report_node_state(s, n));
        put_cell(html, report_curve_newest(&n->cpu), 100, 0);
        put_cell(html, report_curve_newest(&n->memory), 1e-6, 0);
        put_cell(html, n->load, 1, 2);
        base_str_add(html, "</tr>\n");
    }
    base_str_add(html, "</tbody></table></div>\n");
}

/* ---- what happened, newest first ---- */

static void put_notes(const struct watch_look *look, struct base_str *html)
{
    const struct report_story *s = &look->story;
    size_t count = s->note_count < REPORT_MAX_NOTES ? s->note_count : REPORT_MAX_NOTES;

    if (count == 0)
        return;
    base_str_add(html, "<div class=\"card table tall\"><table class=\"facts\"><tbody>\n");
    for (size_t i = 0; i < count; i++) {
        const struct report_note *n = &s->notes[(s->note_count - 1 - i) % REPORT_MAX_NOTES];
        char *when = base_format("%.1f s", n->time);

        html_fact(html, when, n->text);
        base_free(when);
    }
    base_str_add(html, "</tbody></table></div>\n");
}

static void put_log(const struct watch_look *look, struct base_str *html)
{
    const struct watch_log *log = &look->log;

    if (log->count == 0)
        return;
    base_str_add(html, "<pre class=\"card log\">");
    for (size_t i = log->count; i-- > 0;) {
        if (log->lines[i].worker > 0)
            base_str_add(html, "%" PRId64 ": ", log->lines[i].worker);
        report_xml_text(html, log->lines[i].text);
        base_str_add(html, "\n");
    }
    base_str_add(html, "</pre>\n");
}

static void put_title(const struct watch_look *look, struct base_str *html)
{
    page_title(&look->story, html);
    page_tiles(&look->story, html);
}

static void put_curves(const struct watch_look *look, struct base_str *html)
{
    page_curves(&look->story, html);
}

static void put_monitor(const struct watch_look *look, struct base_str *html)
{
    page_workers(&look->story, html);
}

/* ---- all ---- */

static const struct part {
    const char *name;
    void (*put)(const struct watch_look *look, struct base_str *html);
} parts_of[WATCH_PARTS] = {
    {"summary", put_title}, {"curves", put_curves}, {"workers", put_workers},
    {"hosts", put_hosts},   {"notes", put_notes},   {"monitor", put_monitor},
    {"log", put_log},
};

static char *event_of(json_t *list, const struct watch_look *look)
{
    json_t *event = json_pack("{s:o, s:b}", "parts", list, "ended", watch_look_ended(look));
    char *text = json_dumps(event, JSON_COMPACT), *line;

    line = base_format("data: %s\n\n", text);
    base_free(text);
    json_decref(event);
    return line;
}

char *watch_parts_draw(struct watch_parts *parts, const struct watch_look *look)
{
    json_t *changed;

    if (parts->version == look->version)
        return NULL;
    parts->version = look->version;
    changed = json_object();
    for (size_t i = 0; i < WATCH_PARTS; i++) {
        struct base_str html = {0};
        char *text;

        parts_of[i].put(look, &html);
        text = html.length > 0 ? base_str_take(&html) : base_strdup("");
        if (parts->texts[i] == NULL || strcmp(parts->texts[i], text) != 0)
            json_object_set_new(changed, parts_of[i].name, base_json_text(text));
        base_free(parts->texts[i]);
        parts->texts[i] = text;
    }
    return event_of(changed, look);
}

char *watch_parts_all(const struct watch_parts *parts, const struct watch_look *look)
{
    json_t *all = json_object();

    for (size_t i = 0; i < WATCH_PARTS; i++)
        json_object_set_new(all, parts_of[i].name, base_json_text(parts->texts[i]));
    return event_of(all, look);
}

void watch_parts_fini(struct watch_parts *parts)
{
    for (size_t i = 0; i < WATCH_PARTS; i++)
        base_free(parts->texts[i]);
}
