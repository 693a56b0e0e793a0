/* SPDX-License-Identifier: MIT */
#include "watch/look.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

enum { RUN_JSON_LIMIT = 64 << 20 };

/* run.json is replaced as a whole, so another one has another inode or time. */
static bool is_saved_again(const struct watch_look *look, const char *file, struct stat *now_p)
{
    return stat(file, now_p) == 0 &&
           (now_p->st_ino != look->saved.st_ino || now_p->st_size != look->saved.st_size ||
            now_p->st_mtim.tv_sec != look->saved.st_mtim.tv_sec ||
            now_p->st_mtim.tv_nsec != look->saved.st_mtim.tv_nsec);
}

/* Where run.json cannot be read, what was known of it still holds, and the next look tries again.
 */
static bool read_run(struct watch_look *look)
{
    char *file = base_format("%s/run.json", look->run.path);
    json_t *json = NULL;
    struct stat now = {0};
    bool changed =
        is_saved_again(look, file, &now) && base_json_load(file, RUN_JSON_LIMIT, &json) == BASE_OK;

    if (changed) {
        look->saved = now;
        json_decref(look->run.json);
        look->run.json = json;
    }
    base_free(file);
    return changed;
}

/* Returns whether the status, or what it says about the end, is another one. */
static bool read_status(struct watch_look *look)
{
    char status[sizeof look->status];
    bool ended, changed, lost;

    snprintf(status, sizeof status, "%s", train_run_status(&look->run));
    lost = strcmp(status, "lost") == 0;
    changed = strcmp(status, look->status) != 0;
    if (changed && lost) {
        double age = 0;

        if (look->status[0] == '\0') /* the first look: lost since the run's last write or later */
            json_decref(train_run_newest_step(&look->run, &age));
        look->lost_since = base_now() - age;
    }
    memcpy(look->status, status, sizeof status);
    ended = lost ? base_now() - look->lost_since > TRAIN_TAKE_OVER : strcmp(status, "running") != 0;
    changed |= ended != look->ended;
    look->ended = ended;
    return changed;
}

void watch_look_again(struct watch_look *look)
{
    struct report_story *s = &look->story;
    bool changed = read_run(look);

    s->name = look->run.name;
    s->json = look->run.json;
    changed |= read_status(look);
    s->status = look->status;
    /* After the state: of a run that has ended all events are there. */
    changed |= report_story_read(look->run.path, s) > 0;
    changed |= watch_log_read(&look->log, look->run.path) > 0;
    look->version += changed;
}

base_status watch_look_open(const char *runs_dir, const char *name, struct watch_look *look_p)
{
    base_status st = BASE_OK;

    *look_p = (struct watch_look){.version = 1, .story.follows = true};
    TRY(train_run_open(runs_dir, name, &look_p->run));
    watch_look_again(look_p);
out:
    return st;
}

bool watch_look_ended(const struct watch_look *look)
{
    return look->ended;
}

void watch_look_close(struct watch_look *look)
{
    report_story_fini(&look->story);
    watch_log_fini(&look->log);
    train_run_close(&look->run);
}

/* ---- as JSON ---- */

static json_t *nodes_json(const struct report_story *s, bool hosts)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->node_count; i++) {
        const struct report_node *n = &s->nodes[i];
        json_t *node;

        if ((n->id <= 0) != hosts || n->session != s->session)
            continue;
        node = json_pack("{s:I, s:s, s:o, s:o}", "host", (json_int_t)n->host, "state",
                         report_node_state(s, n), "cpu",
                         base_json_number(report_curve_newest(&n->cpu)), "memory",
                         base_json_number(report_curve_newest(&n->memory)));
        if (hosts) {
            json_object_set_new(node, "name",
                                n->name != NULL ? base_json_text(n->name) : json_null());
            json_object_set_new(node, "load", base_json_number(n->load));
        } else {
            json_object_set_new(node, "id", json_integer((json_int_t)n->id));
            json_object_set_new(node, "rank", n->rank >= 0 ? json_integer(n->rank) : json_null());
            json_object_set_new(node, "step",
                                isfinite(n->step) ? json_integer((json_int_t)report_whole(n->step))
                                                  : json_null());
            json_object_set_new(node, "step_rate", base_json_number(n->rate));
            json_object_set_new(node, "reason",
                                n->fate != NULL ? base_json_text(n->fate) : json_null());
        }
        json_array_append_new(list, node);
    }
    return list;
}

static json_t *notes_json(const struct report_story *s)
{
    size_t first = s->note_count > REPORT_MAX_NOTES ? s->note_count - REPORT_MAX_NOTES : 0;
    json_t *list = json_array();

    for (size_t i = first; i < s->note_count; i++) {
        const struct report_note *n = &s->notes[i % REPORT_MAX_NOTES];

        json_array_append_new(
            list, json_pack("{s:f, s:o}", "time", n->time, "text", base_json_text(n->text)));
    }
    return list;
}

static json_t *turns_json(const struct report_story *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->turn_count; i++)
        json_array_append_new(list, json_pack("{s:f, s:o}", "step", s->turns[i].step, "text",
                                              base_json_text(s->turns[i].text)));
    return list;
}

json_t *watch_look_json(const struct watch_look *look)
{
    const struct report_story *s = &look->story;
    json_t *newest = json_object();

    for (size_t i = 0; i < s->curve_count; i++)
        json_object_set_new(newest, s->curves[i].name,
                            base_json_number(report_curve_newest(&s->curves[i].curve)));
    return json_pack("{s:i, s:o, s:s, s:I, s:f, s:o, s:o, s:o, s:o, s:o}", "schema", 1, "run",
                     base_json_text(s->name), "status", s->status, "step",
                     (json_int_t)report_whole(s->steps), "seconds", s->seconds, "newest", newest,
                     "workers", nodes_json(s, false), "hosts", nodes_json(s, true), "events",
                     notes_json(s), "turns", turns_json(s));
}
