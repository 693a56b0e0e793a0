/* SPDX-License-Identifier: MIT */
#include "train/clock.h"

#include <math.h>
#include <stdbool.h>

#include "base/clock.h"
#include "train/trace.h"

/* Categories in which the thread is expected to have a core. */
static bool is_busy(enum train_category category)
{
    return category == TRAIN_COMPUTE || category == TRAIN_DATA;
}

void train_clock_start(struct train_clock *c)
{
    double now = base_now();

    *c = (struct train_clock){.began = now, .since = now, .cpu_since = base_thread_cpu()};
}

enum train_category train_clock_enter(struct train_clock *c, enum train_category category)
{
    enum train_category was = c->current;
    double now = base_now();

    c->seconds[was] += now - c->since;
    c->since = now;
    if (is_busy(was) && !is_busy(category))
        c->busy_cpu += base_thread_cpu() - c->cpu_since;
    else if (!is_busy(was) && is_busy(category))
        c->cpu_since = base_thread_cpu();
    c->current = category;
    train_trace_enter(c->trace, (enum train_doing)category);
    return was;
}

void train_clock_move(struct train_clock *c, enum train_category to, double seconds)
{
    c->seconds[c->current] -= seconds;
    c->seconds[to] += seconds;
    train_trace_past(c->trace, (enum train_doing)to, seconds);
}

double train_clock_since(const struct train_clock *c, const struct train_clock *before,
                         enum train_category category)
{
    return c->seconds[category] - before->seconds[category];
}

void train_clock_lost(struct train_clock *c, const struct train_clock *before)
{
    double communicated;

    train_clock_enter(c, TRAIN_COMPUTE);
    communicated = train_clock_since(c, before, TRAIN_COMMUNICATE);
    c->seconds[TRAIN_COMMUNICATE] -= communicated;
    c->seconds[TRAIN_WAIT] += communicated;
}

struct train_times train_clock_times(const struct train_clock *c)
{
    double now = base_now(), seconds[TRAIN_CATEGORIES];
    double cpu = c->busy_cpu + (is_busy(c->current) ? base_thread_cpu() - c->cpu_since : 0);
    struct train_times t = {.total = now - c->began, .overlapped = c->overlapped};

    for (int i = 0; i < TRAIN_CATEGORIES; i++)
        seconds[i] = c->seconds[i] + (i == (int)c->current ? now - c->since : 0);
    t.data = seconds[TRAIN_DATA];
    t.communicate = seconds[TRAIN_COMMUNICATE];
    t.wait = seconds[TRAIN_WAIT];
    t.stolen = fmin(seconds[TRAIN_COMPUTE], fmax(0, seconds[TRAIN_COMPUTE] - cpu));
    t.compute = seconds[TRAIN_COMPUTE] - t.stolen;
    return t;
}

json_t *train_times_json(const struct train_times *t)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "total", t->total, "compute",
                     t->compute, "communicate", t->communicate, "wait", t->wait, "data", t->data,
                     "stolen", t->stolen, "overlapped", t->overlapped);
}
