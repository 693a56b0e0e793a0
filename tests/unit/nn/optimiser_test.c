/* SPDX-License-Identifier: MIT
 *
 * Optimisers against the formulas of PyTorch's documentation in double, over several steps; and
 * the promises that an update can be cut anywhere and may write another copy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "nn/optimiser.h"
#include "support/nets.h"

enum { COUNT = 37, STEPS = 6 };

static const struct nn_optimiser *find(const char *name)
{
    const struct nn_optimiser *optimiser;

    assert_int_equal(nn_optimiser_find(name, &optimiser), BASE_OK);
    return optimiser;
}

/* One weight of torch.optim.SGD (momentum buffer NULL-started), torch.optim.Adam and AdamW. */
struct reference {
    double weight, slot[2];
};

static void sgd_step(struct reference *r, const struct nn_hyper *h, double g)
{
    g = g * h->gradient_scale + h->weight_decay * r->weight;
    r->slot[0] = h->step == 1 ? g : h->momentum * r->slot[0] + g;
    r->weight -= h->lr * (h->nesterov ? g + h->momentum * r->slot[0] : r->slot[0]);
}

static void adam_moments(struct reference *r, const struct nn_hyper *h, double g)
{
    double t = (double)h->step;

    r->slot[0] = h->beta1 * r->slot[0] + (1 - h->beta1) * g;
    r->slot[1] = h->beta2 * r->slot[1] + (1 - h->beta2) * g * g;
    r->weight -= h->lr / (1 - pow(h->beta1, t)) * r->slot[0] /
                 (sqrt(r->slot[1]) / sqrt(1 - pow(h->beta2, t)) + h->epsilon);
}

static void adam_step(struct reference *r, const struct nn_hyper *h, double g)
{
    adam_moments(r, h, g * h->gradient_scale + h->weight_decay * r->weight);
}

static void adamw_step(struct reference *r, const struct nn_hyper *h, double g)
{
    r->weight -= h->lr * h->weight_decay * r->weight;
    adam_moments(r, h, g * h->gradient_scale);
}

static void follow(const char *name, struct nn_hyper hyper,
                   void (*step)(struct reference *, const struct nn_hyper *, double))
{
    const struct nn_optimiser *optimiser = find(name);
    float weight[COUNT], gradient[COUNT], slot[2][COUNT] = {0};
    struct reference want[COUNT] = {0};

    support_fill(weight, COUNT, 1);
    for (int i = 0; i < COUNT; i++)
        want[i].weight = (double)weight[i];
    for (hyper.step = 1; hyper.step <= STEPS; hyper.step++) {
        struct nn_update update = {COUNT,  gradient,          weight, {slot[0], slot[1]},
                                   weight, {slot[0], slot[1]}};

        support_fill(gradient, COUNT, 10 + (uint32_t)hyper.step);
        optimiser->update(&hyper, &update);
        for (int i = 0; i < COUNT; i++) {
            step(&want[i], &hyper, (double)gradient[i]);
            support_near(weight[i], want[i].weight, 2e-6);
            for (int s = 0; s < optimiser->slots; s++)
                support_near(slot[s][i], want[i].slot[s], 2e-6);
        }
    }
}

static void sgd_is_pytorchs(void **state)
{
    (void)state;
    follow("sgd", (struct nn_hyper){.lr = 0.1, .gradient_scale = 1}, sgd_step);
    follow("sgd", (struct nn_hyper){.lr = 0.1, .momentum = 0.9, .gradient_scale = 1}, sgd_step);
    follow("sgd",
           (struct nn_hyper){.lr = 0.1,
                             .momentum = 0.9,
                             .nesterov = true,
                             .weight_decay = 0.01,
                             .gradient_scale = 0.5},
           sgd_step);
}

static void adam_and_adamw_are_pytorchs(void **state)
{
    struct nn_hyper hyper = {.lr = 1e-2,
                             .weight_decay = 0.1,
                             .beta1 = 0.9,
                             .beta2 = 0.999,
                             .epsilon = 1e-8,
                             .gradient_scale = 1};

    (void)state;
    follow("adam", hyper, adam_step);
    follow("adamw", hyper, adamw_step);
    hyper.gradient_scale = 0.25;
    follow("adam", hyper, adam_step);
    follow("adamw", hyper, adamw_step);
}

/* In two parts and into another copy: the same bits; and zeros (padding) stay zeros. */
static void any_range_any_copy(void **state)
{
    struct nn_hyper hyper = {.lr = 0.1,
                             .momentum = 0.9,
                             .weight_decay = 0.1,
                             .beta1 = 0.9,
                             .beta2 = 0.99,
                             .epsilon = 1e-8,
                             .gradient_scale = 1,
                             .step = 1};

    (void)state;
    for (size_t o = 0; o < nn_optimiser_count; o++) {
        const struct nn_optimiser *optimiser = nn_optimiser_registry[o];
        float weight[COUNT], gradient[COUNT], slot[2][COUNT];
        float other[COUNT], other_slot[2][COUNT];
        struct nn_update whole = {COUNT,  gradient,          weight, {slot[0], slot[1]},
                                  weight, {slot[0], slot[1]}};

        support_fill(weight, COUNT, 1);
        support_fill(gradient, COUNT, 2);
        memset(slot, 0, sizeof slot);
        weight[9] = gradient[9] = 0;
        for (size_t at = 0; at < COUNT; at += 20) {
            struct nn_update part = {at + 20 < COUNT ? 20 : COUNT - at,
                                     gradient + at,
                                     weight + at,
                                     {slot[0] + at, slot[1] + at},
                                     other + at,
                                     {other_slot[0] + at, other_slot[1] + at}};

            optimiser->update(&hyper, &part);
        }
        optimiser->update(&hyper, &whole);
        assert_memory_equal(weight, other, sizeof weight);
        for (int s = 0; s < optimiser->slots; s++)
            assert_memory_equal(slot[s], other_slot[s], sizeof slot[s]);
        assert_true(weight[9] == 0);
    }
}

/* Where an update is lazy, a weight without a gradient keeps its bits, and so do its slots; the
 * others become what they become anyway. */
static void lazy_updates_leave_zeros_alone(void **state)
{
    (void)state;
    for (size_t o = 0; o < nn_optimiser_count; o++) {
        float gradient[COUNT], weight[2][COUNT], slot[2][2][COUNT], was[3][COUNT];
        struct nn_hyper hyper = {.lr = 0.1,
                                 .momentum = 0.9,
                                 .weight_decay = 0.1,
                                 .beta1 = 0.9,
                                 .beta2 = 0.99,
                                 .epsilon = 1e-8,
                                 .gradient_scale = 1,
                                 .step = 3};

        support_fill(gradient, COUNT, 5);
        for (int i = 0; i < COUNT; i += 3)
            gradient[i] = i % 2 != 0 ? -0.0f : 0.0f;
        for (int lazy = 0; lazy < 2; lazy++) {
            struct nn_update u = {.count = COUNT,
                                  .gradient = gradient,
                                  .weight_in = weight[lazy],
                                  .weight_out = weight[lazy]};

            support_fill(weight[lazy], COUNT, 1);
            for (int s = 0; s < 2; s++) {
                support_fill(slot[lazy][s], COUNT, 2 + (uint32_t)s);
                for (int i = 0; i < COUNT; i++) /* a second moment is not negative */
                    slot[lazy][s][i] = fabsf(slot[lazy][s][i]);
                u.slot_in[s] = u.slot_out[s] = slot[lazy][s];
                memcpy(was[1 + s], slot[lazy][s], sizeof was[0]);
            }
            memcpy(was[0], weight[lazy], sizeof was[0]);
            hyper.lazy = lazy != 0;
            nn_optimiser_registry[o]->update(&hyper, &u);
        }
        for (int i = 0; i < COUNT; i++) {
            const bool stays = i % 3 == 0;

            assert_true(weight[1][i] == (stays ? was[0][i] : weight[0][i]));
            for (int s = 0; s < nn_optimiser_registry[o]->slots; s++)
                assert_true(slot[1][s][i] == (stays ? was[1 + s][i] : slot[0][s][i]));
            assert_true(!stays || weight[0][i] != was[0][i]);
        }
    }
}

enum { PAGES = 4, PAGE = 4096, FLOATS = PAGES * PAGE / sizeof(float) };

/* Weights and slots in memory of their own, and an update of them in place. */
static void idle_init(float *memory[3], const float *gradient, struct nn_update *update_p)
{
    for (int i = 0; i < 3; i++) {
        memory[i] =
            mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(memory[i] != MAP_FAILED);
        support_fill(memory[i], FLOATS, 1 + (uint32_t)i);
        for (size_t j = 0; j < FLOATS; j++)
            memory[i][j] = fabsf(memory[i][j]);
    }
    *update_p = (struct nn_update){
        FLOATS, gradient, memory[0], {memory[1], memory[2]}, memory[0], {memory[1], memory[2]}};
}

static void protect(float *memory[3], size_t pages, int how)
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(mprotect((char *)memory[i] + PAGE, pages * PAGE, how), 0);
}

/* Pages in the middle have no gradient and cannot be read: the others get the bits of the whole. */
static void lazy_updates_do_not_look_at_idle_blocks(void **state)
{
    struct nn_hyper hyper = {.lr = 0.1,
                             .momentum = 0.9,
                             .weight_decay = 0.1,
                             .beta1 = 0.9,
                             .beta2 = 0.99,
                             .epsilon = 1e-8,
                             .gradient_scale = 1,
                             .step = 3,
                             .lazy = true};
    const size_t rows[] = {3, 700, FLOATS - 1024, FLOATS - 1};
    float gradient[FLOATS] = {0}, *memory[2][3];
    struct nn_update update[2];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        gradient[rows[i]] = i == 1 ? -1e-30f : 0.5f;
    for (size_t o = 0; o < nn_optimiser_count; o++) {
        for (int i = 0; i < 2; i++)
            idle_init(memory[i], gradient, &update[i]);
        nn_optimiser_registry[o]->update(&hyper, &update[0]);
        protect(memory[1], PAGES - 2, PROT_NONE);
        nn_optimiser_update(nn_optimiser_registry[o], &hyper, &update[1]);
        protect(memory[1], PAGES - 2, PROT_READ | PROT_WRITE);
        for (int b = 0; b < 3; b++) {
            assert_memory_equal(memory[0][b], memory[1][b], PAGES * PAGE);
            for (int i = 0; i < 2; i++)
                munmap(memory[i][b], PAGES * PAGE);
        }
    }
}

static void unknown_name(void **state)
{
    const struct nn_optimiser *optimiser;

    (void)state;
    assert_int_equal(nn_optimiser_find("adamm", &optimiser), BASE_ERR_USAGE);
    assert_null(optimiser);
    assert_non_null(strstr(base_message(), "did you mean 'adam'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_is_pytorchs),
        cmocka_unit_test(adam_and_adamw_are_pytorchs),
        cmocka_unit_test(any_range_any_copy),
        cmocka_unit_test(lazy_updates_leave_zeros_alone),
        cmocka_unit_test(lazy_updates_do_not_look_at_idle_blocks),
        cmocka_unit_test(unknown_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
