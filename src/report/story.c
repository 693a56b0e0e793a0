/* SPDX-License-Identifier: MIT */
#include "report/story.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/event_reader.h"
#include "base/mem.h"

enum { MOST_RATES = 128 }; /* bins of what is noisy from step to step */

static bool name_is(const char *name, const struct base_event_line *line,
                    const struct base_event_field *field)
{
    size_t kind = line->fields[0].value_length - 2;

    return strncmp(name, line->fields[0].value + 1, kind) == 0 && name[kind] == '.' &&
           strncmp(name + kind + 1, field->key, field->key_length) == 0 &&
           name[kind + 1 + field->key_length] == '\0';
}

/* The curve of a field of an event, made where it is new; NULL: there are too many. `after` is the
 * curve of the field before it: lines of a kind are alike, so that the next one is a good guess. */
static struct report_curve *curve_of(struct report_story *s, const struct base_event_line *line,
                                     const struct base_event_field *field, size_t *after)
{
    struct report_named_curve *made;

    for (size_t i = 0; i < s->curve_count; i++) {
        size_t guess = (*after + i) % s->curve_count;

        if (name_is(s->curves[guess].name, line, field)) {
            *after = guess + 1;
            return &s->curves[guess].curve;
        }
    }
    if (s->curve_count == REPORT_MAX_CURVES)
        return NULL;
    made = &s->curves[s->curve_count++];
    made->name = base_format("%.*s.%.*s", (int)(line->fields[0].value_length - 2),
                             line->fields[0].value + 1, (int)field->key_length, field->key);
    return &made->curve;
}

static void read_numbers(struct report_story *s, const struct base_event_line *line, double step,
                         size_t *after)
{
    for (size_t i = 1; i < line->field_count; i++) {
        double number = base_event_field_number(&line->fields[i]);
        struct report_curve *curve;

        if (isnan(number) || base_event_key_is(&line->fields[i], "step"))
            continue;
        curve = curve_of(s, line, &line->fields[i], after);
        if (curve != NULL)
            report_curve_add(curve, step, s->seconds, number);
    }
}

int64_t report_whole(double value)
{
    const double most = 9007199254740992;

    return isnan(value) ? 0 : (int64_t)fmax(-most, fmin(value, most));
}

/* ---- what happened on the way ---- */

static void add_turn(struct report_story *s, double step, char *text)
{
    if (s->turn_count == REPORT_MAX_TURNS) {
        s->left_out++;
        base_free(text);
        return;
    }
    s->turns[s->turn_count++] = (struct report_turn){.step = step, .text = text};
}

static bool is_among(int64_t id, const int64_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static void add_ids(struct base_str *text, const char *word, const int64_t *of, size_t of_count,
                    const int64_t *not_in, size_t not_in_count)
{
    size_t found = 0;

    for (size_t i = 0; i < of_count; i++)
        if (!is_among(of[i], not_in, not_in_count)) {
            base_str_add(text, "%s%s%" PRId64, text->length > 0 ? ", " : "", found == 0 ? word : "",
                         of[i]);
            found++;
        }
}

/* A worker that has become slow, with the cause, or that no longer is. */
static void read_anomaly(struct report_story *s, const struct base_event_line *line, double step)
{
    json_t *event = base_event_json(line);
    const char *cause = json_string_value(json_object_get(event, "cause"));
    double worker = base_event_number(line, "worker");

    if (isfinite(worker))
        add_turn(s, step,
                 json_is_true(json_object_get(event, "slow"))
                     ? base_format("worker %.0f slow: %.20s", worker, cause != NULL ? cause : "?")
                     : base_format("worker %.0f no longer slow", worker));
    json_decref(event);
}

/* A view: who is in it that was not in the one before, and the other way round. */
static void read_view(struct report_story *s, const struct base_event_line *line, double step)
{
    json_t *event = base_event_json(line), *member;
    int64_t members[REPORT_MAX_NODES];
    size_t count = 0, index;
    struct base_str text = {0};

    json_array_foreach(json_object_get(event, "members"), index, member)
    {
        if (count < REPORT_MAX_NODES)
            members[count++] = json_integer_value(member);
    }
    if (s->member_count > 0) {
        add_ids(&text, "lost worker ", s->members, s->member_count, members, count);
        add_ids(&text, "new worker ", members, count, s->members, s->member_count);
        if (text.length > 0)
            add_turn(s, step, base_str_take(&text));
    }
    memcpy(s->members, members, count * sizeof *members);
    s->member_count = count;
    base_str_fini(&text);
    json_decref(event);
}

/* Steps after this one are done again. */
static void go_back(struct report_story *s, double step)
{
    for (size_t i = 0; i < s->curve_count; i++)
        report_curve_drop_after(&s->curves[i].curve, step);
    s->steps = fmin(s->steps, step);
}

static void read_start(struct report_story *s, const struct base_event_line *line)
{
    const struct base_event_field *kernels = base_event_field(line, "kernels");

    if (kernels == NULL || kernels->value_length < 2)
        return;
    base_free(s->kernels);
    s->kernels = base_strndup(kernels->value + 1, kernels->value_length - 2);
}

static void read_event(struct report_story *s, const struct base_event_line *line, size_t *after)
{
    double step = base_event_number(line, "step");

    if (base_event_is(line, "step") && isfinite(step)) {
        s->seconds += fmax(0, base_event_number(line, "seconds")); /* fmax of NAN and 0 is 0 */
        s->steps = step;
        if (base_event_number(line, "samples") != 0) /* else its figures are of nothing */
            read_numbers(s, line, step, after);
    } else if ((base_event_is(line, "epoch") || base_event_is(line, "round") ||
                base_event_is(line, "checkpoint")) &&
               isfinite(step)) {
        read_numbers(s, line, step, after);
    } else if (base_event_is(line, "dropped")) {
        s->dropped += (size_t)report_whole(fmax(0, base_event_number(line, "count")));
    } else if (base_event_is(line, "start")) {
        read_start(s, line);
    } else if (isfinite(step) && base_event_is(line, "view")) {
        go_back(s, step);
        read_view(s, line, step);
    } else if (isfinite(step) && base_event_is(line, "anomaly")) {
        read_anomaly(s, line, step);
    } else if (isfinite(step) && base_event_is(line, "back")) {
        go_back(s, step);
        add_turn(s, step, base_format("went back to step %.0f", step));
    } else if (isfinite(step) && base_event_is(line, "resume")) {
        go_back(s, step);
        read_start(s, line);
        add_turn(s, step, base_strdup("resumed"));
        s->member_count = 0;
        s->resumed = true;
    }
}

static void read_events(struct report_story *s, const char *path)
{
    char *file = base_format("%s/events.jsonl", path);
    struct base_event_reader *reader = NULL;
    const struct base_event_line *line;
    size_t after = 0;

    s->has_events = base_event_reader_open(file, &reader) == BASE_OK;
    base_free(file);
    if (!s->has_events)
        return;
    while ((line = base_event_next(reader)) != NULL)
        read_event(s, line, &after);
    s->damaged += base_event_reader_damaged(reader);
    base_event_reader_close(reader);
}

/* ---- workers and hosts ---- */

static struct report_node *node_of(struct report_story *s, int64_t id, int64_t host)
{
    struct report_node *made;

    for (size_t i = 0; i < s->node_count; i++)
        if (s->nodes[i].session == s->session && s->nodes[i].id == id &&
            (id != 0 || s->nodes[i].host == host))
            return &s->nodes[i];
    if (s->node_count == REPORT_MAX_NODES) {
        s->left_out++;
        return NULL;
    }
    made = &s->nodes[s->node_count++];
    *made =
        (struct report_node){.id = id, .host = host, .session = s->session, .from = NAN, .to = NAN};
    return made;
}

static void read_heartbeat(struct report_story *s, const struct base_event_line *line, double time)
{
    double id = base_event_number(line, "id"), host = base_event_number(line, "host");
    struct report_node *node =
        isfinite(id) && isfinite(host) ? node_of(s, report_whole(id), report_whole(host)) : NULL;

    if (node == NULL)
        return;
    report_curve_add(&node->cpu, time, time, base_event_number(line, "cpu"));
    report_curve_add(&node->memory, time, time, base_event_number(line, "memory"));
}

static void read_members(struct report_story *s, const struct base_event_line *line, double time)
{
    json_t *event = base_event_json(line), *member;
    size_t index;

    json_array_foreach(json_object_get(event, "members"), index, member)
    {
        struct report_node *node = node_of(s, json_integer_value(member), -1);

        if (node != NULL && isnan(node->from))
            node->from = time;
    }
    json_decref(event);
}

static void read_end(struct report_story *s, const struct base_event_line *line, double time)
{
    double id = base_event_number(line, "id");
    struct report_node *node = id > 0 ? node_of(s, report_whole(id), -1) : NULL;
    json_t *event;

    if (node == NULL)
        return;
    if (isnan(node->to))
        node->to = time;
    if (!base_event_is(line, "lost") || node->fate != NULL)
        return;
    event = base_event_json(line);
    if (json_is_string(json_object_get(event, "reason")))
        node->fate = base_strdup(json_string_value(json_object_get(event, "reason")));
    json_decref(event);
}

/* The coordinator of a resumed run has begun: workers of the session before it are gone. */
static void begin_session(struct report_story *s)
{
    for (size_t i = 0; i < s->node_count; i++)
        if (isnan(s->nodes[i].to))
            s->nodes[i].to = s->cluster_seconds;
    s->session++;
}

/* The time of an event since the job began. A coordinator's clock begins at 0, and its first words
 * are that host 0 has joined or, of a successor, which keeps the workers, that it is one. */
static double cluster_time(struct report_story *s, const struct base_event_line *line)
{
    double time = s->begun + base_event_number(line, "time");
    bool first = base_event_is(line, "succession") ||
                 (base_event_is(line, "join") && base_event_number(line, "host") == 0);

    if (time < s->cluster_seconds - (first ? 0 : 0.5)) {
        if (!base_event_is(line, "succession"))
            begin_session(s);
        time += s->cluster_seconds - s->begun;
        s->begun = s->cluster_seconds;
    }
    s->cluster_seconds = fmax(s->cluster_seconds, time);
    return time;
}

static void read_cluster(struct report_story *s, const char *path)
{
    char *file = base_format("%s/cluster.jsonl", path);
    struct base_event_reader *reader = NULL;
    const struct base_event_line *line;

    if (base_event_reader_open(file, &reader) == BASE_OK) {
        while ((line = base_event_next(reader)) != NULL) {
            double time;

            if (isnan(base_event_number(line, "time")))
                continue;
            time = cluster_time(s, line);
            if (base_event_is(line, "heartbeat"))
                read_heartbeat(s, line, time);
            else if (base_event_is(line, "view"))
                read_members(s, line, time);
            else if (base_event_is(line, "lost") || base_event_is(line, "exit"))
                read_end(s, line, time);
        }
        s->damaged += base_event_reader_damaged(reader);
    }
    base_event_reader_close(reader);
    base_free(file);
}

/* ---- the whole ---- */

/* Adds a curve that is a quotient of two others, where both are there. */
static void derive(struct report_story *s, const char *name, const char *top, const char *bottom)
{
    const struct report_curve *a = report_story_curve(s, top), *b = report_story_curve(s, bottom);
    double most = 0;

    for (size_t i = 0; a != NULL && i < a->count; i++)
        most = fmax(most, a->bins[i].high);
    if (most <= 0 || b == NULL || s->curve_count == REPORT_MAX_CURVES)
        return;
    s->curves[s->curve_count].name = base_strdup(name);
    report_curve_divide(a, b, MOST_RATES, &s->curves[s->curve_count++].curve);
}

void report_story_read(const char *path, struct report_story *s)
{
    read_events(s, path);
    read_cluster(s, path);
    derive(s, "step.accuracy", "step.correct", "step.samples");
    derive(s, "step.rate", "step.samples", "step.seconds");
}

const struct report_curve *report_story_curve(const struct report_story *s, const char *name)
{
    for (size_t i = 0; i < s->curve_count; i++)
        if (strcmp(s->curves[i].name, name) == 0)
            return &s->curves[i].curve;
    return NULL;
}

void report_story_fini(struct report_story *s)
{
    for (size_t i = 0; i < s->curve_count; i++) {
        base_free(s->curves[i].name);
        report_curve_fini(&s->curves[i].curve);
    }
    for (size_t i = 0; i < s->node_count; i++) {
        report_curve_fini(&s->nodes[i].cpu);
        report_curve_fini(&s->nodes[i].memory);
        base_free(s->nodes[i].fate);
    }
    for (size_t i = 0; i < s->turn_count; i++)
        base_free(s->turns[i].text);
    base_free(s->kernels);
}
