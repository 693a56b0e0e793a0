/* SPDX-License-Identifier: MIT */
#include "train/shares.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "train/session.h"

static const double OLDER = 0.5; /* weight of a second, as a part of that of the next one */
static const double SPAN = 1; /* seconds to watch: shorter ones tell of bursts and not of speed */
static const double LEAST = 0.05; /* of an even share */
static const double WORTH = 1.1;  /* steps must be so many times as long as with other shares */

const char *const train_shares_names[] = {"even", "speed", NULL};

bool train_shares_follow_speed(const char *name)
{
    return strcmp(name, "speed") == 0;
}

/* ---- arithmetic ---- */

void train_shares_even(struct train_shares *shares, int size)
{
    *shares = (struct train_shares){.size = size};
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

void train_shares_learn(struct train_shares *shares, const struct train_effort *efforts)
{
    double seconds = 0, older;

    for (int i = 0; i < shares->size; i++)
        seconds = fmax(seconds, efforts[i].seconds);
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

bool train_shares_improve(struct train_shares *shares, uint32_t batch)
{
    int size = shares->size;
    double rates[COMM_MAX_WORKERS], sum = 0;
    uint32_t better[COMM_MAX_WORKERS];

    if (shares->span < SPAN || batch < 2 * (uint32_t)size) /* too few to divide in another way */
        return false;
    for (int i = 0; i < size; i++) {
        const struct train_effort *e = &shares->efforts[i];

        rates[i] = e->samples / e->seconds;
        if (!isfinite(rates[i]) || rates[i] <= 0)
            return false;
        sum += rates[i];
    }
    for (int i = 0; i < size; i++) /* each keeps something by which it is measured again */
        rates[i] = fmax(rates[i], LEAST * sum / size);
    divide(batch, rates, size, better);
    if (longest(batch, shares->of, rates, size) < WORTH * longest(batch, better, rates, size))
        return false;
    memcpy(shares->of, better, (size_t)size * sizeof *better);
    shares->by_speed = true;
    shares->known = 0;
    shares->span = 0;
    return true;
}

/* ---- a training ---- */

static bool follows_speed(const struct train_session *s)
{
    return s->team.shares.size > 1 && train_shares_follow_speed(s->job->shares);
}

base_status train_shares_begin(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_effort efforts[COMM_MAX_WORKERS];

    if (!follows_speed(s))
        return BASE_OK;
    TRY(train_team_gather(&s->team, &s->team.effort, sizeof s->team.effort, efforts));
    train_shares_learn(&s->team.shares, efforts);
    train_shares_improve(&s->team.shares, train_session_whole(s, s->plan.batch));
out:
    return st;
}

base_status train_shares_tell(struct train_session *s, struct train_effort effort, int least)
{
    base_status st = BASE_OK;
    struct train_shares *shares = &s->team.shares;
    struct train_effort efforts[COMM_MAX_WORKERS];
    enum train_category was;

    if (!follows_speed(s))
        return BASE_OK;
    was = train_clock_enter(&s->clock, TRAIN_WAIT); /* for the slowest, which is no effort */
    TRY(train_team_gather(&s->team, &effort, sizeof effort, efforts));
    train_clock_enter(&s->clock, was);
    train_shares_learn(shares, efforts);
    s->team.effort = shares->efforts[s->team.exchange.rank];
    s->verdict.shares = shares->known >= least &&
                        train_shares_improve(shares, train_session_whole(s, s->plan.batch));
out:
    return st;
}

bool train_shares_unknown(const struct train_session *s)
{
    return follows_speed(s) && !s->team.shares.by_speed && s->team.shares.span < SPAN;
}

void train_shares_say(const struct train_session *s)
{
    struct base_str list = {0};

    if (!s->team.shares.by_speed)
        return;
    for (int i = 0; i < s->team.shares.size; i++)
        base_str_add(&list, "%s%u", i > 0 ? "," : "", s->team.shares.of[i]);
    base_info("shares by speed from step %" PRId64 " on: %s samples", s->state.position.step + 1,
              list.text);
    base_event(s->journal.events, "{\"event\":\"shares\",\"step\":%" PRId64 ",\"samples\":[%s]}",
               s->state.position.step + 1, list.text);
    base_str_fini(&list);
}

base_status train_shares_take(struct train_session *s)
{
    train_shares_say(s);
    s->verdict.shares = false;
    return s->strategy->place != NULL ? train_session_move(s) : s->task->fit(s);
}
