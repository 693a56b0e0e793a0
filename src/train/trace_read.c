/* SPDX-License-Identifier: MIT
 *
 * The spans that a run's events.jsonl has. Events that say after which step the run goes on (a new
 * view, a way back, a resume) take back what was traced of later steps, which are done again. Other
 * lines, and those that a process which was killed has left half-written, are passed over.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/event_reader.h"
#include "base/mem.h"
#include "train/run.h"
#include "train/trace.h"

static bool find_doing(const char *name, enum train_doing *doing_p)
{
    for (int i = 0; name != NULL && i < TRAIN_DOINGS; i++)
        if (strcmp(name, train_doing_names[i]) == 0) {
            *doing_p = (enum train_doing)i;
            return true;
        }
    return false;
}

static void add(struct train_traces *traces, size_t *room, struct train_traced traced)
{
    if (traces->count == *room) {
        *room = *room > 0 ? 2 * *room : 256;
        traces->at = base_realloc(traces->at, *room, sizeof *traces->at);
    }
    traces->at[traces->count++] = traced;
}

static void read_event(const json_t *event, struct train_traces *traces, size_t *room)
{
    double at = json_number_value(json_object_get(event, "at"));
    struct train_traced traced = {
        .worker = json_integer_value(json_object_get(event, "worker")),
        .rank = json_integer_value(json_object_get(event, "rank")),
        .step = json_integer_value(json_object_get(event, "step")),
    };
    size_t index;
    json_t *span;

    json_array_foreach(json_object_get(event, "spans"), index, span)
    {
        if (!find_doing(json_string_value(json_array_get(span, 0)), &traced.what.doing))
            continue;
        traced.began = at + 1e-6 * json_number_value(json_array_get(span, 1));
        traced.seconds = 1e-6 * json_number_value(json_array_get(span, 2));
        traced.what.stage = (int)json_integer_value(json_array_get(span, 3));
        traced.what.piece = (int)json_integer_value(json_array_get(span, 4));
        add(traces, room, traced);
    }
}

static int by_worker_and_time(const void *a, const void *b)
{
    const struct train_traced *x = a, *y = b;

    if (x->worker != y->worker)
        return x->worker < y->worker ? -1 : 1;
    return (x->began > y->began) - (x->began < y->began);
}

/* Steps after this one are done again. */
static void drop_after(struct train_traces *traces, int64_t step)
{
    size_t kept = 0;

    for (size_t i = 0; i < traces->count; i++)
        if (traces->at[i].step <= step)
            traces->at[kept++] = traces->at[i];
    traces->count = kept;
}

/* Most events are of no interest, and are not parsed. */
static void read_line(const struct base_event_line *line, struct train_traces *traces, size_t *room)
{
    json_t *event = base_event_is(line, "trace") ? base_event_json(line) : NULL;
    double step;

    if (event != NULL)
        read_event(event, traces, room);
    if (base_event_rewinds(line, &step))
        drop_after(traces, (int64_t)step);
    json_decref(event);
}

/* Leaves the spans of one step. */
static void keep_step(struct train_traces *traces, int64_t step)
{
    size_t kept = 0;

    for (size_t i = 0; i < traces->count; i++)
        if (traces->at[i].step == step)
            traces->at[kept++] = traces->at[i];
    traces->count = kept;
}

static int64_t newest_step(const struct train_traces *traces)
{
    int64_t newest = 0;

    for (size_t i = 0; i < traces->count; i++)
        newest = traces->at[i].step > newest ? traces->at[i].step : newest;
    return newest;
}

base_status train_traces_read(const struct train_run *run, int64_t step,
                              struct train_traces *traces)
{
    base_status st = BASE_OK;
    struct base_event_reader *reader = NULL;
    const struct base_event_line *line;
    size_t room = 0;

    *traces = (struct train_traces){0};
    TRY(base_event_reader_open(run->events, &reader));
    while ((line = base_event_next(reader)) != NULL)
        read_line(line, traces, &room);
    if (traces->count == 0)
        TRY(base_fail(
            BASE_ERR_USAGE,
            "run %s has no traces: its workers tell them at the end of each epoch and of the run, "
            "and leave out a step with more spans than there is room for",
            run->name));
    if (step >= 0)
        keep_step(traces, step > 0 ? step : newest_step(traces));
    if (traces->count == 0)
        TRY(base_fail(BASE_ERR_USAGE,
                      "run %s has no trace of step %" PRId64 "; traced are the first %d steps and "
                      "one of each %d",
                      run->name, step, TRAIN_TRACE_FIRST, TRAIN_TRACE_EVERY));
    qsort(traces->at, traces->count, sizeof *traces->at, by_worker_and_time);
out:
    base_event_reader_close(reader);
    if (st != BASE_OK)
        train_traces_fini(traces);
    return st;
}

void train_traces_fini(struct train_traces *traces)
{
    base_free(traces->at);
    *traces = (struct train_traces){0};
}
