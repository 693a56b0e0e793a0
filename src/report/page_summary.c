/* SPDX-License-Identifier: MIT
 *
 * What a person wants first: what was trained, on what, how, and what came out.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/html.h"

static const char *text_at(const json_t *object, const char *a, const char *b)
{
    const char *text = json_string_value(html_at(object, a, b));

    return text != NULL ? text : "–";
}

static double number_at(const json_t *object, const char *a, const char *b)
{
    const json_t *value = html_at(object, a, b);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void bold(struct base_str *html, const char *text)
{
    base_str_add(html, "<b>");
    report_xml_text(html, text);
    base_str_add(html, "</b>");
}

/* ---- a sentence ---- */

static size_t lost_workers(const struct report_story *s)
{
    size_t lost = 0;

    for (size_t i = 0; i < s->node_count; i++)
        lost += s->nodes[i].id > 0 && s->nodes[i].fate != NULL;
    return lost;
}

/* Of the result or, while there is none, of the start. NAN: hosts have different numbers. */
static double workers_of(const struct report_story *s)
{
    double workers = number_at(s->json, "result", "workers");
    double each = number_at(s->json, "launch", "workers");

    if (isfinite(workers))
        return workers;
    return each > 0 ? each * number_at(s->json, "launch", "hosts") : NAN;
}

static const json_t *strategy_of(const struct report_story *s)
{
    const json_t *used = html_at(s->json, "result", "strategy");

    return used != NULL ? used : html_at(html_at(s->json, "about", "settings"), "strategy", NULL);
}

/* Of a network that has no result yet: how long it is to be trained. */
static void put_planned(const struct report_story *s, struct base_str *html)
{
    const json_t *about = html_at(s->json, "about", NULL);
    double steps = number_at(about, "settings", "steps");
    double count = steps >= 0 ? steps : number_at(about, "settings", "epochs");
    char text[HTML_NUMBER];

    if (html_at(s->json, "result", NULL) != NULL || html_at(about, "ratings", NULL) != NULL ||
        !isfinite(count))
        return;
    html_number(count, 0, text);
    base_str_add(html, "; planned: %s %s%s", text, steps >= 0 ? "step" : "epoch",
                 base_plural(report_whole(count)));
}

static void put_lead(const struct report_story *s, struct base_str *html)
{
    const json_t *settings = html_at(s->json, "about", "settings");
    const json_t *result = html_at(s->json, "result", NULL);
    double workers = workers_of(s), epochs = number_at(result, "epochs", NULL);
    const char *strategy = json_string_value(strategy_of(s));
    char text[HTML_NUMBER];
    size_t lost = lost_workers(s);

    base_str_add(html, "<p class=\"lead\">");
    bold(html, text_at(settings, "model", NULL));
    base_str_add(html, " on ");
    bold(html, text_at(settings, "data", NULL));
    if (isfinite(workers)) {
        base_str_add(html, ", trained by %.0f worker%s ", workers,
                     base_plural(report_whole(workers)));
        base_str_add(html, "(strategy ");
        bold(html, strategy != NULL ? strategy : "–");
        base_str_add(html, ")");
    }
    html_number(s->steps, 0, text);
    base_str_add(html, ": %s step%s", text, base_plural(report_whole(s->steps)));
    if (epochs > 0) {
        html_number(epochs, 0, text);
        base_str_add(html, ", %s epoch%s", text, base_plural(report_whole(epochs)));
    }
    html_duration(number_at(html_at(result, "time", NULL), "total", NULL), text);
    if (result != NULL)
        base_str_add(html, ", in %s%s", text, s->resumed ? " since it was resumed" : "");
    put_planned(s, html);
    base_str_add(html, ".");
    if (lost > 0)
        base_str_add(html, " %zu worker%s lost on the way.", lost, lost == 1 ? " was" : "s were");
    base_str_add(html, "</p>\n");
}

/* ---- what a reader must know about the rest ---- */

static void put_state_note(const struct report_story *s, struct base_str *html)
{
    const char *error = json_string_value(html_at(s->json, "error", "message"));
    char *text = NULL;

    if (error != NULL)
        text = base_format("The run failed: %s", error);
    else if (strcmp(s->status, "running") == 0 && !s->follows)
        text = base_strdup("The run is under way: this is what its events told when the report was "
                           "written.");
    else if (strcmp(s->status, "lost") == 0)
        text = base_strdup("The run's process ended without a result. `paceline train --resume` "
                           "goes on from its newest checkpoint.");
    else if (strcmp(s->status, "interrupted") == 0)
        text = base_strdup("The run was interrupted by a signal and saved. `paceline train "
                           "--resume` goes on.");
    if (text != NULL)
        html_note(html, text);
    base_free(text);
}

static void put_notes(const struct report_story *s, struct base_str *html)
{
    char *text;

    put_state_note(s, html);
    if (!s->has_events)
        html_note(html, "The run has no events.jsonl that can be read: curves are missing.");
    else if (s->steps == 0)
        html_note(html, "The run has made no step yet: there are no curves.");
    if (s->damaged > 0) {
        text = base_format("%zu line%s of the events cannot be read and %s left out.", s->damaged,
                           base_plural((int64_t)s->damaged), s->damaged == 1 ? "is" : "are");
        html_note(html, text);
        base_free(text);
    }
    if (s->dropped > 0) {
        text = base_format("%zu events were dropped while the run was writing: curves have gaps.",
                           s->dropped);
        html_note(html, text);
        base_free(text);
    }
    if (s->left_out > 0)
        html_note(html, "More workers or changes of view than this page has room for: the first "
                        "ones are shown.");
}

/* ---- tiles ---- */

static void number_tile(struct base_str *html, const char *key, const char *title, double value,
                        int digits, const char *below)
{
    char text[HTML_NUMBER];

    if (!isfinite(value))
        return;
    html_number(value, digits, text);
    html_tile(html, key, title, text, below);
}

static void percent_tile(struct base_str *html, const char *key, const char *title, double share)
{
    char text[HTML_NUMBER];

    if (!isfinite(share))
        return;
    snprintf(text, sizeof text, "%.2f %%", 100 * share);
    html_tile(html, key, title, text, NULL);
}

static void put_quality(const struct report_story *s, struct base_str *html)
{
    const json_t *result = html_at(s->json, "result", NULL);
    double loss = number_at(result, "train", "loss");

    percent_tile(html, "test.accuracy", "Test accuracy", number_at(result, "test", "accuracy"));
    number_tile(html, "test.rmse", "Test RMSE", number_at(result, "test", "rmse"), 4, NULL);
    number_tile(html, "test.mae", "Test MAE", number_at(result, "test", "mae"), 4, NULL);
    number_tile(html, "test.r2", "Test R²", number_at(result, "test", "r2"), 4, NULL);
    number_tile(html, "test.loss", "Test loss", number_at(result, "test", "loss"), 4, NULL);
    if (isfinite(loss))
        number_tile(html, "train.loss", "Training loss", loss, 4, "last epoch");
    else
        number_tile(html, "train.loss", "Training loss", report_story_newest(s, "step.loss"), 4,
                    "newest steps");
}

static void put_size(const struct report_story *s, struct base_str *html)
{
    const json_t *result = html_at(s->json, "result", NULL);
    double hosts = number_at(result, "hosts", NULL), epochs = number_at(result, "epochs", NULL);
    double total = number_at(result, "time", "total"), memory, rate;
    double threads = number_at(result, "threads", NULL);
    char text[HTML_NUMBER], below[2 * HTML_NUMBER];

    snprintf(below, sizeof below, "%.0f epoch%s", epochs, base_plural(report_whole(epochs)));
    number_tile(html, "steps", "Steps", s->steps, 0, isfinite(epochs) ? below : NULL);
    rate = number_at(result, "samples_per_second", NULL);
    number_tile(html, "samples_per_second", "Samples a second",
                isfinite(rate) ? rate : report_story_newest(s, "step.rate"), 0,
                isfinite(rate) ? "all workers together" : "newest steps");
    html_duration(isfinite(total) ? total : s->seconds, text);
    html_tile(html, "time.total", "Time", text,
              !isfinite(total) ? "of all steps"
              : s->resumed     ? "of the loop, since it was resumed"
                               : "of the loop");
    snprintf(below, sizeof below, "%.0f thread%s each, %.0f host%s", threads,
             base_plural(report_whole(threads)), hosts, base_plural(report_whole(hosts)));
    number_tile(html, "workers", "Workers", workers_of(s), 0,
                isfinite(threads + hosts) ? below : NULL);
    memory = number_at(result, "peak_memory_bytes", NULL);
    html_bytes(memory, text);
    if (isfinite(memory))
        html_tile(html, "peak_memory_bytes", "Peak memory", text, "of rank 0");
}

/* ---- facts ---- */

static void setting_fact(struct base_str *html, const json_t *settings, const char *title,
                         const char *key)
{
    char *text = html_value(html_at(settings, key, NULL));

    html_fact(html, title, text);
    base_free(text);
}

static void put_ratings_facts(const json_t *about, struct base_str *html)
{
    static const char *const keys[] = {"users", "items", "ratings"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        setting_fact(html, html_at(about, "ratings", NULL), keys[i], keys[i]);
}

static void put_network_facts(const json_t *about, struct base_str *html)
{
    const json_t *settings = html_at(about, "settings", NULL);
    const json_t *input = html_at(about, "input", NULL);
    char *text = base_format("%lld × %lld × %lld", json_integer_value(json_array_get(input, 0)),
                             json_integer_value(json_array_get(input, 1)),
                             json_integer_value(json_array_get(input, 2)));

    if (json_is_array(input))
        html_fact(html, "input", text);
    base_free(text);
    setting_fact(html, about, "classes", "classes");
    setting_fact(html, settings, "optimiser", "optimiser");
    setting_fact(html, settings, "learning rate", "lr");
    setting_fact(html, settings, "schedule", "schedule");
}

static void put_trace(const struct report_page_run *run, struct base_str *html)
{
    base_str_add(html, "<tr><th>trace</th><td>");
    if (run->trace != NULL) {
        html_link(html, run->trace, run->trace);
    } else {
        base_str_add(html, "<code>paceline trace ");
        report_xml_text(html, run->story.name);
        base_str_add(html, " -o trace.json</code> writes when each worker did what");
    }
    base_str_add(html, "</td></tr>\n");
}

static void put_facts(const struct report_page_run *run, struct base_str *html)
{
    const json_t *json = run->story.json, *about = html_at(json, "about", NULL);
    const json_t *settings = html_at(about, "settings", NULL);
    const json_t *result = html_at(json, "result", NULL);
    char *text;

    html_card(html, "facts", "Run", "");
    base_str_add(html, "<div class=\"table\"><table class=\"facts\"><tbody>\n");
    setting_fact(html, settings, "model", "model");
    setting_fact(html, result, "parameters", "parameters");
    setting_fact(html, settings, "data", "data");
    if (html_at(about, "ratings", NULL) != NULL)
        put_ratings_facts(about, html);
    else
        put_network_facts(about, html);
    text = html_value(strategy_of(&run->story));
    html_fact(html, "strategy", text);
    base_free(text);
    setting_fact(html, result, "batch", "batch");
    setting_fact(html, settings, "seed", "seed");
    setting_fact(html, json, "created", "created");
    setting_fact(html, json, "paceline", "version");
    put_trace(run, html);
    base_str_add(html, "</tbody></table></div>\n");
    html_card_end(html);
}

void page_tiles(const struct report_story *s, struct base_str *html)
{
    put_lead(s, html);
    put_notes(s, html);
    base_str_add(html, "<dl class=\"tiles\">\n");
    put_quality(s, html);
    put_size(s, html);
    base_str_add(html, "</dl>\n");
}

void page_summary(const struct report_page_run *run, struct base_str *html)
{
    page_tiles(&run->story, html);
    base_str_add(html, "<div class=\"grid\">\n");
    page_curves(&run->story, html);
    page_workers(&run->story, html);
    page_results(&run->story, html);
    put_facts(run, html);
    page_kernels(&run->story, html);
    base_str_add(html, "</div>\n");
    page_details(&run->story, html);
}
