/* SPDX-License-Identifier: MIT
 *
 * What the coordinator's events tell about workers and hosts.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "report/story_private.h"

static const double SILENCE = 5; /* seconds without a heartbeat, of which there is one a second */

/* Of a run that is followed, nodes of earlier sessions make room for those of this one. */
static struct report_node *room_for_node(struct report_story *s)
{
    if (s->node_count < REPORT_MAX_NODES)
        return &s->nodes[s->node_count++];
    for (size_t i = 0; s->follows && i < s->node_count; i++) {
        struct report_node *old = &s->nodes[i];

        if (old->session == s->session)
            continue;
        report_curve_fini(&old->cpu);
        report_curve_fini(&old->memory);
        base_free(old->fate);
        base_free(old->name);
        return old;
    }
    s->left_out++;
    return NULL;
}

static struct report_node *node_of(struct report_story *s, int64_t id, int64_t host)
{
    struct report_node *made;

    for (size_t i = 0; i < s->node_count; i++)
        if (s->nodes[i].session == s->session && s->nodes[i].id == id &&
            (id != 0 || s->nodes[i].host == host))
            return &s->nodes[i];
    made = room_for_node(s);
    if (made == NULL)
        return NULL;
    *made = (struct report_node){.id = id,
                                 .host = host,
                                 .session = s->session,
                                 .from = NAN,
                                 .to = NAN,
                                 .rank = -1,
                                 .heard = NAN,
                                 .step = NAN,
                                 .rate = NAN,
                                 .load = NAN};
    return made;
}

static void read_heartbeat(struct report_story *s, const struct base_event_line *line, double time)
{
    double id = base_event_number(line, "id"), host = base_event_number(line, "host");
    struct report_node *node =
        isfinite(id) && isfinite(host) ? node_of(s, report_whole(id), report_whole(host)) : NULL;

    if (node == NULL)
        return;
    node->host = report_whole(host); /* of a worker a view had told nothing but the id */
    node->heard = time;
    node->step = base_event_number(line, "step");
    node->rate = base_event_number(line, "step_rate");
    node->load = base_event_number(line, "load");
    report_curve_add(&node->cpu, time, time, base_event_number(line, "cpu"));
    report_curve_add(&node->memory, time, time, base_event_number(line, "memory"));
}

static void read_members(struct report_story *s, const struct base_event_line *line, double time)
{
    json_t *event = base_event_json(line), *member;
    size_t index;

    for (size_t i = 0; i < s->node_count; i++)
        s->nodes[i].rank = -1;
    json_array_foreach(json_object_get(event, "members"), index, member)
    {
        struct report_node *node = node_of(s, json_integer_value(member), -1);

        if (node == NULL)
            continue;
        node->rank = (int64_t)index;
        if (isnan(node->from))
            node->from = time;
        if (isnan(node->heard)) /* the first heartbeat is due from now on */
            node->heard = time;
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
    for (size_t i = 0; i < s->node_count; i++) {
        s->nodes[i].rank = -1;
        if (isnan(s->nodes[i].to))
            s->nodes[i].to = s->cluster_seconds;
    }
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

/* ---- what people are told ---- */

static void add_note(struct report_story *s, double time, char *text)
{
    struct report_note *note = &s->notes[s->note_count++ % REPORT_MAX_NOTES];

    base_free(note->text);
    *note = (struct report_note){.time = time, .text = text};
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));

    return text != NULL ? text : "–";
}

static int64_t whole_of(const json_t *event, const char *key)
{
    return report_whole(json_number_value(json_object_get(event, key)));
}

/* A host has come: its name belongs to its node. */
static void name_host(struct report_story *s, const json_t *event, double time)
{
    struct report_node *host = node_of(s, 0, whole_of(event, "host"));

    if (host == NULL)
        return;
    base_free(host->name);
    host->name = base_strdup(text_of(event, "name"));
    host->heard = time;
}

static void read_news(struct report_story *s, const struct base_event_line *line, double time)
{
    json_t *e = base_event_json(line);

    if (base_event_is(line, "join")) {
        name_host(s, e, time);
        add_note(s, time,
                 base_format("host %" PRId64 " (%s) has come with %" PRId64 " worker%s",
                             whole_of(e, "host"), text_of(e, "name"), whole_of(e, "workers"),
                             base_plural(whole_of(e, "workers"))));
    } else if (base_event_is(line, "lost")) {
        add_note(s, time,
                 base_format("worker %" PRId64 " of host %" PRId64 " was lost: %s",
                             whole_of(e, "id"), whole_of(e, "host"), text_of(e, "reason")));
    } else if (base_event_is(line, "view")) {
        add_note(s, time,
                 base_format("view %" PRId64 ": %zu worker%s", whole_of(e, "view"),
                             json_array_size(json_object_get(e, "members")),
                             base_plural((int64_t)json_array_size(json_object_get(e, "members")))));
    } else if (base_event_is(line, "stop")) {
        add_note(s, time, base_format("workers are told to end: %s", text_of(e, "reason")));
    } else if (base_event_is(line, "succession")) {
        add_note(s, time,
                 base_format("host %" PRId64 " has taken over from host %" PRId64,
                             whole_of(e, "host"), whole_of(e, "lost_host")));
    }
    json_decref(e);
}

void report_story_cluster_event(struct report_story *s, const struct base_event_line *line,
                                size_t *unused)
{
    double time;

    (void)unused;
    if (isnan(base_event_number(line, "time")))
        return;
    time = cluster_time(s, line);
    if (base_event_is(line, "heartbeat")) {
        read_heartbeat(s, line, time);
        return;
    }
    if (base_event_is(line, "view"))
        read_members(s, line, time);
    else if (base_event_is(line, "lost") || base_event_is(line, "exit"))
        read_end(s, line, time);
    read_news(s, line, time);
}

const char *report_node_state(const struct report_story *s, const struct report_node *n)
{
    if (n->fate != NULL)
        return "lost";
    if (!isnan(n->to) || strcmp(s->status, "running") != 0)
        return "ended";
    if (n->id > 0 && isnan(n->from))
        return "starting";
    return s->cluster_seconds - n->heard > SILENCE ? "silent" : "working";
}
