/* SPDX-License-Identifier: MIT */
#include "train/anomaly.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* False alarms that an observation of a worker may cause, were its scatter normal and without
 * memory. The limits follow from it. */
static const double FALSE_ALARMS = 1e-9;

/* An observation is of steps in which the slowest worker works for so many seconds at least. */
static const double SPAN = 0.5;
/* Deviations that count for nothing, in units of the scatter, and as a logarithm: smaller changes
 * are not worth telling. */
static const double SLACK = 1, TRIFLE = 0.05;
static const double STILL = 0.01;  /* a scatter is no smaller than this */
static const double NEWER = 0.125; /* weight of an observation in what is usual for a sample */
static const double FAULT = 1e-3;  /* seconds that a page from a disk takes */

enum {
    LEARN = 16,  /* observations until a level is known */
    FEWEST = 4,  /* observations that make a change: fewer are a pause and no change */
    FLAPPING = 3 /* times that a worker became slow in a view */
};

const char *const train_cause_names[TRAIN_CAUSES] = {"compute",         "stolen-cpu", "cpu-quota",
                                                     "memory-pressure", "data",       "flapping"};
const char *const train_cause_texts[TRAIN_CAUSES] = {
    "its CPU is slower", "other processes have its CPU",
    "CPU quota",         "memory pressure",
    "it waits for data", "it comes and goes"};

void train_watch_begin(struct train_watch *w, int size, int64_t step)
{
    *w = (struct train_watch){.size = size, .step = step};
}

/* ---- statistics ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int count) /* sorts them */
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static double level_of(const float *list, int count)
{
    double values[TRAIN_WATCH_WINDOW];

    for (int i = 0; i < count; i++)
        values[i] = list[i];
    return median(values, count);
}

/* The deviation of normal values whose means of `block` neighbours scatter as much as those of the
 * list. Of values that follow each other the means scatter more than of values without memory. */
static double scatter_of(const float *list, int count, double level, int block)
{
    double values[TRAIN_WATCH_WINDOW];

    for (int i = 0; i < count / block; i++) {
        values[i] = -level;
        for (int k = 0; k < block; k++)
            values[i] += list[i * block + k] / (double)block;
        values[i] = fabs(values[i]);
    }
    return 1.4826 * sqrt(block) * median(values, count / block);
}

/* The limit that sums of normal values, less `slack` each, pass as rarely as FALSE_ALARMS says
 * (Siegmund, 1985). */
static double limit_of(double slack)
{
    return fmax(1, log(1 + 2 * slack * slack / FALSE_ALARMS) / (2 * slack) - 1.166);
}

void train_effort_add(struct train_effort *sum, const struct train_effort *e)
{
    sum->samples += e->samples;
    sum->seconds += e->seconds;
    sum->data += e->data;
    sum->stolen += e->stolen;
    sum->throttled += e->throttled;
    sum->faults += e->faults;
}

/* What a sample took more than usual. */
static struct train_effort excess(const struct train_effort *sum, const struct train_effort *usual)
{
    return (struct train_effort){
        .seconds = sum->seconds / sum->samples - usual->seconds,
        .data = sum->data / sum->samples - usual->data,
        .stolen = sum->stolen / sum->samples - usual->stolen,
        .throttled = sum->throttled / sum->samples - usual->throttled,
        .faults = sum->faults / sum->samples - usual->faults,
    };
}

/* ---- one worker ---- */

/* What is usual for a sample follows observations that are not about to be found unusual. */
static void follow_usual(struct train_series *s, const struct train_effort *e)
{
    struct train_effort more = excess(e, &s->usual);
    double weight = s->usual.samples > 0 ? NEWER : 1;

    s->usual.samples = 1;
    s->usual.seconds += weight * more.seconds;
    s->usual.data += weight * more.data;
    s->usual.stolen += weight * more.stolen;
    s->usual.throttled += weight * more.throttled;
    s->usual.faults += weight * more.faults;
}

static void remember(struct train_series *s, double ratio, double own)
{
    int count;

    s->ratios[s->count % TRAIN_WATCH_WINDOW] = (float)ratio;
    s->owns[s->count % TRAIN_WATCH_WINDOW] = (float)own;
    s->count++;
    count = s->count < TRAIN_WATCH_WINDOW ? s->count : TRAIN_WATCH_WINDOW;
    if (count >= LEARN && s->up.sum == 0 && s->down.sum == 0) {
        s->level = level_of(s->ratios, count);
        s->own_level = level_of(s->owns, count);
        s->scatter = fmax(scatter_of(s->ratios, count, s->level, 1),
                          scatter_of(s->ratios, count, s->level, FEWEST));
        s->known = true;
    }
}

/* `deviation` in units of the scatter; true: it is a change. No observation counts for more than a
 * part of the limit. */
static bool deviates(struct train_excursion *x, double deviation, double slack)
{
    double limit = limit_of(slack), most = limit / FEWEST;

    x->sum = fmax(0, x->sum + fmax(-most, fmin(most, deviation - slack)));
    if (x->sum == 0)
        *x = (struct train_excursion){0};
    return x->sum > 0.999 * limit;
}

static void extend(struct train_excursion *x, double ratio, double own,
                   const struct train_effort *e, int64_t step)
{
    if (x->sum == 0)
        return;
    if (x->count++ == 0)
        x->since = step;
    x->ratio += ratio;
    x->own += own;
    train_effort_add(&x->effort, e);
}

static enum train_cause cause_of(const struct train_excursion *x, const struct train_effort *usual,
                                 double *explained_p)
{
    struct train_effort more = excess(&x->effort, usual);
    const struct {
        enum train_cause cause;
        double seconds;
    } causes[] = {
        {TRAIN_CAUSE_QUOTA, more.throttled},
        {TRAIN_CAUSE_MEMORY, FAULT * more.faults},
        {TRAIN_CAUSE_DATA, more.data},
        {TRAIN_CAUSE_STOLEN, more.stolen},
    };

    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        if (2 * causes[i].seconds >= more.seconds) {
            *explained_p = fmin(1, causes[i].seconds / more.seconds);
            return causes[i].cause;
        }
    *explained_p = 0;
    return TRAIN_CAUSE_COMPUTE;
}

/* The level is another one from the excursion's beginning on. */
static void settle(struct train_series *s, const struct train_excursion *x)
{
    s->level = x->ratio / x->count;
    s->own_level = x->own / x->count;
    s->usual = (struct train_effort){0};
    follow_usual(s, &x->effort);
    s->count = 0;
    s->up = s->down = (struct train_excursion){0};
}

/* It became slower than its peers. True: to be told. Where its own time has hardly risen, it is its
 * peers that became faster. */
static bool becomes_slow(struct train_series *s, struct train_anomaly *a)
{
    const struct train_excursion *x = &s->up;
    double ratio = x->ratio / x->count, own = x->own / x->count - s->own_level;

    if (s->slow || 2 * own < ratio - s->level)
        return false;
    *a = (struct train_anomaly){.since = x->since, .peers = exp(ratio), .past = exp(own)};
    a->cause = cause_of(x, &s->usual, &a->explained);
    s->slow = true;
    s->slow_from = s->level;
    s->slow_to = ratio;
    s->slow_own = x->own / x->count;
    if (++s->times == FLAPPING) {
        a->cause = TRAIN_CAUSE_FLAPPING;
        a->explained = 0;
    }
    return s->times <= FLAPPING;
}

/* The level of a slow worker is now nearer to what it was before. True: to be told. */
static bool is_back(struct train_series *s, int64_t since, struct train_anomaly *a)
{
    if (!s->slow || 2 * s->level > s->slow_from + s->slow_to)
        return false;
    *a = (struct train_anomaly){.over = true,
                                .since = since,
                                .peers = exp(s->level),
                                .past = exp(s->own_level - s->slow_own)};
    s->slow = false;
    return s->times <= FLAPPING;
}

/* One more observation of a worker; `scatter`: the usual one of all workers. */
static bool observe(struct train_series *s, double ratio, double own, const struct train_effort *e,
                    double scatter, int64_t step, struct train_anomaly *a)
{
    double unit = fmax(STILL, fmax(scatter, s->scatter)), slack = fmax(SLACK, TRIFLE / unit);
    bool up = s->known && deviates(&s->up, (ratio - s->level) / unit, slack);
    bool down = s->known && deviates(&s->down, (s->level - ratio) / unit, slack), told = false;
    int64_t since;

    extend(&s->up, ratio, own, e, step);
    extend(&s->down, ratio, own, e, step);
    if (up) {
        told = becomes_slow(s, a);
        settle(s, &s->up);
    } else if (down) {
        since = s->down.since;
        settle(s, &s->down);
        told = is_back(s, since, a);
    } else {
        remember(s, ratio, own);
        if (s->up.sum == 0)
            follow_usual(s, e);
        told = s->count >= LEARN && is_back(s, step, a);
    }
    return told;
}

/* ---- all of them ---- */

/* Of the peers of `rank` that tell; false: there are none. */
static bool peers_median(const struct train_watch *w, const double *owns, int rank,
                         double *median_p)
{
    double values[COMM_MAX_WORKERS];
    int count = 0;

    for (int i = 0; i < w->size; i++)
        if (i != rank && isfinite(owns[i]))
            values[count++] = owns[i];
    if (count > 0)
        *median_p = median(values, count);
    return count > 0;
}

static double usual_scatter(const struct train_watch *w)
{
    double values[COMM_MAX_WORKERS];
    int count = 0;

    for (int i = 0; i < w->size; i++)
        if (w->series[i].known)
            values[count++] = w->series[i].scatter;
    return count > 0 ? median(values, count) : 0;
}

int train_watch_see(struct train_watch *w, const struct train_effort *efforts, int64_t step,
                    struct train_anomaly *found)
{
    double most = 0, owns[COMM_MAX_WORKERS], scatter = usual_scatter(w), peers;
    int count = 0;

    for (int i = 0; i < w->size; i++) {
        train_effort_add(&w->efforts[i], &efforts[i]);
        most = fmax(most, w->efforts[i].seconds);
        owns[i] = log(w->efforts[i].seconds / w->efforts[i].samples);
    }
    if (most < SPAN)
        return 0;
    for (int i = 0; i < w->size; i++)
        if (isfinite(owns[i]) && peers_median(w, owns, i, &peers) &&
            observe(&w->series[i], owns[i] - peers, owns[i], &w->efforts[i], scatter, w->step + 1,
                    &found[count]))
            found[count++].rank = i;
    memset(w->efforts, 0, sizeof w->efforts);
    w->step = step;
    return count;
}

void train_watch_shares(struct train_watch *w)
{
    for (int i = 0; i < w->size; i++) {
        struct train_series *s = &w->series[i];

        if (s->up.count > 1)
            continue;
        s->known = false;
        s->count = 0;
        s->usual = (struct train_effort){0};
        s->up = s->down = (struct train_excursion){0};
    }
}
