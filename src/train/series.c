/* SPDX-License-Identifier: MIT */
#include "train/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* False alarms that an observation of a worker may cause, were its scatter normal and without
 * memory; the limit of the likelihood ratio is its logarithm. */
static const double FALSE_ALARMS = 1e-7;

static const double TRIFLE = 0.05;   /* smaller changes are not worth telling … */
static const double STILL = 0.02;    /* … nor are such scatters: as many make one with FEWEST */
static const double NEWER = 0.125;   /* weight of an observation in what is usual for a sample */
static const double NORMAL = 1.4826; /* deviation of normal values by their median absolute one */
static const double MEDIAN = 1.57;   /* variance of normal values' median by that of their mean */

enum {
    LEARN = 16,  /* observations until a level is known */
    FEWEST = 4,  /* observations that make a change: fewer are a pause and no change */
    LONGEST = 8, /* observations that are near each other */
    BEFORE = 8   /* observations that tell how a worker was just before */
};

/* ---- statistics ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double train_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static int kept(const struct train_series *s)
{
    return s->count < TRAIN_SERIES_USUAL ? s->count : TRAIN_SERIES_USUAL;
}

static double level_of(const float *list, int count)
{
    double values[TRAIN_SERIES_USUAL];

    for (int i = 0; i < count; i++)
        values[i] = list[i];
    return train_median(values, count);
}

/* Appends how far means of `block` neighbours are from the level, as if these were independent. Of
 * values that follow each other the means scatter more. */
static int deviations(const struct train_series *s, int block, double *list)
{
    int count = kept(s) / block;

    for (int i = 0; i < count; i++) {
        double sum = 0;

        for (int k = 0; k < block; k++)
            sum += s->values[i * block + k] - s->level;
        list[i] = NORMAL * fabs(sum) / sqrt(block);
    }
    return count;
}

double train_series_scatter(const struct train_series *const *series, int count)
{
    double list[COMM_MAX_WORKERS * TRAIN_SERIES_USUAL], most = 0;

    for (int block = 1; block <= LONGEST; block *= 2) {
        int n = 0;

        for (int i = 0; i < count; i++)
            if (kept(series[i]) >= (block > 1 ? 2 : 1) * LEARN)
                n += deviations(series[i], block, list + n);
        most = n > 0 ? fmax(most, train_median(list, n)) : most;
    }
    return most;
}

void train_effort_add(struct train_effort *sum, const struct train_effort *e)
{
    sum->samples += e->samples;
    sum->seconds += e->seconds;
    sum->data += e->data;
    sum->stolen += e->stolen;
    sum->still += e->still;
    sum->throttled += e->throttled;
    sum->memory += e->memory;
}

struct train_effort train_effort_excess(const struct train_effort *sum,
                                        const struct train_effort *usual)
{
    return (struct train_effort){
        .seconds = sum->seconds / sum->samples - usual->seconds,
        .data = sum->data / sum->samples - usual->data,
        .stolen = sum->stolen / sum->samples - usual->stolen,
        .still = sum->still / sum->samples - usual->still,
        .throttled = sum->throttled / sum->samples - usual->throttled,
        .memory = sum->memory / sum->samples - usual->memory,
    };
}

/* ---- what is usual ---- */

static void follow_usual(struct train_series *s, const struct train_effort *e)
{
    struct train_effort more = train_effort_excess(e, &s->usual);
    double weight = s->usual.samples > 0 ? NEWER : 1;

    s->usual.samples = 1;
    s->usual.seconds += weight * more.seconds;
    s->usual.data += weight * more.data;
    s->usual.stolen += weight * more.stolen;
    s->usual.still += weight * more.still;
    s->usual.throttled += weight * more.throttled;
    s->usual.memory += weight * more.memory;
}

static void is_usual(struct train_series *s, const struct train_seen *seen)
{
    s->values[s->count % TRAIN_SERIES_USUAL] = (float)seen->value;
    s->owns[s->count % TRAIN_SERIES_USUAL] = (float)seen->own;
    s->count++;
    follow_usual(s, &seen->effort);
}

static void learn(struct train_series *s)
{
    s->level = level_of(s->values, kept(s));
    s->own_level = level_of(s->owns, kept(s));
}

/* Recent observations become usual once there are more of them than a change is looked for in, or
 * than the level rests on. */
static void remember(struct train_series *s, const struct train_seen *seen)
{
    if (!s->known) {
        is_usual(s, seen);
        learn(s);
        s->known = s->count >= LEARN;
        return;
    }
    while (s->recent_count >= TRAIN_SERIES_RECENT || s->recent_count >= kept(s)) {
        is_usual(s, &s->recent[0]);
        memmove(s->recent, s->recent + 1, (size_t)--s->recent_count * sizeof s->recent[0]);
        learn(s);
    }
    s->recent[s->recent_count++] = *seen;
}

/* ---- changes ---- */

/* How much likelier the newest observations are at another level, at its best: a logarithm by the
 * limit's. *count_p: how many they are. */
static double likelihood(const struct train_series *s, double unit, int *count_p)
{
    const double limit = -log(FALSE_ALARMS), usual = kept(s);
    unit = fmax(unit, STILL);
    const double most = sqrt(2 * limit * (1 / (double)FEWEST + MEDIAN / usual)) * 1.001;
    double sum = 0, best = 0;

    *count_p = 0;
    for (int n = 1; n <= s->recent_count; n++) {
        double x = (s->recent[s->recent_count - n].value - s->level) / unit, gain;

        sum += fmax(-most, fmin(most, x));
        gain = sum * sum / (n * (double)n) / (2 * (1.0 / n + MEDIAN / usual)) / limit;
        if (gain > best && fabs(sum) / n * unit > TRIFLE) {
            best = gain;
            *count_p = n;
        }
    }
    return best;
}

bool train_series_stirs(const struct train_series *s, double unit)
{
    int count;

    return s->known && likelihood(s, unit, &count) > 1.0 / FEWEST;
}

/* The worker's own level just before the newest `count` observations: what drifts slowly with all
 * workers is no part of a change. */
static double own_before(const struct train_series *s, int count)
{
    double list[BEFORE];
    int n = 0;

    for (int i = s->recent_count - count - 1; i >= 0 && n < BEFORE; i--)
        list[n++] = s->recent[i].own;
    for (int i = s->count - 1; i >= 0 && i >= s->count - kept(s) && n < BEFORE; i--)
        list[n++] = s->owns[i % TRAIN_SERIES_USUAL];
    return train_median(list, n);
}

struct train_shift train_series_see(struct train_series *s, const struct train_seen *seen,
                                    double unit)
{
    struct train_shift c = {0};

    remember(s, seen);
    if (s->recent_count < FEWEST || likelihood(s, unit, &c.count) < 1)
        return (struct train_shift){0};
    c.since = s->recent[s->recent_count - c.count].since;
    c.own_before = own_before(s, c.count);
    for (int i = s->recent_count - c.count; i < s->recent_count; i++) {
        c.value += s->recent[i].value / c.count;
        c.own += s->recent[i].own / c.count;
        train_effort_add(&c.effort, &s->recent[i].effort);
    }
    return c;
}

void train_series_settle(struct train_series *s, const struct train_shift *c)
{
    s->count = 0;
    s->usual = (struct train_effort){0};
    for (int i = s->recent_count - c->count; i < s->recent_count; i++)
        is_usual(s, &s->recent[i]);
    s->recent_count = 0;
    learn(s);
}
