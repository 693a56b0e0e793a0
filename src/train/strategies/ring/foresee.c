/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/foresee.h"

#include <math.h>

#include "base/mem.h"
#include "train/strategies/ring/mail.h"

enum { STEPS = 4 }; /* that are played where they overlap; the first one is not counted */

struct ring_actor { /* a worker */
    double now;     /* when it looks around next; infinite: when a message comes, or never again */
    bool waits;
    int step;
    int stages[RING_MAX_LAPS];
    struct ring_rule rule;
};

struct ring_play {
    const struct ring_cut *cut;
    const struct ring_times *times;
    int pieces, steps;
    struct ring_actor *actors;
    double *came; /* when each message arrived: (step, stage, way, piece); infinite: it has not */
    double ends[STEPS]; /* when the last worker has done each step */
};

static double *ring_came(const struct ring_play *p, int step, int stage, enum ring_way way,
                         int piece)
{
    return &p->came[((step * p->cut->stages + stage) * RING_WAYS + (int)way) * p->pieces + piece];
}

static void ring_play_begin(struct ring_play *p)
{
    size_t messages = (size_t)(p->steps * p->cut->stages) * RING_WAYS * (size_t)p->pieces;

    p->actors = base_calloc((size_t)p->cut->workers, sizeof *p->actors);
    p->came = base_calloc(messages, sizeof *p->came);
    for (size_t i = 0; i < messages; i++)
        p->came[i] = INFINITY;
    for (int w = 0; w < p->cut->workers; w++) {
        struct ring_actor *a = &p->actors[w];

        a->rule =
            (struct ring_rule){.count = ring_cut_stages(p->cut, w, a->stages), .pieces = p->pieces};
        for (int i = 0; i < a->rule.count; i++)
            a->rule.at[i] = (struct ring_track){
                .first = a->stages[i] == 0,
                .last = a->stages[i] == p->cut->stages - 1,
                .limit = ring_mail_limit(p->cut, a->stages[i], p->pieces),
                .jobs = p->cut->spare > 0 ? 1 : 0,
                .clear = {true, true},
            };
    }
}

/* What the actor finds at its time; returns when it has to look again if it can do nothing. */
static double ring_play_look(const struct ring_play *p, struct ring_actor *a)
{
    double next = INFINITY;

    for (int i = 0; i < a->rule.count; i++)
        for (enum ring_way way = RING_FORWARD; way < RING_WAYS; way++) {
            struct ring_track *t = &a->rule.at[i];
            double when = t->done[way] < p->pieces
                              ? *ring_came(p, a->step, a->stages[i], way, t->done[way])
                              : INFINITY;

            t->came[way] = when <= a->now;
            if (!t->came[way] && when < next)
                next = when;
        }
    return next;
}

static double ring_play_lasts(const struct ring_play *p, int stage, struct ring_move move)
{
    const double *part = p->times->part[stage];

    if (move.verb == RING_LEARN)
        return part[RING_PART_WEIGHTS];
    if (move.way == RING_FORWARD)
        return part[RING_PART_FORWARD];
    return part[RING_PART_BACKWARD] + (p->cut->spare > 0 ? 0 : part[RING_PART_WEIGHTS]);
}

static void ring_play_make(struct ring_play *p, struct ring_actor *a, struct ring_move move,
                           double *busy)
{
    int stage = a->stages[move.track], next = move.way == RING_FORWARD ? stage + 1 : stage - 1;
    double lasts = ring_play_lasts(p, stage, move);
    struct ring_actor *to;

    a->now += lasts;
    *busy += lasts;
    ring_rule_made(&a->rule, move);
    if (move.verb == RING_LEARN || next < 0 || next >= p->cut->stages)
        return;
    to = &p->actors[ring_cut_worker(p->cut, next)];
    *ring_came(p, a->step, next, move.way, move.piece) = a->now;
    if (to->waits && to->now > a->now)
        to->now = a->now;
}

/* The worker that comes next in time; NULL: all have done their work. */
static struct ring_actor *ring_play_next(const struct ring_play *p)
{
    struct ring_actor *first = NULL;

    for (int w = 0; w < p->cut->workers; w++)
        if (isfinite(p->actors[w].now) && (first == NULL || p->actors[w].now < first->now))
            first = &p->actors[w];
    return first;
}

/* The actor has done its part of a step, and begins the next one, if there is one. */
static void ring_play_end(struct ring_play *p, struct ring_actor *a)
{
    p->ends[a->step] = fmax(p->ends[a->step], a->now);
    if (++a->step == p->steps)
        a->now = INFINITY;
    for (int i = 0; i < a->rule.count; i++) {
        struct ring_track *t = &a->rule.at[i];

        t->done[RING_FORWARD] = t->done[RING_BACKWARD] = t->learned = t->job = 0;
    }
}

void ring_foresee(const struct ring_cut *cut, const struct ring_times *times, int pieces,
                  struct ring_outlook *o)
{
    struct ring_play p = {
        .cut = cut, .times = times, .pieces = pieces, .steps = cut->overlap ? STEPS : 1};
    struct ring_actor *a;
    double busy = 0;

    *o = (struct ring_outlook){0};
    ring_play_begin(&p);
    while ((a = ring_play_next(&p)) != NULL) {
        double next = ring_play_look(&p, a);
        struct ring_move move = ring_rule_next(&a->rule);

        a->waits = move.verb == RING_WAIT;
        if (move.verb == RING_END)
            ring_play_end(&p, a);
        else if (a->waits)
            a->now = next;
        else
            ring_play_make(&p, a, move, &o->busy[a - p.actors]);
    }
    o->seconds = cut->overlap ? (p.ends[STEPS - 1] - p.ends[0]) / (STEPS - 1) : p.ends[0];
    for (int w = 0; w < cut->workers; w++) {
        o->busy[w] /= p.steps;
        busy += o->busy[w];
    }
    o->idle = o->seconds > 0 ? 1 - busy / (o->seconds * cut->workers) : 0;
    base_free(p.actors);
    base_free(p.came);
}
