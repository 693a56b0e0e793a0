/* SPDX-License-Identifier: MIT */
#include "watch/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void add_head(struct base_str *text, const char *name, const char *type, const char *help)
{
    base_str_add(text, "# HELP %s %s.\n# TYPE %s %s\n", name, help, name, type);
}

/* A label's value: quotes, backslashes and newlines are escaped, control characters left out. */
static void add_quoted(struct base_str *text, const char *value)
{
    base_str_add(text, "\"");
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\')
            base_str_add(text, "\\%c", *value);
        else if ((unsigned char)*value >= ' ')
            base_str_add(text, "%c", *value);
    }
    base_str_add(text, "\"");
}

/* Names of a file's fields can be anything; these are the ones that a metric can be called by. */
static bool is_plain(const char *name)
{
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == strlen(name);
}

/* "step.loss" becomes paceline_step_loss. */
static void add_curves(struct base_str *text, const struct report_story *s)
{
    for (size_t i = 0; i < s->curve_count; i++) {
        const char *name = s->curves[i].name, *dot = strchr(name, '.');
        double value = report_curve_newest(&s->curves[i].curve);

        if (!is_plain(name) || dot == NULL || strchr(dot + 1, '.') != NULL || isnan(value))
            continue;
        base_str_add(text, "# TYPE paceline_%.*s_%s gauge\npaceline_%.*s_%s %.9g\n",
                     (int)(dot - name), name, dot + 1, (int)(dot - name), name, dot + 1, value);
    }
}

static double node_cpu(const struct report_node *n)
{
    return report_curve_newest(&n->cpu);
}

static double node_memory(const struct report_node *n)
{
    return report_curve_newest(&n->memory);
}

static double node_step(const struct report_node *n)
{
    return n->step;
}

static double node_rate(const struct report_node *n)
{
    return n->rate;
}

static double node_load(const struct report_node *n)
{
    return n->load;
}

static const struct node_series {
    const char *name, *help;
    bool hosts;
    double (*value)(const struct report_node *node);
} node_series[] = {
    {"paceline_worker_cpu", "Share of one core", false, node_cpu},
    {"paceline_worker_memory_bytes", "Resident memory", false, node_memory},
    {"paceline_worker_step", "Step that it is at", false, node_step},
    {"paceline_worker_steps_per_second", "Steps a second", false, node_rate},
    {"paceline_host_cpu", "Share of all cores", true, node_cpu},
    {"paceline_host_memory_bytes", "Memory in use", true, node_memory},
    {"paceline_host_load", "Load average of a minute", true, node_load},
};

/* Workers and hosts that are gone have no samples any more. */
static void add_nodes(struct base_str *text, const struct report_story *s,
                      const struct node_series *series)
{
    add_head(text, series->name, "gauge", series->help);
    for (size_t i = 0; i < s->node_count; i++) {
        const struct report_node *n = &s->nodes[i];

        if ((n->id <= 0) != series->hosts || n->session != s->session ||
            strcmp(report_node_state(s, n), "working") != 0 || isnan(series->value(n)))
            continue;
        base_str_add(text, "%s{", series->name);
        if (!series->hosts)
            base_str_add(text, "worker=\"%" PRId64 "\",", n->id);
        base_str_add(text, "host=\"%" PRId64 "\"} %.9g\n", n->host, series->value(n));
    }
}

static void add_states(struct base_str *text, const struct report_story *s)
{
    static const char *const states[] = {"starting", "working", "silent", "lost", "ended"};

    add_head(text, "paceline_workers", "gauge", "Workers by their state");
    for (size_t k = 0; k < sizeof states / sizeof *states; k++) {
        size_t count = 0;

        for (size_t i = 0; i < s->node_count; i++)
            count += s->nodes[i].id > 0 && s->nodes[i].session == s->session &&
                     strcmp(report_node_state(s, &s->nodes[i]), states[k]) == 0;
        base_str_add(text, "paceline_workers{state=\"%s\"} %zu\n", states[k], count);
    }
}

void watch_metrics(const struct watch_look *look, struct base_str *text)
{
    const struct report_story *s = &look->story;

    add_head(text, "paceline_run_info", "gauge", "The run and its state");
    base_str_add(text, "paceline_run_info{run=");
    add_quoted(text, s->name);
    base_str_add(text, ",status=");
    add_quoted(text, s->status);
    base_str_add(text, "} 1\n");
    add_head(text, "paceline_run_running", "gauge", "1 while the run is under way");
    base_str_add(text, "paceline_run_running %d\n", !watch_look_ended(look));
    add_head(text, "paceline_step", "gauge", "Newest step");
    base_str_add(text, "paceline_step %.0f\n", s->steps);
    add_head(text, "paceline_steps_seconds", "gauge", "Seconds of all steps together");
    base_str_add(text, "paceline_steps_seconds %.6f\n", s->seconds);
    add_curves(text, s);
    add_states(text, s);
    for (size_t i = 0; i < sizeof node_series / sizeof *node_series; i++)
        add_nodes(text, s, &node_series[i]);
}
