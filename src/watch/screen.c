/* SPDX-License-Identifier: MIT */
#include "watch/screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { EVENTS = 6, LINES = 4, LEAST_WORKERS = 3 };

/* Lines that are collected before they are cut to the screen. */
struct lines {
    struct base_str *text;
    int width, left; /* left: lines that there is room for */
};

/* Bytes of a file may be anything: what a terminal would obey becomes question marks. */
static void make_plain(char *line)
{
    bool text = base_is_utf8(line);

    for (unsigned char *at = (unsigned char *)line; *at != '\0'; at++) {
        bool second_set = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0; /* U+0080 to U+009F */

        if (second_set)
            at[1] = '?';
        if (*at < ' ' || *at == 0x7f || second_set || (!text && *at >= 0x80))
            *at = '?';
    }
}

static void put_line(struct lines *l, const char *line)
{
    struct base_str cut = {0};
    char *plain;

    if (l->left <= 0)
        return;
    l->left--;
    plain = base_strdup(line);
    make_plain(plain);
    base_str_column(&cut, plain, l->width > 0 ? -l->width : -(int)strlen(plain));
    while (cut.length > 0 && cut.text[cut.length - 1] == ' ')
        cut.text[--cut.length] = '\0';
    base_str_add(l->text, "%s\n", cut.length > 0 ? cut.text : "");
    base_str_fini(&cut);
    base_free(plain);
}

static void put_format(struct lines *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void put_format(struct lines *l, const char *format, ...)
{
    va_list args;
    char *line = NULL;

    va_start(args, format);
    if (vasprintf(&line, format, args) >= 0)
        put_line(l, line);
    va_end(args);
    free(line);
}

/* ---- how far it is ---- */

static void add_figure(struct base_str *text, const struct report_story *s, const char *curve,
                       const char *title, double scale, const char *unit, int digits)
{
    double value = report_story_newest(s, curve);

    if (isfinite(value))
        base_str_add(text, "  %s%.*f%s", title, digits, scale * value, unit);
}

static size_t count_state(const struct report_story *s, const char *state)
{
    size_t count = 0;

    for (size_t i = 0; i < s->node_count; i++)
        count += s->nodes[i].id > 0 && s->nodes[i].session == s->session &&
                 strcmp(report_node_state(s, &s->nodes[i]), state) == 0;
    return count;
}

void watch_screen_line(const struct watch_look *look, struct base_str *text)
{
    static const char *const states[] = {"starting", "working", "silent", "lost"};
    const struct report_story *s = &look->story;

    base_str_add(text, "%s  %s  step %.0f", s->name, s->status, s->steps);
    add_figure(text, s, "step.epoch", "epoch ", 1, "", 0);
    add_figure(text, s, "step.loss", "loss ", 1, "", 4);
    add_figure(text, s, "step.accuracy", "accuracy ", 100, " %", 2);
    add_figure(text, s, "epoch.test_accuracy", "test ", 100, " %", 2);
    add_figure(text, s, "epoch.test_rmse", "test RMSE ", 1, "", 4);
    add_figure(text, s, "step.lr", "lr ", 1, "", 5);
    add_figure(text, s, "step.rate", "", 1, " samples/s", 0);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (count_state(s, states[i]) > 0)
            base_str_add(text, "  %zu %s", count_state(s, states[i]), states[i]);
}

/* ---- workers and hosts ---- */

static int trouble_of(const struct report_story *s, const struct report_node *n)
{
    static const char *const states[] = {"ended", "working", "starting", "lost", "silent"};
    int trouble = 0;

    while (strcmp(states[trouble], report_node_state(s, n)) != 0)
        trouble++;
    return trouble;
}

struct row {
    const struct report_node *node;
    int trouble;
};

static int by_trouble(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->trouble != y->trouble)
        return y->trouble - x->trouble;
    return (x->node->rank > y->node->rank) - (x->node->rank < y->node->rank);
}

/* "12.3" in a column, or a hyphen. */
static const char *cell(double value, double scale, int digits, char text[24])
{
    if (isfinite(value))
        snprintf(text, 24, "%.*f", digits, scale * value);
    else
        snprintf(text, 24, "-");
    return text;
}

static void put_worker(struct lines *l, const struct report_story *s, const struct report_node *n)
{
    char rank[24], step[24], rate[24], cpu[24], memory[24];

    put_format(l, "%6" PRId64 " %4s %4" PRId64 " %-9s %10s %8s %6s %9s  %s", n->id,
               cell(n->rank >= 0 ? (double)n->rank : NAN, 1, 0, rank), n->host,
               report_node_state(s, n), cell(n->step, 1, 0, step), cell(n->rate, 1, 2, rate),
               cell(report_curve_newest(&n->cpu), 100, 0, cpu),
               cell(report_curve_newest(&n->memory), 1e-6, 0, memory),
               n->fate != NULL ? n->fate : "");
}

/* Leaves `below` lines free. */
static void put_workers(struct lines *l, const struct report_story *s, int below)
{
    struct row *rows = base_calloc(s->node_count + 1, sizeof *rows);
    size_t count = 0, shown;

    for (size_t i = 0; i < s->node_count; i++)
        if (s->nodes[i].id > 0 && s->nodes[i].session == s->session)
            rows[count++] = (struct row){&s->nodes[i], trouble_of(s, &s->nodes[i])};
    if (count > 0) {
        int room = l->left - below - 3 > LEAST_WORKERS ? l->left - below - 3 : LEAST_WORKERS;

        qsort(rows, count, sizeof *rows, by_trouble);
        put_line(l, "");
        put_format(l, "%6s %4s %4s %-9s %10s %8s %6s %9s", "worker", "rank", "host", "state",
                   "step", "steps/s", "cpu %", "memory MB");
        shown = count <= (size_t)room ? count : (size_t)room;
        for (size_t i = 0; i < shown; i++)
            put_worker(l, s, rows[i].node);
        if (shown < count)
            put_format(l, "   … and %zu more", count - shown);
    }
    base_free(rows);
}

static size_t count_hosts(const struct report_story *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->node_count; i++)
        count += s->nodes[i].id <= 0 && s->nodes[i].session == s->session;
    return count;
}

static void put_hosts(struct lines *l, const struct report_story *s)
{
    if (count_hosts(s) == 0)
        return;
    put_line(l, "");
    put_format(l, "%6s %-20s %-9s %6s %9s %6s", "host", "name", "state", "cpu %", "memory MB",
               "load");
    for (size_t i = 0; i < s->node_count; i++) {
        const struct report_node *n = &s->nodes[i];
        char cpu[24], memory[24], load[24];

        if (n->id <= 0 && n->session == s->session)
            put_format(l, "%6" PRId64 " %-20.20s %-9s %6s %9s %6s", n->host,
                       n->name != NULL ? n->name : "-", report_node_state(s, n),
                       cell(report_curve_newest(&n->cpu), 100, 0, cpu),
                       cell(report_curve_newest(&n->memory), 1e-6, 0, memory),
                       cell(n->load, 1, 2, load));
    }
}

/* ---- what happened ---- */

static void put_events(struct lines *l, const struct report_story *s)
{
    size_t notes = s->note_count < EVENTS ? s->note_count : EVENTS;
    size_t turns = s->turn_count < EVENTS / 2 ? s->turn_count : EVENTS / 2;

    if (notes + turns == 0)
        return;
    put_line(l, "");
    for (size_t i = s->turn_count - turns; i < s->turn_count; i++)
        put_format(l, "after step %.0f: %s", s->turns[i].step, s->turns[i].text);
    for (size_t i = s->note_count - notes; i < s->note_count; i++)
        put_format(l, "%8.1f s: %s", s->notes[i % REPORT_MAX_NOTES].time,
                   s->notes[i % REPORT_MAX_NOTES].text);
}

static void put_log(struct lines *l, const struct watch_log *log)
{
    size_t count = log->count < LINES ? log->count : LINES;

    if (count > 0)
        put_line(l, "");
    for (size_t i = log->count - count; i < log->count; i++) {
        if (log->lines[i].worker > 0)
            put_format(l, "worker %" PRId64 ": %s", log->lines[i].worker, log->lines[i].text);
        else
            put_line(l, log->lines[i].text);
    }
}

void watch_screen(const struct watch_look *look, int width, int height, struct base_str *text)
{
    struct lines l = {.text = text, .width = width, .left = height > 0 ? height : INT32_MAX};
    const struct report_story *s = &look->story;
    struct base_str first = {0};
    int hosts = (int)count_hosts(s);

    watch_screen_line(look, &first);
    put_line(&l, first.text);
    base_str_fini(&first);
    put_workers(&l, s, (hosts > 0 ? hosts + 2 : 0) + EVENTS + LINES + 2);
    put_hosts(&l, s);
    put_events(&l, s);
    put_log(&l, &look->log);
}
