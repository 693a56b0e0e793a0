/* SPDX-License-Identifier: MIT */
#include "sim/sweeping.h"

#include <string.h>

#include "sim/counting.h"
#include "sim/hosts.h"

enum { PHASES = 2 }; /* of a sweep: each has a part of the samples, a row each */

bool sim_sweeping_takes(const char *model)
{
    return strcmp(model, "sweeping") == 0;
}

static bool sweeping_divides(const struct train_session *s)
{
    (void)s;
    return true;
}

static int sweeping_phases(const struct train_session *s)
{
    (void)s;
    return PHASES;
}

static uint32_t sweeping_begin(const struct train_session *s, int phase)
{
    return s->count[DATA_TRAIN] * (uint32_t)phase / PHASES;
}

static base_status sweeping_prepare(struct train_session *s, int phase, struct train_phase *p)
{
    const uint32_t from = sweeping_begin(s, phase);

    sim_worker_self()->knows = true;
    if (phase == 0)
        sim_counting_check_state(s, "the next sweep");
    *p = (struct train_phase){.rows = sweeping_begin(s, phase + 1) - from,
                              .writes = {{s->state.weights + from, 1}},
                              .write_count = 1};
    return BASE_OK;
}

static void sweeping_run(struct train_session *s, int phase, uint32_t from, uint32_t to)
{
    for (uint32_t row = from; row < to; row++)
        s->state.weights[sweeping_begin(s, phase) + row] += 1;
    sim_counting_compute(to - from);
}

static bool sweeping_settled(const struct train_session *s)
{
    (void)s;
    return true;
}

static base_status sweeping_finish(struct train_session *s)
{
    (void)s;
    return BASE_OK;
}

static int64_t sweeping_count(const struct train_session *s)
{
    return s->job->epochs;
}

static const char *sweeping_rotating(void)
{
    return "sweeping";
}

struct train_choice sim_sweeping_choose(const char *model, bool several)
{
    (void)model;
    (void)several;
    return (struct train_choice){"rows", "it has no batches"};
}

const struct train_sweeps sim_sweeps = {.divides = sweeping_divides,
                                        .phases = sweeping_phases,
                                        .prepare = sweeping_prepare,
                                        .run = sweeping_run,
                                        .finish = sweeping_finish,
                                        .count = sweeping_count,
                                        .settled = sweeping_settled,
                                        .rotation = &sim_rotation,
                                        .rotating = sweeping_rotating};
