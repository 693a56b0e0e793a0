/* SPDX-License-Identifier: MIT
 *
 * Shares of a training: when workers compare what they did, and when shares change by it. The
 * arithmetic is shares.c's.
 */
#include "train/shares.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "cluster/process.h"
#include "train/defence.h"
#include "train/session.h"
#include "train/slow.h"

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
    return follows_speed(s) && !s->team.shares.by_speed && s->team.shares.span < TRAIN_SHARES_SPAN;
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
