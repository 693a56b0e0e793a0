/* SPDX-License-Identifier: MIT */
#include "train/slow.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/monitor.h"
#include "train/session.h"

const char *const train_slow_names[] = {"tell", "rebalance", "evict", NULL};

base_status train_slow_parse(const char *text, struct train_slow_policy *p)
{
    char rest = 0;

    *p = (struct train_slow_policy){.least = 1};
    if (strcmp(text, "rebalance") == 0)
        p->action = TRAIN_SLOW_REBALANCE;
    else if (strcmp(text, "evict") == 0 ||
             (sscanf(text, "evict:%4d%c", &p->least, &rest) == 1 && p->least >= 1))
        p->action = TRAIN_SLOW_EVICT;
    else if (strcmp(text, "tell") != 0)
        return base_fail(BASE_ERR_USAGE, "unknown --on-slow '%s'; known: tell, rebalance, evict",
                         text);
    return BASE_OK;
}

static void set_text(struct train_slow *slow, const char *text)
{
    slow->changed |= text != NULL || slow->text != NULL;
    base_free(slow->text);
    slow->text = text != NULL ? base_strdup(text) : NULL;
}

void train_slow_begin(struct train_session *s)
{
    train_watch_begin(s->watch, s->team.shares.size, s->state.position.step);
    set_text(&s->slow, NULL);
}

void train_slow_evidence(struct train_session *s, struct train_effort *effort)
{
    double throttled = fmax(0, cluster_monitor_throttled());
    struct rusage usage = {0};

    getrusage(RUSAGE_SELF, &usage);
    if (s->slow.told) {
        effort->throttled = fmax(0, throttled - s->slow.throttled);
        effort->faults = (double)usage.ru_majflt - s->slow.faults;
    }
    s->slow.throttled = throttled;
    s->slow.faults = (double)usage.ru_majflt;
    s->slow.told = true;
}

/* "compute 1.8x its peers, 2.0x its own past since step 1204; CPU quota (95 % of the added time)";
 * base_free. */
static char *describe(const struct train_anomaly *a)
{
    struct base_str text = {0};

    base_str_add(&text, "compute %.1fx its peers, %.1fx its own past since step %" PRId64 "; %s",
                 a->peers, a->past, a->since, train_cause_texts[a->cause]);
    if (a->explained > 0)
        base_str_add(&text, " (%.0f %% of the added time)", 100 * a->explained);
    return text.text;
}

static void tell(const struct train_session *s, const struct train_anomaly *a, const char *text,
                 const char *action)
{
    const struct comm_member *m = &s->team.view.members[a->rank];

    if (a->over)
        base_info("worker %u on host %u is no longer slow since step %" PRId64, m->id, m->host,
                  a->since);
    else
        base_info("worker %u on host %u: %s", m->id, m->host, text);
    base_event(s->journal.events,
               "{\"event\":\"anomaly\",\"step\":%" PRId64 ",\"worker\":%u,\"rank\":%d,\"host\":%u,"
               "\"slow\":%s,\"since\":%" PRId64 ",\"peers\":%.4g,\"past\":%.4g,\"cause\":%s%s%s,"
               "\"explained\":%.3f,\"action\":\"%s\"}",
               s->state.position.step, m->id, a->rank, m->host, a->over ? "false" : "true",
               a->since, a->peers, a->past, a->over ? "" : "\"",
               a->over ? "null" : train_cause_names[a->cause], a->over ? "" : "\"", a->explained,
               action);
}

/* All workers decide the same. `evicted`: workers that leave already. */
static enum train_slow_action decide(const struct train_session *s, const struct train_anomaly *a,
                                     int evicted)
{
    const struct train_slow_policy *p = &s->slow.policy;

    if (a->over ||
        (p->action == TRAIN_SLOW_REBALANCE && s->strategy->shares == TRAIN_SHARES_NOTHING))
        return TRAIN_SLOW_TELL;
    if (p->action == TRAIN_SLOW_EVICT && s->team.shares.size - evicted <= p->least)
        return TRAIN_SLOW_TELL;
    return p->action;
}

base_status train_slow_see(struct train_session *s, const struct train_effort *efforts)
{
    base_status st = BASE_OK;
    struct train_anomaly found[COMM_MAX_WORKERS];
    int count = train_watch_see(s->watch, efforts, s->state.position.step, found), evicted = 0;

    for (int i = 0; i < count && st == BASE_OK; i++) {
        const struct train_anomaly *a = &found[i];
        enum train_slow_action action = decide(s, a, evicted);
        bool mine = a->rank == s->team.exchange.rank;
        char *text = describe(a);

        tell(s, a, text, train_slow_names[action]);
        if (mine)
            set_text(&s->slow, a->over ? NULL : text);
        s->team.shares.rebalances |= action == TRAIN_SLOW_REBALANCE;
        evicted += action == TRAIN_SLOW_EVICT;
        if (mine && action == TRAIN_SLOW_EVICT)
            st = base_fail(BASE_ERR_TIMEOUT, "it is slow and leaves (--on-slow evict): %s", text);
        base_free(text);
    }
    return st;
}
