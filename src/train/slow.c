/* SPDX-License-Identifier: MIT */
#include "train/slow.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/monitor.h"
#include "train/session.h"

static const double LOOK = 0.1;   /* seconds between two questions to the system, at least */
static const double FAULT = 1e-3; /* seconds that a page from a disk takes */

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

static void set_text(struct train_slow *slow, enum train_aspect aspect, const char *text)
{
    slow->changed |= text != NULL || slow->texts[aspect] != NULL;
    base_free(slow->texts[aspect]);
    slow->texts[aspect] = text != NULL ? base_strdup(text) : NULL;
}

void train_slow_fini(struct train_slow *slow)
{
    for (int i = 0; i < TRAIN_ASPECTS; i++)
        base_free(slow->texts[i]);
    base_free(slow->links);
    base_free(slow->told);
}

char *train_slow_text(const struct train_slow *slow)
{
    struct base_str text = {0};

    for (int i = 0; i < TRAIN_ASPECTS; i++)
        if (slow->texts[i] != NULL)
            base_str_add(&text, "%s%s", text.length > 0 ? "; " : "", slow->texts[i]);
    return text.text;
}

/* ---- what a worker knows of itself ---- */

/* From this worker, so far. */
static void ask_links(const struct train_session *s, struct train_link *links)
{
    for (int i = 0; i < s->team.shares.size; i++)
        if (s->team.group == NULL ||
            !comm_group_sending(s->team.group, i, &links[i].seconds, &links[i].bytes))
            links[i] = (struct train_link){0};
}

void train_slow_begin(struct train_session *s)
{
    const size_t size = (size_t)s->team.shares.size;

    train_watch_begin(s->watch, s->team.shares.size, s->state.position.step);
    for (int i = 0; i < TRAIN_ASPECTS; i++)
        set_text(&s->slow, i, NULL);
    base_free(s->slow.links);
    base_free(s->slow.told);
    s->slow.links = base_calloc(size, sizeof *s->slow.links);
    s->slow.told = base_calloc(size * size, sizeof *s->slow.told);
    ask_links(s, s->slow.links);
}

struct train_effort train_slow_effort(const struct train_session *s,
                                      const struct train_clock *before, double samples)
{
    double data = train_clock_since(&s->clock, before, TRAIN_DATA);
    double compute = train_clock_since(&s->clock, before, TRAIN_COMPUTE);

    return (struct train_effort){
        .samples = samples,
        .seconds = data + compute,
        .data = data,
        .stolen = fmax(0, compute - (s->clock.busy_cpu - before->busy_cpu)),
    };
}

/* Seconds for which processes of its group waited for memory; where the kernel does not count
 * these, by the pages that this one had to wait for a disk for. */
static double memory_seconds(void)
{
    double seconds = cluster_monitor_squeezed();
    struct rusage usage = {0};

    getrusage(RUSAGE_SELF, &usage);
    return seconds >= 0 ? seconds : FAULT * (double)usage.ru_majflt;
}

void train_slow_evidence(struct train_session *s, struct train_effort *effort)
{
    double now = base_now(), throttled, memory, waited;

    s->slow.then.off += effort->stolen;
    effort->stolen = 0;
    if (now - s->slow.then.at < LOOK)
        return;
    throttled = fmax(0, cluster_monitor_throttled());
    memory = memory_seconds();
    waited = cluster_monitor_waited();
    if (s->slow.then.at > 0) {
        double off = s->slow.then.off, ready = waited - s->slow.then.waited;

        effort->throttled = fmax(0, throttled - s->slow.then.throttled);
        effort->memory = fmax(0, memory - s->slow.then.memory);
        effort->stolen = waited < 0 ? off : fmin(off, fmax(0, ready));
        effort->still = fmax(0, off - fmax(effort->stolen, effort->throttled));
    }
    s->slow.then.at = now;
    s->slow.then.throttled = throttled;
    s->slow.then.memory = memory;
    s->slow.then.waited = waited;
    s->slow.then.off = 0;
}

/* ---- what is found ---- */

/* "compute 1.8x its peers, 2.0x its own past since step 1204; CPU quota (95 % of the added time)";
 * base_free. */
static char *describe(const struct train_session *s, const struct train_anomaly *a)
{
    struct base_str text = {0};

    base_str_add(&text, "%s", a->aspect == TRAIN_ASPECT_LINK ? "link" : "compute");
    if (isfinite(a->peers))
        base_str_add(&text, " %.1fx its peers%s", a->peers, isfinite(a->past) ? "," : "");
    if (isfinite(a->past))
        base_str_add(&text, " %.1fx its own past", a->past);
    base_str_add(&text, " since step %" PRId64 "; %s", a->since, train_cause_texts[a->cause]);
    if (a->aspect == TRAIN_ASPECT_LINK && s->team.shares.size == 2)
        base_str_add(&text, " to worker %u, of which either end may be the cause",
                     s->team.view.members[1 - a->rank].id);
    if (a->explained > 0)
        base_str_add(&text, " (%.0f %% of the added time)", 100 * a->explained);
    return text.text;
}

/* A number of an event: null where there is none. */
static const char *number(double value, char text[32])
{
    snprintf(text, 32, isfinite(value) ? "%.4g" : "null", value);
    return text;
}

static void tell(const struct train_session *s, const struct train_anomaly *a, const char *text,
                 const char *action)
{
    const struct comm_member *m = &s->team.view.members[a->rank];
    char peers[32], past[32];

    if (a->over)
        base_info("worker %u on host %u: %s no longer slow since step %" PRId64, m->id, m->host,
                  train_aspect_names[a->aspect], a->since);
    else
        base_info("worker %u on host %u: %s", m->id, m->host, text);
    base_event(s->journal.events,
               "{\"event\":\"anomaly\",\"step\":%" PRId64 ",\"worker\":%u,\"rank\":%d,\"host\":%u,"
               "\"aspect\":\"%s\",\"slow\":%s,\"since\":%" PRId64 ",\"peers\":%s,\"past\":%s,"
               "\"cause\":%s%s%s,\"explained\":%.3f,\"action\":\"%s\"}",
               s->state.position.step, m->id, a->rank, m->host, train_aspect_names[a->aspect],
               a->over ? "false" : "true", a->since, number(a->peers, peers), number(a->past, past),
               a->over ? "" : "\"", a->over ? "null" : train_cause_names[a->cause],
               a->over ? "" : "\"", a->explained, action);
}

/* All workers decide the same. `evicted`: workers that leave already. Shares change nothing about a
 * link, and of two workers it is not known whose it is. */
static enum train_slow_action decide(const struct train_session *s, const struct train_anomaly *a,
                                     int evicted)
{
    const struct train_slow_policy *p = &s->slow.policy;
    bool link = a->aspect == TRAIN_ASPECT_LINK;

    if (a->over || (p->action == TRAIN_SLOW_REBALANCE &&
                    (link || s->strategy->shares == TRAIN_SHARES_NOTHING)))
        return TRAIN_SLOW_TELL;
    if (p->action == TRAIN_SLOW_EVICT &&
        (s->team.shares.size - evicted <= p->least || (link && s->team.shares.size == 2)))
        return TRAIN_SLOW_TELL;
    return p->action;
}

/* What each worker's connections did since the last observation, to all workers; *links_p: NULL if
 * no connection of them tells. */
static base_status gather_links(struct train_session *s, struct train_link **links_p)
{
    base_status st = BASE_OK;
    const int size = s->team.shares.size;
    struct train_link now[COMM_MAX_WORKERS], since[COMM_MAX_WORKERS];
    bool known = false;

    *links_p = NULL;
    ask_links(s, now);
    for (int i = 0; i < size; i++)
        since[i] = (struct train_link){now[i].seconds - s->slow.links[i].seconds,
                                       now[i].bytes - s->slow.links[i].bytes};
    memcpy(s->slow.links, now, (size_t)size * sizeof *now);
    TRY(train_team_gather(&s->team, since, (size_t)size * sizeof *since, s->slow.told));
    for (int i = 0; i < size * size; i++)
        known |= s->slow.told[i].bytes > 0;
    *links_p = known ? s->slow.told : NULL;
out:
    return st;
}

/* Acts on one finding. Fails on a worker that is to leave. */
static base_status act(struct train_session *s, const struct train_anomaly *a, int *evicted)
{
    base_status st = BASE_OK;
    enum train_slow_action action = decide(s, a, *evicted);
    bool mine = a->rank == s->team.exchange.rank;
    char *text = describe(s, a);

    tell(s, a, text, train_slow_names[action]);
    if (mine)
        set_text(&s->slow, a->aspect, a->over ? NULL : text);
    s->team.shares.rebalances |= action == TRAIN_SLOW_REBALANCE;
    *evicted += action == TRAIN_SLOW_EVICT;
    if (mine && action == TRAIN_SLOW_EVICT)
        st = base_fail(BASE_ERR_TIMEOUT, "it is slow and leaves (--on-slow evict): %s", text);
    base_free(text);
    return st;
}

base_status train_slow_see(struct train_session *s, const struct train_effort *efforts)
{
    base_status st = BASE_OK;
    struct train_anomaly found[COMM_MAX_WORKERS * TRAIN_ASPECTS];
    struct train_link *links;
    int count, evicted = 0;

    if (!train_watch_tell(s->watch, efforts))
        return BASE_OK;
    TRY(gather_links(s, &links));
    count = train_watch_see(s->watch, links, s->state.position.step, found);
    for (int i = 0; i < count; i++)
        TRY(act(s, &found[i], &evicted));
out:
    return st;
}
