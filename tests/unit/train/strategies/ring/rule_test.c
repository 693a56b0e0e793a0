/* SPDX-License-Identifier: MIT
 *
 * The ready rule without a network: all interleavings of small cases, and random ones of larger
 * cases. No worker is ever stuck; micro-batches keep their order; no more messages wait for a stage
 * than there is room for. Where a condition of the proof is broken the same search does find
 * workers that are stuck.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "train/strategies/ring/mail.h"

enum { MAX_STAGES = 32 };

enum broken { SOUND, NO_ROOM, SHARED_ROOM }; /* which condition is */

struct world {
    struct ring_cut cut;
    int pieces;
    enum broken broken;
    int jobs;                        /* layers of each stage whose gradients of weights are apart */
    int done[MAX_STAGES][RING_WAYS]; /* micro-batches of each stage */
    int learned[MAX_STAGES], job[MAX_STAGES];
    int sent[MAX_STAGES][RING_WAYS];  /* messages for each stage that are on their way … */
    int waits[MAX_STAGES][RING_WAYS]; /* … and that have arrived */
};

static struct world new_world(int workers, int laps, int pieces, enum ring_order order)
{
    return (struct world){.cut = {.workers = workers, .stages = workers * laps, .order = order},
                          .pieces = pieces};
}

static struct world split_world(struct world w, int jobs)
{
    w.jobs = jobs;
    w.cut.spare = w.cut.workers;
    return w;
}

static int next_of(const struct world *w, int stage, enum ring_way way)
{
    int next = way == RING_FORWARD ? stage + 1 : stage - 1;

    return next < w->cut.stages ? next : -1;
}

static int limit_of(const struct world *w, int stage)
{
    if (w->broken == NO_ROOM && stage == 1)
        return 0;
    return ring_mail_limit(&w->cut, stage, w->pieces);
}

/* Micro-batches in flight on all stages of a worker. */
static int flying(const struct world *w, const int *stages, int count)
{
    int sum = 0;

    for (int i = 0; i < count; i++)
        sum += w->done[stages[i]][RING_FORWARD] - w->learned[stages[i]];
    return sum;
}

static struct ring_move next_move(const struct world *w, int worker, int stages[RING_MAX_LAPS])
{
    struct ring_rule rule = {.count = ring_cut_stages(&w->cut, worker, stages),
                             .pieces = w->pieces};
    bool full =
        w->broken == SHARED_ROOM && flying(w, stages, rule.count) >= w->cut.stages / w->cut.workers;

    for (int i = 0; i < rule.count; i++) {
        struct ring_track *t = &rule.at[i];

        *t = (struct ring_track){.first = stages[i] == 0,
                                 .last = stages[i] == w->cut.stages - 1,
                                 .limit = full ? 0 : limit_of(w, stages[i]),
                                 .jobs = w->jobs,
                                 .learned = w->learned[stages[i]],
                                 .job = w->job[stages[i]]};
        memcpy(t->done, w->done[stages[i]], sizeof t->done);
        for (enum ring_way way = RING_FORWARD; way < RING_WAYS; way++) {
            int next = next_of(w, stages[i], way);

            t->came[way] = w->waits[stages[i]][way] > 0;
            t->clear[way] = next < 0 || w->sent[next][way] == 0;
        }
    }
    return ring_rule_next(&rule);
}

/* A layer's gradients of weights, of the oldest micro-batch that lacks some. */
static void learn(struct world *w, int stage, struct ring_move m)
{
    assert_int_equal(m.piece, w->learned[stage]);
    assert_int_equal(m.job, w->job[stage]);
    assert_true(w->learned[stage] < w->done[stage][RING_BACKWARD]);
    if (++w->job[stage] == w->jobs) {
        w->job[stage] = 0;
        w->learned[stage]++;
    }
}

/* The worker makes its next move, if it has one. */
static bool move(struct world *w, int worker)
{
    int stages[RING_MAX_LAPS], stage, next;
    struct ring_move m = next_move(w, worker, stages);

    if (m.verb != RING_RUN && m.verb != RING_LEARN)
        return false;
    stage = stages[m.track];
    if (m.verb == RING_LEARN) {
        learn(w, stage, m);
        return true;
    }
    next = next_of(w, stage, m.way);
    assert_int_equal(m.piece, w->done[stage][m.way]); /* in order */
    if (next_of(w, stage, m.way == RING_FORWARD ? RING_BACKWARD : RING_FORWARD) >= 0) {
        assert_true(w->waits[stage][m.way] > 0);
        w->waits[stage][m.way]--;
    }
    w->done[stage][m.way]++;
    if (w->jobs == 0)
        w->learned[stage] = w->done[stage][RING_BACKWARD];
    assert_in_range(w->done[stage][RING_FORWARD] - w->learned[stage], 0, limit_of(w, stage));
    if (next >= 0) {
        assert_int_equal(w->sent[next][m.way], 0);
        w->sent[next][m.way]++;
        /* Lanes have that much room. */
        assert_true(w->waits[next][m.way] < limit_of(w, m.way == RING_FORWARD ? stage : next));
    }
    return true;
}

static bool arrive(struct world *w, int stage, enum ring_way way)
{
    if (w->sent[stage][way] == 0)
        return false;
    w->sent[stage][way]--;
    w->waits[stage][way]++;
    return true;
}

static bool is_done(const struct world *w)
{
    for (int i = 0; i < w->cut.stages; i++)
        if (w->learned[i] < w->pieces)
            return false;
    return true;
}

/* ---- random ---- */

/* A number below `below`; the same ones in every run. */
static uint32_t draw(uint64_t *rng, uint32_t below)
{
    *rng += 0x9e3779b97f4a7c15;
    return (uint32_t)(base_rng_mix(*rng) % below);
}

/* Event number `event`: a worker moves, or a message arrives. */
static bool happens(struct world *w, int event)
{
    if (event < w->cut.workers)
        return move(w, event);
    event -= w->cut.workers;
    return arrive(w, event / RING_WAYS, (enum ring_way)(event % RING_WAYS));
}

/* Anything that can happen may, in any order; false: nothing can, and the work is not done. */
static bool survives(struct world w, uint64_t *rng)
{
    int events = w.cut.workers + RING_WAYS * w.cut.stages, refused = 0;
    uint32_t eager = draw(rng, 4); /* how much faster messages are than workers */

    while (refused < events) {
        int event = (int)draw(rng, (uint32_t)events);

        if (event < w.cut.workers && draw(rng, 1u << eager) != 0)
            continue;
        if (happens(&w, event))
            refused = 0;
        else if (++refused == events) /* bad luck, or is it the end? */
            for (event = 0; event < events && refused > 0; event++)
                refused = happens(&w, event) ? 0 : refused;
    }
    if (is_done(&w)) {
        for (int i = 0; i < w.cut.workers; i++) {
            int stages[RING_MAX_LAPS];

            assert_int_equal(next_move(&w, i, stages).verb, RING_END);
        }
        return true;
    }
    return false;
}

static void test_random_timings(void **state)
{
    uint64_t rng = 17;

    (void)state;
    for (int i = 0; i < 400; i++) {
        struct world w = new_world(1 + (int)draw(&rng, 8), 1 + (int)draw(&rng, 4),
                                   1 + (int)draw(&rng, 32), (enum ring_order)draw(&rng, 2));

        assert_true(survives(w, &rng));
        assert_true(survives(split_world(w, 1 + i % 3), &rng));
    }
}

/* Without room of its own for each stage workers do get stuck: the search would see it. */
static void test_broken_conditions(void **state)
{
    uint64_t rng = 18;
    int stuck[3] = {0};

    (void)state;
    for (int i = 0; i < 30; i++)
        for (enum broken broken = SOUND; broken <= SHARED_ROOM; broken++) {
            struct world w = new_world(2 + i % 3, 2, 8, RING_AROUND);

            w.broken = broken;
            stuck[broken] += !survives(w, &rng);
        }
    assert_int_equal(stuck[SOUND], 0);
    assert_int_equal(stuck[NO_ROOM], 30);
    assert_true(stuck[SHARED_ROOM] > 0);
}

/* ---- all ---- */

struct search {
    uint8_t *seen; /* a bit for each state */
    struct world *stack;
    size_t count, room, states;
};

/* A number for everything that can differ: 2 bits for a count, one for a message on its way; 2 more
 * where gradients of weights are apart. What waits for a stage follows from these. */
static size_t number_of(const struct world *w)
{
    size_t n = 0;

    for (int i = 0; i < w->cut.stages; i++) {
        for (int way = 0; way < RING_WAYS; way++)
            n = n << 3 | (size_t)w->done[i][way] << 1 | (size_t)w->sent[i][way];
        if (w->jobs > 0)
            n = n << 2 | (size_t)w->learned[i];
    }
    return n;
}

static void push(struct search *s, const struct world *w)
{
    size_t n = number_of(w);

    if (s->seen[n / 8] & 1u << n % 8)
        return;
    s->seen[n / 8] |= (uint8_t)(1u << n % 8);
    s->states++;
    if (s->count == s->room) {
        s->room = s->room > 0 ? 2 * s->room : 64;
        s->stack = base_realloc(s->stack, s->room, sizeof *s->stack);
    }
    s->stack[s->count++] = *w;
}

/* Every state that can be reached; returns how many of them are stuck. */
static int explore(struct world first, size_t *states_p)
{
    const int bits = (first.jobs > 0 ? 8 : 6) * first.cut.stages;
    struct search s = {.seen = base_calloc((size_t)1 << (bits - 3), 1)};
    int stuck = 0;

    push(&s, &first);
    while (s.count > 0) {
        struct world w = s.stack[--s.count], next;
        bool any = false;

        for (int i = 0; i < w.cut.workers; i++)
            if (next = w, move(&next, i)) {
                any = true;
                push(&s, &next);
            }
        for (int i = 0; i < w.cut.stages; i++)
            for (enum ring_way way = RING_FORWARD; way < RING_WAYS; way++)
                if (next = w, arrive(&next, i, way)) {
                    any = true;
                    push(&s, &next);
                }
        stuck += !any && !is_done(&w);
    }
    *states_p = s.states;
    base_free(s.seen);
    base_free(s.stack);
    return stuck;
}

static void test_every_interleaving(void **state)
{
    static const int cases[][3] = {{2, 1, 3}, {3, 1, 3}, {4, 1, 3}, {2, 2, 3}, {1, 4, 3}};
    size_t states;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (enum ring_order order = RING_AROUND; order <= RING_FOLD; order++)
            for (int pieces = 1; pieces <= cases[i][2]; pieces++) {
                struct world w = new_world(cases[i][0], cases[i][1], pieces, order);

                assert_int_equal(explore(w, &states), 0);
                assert_true(states > 2 * (size_t)pieces);
                if (w.cut.stages <= 3)
                    assert_int_equal(explore(split_world(w, 1), &states), 0);
                w.broken = NO_ROOM;
                assert_true(explore(w, &states) > 0);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_timings),
        cmocka_unit_test(test_broken_conditions),
        cmocka_unit_test(test_every_interleaving),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
