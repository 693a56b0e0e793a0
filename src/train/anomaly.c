/* SPDX-License-Identifier: MIT */
#include "train/anomaly.h"

#include <math.h>
#include <string.h>

/* An observation is of steps in which the slowest worker works for so many seconds at least. */
static const double SPAN = 0.5;
static const double LEAST_BYTES = 1 << 16; /* of a link: fewer tell of latency and not of speed */

/* Stalls. An observation has one when the worker stood still for this part of the usual time.
 * Before any was seen one in RARE observations is taken to have one, and one in OFTEN of a worker
 * that stalls; among the former those of twice the length are half as frequent. */
static const double STALL = 0.2, RARE = 1000, OFTEN = 4;
/* Logarithms of likelihood ratios from which on a worker stalls, and at most. */
static const double STALLS = 14, STALLS_MOST = 20;

enum {
    FLAPPING = 3, /* times that a worker became slow in a view */
    PACED = 200   /* observations that the usual pace is the mean of */
};

const char *const train_cause_names[TRAIN_CAUSES] = {"compute",         "stolen-cpu", "cpu-quota",
                                                     "memory-pressure", "data",       "slow-link",
                                                     "stalls",          "flapping"};
const char *const train_cause_texts[TRAIN_CAUSES] = {"its CPU is slower",
                                                     "other processes have its CPU",
                                                     "CPU quota",
                                                     "memory pressure",
                                                     "it waits for data",
                                                     "slow link",
                                                     "it stands still at times",
                                                     "it comes and goes"};
const char *const train_aspect_names[TRAIN_ASPECTS] = {"compute", "link", "stalls"};

void train_watch_begin(struct train_watch *w, int size, int64_t step)
{
    memset(w, 0, sizeof *w);
    w->size = size;
    w->step = step;
}

/* ---- levels ---- */

/* Of what takes `times` as long as it would at the pace of its peers. */
static enum train_cause cause_of(const struct train_effort *sum, const struct train_effort *usual,
                                 double times, double *explained_p)
{
    const struct train_effort more = train_effort_excess(sum, usual);
    const double added = sum->seconds / sum->samples * (1 - 1 / times);
    const struct {
        enum train_cause cause;
        double seconds;
    } causes[] = {
        {TRAIN_CAUSE_QUOTA, more.throttled}, {TRAIN_CAUSE_MEMORY, more.memory},
        {TRAIN_CAUSE_DATA, more.data},       {TRAIN_CAUSE_STOLEN, more.stolen},
        {TRAIN_CAUSE_STALLS, more.still},
    };

    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        if (2 * causes[i].seconds >= added) {
            *explained_p = fmin(1, causes[i].seconds / added);
            return causes[i].cause;
        }
    *explained_p = 0;
    return TRAIN_CAUSE_COMPUTE;
}

/* Values of links are logarithms of a step with them by one without. */
static double times_of(enum train_aspect aspect, double after, double before)
{
    if (aspect == TRAIN_ASPECT_COMPUTE)
        return exp(after - before);
    return before > 0 ? expm1(after) / expm1(before) : NAN;
}

/* It became slower than its peers. True: to be told. Where its own time has hardly risen, it is its
 * peers that became faster. */
static bool becomes_slow(struct train_level *l, const struct train_shift *c,
                         struct train_anomaly *a)
{
    const struct train_series *s = &l->series;

    if (l->slow || 2 * (c->own - c->own_before) < c->value - s->level)
        return false;
    a->since = c->since;
    a->peers = times_of(a->aspect, c->own, c->own - c->value);
    a->past = times_of(a->aspect, c->own, c->own_before);
    a->cause = a->aspect == TRAIN_ASPECT_LINK
                   ? TRAIN_CAUSE_LINK
                   : cause_of(&c->effort, &s->usual, exp(c->value - s->level), &a->explained);
    l->slow = true;
    l->slow_from = s->level;
    l->slow_to = c->value;
    l->slow_own = c->own;
    if (++l->times == FLAPPING) {
        a->cause = TRAIN_CAUSE_FLAPPING;
        a->explained = 0;
    }
    return l->times <= FLAPPING;
}

/* The level of a slow worker is now nearer to what it was before. True: to be told. */
static bool is_back(struct train_level *l, int64_t since, struct train_anomaly *a)
{
    const struct train_series *s = &l->series;

    if (!l->slow || 2 * s->level > l->slow_from + l->slow_to)
        return false;
    a->over = true;
    a->since = since;
    a->peers = times_of(a->aspect, s->own_level, s->own_level - s->level);
    a->past = times_of(a->aspect, s->own_level, l->slow_own);
    l->slow = false;
    return l->times <= FLAPPING;
}

/* One more observation of a part of a worker. True: to be told. */
static bool observe(struct train_level *l, const struct train_seen *seen, double unit,
                    struct train_anomaly *a)
{
    struct train_series *s = &l->series;
    const struct train_series *alone = s;
    struct train_shift c;
    bool up;

    if (s->count >= TRAIN_SERIES_USUAL) /* enough to know how much this worker scatters */
        unit = fmax(unit, train_series_scatter(&alone, 1));
    c = train_series_see(s, seen, unit);
    up = c.count > 0 && c.value > s->level && becomes_slow(l, &c, a);
    if (c.count > 0)
        train_series_settle(s, &c);
    return up || is_back(l, c.count > 0 ? c.since : seen->since, a);
}

/* ---- stalls ---- */

static struct train_anomaly stalls_of(const struct train_watch *w, int rank)
{
    const struct train_stalls *t = &w->stalls[rank];
    const struct train_series *s = &w->levels[TRAIN_ASPECT_COMPUTE][rank].series;
    double past = log(t->effort.seconds / t->effort.samples) - s->own_level;
    struct train_anomaly a = {.rank = rank, .aspect = TRAIN_ASPECT_STALLS, .since = t->since};

    a.past = exp(past);
    a.peers = exp(s->level + past);
    a.cause = cause_of(&t->effort, &s->usual, a.past, &a.explained);
    return a;
}

/* The logarithm of how much likelier an observation is of a worker that stalls, by the part of the
 * usual time that it stood still. What the excursion under way has does not count as usual. */
static double stalls_gain(const struct train_watch *w, const struct train_stalls *t, double part)
{
    double usual = (1 + w->stalled - t->count) / (RARE + w->seen - t->seen);

    return part < STALL ? log1p(-1 / OFTEN) : fmax(0, log(part / STALL / OFTEN / usual));
}

/* True: to be told. */
static bool observe_stalls(struct train_watch *w, int rank, const struct train_effort *e,
                           int64_t since, struct train_anomaly *a)
{
    struct train_stalls *t = &w->stalls[rank];
    const struct train_level *l = &w->levels[TRAIN_ASPECT_COMPUTE][rank];
    const struct train_effort *usual = &l->series.usual;
    double part = (e->still / e->samples - usual->still) / usual->seconds;
    bool was = t->slow;

    if (!l->series.known)
        return false;
    t->evidence = fmin(STALLS_MOST, fmax(0, t->evidence + stalls_gain(w, t, part)));
    w->stalled += part >= STALL;
    w->seen++;
    if (t->evidence > 0) {
        t->since = t->seen++ == 0 ? since : t->since;
        t->count += part >= STALL;
        train_effort_add(&t->effort, e);
        if (!was && t->count > 1 && t->evidence > STALLS && !l->slow) {
            *a = stalls_of(w, rank);
            t->slow = true;
        }
    } else {
        *a = (struct train_anomaly){.rank = rank,
                                    .aspect = TRAIN_ASPECT_STALLS,
                                    .over = true,
                                    .since = since,
                                    .peers = exp(l->series.level),
                                    .past = 1};
        *t = (struct train_stalls){0};
    }
    return was != t->slow;
}

/* ---- all of them ---- */

/* Of the peers of `rank` that tell; NAN: there are none. */
static double peers_median(const struct train_watch *w, const double *owns, int rank)
{
    double values[COMM_MAX_WORKERS];
    int count = 0;

    for (int i = 0; i < w->size; i++)
        if (i != rank && isfinite(owns[i]))
            values[count++] = owns[i];
    return count > 0 ? train_median(values, count) : NAN;
}

/* Just after a change too little is known, and what was known before holds. */
static double usual_scatter(struct train_watch *w, enum train_aspect aspect)
{
    const struct train_series *series[COMM_MAX_WORKERS];
    double scatter;

    for (int i = 0; i < w->size; i++)
        series[i] = &w->levels[aspect][i].series;
    scatter = train_series_scatter(series, w->size);
    if (scatter > 0)
        w->scatter[aspect] = scatter;
    return w->scatter[aspect];
}

/* The seconds of `rank`'s links in a step, by the least of the middle ones: a link that is slow
 * because of its other end is one of several. NAN: they are not known. */
static double link_seconds(const struct train_watch *w, const struct train_link *links, int rank,
                           int64_t steps)
{
    double rates[2 * COMM_MAX_WORKERS], bytes = 0;
    int count = 0;

    for (int i = 0; i < w->size; i++)
        for (int back = 0; back < 2; back++) {
            const struct train_link *l = &links[back ? i * w->size + rank : rank * w->size + i];

            if (i == rank || l->bytes < LEAST_BYTES)
                continue;
            bytes += back ? 0 : l->bytes;
            rates[count++] = l->seconds / l->bytes;
        }
    if (count == 0)
        return NAN;
    train_median(rates, count);
    return rates[(count - 1) / 2] * bytes / (double)steps;
}

static int see_compute(struct train_watch *w, const double *owns, struct train_anomaly *found)
{
    const double unit = usual_scatter(w, TRAIN_ASPECT_COMPUTE);
    int count = 0;

    for (int i = 0; i < w->size; i++) {
        struct train_level *l = &w->levels[TRAIN_ASPECT_COMPUTE][i];
        struct train_seen seen = {owns[i] - peers_median(w, owns, i), owns[i], w->efforts[i],
                                  w->step + 1};
        struct train_anomaly a = {.rank = i, .aspect = TRAIN_ASPECT_COMPUTE};

        if (!isfinite(seen.value))
            continue;
        if (observe_stalls(w, i, &w->efforts[i], w->step + 1, &found[count]))
            count++;
        if (observe(l, &seen, unit, &a) &&
            (a.over || a.cause != TRAIN_CAUSE_STALLS || !w->stalls[i].slow))
            found[count++] = a;
    }
    return count;
}

/* Two workers have the same links: the past is their measure, and the second speaks for both. */
static int see_links(struct train_watch *w, const struct train_link *links, int64_t steps,
                     struct train_anomaly *found)
{
    const double unit = usual_scatter(w, TRAIN_ASPECT_LINK);
    double owns[COMM_MAX_WORKERS] = {0};
    int count = 0;

    for (int i = 0; i < w->size; i++)
        owns[i] = log1p(link_seconds(w, links, i, steps) / w->pace);
    for (int i = w->size == 2; i < w->size; i++) {
        double peers = w->size > 2 ? peers_median(w, owns, i) : 0;
        struct train_seen seen = {owns[i] - peers, owns[i], w->efforts[i], w->step + 1};
        struct train_anomaly a = {.rank = i, .aspect = TRAIN_ASPECT_LINK};

        if (!isfinite(seen.value) || !observe(&w->levels[TRAIN_ASPECT_LINK][i], &seen, unit, &a))
            continue;
        if (w->size == 2)
            a.peers = NAN;
        found[count++] = a;
    }
    return count;
}

bool train_watch_tell(struct train_watch *w, const struct train_effort *efforts)
{
    double most = 0;

    for (int i = 0; i < w->size; i++) {
        train_effort_add(&w->efforts[i], &efforts[i]);
        most = fmax(most, w->efforts[i].seconds);
    }
    return most >= SPAN;
}

int train_watch_see(struct train_watch *w, const struct train_link *links, int64_t step,
                    struct train_anomaly *found)
{
    double owns[COMM_MAX_WORKERS] = {0}, times[COMM_MAX_WORKERS], pace;
    int64_t steps = step > w->step ? step - w->step : 1;
    int count;

    for (int i = 0; i < w->size; i++) {
        const struct train_effort *e = &w->efforts[i];

        owns[i] = log(e->seconds / e->samples);
        times[i] = e->seconds / (double)steps;
    }
    pace = train_median(times, w->size);
    if (!isfinite(pace)) /* what workers say need not be a number */
        pace = w->pace;
    w->pace += (pace - w->pace) / (w->paced < PACED ? ++w->paced : PACED);
    count = see_compute(w, owns, found);
    if (links != NULL && w->pace > 0)
        count += see_links(w, links, steps, found + count);
    memset(w->efforts, 0, sizeof w->efforts);
    w->step = step;
    return count;
}

void train_watch_shares(struct train_watch *w)
{
    const double unit = usual_scatter(w, TRAIN_ASPECT_COMPUTE);

    for (int i = 0; i < w->size; i++) {
        struct train_series *s = &w->levels[TRAIN_ASPECT_COMPUTE][i].series;

        if (!train_series_stirs(s, unit))
            *s = (struct train_series){0};
    }
}
