/* SPDX-License-Identifier: MIT
 *
 * What the events of a run tell, in memory that does not grow with its steps: a curve of every
 * number of its steps and epochs, which workers there were from when to when, what each needed. It
 * reads events.jsonl and cluster.jsonl of the run's folder; either may be missing, incomplete or
 * damaged. A step that is done again, after a loss or a resume, counts once in the curves; its time
 * counts as often as it took.
 */
#ifndef REPORT_STORY_H
#define REPORT_STORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/event_reader.h"
#include "base/json.h"
#include "base/status.h"
#include "report/curve.h"
#include "report/svg.h"

enum {
    REPORT_MAX_CURVES = 64,
    REPORT_MAX_NODES = 256,
    REPORT_MAX_TURNS = 512,
    REPORT_MAX_NOTES = 64,
};

/* "step.loss", "epoch.test_accuracy": an event and its field. x is the step, time the seconds of
 * all steps before. */
struct report_named_curve {
    char *name;
    struct report_curve curve;
};

/* A worker, or a host. Times are the coordinator's. */
struct report_node {
    int64_t id, host; /* id 0: the host */
    size_t session;   /* resumes before it came: each numbers its workers from 1 on */
    struct report_curve cpu, memory;
    double from, to; /* in a view; NAN: never was */
    char *fate;      /* why it was lost; NULL: it was not */
    char *name;      /* of a host; NULL: not told */
    int64_t rank;    /* in the newest view; -1: not in it */
    /* Of its newest heartbeat; NAN: there was none. The load is a host's, the others a worker's.
     * `heard` begins with the view or the host's joining. */
    double heard, step, rate, load;
};

/* The members changed, one became slow, or the run went on from an earlier step. */
struct report_turn {
    double step; /* the last one before it */
    char *text;
};

/* What the coordinator has told about hosts and workers. */
struct report_note {
    double time;
    char *text;
};

struct report_story {
    bool follows;       /* set by the caller: the files are read on, by further calls */
    const char *name;   /* of the run; borrowed, and so are the next two */
    const char *status; /* as in run.json, or `lost` */
    const json_t *json; /* run.json */
    struct report_named_curve curves[REPORT_MAX_CURVES];
    size_t curve_count, derived_count; /* derived: the last ones, quotients of others */
    struct report_node nodes[REPORT_MAX_NODES];
    size_t node_count;
    struct report_turn turns[REPORT_MAX_TURNS]; /* of the run's events: where x is the step */
    size_t turn_count;
    double steps, seconds; /* the newest step; of all steps together */
    double cluster_seconds;
    struct report_note
        notes[REPORT_MAX_NOTES]; /* the newest; number i is at i % REPORT_MAX_NOTES */
    size_t note_count;           /* that there were */
    size_t session;              /* how often another session has gone on in cluster.jsonl */
    bool resumed;
    char *kernels;
    size_t damaged, dropped, left_out; /* lines, events, and turns and nodes without room */
    bool has_events;
    /* While reading. */
    struct base_event_reader *events, *cluster; /* NULL: not open */
    double begun; /* the coordinator's: cluster_seconds when it began */
    int64_t members[REPORT_MAX_NODES];
    size_t member_count;
};

/* `path` is the run's folder. What cannot be read is left out. A story that `follows` is read on by
 * further calls. Returns the number of events that were new. */
size_t report_story_read(const char *path, struct report_story *story);
void report_story_fini(struct report_story *story); /* accepts zeros */

/* "starting", "working", "silent" (no heartbeat for some seconds), "lost" or "ended". */
const char *report_node_state(const struct report_story *story, const struct report_node *node);
/* The newest value of a curve; NAN: it has none. */
double report_story_newest(const struct report_story *story, const char *curve);

const struct report_curve *report_story_curve(const struct report_story *story, const char *name);

/* A number of a file as a whole one, within ±2^53; 0: it is not a number. */
int64_t report_whole(double value);

/* ---- series.c: curves for charts ---- */

enum report_x { REPORT_STEP, REPORT_EPOCH, REPORT_TIME };

struct report_lines { /* init by = {0} */
    struct report_series *series;
    size_t count;
};

/* Adds what a run has of `what`: the step's figure, or the epoch's where there is none, and those
 * of the validation and test parts; or the one curve that "EVENT.FIELD" names. `prefix` is put in
 * front of their names; NULL: nothing. `band`: with the lowest and highest of each bin. */
void report_lines_add(struct report_lines *lines, const struct report_story *story,
                      const char *what, enum report_x x, const char *prefix, bool band);
void report_lines_add_curve(struct report_lines *lines, const struct report_curve *curve,
                            const char *name, double scale);
void report_lines_fini(struct report_lines *lines);

/* Complete epochs and the part of the next one at a step; NAN: no epoch has ended yet. */
double report_story_epoch_of(const struct report_story *story, double step);

#endif
