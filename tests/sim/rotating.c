/* SPDX-License-Identifier: MIT */
#include "sim/rotating.h"

#include "base/mem.h"
#include "sim/counting.h"
#include "sim/hosts.h"

enum { ROTATIONS = 2 };

static uint32_t rows_of(const struct train_session *s)
{
    return s->count[DATA_TRAIN] / 2;
}

static size_t items_of(const struct train_session *s)
{
    return s->count[DATA_TRAIN] - rows_of(s);
}

void sim_rotating_init(struct sim_rotating *r, uint32_t samples)
{
    r->work = base_calloc((size_t)samples / 2 + 1, sizeof *r->work);
    for (uint32_t i = 0; i <= samples / 2; i++)
        r->work[i] = i;
}

void sim_rotating_fini(struct sim_rotating *r)
{
    base_free(r->work);
    *r = (struct sim_rotating){0};
}

static struct train_stays rotating_stays(const struct train_session *s)
{
    const struct sim_rotating *r = s->work;

    return (struct train_stays){rows_of(s), 1, r->work};
}

static base_status rotating_lay_out(struct train_session *s, uint32_t from, uint32_t to,
                                    uint32_t bundles, uint32_t least)
{
    struct sim_rotating *r = s->work;

    (void)least;
    *r = (struct sim_rotating){r->work, from, to, bundles, (items_of(s) + bundles - 1) / bundles};
    return BASE_OK;
}

static uint32_t rotating_count(const struct train_session *s)
{
    (void)s;
    return ROTATIONS;
}

static size_t rotating_floats(const struct train_session *s)
{
    return ((const struct sim_rotating *)s->work)->each;
}

/* Where a bundle's samples are among those that travel; the last bundle may have fewer, or none. */
static size_t first_of(const struct train_session *s, uint32_t bundle)
{
    const size_t at = bundle * ((const struct sim_rotating *)s->work)->each;

    return at < items_of(s) ? at : items_of(s);
}

static void rotating_begin(struct train_session *s, uint32_t from, uint32_t to, float *bundles)
{
    const size_t first = first_of(s, from);

    sim_worker_self()->knows = true;
    sim_counting_check_state(s, "the next sweep");
    train_state_get(&s->state, TRAIN_WEIGHTS, 0, rows_of(s) + first, first_of(s, to) - first,
                    bundles + first);
}

static void rotating_train(struct train_session *s, float *rows, float *bundles, uint32_t rotation,
                           uint32_t bundle)
{
    const struct sim_rotating *r = s->work;

    for (uint32_t row = r->from; row < r->to; row++)
        rows[row - r->from] += row % r->bundles == bundle && row % ROTATIONS == rotation;
    for (size_t i = 0; i < r->each; i++) {
        const size_t item = bundle * r->each + i, partner = item % rows_of(s);

        bundles[item] += partner >= r->from && partner < r->to && item % ROTATIONS == rotation;
    }
    sim_counting_compute((double)(r->to - r->from) / r->bundles / ROTATIONS);
}

static void rotating_end(const struct train_session *s, uint32_t from, uint32_t to,
                         const float *bundles, float *rest)
{
    for (size_t i = first_of(s, from); i < first_of(s, to); i++)
        rest[i] = bundles[i];
}

const struct train_rotation sim_rotation = {.stays = rotating_stays,
                                            .lay_out = rotating_lay_out,
                                            .count = rotating_count,
                                            .floats = rotating_floats,
                                            .begin = rotating_begin,
                                            .train = rotating_train,
                                            .end = rotating_end};
