/* SPDX-License-Identifier: MIT */
#include "train/shares.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "cluster/process.h"
#include "train/defence.h"
#include "train/session.h"
#include "train/slow.h"

static const double OLDER = 0.5; /* weight of a second, as a part of that of the next one */
static const double SPAN = 1; /* seconds to watch: shorter ones tell of bursts and not of speed */
static const double LEAST = 0.05; /* of an even share */
static const double WORTH = 1.1;  /* steps must be so many times as long as with other shares */

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

/* ---- arithmetic ---- */

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

    if (shares->span < SPAN || gain(shares, batch, better) < WORTH)
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
                              fmax(1, shares->every / fmax(seconds, 1e-9)));
}

bool train_shares_unlike(struct train_shares *shares, const struct train_effort *efforts,
                         uint32_t batch)
{
    uint32_t better[COMM_MAX_WORKERS];
    double seconds = slowest(efforts, shares->size);

    shares->unlike = gain(shares, batch, better) < UNLIKE ? 0 : shares->unlike + seconds;
    return shares->by_speed || shares->unlike >= FOR_LONG;
}

/* ---- a training ---- */

/* Under auto shares of a round stay even: those by speed would begin with short rounds. So do all
 * shares with --memory, which was compared with what even ones need, and with a rule of
 * --aggregate: speed is a worker's own word, and it counts more with a larger share. */
static bool is_auto(const struct train_session *s)
{
    return s->team.shares.size > 1 && s->strategy->shares == TRAIN_SHARES_BATCHES &&
           s->job->memory == 0 && !train_defence_wanted(s->job) &&
           strcmp(s->job->shares, "auto") == 0;
}

static bool follows_speed(const struct train_session *s)
{
    return s->team.shares.size > 1 && train_shares_follow_speed(s->job->shares);
}

/* Do the workers of this host have more threads than there are cores? */
static bool is_crowded(const struct train_session *s)
{
    return base_world == NULL && train_team_neighbours(&s->team) * s->threads > cluster_cores();
}

/* Takes the shares that the plan has for the next step; true: they are others than those of now.
 * Where the plan is of another number of workers, shares stay as they are. */
static bool follow_plan(struct train_session *s)
{
    struct train_shares *shares = &s->team.shares;
    const struct train_shares_entry *e =
        train_shares_plan_at(&s->shares_plan, s->state.position.step + 1);
    size_t bytes = (size_t)shares->size * sizeof *shares->of;

    if (e == NULL || e->size != shares->size || memcmp(shares->of, e->of, bytes) == 0)
        return false;
    memcpy(shares->of, e->of, bytes);
    shares->by_speed = true;
    return true;
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

/* What this worker did since workers compared, if it is time to compare again. */
static bool is_due(struct train_session *s, struct train_effort *effort)
{
    struct train_shares *shares = &s->team.shares;

    train_effort_add(&shares->mine, effort);
    if (++shares->since < (follows_speed(s) ? 1 : shares->every))
        return false;
    *effort = shares->mine;
    if (is_crowded(s) && !follows_speed(s))
        *effort = (struct train_effort){0};
    shares->mine = (struct train_effort){0};
    shares->since = 0;
    return true;
}

/* Workers tell each other what they did, to divide batches by it and to see who is slow. */
static bool compares(const struct train_session *s)
{
    return s->team.shares.size > 1 &&
           (s->strategy->shares == TRAIN_SHARES_BATCHES || follows_speed(s));
}

/* Other shares would be better; true: these are taken. */
static bool changes(struct train_session *s, const struct train_effort *efforts, int least)
{
    struct train_shares *shares = &s->team.shares;
    uint32_t batch = train_session_whole(s, s->plan.batch);
    bool may = follows_speed(s) || shares->rebalances;

    if (s->shares_plan.count > 0) /* of which they are */
        return false;
    if (is_auto(s))
        may |= train_shares_unlike(shares, efforts, batch);
    return may && shares->known >= least && train_shares_improve(shares, batch);
}

base_status train_shares_tell(struct train_session *s, struct train_effort effort, int least)
{
    base_status st = BASE_OK;
    struct train_shares *shares = &s->team.shares;
    struct train_effort efforts[COMM_MAX_WORKERS];
    enum train_category was;

    if (follow_plan(s))
        s->verdict.shares = true;
    if (!compares(s) || !is_due(s, &effort))
        goto out;
    train_slow_evidence(s, &effort);
    was = train_clock_enter(&s->clock, TRAIN_WAIT); /* for the slowest, which is no effort */
    TRY(train_team_gather(&s->team, &effort, sizeof effort, efforts));
    train_clock_enter(&s->clock, was);
    train_shares_learn(shares, efforts);
    train_shares_pace(shares, efforts);
    s->team.effort = shares->efforts[s->team.exchange.rank];
    TRY(train_slow_see(s, efforts));
    s->verdict.shares |= changes(s, efforts, least);
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

/* Of auto: why shares change. */
static void say_why(const struct train_session *s)
{
    const struct train_shares *shares = &s->team.shares;
    const struct comm_member *m = s->team.view.members;
    double rates[COMM_MAX_WORKERS], sum = 0;
    int slowest = 0;

    for (int i = 0; i < shares->size; i++) {
        sum += rates[i] = shares->efforts[i].samples / shares->efforts[i].seconds;
        slowest = rates[i] < rates[slowest] ? i : slowest;
    }
    base_info("worker %u on host %u computes %.0f samples a second, a worker in the mean %.0f",
              m[slowest].id, m[slowest].host, rates[slowest], sum / shares->size);
}

base_status train_shares_resume(struct train_session *s)
{
    const struct train_shares_entry *e =
        train_shares_plan_at(&s->shares_plan, s->state.position.step + 1);

    if (e != NULL && e->size != s->team.shares.size && train_team_leads(&s->team))
        base_warn("shares are even: the recorded ones are those of %d workers, and there are %d",
                  e->size, s->team.shares.size);
    return follow_plan(s) ? train_shares_take(s) : BASE_OK;
}

base_status train_shares_take(struct train_session *s)
{
    if (is_auto(s))
        say_why(s);
    train_shares_say(s);
    train_watch_shares(s->watch);
    s->verdict.shares = false;
    return s->strategy->place != NULL ? train_session_move(s) : s->task->fit(s);
}
