/* SPDX-License-Identifier: MIT */
#include "lab/work.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "lab/child.h"
#include "lab/figures.h"

enum { MOST_AT_ONCE = 256, REDRAW = 500 /* milliseconds */, SLUG = 60 };

struct task {
    struct lab_child child;
    const struct lab_point *point;
    int64_t seed;
    char *name, *folder; /* "ddp workers=3, seed 1"; of its run */
    double began;
};

struct crew {
    struct lab_work *work;
    struct task tasks[MOST_AT_ONCE];
    int count, busy; /* tasks under way; the cores they have */
    bool asked;      /* they were asked to stop */
};

/* ---- how long ---- */

/* Mean wall seconds of a point's records; of all points where `point` is NULL. NAN: none. */
static double usual_seconds(const struct lab_work *w, const struct lab_point *point)
{
    double sum = 0;
    size_t count = 0;

    for (size_t p = 0; p < w->lab->point_count; p++)
        for (size_t s = 0; s < w->lab->seed_count; s++) {
            const struct lab_point *of = &w->lab->points[p];
            const json_t *record = point == NULL || of == point
                                       ? lab_results_get(w->results, of, w->lab->seeds[s])
                                       : NULL;

            if (record != NULL) {
                sum += lab_figure_value("wall_seconds", record);
                count++;
            }
        }
    return count > 0 ? sum / (double)count : (double)NAN;
}

static int cores_of(const struct lab_work *w, const struct lab_point *point)
{
    return point->cores < w->cores ? point->cores : w->cores;
}

size_t lab_left(const struct lab_work *work, double *seconds_p)
{
    const struct lab *lab = work->lab;
    double any = usual_seconds(work, NULL);
    size_t left = 0;

    *seconds_p = 0;
    for (size_t p = 0; p < lab->point_count; p++) {
        const struct lab_point *point = &lab->points[p];
        double own = usual_seconds(work, point);
        double share = lab->parallel ? (double)cores_of(work, point) / work->cores : 1;

        for (size_t s = 0; s < lab_seeds_of(lab, point) && point->selected; s++)
            if (lab_results_get(work->results, point, lab->seeds[s]) == NULL) {
                *seconds_p += share * (isnan(own) ? any : own);
                left++;
            }
    }
    return left;
}

struct lab_span lab_span(double seconds)
{
    struct lab_span span;

    if (seconds < 100)
        snprintf(span.text, sizeof span.text, "%.0f s", seconds);
    else if (seconds < 5400)
        snprintf(span.text, sizeof span.text, "%.0f min", seconds / 60);
    else
        snprintf(span.text, sizeof span.text, "%.1f h", seconds / 3600);
    return span;
}

/* "3 of 12 runs, about 5 min to go" */
static void say_where(const struct crew *crew, char *text, size_t room)
{
    struct lab_work *w = crew->work;
    double seconds;
    size_t left = lab_left(w, &seconds);
    int used = snprintf(text, room, "%zu of %zu runs", w->done, w->total);

    for (int i = 0; i < crew->count; i++) /* what of it is over */
        seconds -= fmin(base_now() - crew->tasks[i].began, seconds / (double)(left > 0 ? left : 1));
    if (left > 0 && !isnan(seconds))
        snprintf(text + used, room - (size_t)used, ", about %s to go", lab_span(seconds).text);
}

static void show_progress(const struct crew *crew)
{
    char where[128];

    if (!base_progress_shown() || crew->count == 0)
        return;
    say_where(crew, where, sizeof where);
    base_progress(true, "lab %s: %s; %s (%.0f s)", crew->work->lab->name, where,
                  crew->tasks[0].name, base_now() - crew->tasks[0].began);
}

/* ---- a run ---- */

/* Names of points may hold anything; their runs are folders. */
static char *folder_name(const struct lab_point *point, int64_t seed)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
    char id[LAB_ID], slug[SLUG + 1];
    size_t count = 0;

    for (const char *at = point->name; *at != '\0' && count < SLUG; at++)
        if (strchr(fine, *at) != NULL)
            slug[count++] = *at;
        else if (count > 0 && slug[count - 1] != '-')
            slug[count++] = '-';
    slug[count] = '\0';
    lab_run_id(point, seed, id);
    return base_format("%s%sseed%lld-%.8s", slug, count > 0 && slug[count - 1] != '-' ? "-" : "",
                       (long long)seed, id);
}

static void task_close(struct task *task)
{
    lab_child_close(&task->child);
    base_free(task->name);
    base_free(task->folder);
}

/* The whole command, NULL-ended, made of texts that others own: what it is launched with, the
 * program, its options. base_free. */
static char **command_of(const struct lab_point *point, char *self, char *const *options,
                         char *const *ending)
{
    size_t count = 0, launch = json_array_size(point->launch);
    char **words;

    while (options[count] != NULL)
        count++;
    words = base_calloc(launch + count + 9, sizeof *words);
    for (size_t i = 0; i < launch; i++)
        words[i] = (char *)(uintptr_t)json_string_value(json_array_get(point->launch, i));
    words[launch] = self;
    words[launch + 1] = "train";
    memcpy(words + launch + 2, options, count * sizeof *words);
    memcpy(words + launch + 2 + count, ending, 6 * sizeof *words);
    return words;
}

/* What an earlier call left of it when it was cut off is of no use. */
static base_status task_open(const struct lab_work *w, const struct lab_point *point, int64_t seed,
                             struct task *task)
{
    char *runs = base_format("%s/runs", w->results->folder), *run = folder_name(point, seed);
    char **options = lab_words(point, seed);
    char *self = point->launch != NULL ? realpath(LAB_SELF, NULL) : NULL;
    char **words = command_of(point, self != NULL ? self : "paceline", options,
                              (char *[]){"--runs-dir", runs, "--run", run, "--quiet", "--json"});
    base_status st = BASE_OK;

    *task = (struct task){.point = point,
                          .seed = seed,
                          .name = base_format("%s, seed %lld", point->name, (long long)seed),
                          .folder = base_format("%s/%s", runs, run),
                          .began = base_now()};
    TRY(base_remove_tree(task->folder));
    TRY(lab_child_start(point->launch != NULL ? words[0] : LAB_SELF, words, &task->child));
out:
    free(self);
    base_free(words);
    lab_words_free(options);
    base_free(run);
    base_free(runs);
    return st;
}

/* Accuracies and losses of every epoch are in its run.json. */
static json_t *read_epochs(const struct task *task)
{
    char *path = base_format("%s/run.json", task->folder);
    json_t *run = NULL, *epochs = NULL;

    if (base_json_load(path, LAB_MAX_FILE * 64, &run) == BASE_OK)
        epochs = json_incref(json_object_get(run, "epochs"));
    json_decref(run);
    base_free(path);
    return json_is_array(epochs) ? epochs : json_array();
}

static base_status keep(struct lab_work *w, const struct task *task, const json_t *result)
{
    json_t *record =
        json_pack("{s:s, s:I, s:O, s:O, s:o, s:f}", "case", task->point->name, "seed",
                  (json_int_t)task->seed, "options", task->point->options, "result", result,
                  "epochs", read_epochs(task), "wall_seconds", base_now() - task->began);

    w->done++;
    return lab_results_add(w->results, task->point, task->seed, record);
}

/* The task has ended. Only a disk that cannot be written ends the lab. */
static base_status task_finish(struct crew *crew, struct task *task)
{
    struct lab_work *w = crew->work;
    json_t *result = NULL;
    base_status st = lab_child_finish(&task->child, task->name, &result);
    char where[128];

    if (st == BASE_OK && !json_is_true(json_object_get(result, "interrupted"))) {
        st = keep(w, task, result);
        say_where(crew, where, sizeof where);
        base_info("%s in %s; %s", task->name, lab_span(base_now() - task->began).text, where);
    } else if (!crew->asked) {
        base_warn("%s failed: %s", task->name, base_message());
        json_array_append_new(w->failures, json_pack("{s:s, s:I, s:o}", "case", task->point->name,
                                                     "seed", (json_int_t)task->seed, "message",
                                                     base_json_text(base_message())));
        st = BASE_OK;
    } else {
        st = BASE_OK;
    }
    json_decref(result);
    return st;
}

/* ---- all of them ---- */

static base_status reap(struct crew *crew)
{
    base_status st = BASE_OK;
    struct pollfd ends[MOST_AT_ONCE];

    for (int i = 0; i < crew->count; i++)
        ends[i] = (struct pollfd){.fd = crew->tasks[i].child.alive, .events = POLLIN};
    if (poll(ends, (nfds_t)crew->count, REDRAW) <= 0) /* or a signal came */
        return BASE_OK;
    for (int i = crew->count - 1; i >= 0; i--) {
        struct task task = crew->tasks[i];

        if (ends[i].revents == 0)
            continue;
        crew->tasks[i] = crew->tasks[--crew->count];
        crew->busy -= cores_of(crew->work, task.point);
        if (st == BASE_OK)
            st = task_finish(crew, &task);
        task_close(&task);
    }
    return st;
}

static bool fits(const struct crew *crew, const struct lab_point *point)
{
    if (crew->count == 0)
        return true;
    return crew->work->lab->parallel && crew->count < MOST_AT_ONCE &&
           crew->busy + cores_of(crew->work, point) <= crew->work->cores;
}

static void hear_signals(struct crew *crew)
{
    if (base_stop_signal() == 0 || crew->asked)
        return;
    crew->asked = true;
    for (int i = 0; i < crew->count; i++)
        lab_child_ask(&crew->tasks[i].child);
}

/* Waits until there is room for it, and starts it, unless a signal came. */
static base_status admit(struct crew *crew, const struct lab_point *point, int64_t seed)
{
    base_status st = BASE_OK;

    while (!crew->asked && !fits(crew, point)) {
        show_progress(crew);
        TRY(reap(crew));
        hear_signals(crew);
    }
    if (crew->asked)
        return BASE_OK;
    TRY(task_open(crew->work, point, seed, &crew->tasks[crew->count]));
    crew->count++;
    crew->busy += cores_of(crew->work, point);
out:
    return st;
}

base_status lab_work(struct lab_work *work)
{
    base_status st = BASE_OK;
    const struct lab *lab = work->lab;
    struct crew *crew = base_calloc(1, sizeof *crew);
    double seconds;
    size_t left = lab_left(work, &seconds);

    crew->work = work;
    work->failures = json_array();
    work->total = lab_runs(lab);
    work->done = work->total - left;
    for (size_t s = 0; s < lab->seed_count; s++)
        for (size_t p = 0; p < lab->point_count; p++) {
            hear_signals(crew);
            if (lab->points[p].selected && s < lab_seeds_of(lab, &lab->points[p]) &&
                lab_results_get(work->results, &lab->points[p], lab->seeds[s]) == NULL)
                TRY(admit(crew, &lab->points[p], lab->seeds[s]));
        }
    while (crew->count > 0) {
        hear_signals(crew);
        show_progress(crew);
        TRY(reap(crew));
    }
    if (crew->asked && work->done < work->total)
        TRY(base_fail(BASE_ERR_INTERRUPTED,
                      "interrupted after %zu of %zu runs; the same command%s "
                      "goes on with the others",
                      work->done, work->total, work->fresh ? " without --fresh" : ""));
out:
    base_progress_clear();
    for (int i = 0; i < crew->count; i++)
        task_close(&crew->tasks[i]);
    base_free(crew);
    return st;
}
