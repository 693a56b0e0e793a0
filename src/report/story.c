/* SPDX-License-Identifier: MIT */
#include "report/story.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "report/story_private.h"

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
    double step;

    if (base_event_rewinds(line, &step))
        go_back(s, step);
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
        read_view(s, line, step);
    } else if (isfinite(step) && base_event_is(line, "anomaly")) {
        read_anomaly(s, line, step);
    } else if (isfinite(step) && base_event_is(line, "back")) {
        add_turn(s, step, base_format("went back to step %.0f", step));
    } else if (isfinite(step) && base_event_is(line, "resume")) {
        read_start(s, line);
        add_turn(s, step, base_strdup("resumed"));
        s->member_count = 0;
        s->resumed = true;
    }
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
    s->derived_count++;
}

/* These are the last ones, and are made anew after reading. */
static void forget_derived(struct report_story *s)
{
    for (; s->derived_count > 0; s->derived_count--) {
        s->curve_count--;
        base_free(s->curves[s->curve_count].name);
        report_curve_fini(&s->curves[s->curve_count].curve);
        s->curves[s->curve_count].name = NULL;
    }
}

/* The reader of one of the run's files, opened where it is not; NULL: there is no such file yet. */
static struct base_event_reader *reader_of(const struct report_story *s, const char *path,
                                           const char *name, struct base_event_reader **reader)
{
    char *file = *reader == NULL ? base_format("%s/%s", path, name) : NULL;

    if (file != NULL && base_exists(file) && base_event_reader_open(file, reader) == BASE_OK &&
        s->follows)
        base_event_reader_follow(*reader);
    base_free(file);
    return *reader;
}

static size_t read_file(struct report_story *s, struct base_event_reader *reader,
                        void (*read_line)(struct report_story *, const struct base_event_line *,
                                          size_t *))
{
    size_t before = base_event_reader_damaged(reader), after = 0, lines = 0;
    const struct base_event_line *line;

    for (; (line = base_event_next(reader)) != NULL; lines++)
        read_line(s, line, &after);
    s->damaged += base_event_reader_damaged(reader) - before;
    return lines;
}

static void close_readers(struct report_story *s)
{
    base_event_reader_close(s->events);
    base_event_reader_close(s->cluster);
    s->events = s->cluster = NULL;
}

size_t report_story_read(const char *path, struct report_story *s)
{
    struct base_event_reader *events = reader_of(s, path, "events.jsonl", &s->events);
    struct base_event_reader *cluster = reader_of(s, path, "cluster.jsonl", &s->cluster);
    size_t lines = 0;

    forget_derived(s);
    s->has_events = events != NULL;
    if (events != NULL)
        lines += read_file(s, events, read_event);
    if (cluster != NULL)
        lines += read_file(s, cluster, report_story_cluster_event);
    derive(s, "step.accuracy", "step.correct", "step.samples");
    derive(s, "step.rate", "step.samples", "step.seconds");
    if (!s->follows)
        close_readers(s);
    return lines;
}

double report_story_newest(const struct report_story *s, const char *name)
{
    const struct report_curve *c = report_story_curve(s, name);

    return c != NULL ? report_curve_newest(c) : NAN;
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
        base_free(s->nodes[i].name);
    }
    for (size_t i = 0; i < REPORT_MAX_NOTES; i++)
        base_free(s->notes[i].text);
    close_readers(s);
    for (size_t i = 0; i < s->turn_count; i++)
        base_free(s->turns[i].text);
    base_free(s->kernels);
}
