/* SPDX-License-Identifier: MIT */
#include "train/shares.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const double OLDER = 0.5;   /* weight of a second, as a part of that of the next one */
static const double COMPARE = 0.5; /* seconds from one comparison to the next */
static const double LEAST = 0.05;  /* of an even share */
static const double WORTH = 1.1;   /* steps must be so many times as long as with other shares */

/* Of auto: workers are unlike when other shares make steps so many times shorter, for so many
 * seconds without a break. */
static const double UNLIKE = 1.3, FOR_LONG = 4;

enum { MOST_STEPS = 1 << 20 }; /* from one comparison to the next */

const char *const train_shares_names[] = {"auto", "even", "speed", TRAIN_SHARES_RECORDED,
                                          "at:…", NULL};

base_status train_shares_check(const char *text)
{
    struct train_shares_plan plan;
    base_status st = train_shares_plan_parse(text, &plan);

    if (st == BASE_OK && plan.count == 0 && strcmp(text, "auto") != 0 &&
        strcmp(text, "even") != 0 && strcmp(text, "speed") != 0)
        st = base_fail(BASE_ERR_USAGE,
                       strcmp(text, TRAIN_SHARES_RECORDED) == 0
                           ? "--shares %s is for --like: shares as that run had them"
                           : "unknown shares '%s'; known: auto, even, speed, recorded, at:STEP=…",
                       text);
    train_shares_plan_fini(&plan);
    return st;
}

bool train_shares_follow_speed(const char *name)
{
    return strcmp(name, "speed") == 0;
}

bool train_shares_may_change(const char *name)
{
    return strcmp(name, "even") != 0;
}

void train_shares_even(struct train_shares *shares, int size)
{
    *shares = (struct train_shares){.size = size, .every = 1};
    for (int i = 0; i < size; i++)
        shares->of[i] = 1;
}

struct data_share train_shares_of(const struct train_shares *shares, int rank)
{
    struct data_share share = {0};

    for (int i = 0; i < shares->size; i++) {
        if (i == rank)
            share.from = share.total;
        share.total += shares->of[i];
        if (i == rank)
            share.to = share.total;
    }
    return share;
}

/* The seconds of the worker that took the longest. */
static double slowest(const struct train_effort *efforts, int size)
{
    double seconds = 0;

    for (int i = 0; i < size; i++)
        seconds = fmax(seconds, efforts[i].seconds);
    return seconds;
}

void train_shares_learn(struct train_shares *shares, const struct train_effort *efforts)
{
    double seconds = slowest(efforts, shares->size), older;

    older = pow(OLDER, fmin(1, seconds));
    for (int i = 0; i < shares->size; i++) {
        struct train_effort *e = &shares->efforts[i];

        e->samples = older * e->samples + efforts[i].samples;
        e->seconds = older * e->seconds + efforts[i].seconds;
    }
    shares->known++;
    shares->span += seconds;
}

/* Samples in proportion to `rates`, and one at least; what rounding leaves goes to those that it
 * has taken the most from. */
static void divide(uint32_t batch, const double *rates, int size, uint32_t *samples)
{
    double sum = 0, missing[COMM_MAX_WORKERS];
    uint32_t given = 0;

    assert(size >= 1);
    for (int i = 0; i < size; i++)
        sum += rates[i];
    for (int i = 0; i < size; i++) {
        double wish = 1 + (batch - (double)size) * rates[i] / sum;

        samples[i] = (uint32_t)wish;
        missing[i] = wish - samples[i];
        given += samples[i];
    }
    for (; given < batch; given++) {
        int most = 0;

        for (int i = 1; i < size; i++)
            if (missing[i] > missing[most])
                most = i;
        samples[most]++;
        missing[most]--;
    }
}

/* Seconds until the last worker has done its part of the batch. */
static double longest(uint32_t batch, const uint32_t *parts, const double *rates, int size)
{
    double all = 0, most = 0;

    for (int i = 0; i < size; i++)
        all += parts[i];
    for (int i = 0; i < size; i++)
        most = fmax(most, (double)batch * parts[i] / all / rates[i]);
    return most;
}

/* How many times shorter steps would be with the shares `better`; 1 where that is not known. */
static double gain(const struct train_shares *shares, uint32_t batch, uint32_t *better)
{
    int size = shares->size;
    double rates[COMM_MAX_WORKERS], sum = 0;

    if (batch < 2 * (uint32_t)size) /* too few to divide in another way */
        return 1;
    for (int i = 0; i < size; i++) {
        const struct train_effort *e = &shares->efforts[i];

        rates[i] = e->samples / e->seconds;
        if (!isfinite(rates[i]) || rates[i] <= 0)
            return 1;
        sum += rates[i];
    }
    for (int i = 0; i < size; i++) /* each keeps something by which it is measured again */
        rates[i] = fmax(rates[i], LEAST * sum / size);
    divide(batch, rates, size, better);
    return longest(batch, shares->of, rates, size) / longest(batch, better, rates, size);
}

bool train_shares_improve(struct train_shares *shares, uint32_t batch)
{
    int size = shares->size;
    uint32_t better[COMM_MAX_WORKERS];

    if (shares->span < TRAIN_SHARES_SPAN || gain(shares, batch, better) < WORTH)
        return false;
    memcpy(shares->of, better, (size_t)size * sizeof *better);
    shares->by_speed = true;
    shares->known = 0;
    shares->span = 0;
    return true;
}

void train_shares_pace(struct train_shares *shares, const struct train_effort *efforts)
{
    double seconds = slowest(efforts, shares->size);

    shares->every = (int)fmin(fmin(2.0 * shares->every, MOST_STEPS),
                              fmax(1, COMPARE * shares->every / fmax(seconds, 1e-9)));
}

bool train_shares_unlike(struct train_shares *shares, const struct train_effort *efforts,
                         uint32_t batch)
{
    uint32_t better[COMM_MAX_WORKERS];
    double seconds = slowest(efforts, shares->size);

    shares->unlike = gain(shares, batch, better) < UNLIKE ? 0 : shares->unlike + seconds;
    return shares->by_speed || shares->unlike >= FOR_LONG;
}
