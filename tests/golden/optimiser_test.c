/* SPDX-License-Identifier: MIT
 *
 * Twenty updates of a small vector against torch.optim, weights and optimiser slots, from
 * optimiser.txt beside this file (make_golden.py made it and says what the vectors are). Updates
 * go from one copy to another and are cut in two, as shared memory does; a second run in place
 * and in one piece must give the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/optimiser.h"

enum { COUNT = 37, CUT = 13, CASES = 16, NAME = 32 };

struct golden_case {
    char name[NAME], optimiser[NAME];
    struct nn_hyper hyper;
    float weight[COUNT], slot[NN_MAX_SLOTS][COUNT];
    char slot_name[NN_MAX_SLOTS][NAME];
    int values; /* read, of weights and slots */
};

struct golden {
    uint64_t seed;
    int count, updates, cases;
    struct golden_case list[CASES];
};

struct buffers {
    float weight[COUNT], slot[NN_MAX_SLOTS][COUNT];
};

static void must(base_status st)
{
    if (st != BASE_OK)
        fail_msg("%s", base_message());
}

static bool read_case(const char *line, struct golden *g)
{
    struct golden_case c = {0};
    struct nn_hyper *h = &c.hyper;
    double nesterov = 0;

    if (sscanf(line, "case %31s %31s %lf %lf %lf %lf %lf %lf %lf %lf", c.name, c.optimiser, &h->lr,
               &h->momentum, &nesterov, &h->weight_decay, &h->beta1, &h->beta2, &h->epsilon,
               &h->gradient_scale) != 10)
        return false;
    h->nesterov = nesterov != 0;
    assert_in_range(g->cases, 0, CASES - 1);
    g->list[g->cases++] = c;
    return true;
}

static bool read_value(const char *line, struct golden_case *c)
{
    char name[NAME] = "";
    float value;
    int at, slot = 0;

    if (sscanf(line, "weight %d %f", &at, &value) == 2 && at >= 0 && at < COUNT) {
        c->weight[at] = value;
    } else if (sscanf(line, "slot %31s %d %f", name, &at, &value) == 3 && at >= 0 && at < COUNT) {
        if (c->slot_name[0][0] != '\0' && strcmp(c->slot_name[0], name) != 0)
            slot = 1;
        memcpy(c->slot_name[slot], name, sizeof name);
        c->slot[slot][at] = value;
    } else {
        return false;
    }
    c->values++;
    return true;
}

static void read_golden(struct golden *g)
{
    char *text = NULL, *rest = NULL;
    size_t count = 0;

    *g = (struct golden){0};
    must(base_file_read(TEST_SOURCE_DIR "/golden/optimiser.txt", 1 << 20, &text, &count));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '#' || sscanf(line, "seed %" SCNu64, &g->seed) == 1 ||
            sscanf(line, "count %d", &g->count) == 1 ||
            sscanf(line, "updates %d", &g->updates) == 1 || read_case(line, g))
            continue;
        if (g->cases == 0 || !read_value(line, &g->list[g->cases - 1]))
            fail_msg("optimiser.txt has the line '%s'", line);
    }
    base_free(text);
    assert_int_equal(g->count, COUNT);
    assert_true(g->updates > 0 && g->cases > 0);
}

static void fill(uint64_t seed, uint32_t layer, uint32_t sample, float values[COUNT])
{
    struct base_rng rng = base_rng_of(seed, BASE_STREAM_TEST, layer, 0, sample);

    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = 2.0f * base_rng_unit(base_rng_u32(&rng, i)) - 1.0f;
}

static void update_range(const struct nn_optimiser *o, const struct nn_hyper *hyper,
                         const float *gradient, const struct buffers *in, struct buffers *out,
                         size_t first, size_t last)
{
    o->update(hyper, &(struct nn_update){
                         .count = last - first,
                         .gradient = gradient + first,
                         .weight_in = in->weight + first,
                         .weight_out = out->weight + first,
                         .slot_in = {in->slot[0] + first, in->slot[1] + first},
                         .slot_out = {out->slot[0] + first, out->slot[1] + first},
                     });
}

/* cut: from one copy to the other and in two ranges; otherwise in place and whole. */
static struct buffers train(const struct golden *g, const struct golden_case *c, bool cut)
{
    const struct nn_optimiser *o = NULL;
    struct nn_hyper hyper = c->hyper;
    struct buffers copy[2] = {0};
    float gradient[COUNT];
    int now = 0;

    must(nn_optimiser_find(c->optimiser, &o));
    fill(g->seed, 3, 0, copy[0].weight);
    for (int step = 1; step <= g->updates; step++) {
        int next = cut ? !now : now;

        hyper.step = (uint64_t)step;
        fill(g->seed, 4, (uint32_t)step, gradient);
        update_range(o, &hyper, gradient, &copy[now], &copy[next], 0, cut ? CUT : COUNT);
        if (cut)
            update_range(o, &hyper, gradient, &copy[now], &copy[next], CUT, COUNT);
        now = next;
    }
    return copy[now];
}

static void check(const struct golden_case *c, const char *what, const float *got,
                  const float *want)
{
    for (int i = 0; i < COUNT; i++) {
        /* Where terms of size 1 cancel, an error of 1e-7 is not one of the result. */
        double allowed = 1e-5 * fmax(fabs((double)want[i]), 0.01);

        if (!(fabs((double)got[i] - (double)want[i]) <= allowed))
            fail_msg("%s: %s %d is %.9g, PyTorch has %.9g", c->name, what, i, (double)got[i],
                     (double)want[i]);
    }
}

static void test_torch(void **state)
{
    static struct golden g;

    (void)state;
    read_golden(&g);
    for (int k = 0; k < g.cases; k++) {
        const struct golden_case *c = &g.list[k];
        const struct nn_optimiser *o = NULL;
        struct buffers got = train(&g, c, true);
        int slots = 0;

        must(nn_optimiser_find(c->optimiser, &o));
        check(c, "weight", got.weight, c->weight);
        for (; slots < NN_MAX_SLOTS && c->slot_name[slots][0] != '\0'; slots++) {
            assert_true(slots < o->slots);
            assert_string_equal(o->slot_names[slots], c->slot_name[slots]);
            check(c, o->slot_names[slots], got.slot[slots], c->slot[slots]);
        }
        assert_int_equal(c->values, COUNT * (1 + slots));
    }
}

static void test_cuts_change_no_bit(void **state)
{
    static struct golden g;

    (void)state;
    read_golden(&g);
    for (int k = 0; k < g.cases; k++) {
        struct buffers a = train(&g, &g.list[k], true), b = train(&g, &g.list[k], false);

        assert_memory_equal(a.weight, b.weight, sizeof a.weight);
        assert_memory_equal(a.slot, b.slot, sizeof a.slot);
    }
}

/* A case for every optimiser there is: a new file in nn/optimisers needs its line in the script. */
static void test_every_optimiser_is_covered(void **state)
{
    static struct golden g;

    (void)state;
    read_golden(&g);
    for (size_t i = 0; i < nn_optimiser_count; i++) {
        int cases = 0;

        for (int k = 0; k < g.cases; k++)
            cases += strcmp(g.list[k].optimiser, nn_optimiser_registry[i]->name) == 0;
        if (cases == 0)
            fail_msg("optimiser.txt has no case of %s", nn_optimiser_registry[i]->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch),
        cmocka_unit_test(test_cuts_change_no_bit),
        cmocka_unit_test(test_every_optimiser_is_covered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
