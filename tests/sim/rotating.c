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
    base_free(r->items);
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
    base_free(r->items);
    *r = (struct sim_rotating){r->work, from, to, bundles, (items_of(s) + bundles - 1) / bundles,
                               NULL};
    r->items = base_calloc(bundles * r->each, sizeof *r->items);
    return BASE_OK;
}

static uint32_t rotating_count(const struct train_session *s)
{
    (void)s;
    return ROTATIONS;
}

static void rotating_begin(struct train_session *s)
{
    const struct sim_rotating *r = s->work;

    sim_worker_self()->knows = true;
    sim_counting_check_state(s, "the next sweep");
    train_state_get(&s->state, TRAIN_WEIGHTS, 0, rows_of(s), items_of(s), r->items);
}

static void rotating_train(struct train_session *s, float *rows, uint32_t rotation, uint32_t bundle)
{
    const struct sim_rotating *r = s->work;

    for (uint32_t row = r->from; row < r->to; row++)
        rows[row - r->from] += row % r->bundles == bundle && row % ROTATIONS == rotation;
    for (size_t i = 0; i < r->each; i++) {
        const size_t item = bundle * r->each + i, partner = item % rows_of(s);

        r->items[item] += partner >= r->from && partner < r->to && item % ROTATIONS == rotation;
    }
    sim_counting_compute((double)(r->to - r->from) / r->bundles / ROTATIONS);
}

static float *rotating_bundle(struct train_session *s, uint32_t bundle, size_t *floats_p)
{
    const struct sim_rotating *r = s->work;

    *floats_p = r->each;
    return r->items + bundle * r->each;
}

static base_status rotating_end(struct train_session *s)
{
    const struct sim_rotating *r = s->work;

    train_state_put(&s->state, TRAIN_WEIGHTS, 0, rows_of(s), items_of(s), r->items);
    return BASE_OK;
}

const struct train_rotation sim_rotation = {.stays = rotating_stays,
                                            .lay_out = rotating_lay_out,
                                            .count = rotating_count,
                                            .begin = rotating_begin,
                                            .train = rotating_train,
                                            .bundle = rotating_bundle,
                                            .end = rotating_end};
