/* SPDX-License-Identifier: MIT */
#include "lab/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* SECONDS and PACE: 0 means that there was nothing to be timed, as in a run of one step. */
enum kind { NUMBER, SHARE, SECONDS, COUNT, BYTES, RATIO, PACE };

struct figure {
    const char *name, *title;
    enum kind kind;
    const char *path;  /* in the record; NULL: `reduce` finds it */
    const char *epoch; /* the field of an epoch that is the same after each; NULL: none */
    double (*reduce)(const json_t *result);
    bool more; /* more of it is better */
};

/* ---- of all workers ---- */

static double of_rank(const json_t *ranks, size_t rank, const char *key)
{
    const json_t *value = json_object_get(json_array_get(ranks, rank), key);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static double sum_of(const json_t *result, const char *key)
{
    const json_t *ranks = json_object_get(result, "ranks");
    double sum = 0;

    for (size_t i = 0; i < json_array_size(ranks); i++)
        sum += of_rank(ranks, i, key);
    return sum;
}

/* The largest of all workers, or the least; NAN: there are none. */
static double extreme_of(const json_t *result, const char *key, bool largest)
{
    const json_t *ranks = json_object_get(result, "ranks");
    double extreme = NAN;

    for (size_t i = 0; i < json_array_size(ranks); i++) {
        double value = of_rank(ranks, i, key);

        extreme = largest ? fmax(extreme, value) : fmin(extreme, value);
    }
    return extreme;
}

static double bytes_sent(const json_t *result)
{
    return sum_of(result, "bytes_sent");
}

static double link_bytes(const json_t *result)
{
    double steps = json_number_value(json_object_get(result, "steps"));

    return steps > 0 ? extreme_of(result, "bytes_sent", true) / steps : (double)NAN;
}

static double idle(const json_t *result)
{
    return (sum_of(result, "communicate") + sum_of(result, "wait")) / sum_of(result, "total");
}

static double idle_least(const json_t *result)
{
    return extreme_of(result, "idle", false);
}

static double idle_most(const json_t *result)
{
    return extreme_of(result, "idle", true);
}

static double peak_memory(const json_t *result)
{
    return extreme_of(result, "peak_memory_bytes", true);
}

static const struct figure figures[] = {
    {"accuracy", "accuracy %", SHARE, "result.test.accuracy", "test_accuracy", NULL, true},
    {"train_accuracy", "train accuracy %", SHARE, "result.train.accuracy", NULL, NULL, true},
    {"validation_accuracy", "validation accuracy %", SHARE, "result.validation.accuracy",
     "validation_accuracy", NULL, true},
    {"loss", "loss", NUMBER, "result.train.loss", "loss", NULL, false},
    {"test_loss", "test loss", NUMBER, "result.test.loss", NULL, NULL, false},
    {"validation_loss", "validation loss", NUMBER, "result.validation.loss", "validation_loss",
     NULL, false},
    {"validation_rmse", "validation RMSE", NUMBER, "result.validation.rmse", "validation_rmse",
     NULL, false},
    {"backdoor", "backdoor %", SHARE, "result.backdoor.success", NULL, NULL, false},
    {"r2", "R²", NUMBER, "result.test.r2", NULL, NULL, true},
    {"mae", "MAE", NUMBER, "result.test.mae", NULL, NULL, false},
    {"rmse", "RMSE", NUMBER, "result.test.rmse", NULL, NULL, false},
    {"seconds", "seconds", SECONDS, "result.time.total", NULL, NULL, false},
    {"wall_seconds", "wall s", SECONDS, "wall_seconds", NULL, NULL, false},
    {"step_seconds", "s/step", SECONDS, "result.step_seconds.mean", NULL, NULL, false},
    {"step_median", "median s/step", SECONDS, "result.step_seconds.median", NULL, NULL, false},
    {"samples_per_second", "samples/s", PACE, "result.samples_per_second", NULL, NULL, true},
    {"steps", "steps", COUNT, "result.steps", NULL, NULL, false},
    {"lost_steps", "lost steps", COUNT, "result.lost_steps", NULL, NULL, false},
    {"bytes_sent", "MB sent", BYTES, NULL, NULL, bytes_sent, false},
    {"link_bytes", "MB/step and link", BYTES, NULL, NULL, link_bytes, false},
    {"idle", "idle %", SHARE, NULL, NULL, idle, false},
    {"idle_least", "least idle %", SHARE, NULL, NULL, idle_least, false},
    {"idle_most", "most idle %", SHARE, NULL, NULL, idle_most, false},
    {"peak_memory", "peak MB", BYTES, NULL, NULL, peak_memory, false},
    {"speedup", "speed-up", RATIO, NULL, NULL, NULL, true},
};
enum { FIGURES = sizeof figures / sizeof *figures };

/* By the name's part before an '@'; NULL: none. */
static const struct figure *find(const char *name)
{
    size_t length = strcspn(name, "@");

    for (size_t i = 0; i < FIGURES; i++)
        if (strlen(figures[i].name) == length && strncmp(figures[i].name, name, length) == 0)
            return &figures[i];
    return NULL;
}

/* The N of NAME@N; 0: there is none, or it is none. */
static int epoch_of(const char *name)
{
    const char *at = strchr(name, '@');
    char *end = NULL;
    long epoch = at != NULL ? strtol(at + 1, &end, 10) : 0;

    return at != NULL && at[1] >= '1' && at[1] <= '9' && *end == '\0' && epoch <= 1000000
               ? (int)epoch
               : 0;
}

bool lab_figure_has_epochs(const char *name)
{
    const struct figure *figure = find(name);

    return figure != NULL && figure->epoch != NULL && strchr(name, '@') == NULL;
}

bool lab_figure_has_steps(const char *name)
{
    return strcmp(name, "loss") == 0;
}

bool lab_figure_wants_more(const char *name)
{
    const struct figure *figure = find(name);

    return figure != NULL && figure->more;
}

base_status lab_figure_check(const char *name)
{
    const struct figure *figure = find(name);
    const char *names[FIGURES];

    if (strchr(name, '@') != NULL && (figure == NULL || figure->epoch == NULL))
        return base_fail(BASE_ERR_DATA, "'%s' is not known of every epoch; %s are", name,
                         LAB_EPOCH_FIGURES);
    if (strchr(name, '@') != NULL && epoch_of(name) == 0)
        return base_fail(BASE_ERR_DATA, "'%s' names no epoch: %s@1 is after the first", name,
                         figure->name);
    if (figure != NULL || strchr(name, '.') != NULL)
        return BASE_OK;
    for (size_t i = 0; i < FIGURES; i++)
        names[i] = figures[i].name;
    return base_unknown(BASE_ERR_DATA, "figure (a field of train --json has a dot)", name, names,
                        FIGURES);
}

/* "result.time.total" in an object; NAN where it leads nowhere or to no number. */
static double at_path(const json_t *object, const char *path)
{
    while (true) {
        size_t length = strcspn(path, ".");
        char *key = base_strndup(path, length);

        object = json_object_get(object, key);
        base_free(key);
        if (path[length] == '\0')
            return json_is_number(object) ? json_number_value(object) : (double)NAN;
        path += length + 1;
    }
}

double lab_figure_at_epoch(const char *name, const json_t *record, int epoch)
{
    const json_t *epochs = json_object_get(record, "epochs");

    return at_path(json_array_get(epochs, (size_t)epoch - 1), find(name)->epoch);
}

double lab_figure_value(const char *name, const json_t *record)
{
    const struct figure *figure = find(name);
    const json_t *result = json_object_get(record, "result");
    double value;

    if (figure == NULL)
        return at_path(result, name);
    if (epoch_of(name) > 0)
        return lab_figure_at_epoch(name, record, epoch_of(name));
    if (figure->path != NULL) {
        value = at_path(record, figure->path);
        return value == 0 && (figure->kind == PACE || figure->kind == SECONDS) ? (double)NAN
                                                                               : value;
    }
    return figure->reduce != NULL ? figure->reduce(result) : (double)NAN;
}

/* ---- for people ---- */

char *lab_figure_title(const char *name)
{
    const struct figure *figure = find(name);

    if (figure == NULL)
        return base_strdup(name);
    if (epoch_of(name) > 0) /* "accuracy@1 %" */
        return base_format("%s%s", name, figure->kind == SHARE ? " %" : "");
    return base_strdup(figure->title);
}

double lab_figure_scale(const char *name)
{
    const struct figure *figure = find(name);

    return figure == NULL || (figure->kind != SHARE && figure->kind != BYTES) ? 1
           : figure->kind == SHARE                                            ? 100
                                                                              : 1e-6;
}

int lab_figure_digits(const char *name, double shown)
{
    const struct figure *figure = find(name);

    switch (figure != NULL ? figure->kind : NUMBER) {
    case SHARE:
    case RATIO:
        return 2;
    case COUNT:
        return fabs(shown) < 100 && shown != floor(shown) ? 1 : 0;
    case BYTES:
        return 1;
    case PACE:
        return fabs(shown) >= 100 ? 0 : 2;
    case SECONDS:
        return fabs(shown) >= 100 ? 1 : fabs(shown) >= 10 ? 2 : fabs(shown) >= 0.1 ? 3 : 5;
    default:
        return 4;
    }
}

struct lab_statistics lab_statistics(const double *values, size_t count)
{
    struct lab_statistics s = {.mean = NAN, .deviation = NAN, .low = NAN, .high = NAN};
    double sum = 0, squares = 0;

    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            sum += values[i];
            s.low = fmin(s.low, values[i]); /* of NAN and a number, the number */
            s.high = fmax(s.high, values[i]);
            s.count++;
        }
    if (s.count > 0)
        s.mean = sum / (double)s.count;
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            squares += (values[i] - s.mean) * (values[i] - s.mean);
    if (s.count > 1)
        s.deviation = sqrt(squares / (double)(s.count - 1));
    return s;
}
