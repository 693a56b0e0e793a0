/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nn/tensor.h"

static const struct nn_tensor shapes[] = {
    {.order = NN_VECTOR, .rank = 1, .dims = {13, 1, 1, 1}},
    {.order = NN_PLAIN, .rank = 4, .dims = {6, 3, 2, 5}},
    {.order = NN_K_BLOCKED, .rank = 4, .dims = {9, 11, 3, 2}},
    {.order = NN_K_HWI, .rank = 4, .dims = {10, 3, 2, 4}},
    {.order = NN_K_CHW, .rank = 2, .dims = {9, 3, 4, 2}},
};
static const size_t floats[] = {16, 180, 16 * 16 * 6, 16 * 24, 16 * 24};

static void there_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct nn_tensor t = shapes[i];
        float *canonical, *memory, *again;
        size_t zeros = 0;

        nn_tensor_size(&t);
        assert_int_equal(t.floats, floats[i]);
        canonical = base_calloc(t.values, sizeof(float));
        again = base_calloc(t.values, sizeof(float));
        memory = base_calloc(t.floats, sizeof(float));
        for (size_t e = 0; e < t.values; e++)
            canonical[e] = (float)(e + 1);
        memset(memory, 0xff, t.floats * sizeof(float));
        nn_tensor_import(&t, canonical, memory);
        for (size_t e = 0; e < t.floats; e++)
            zeros += memory[e] == 0;
        assert_int_equal(zeros, t.floats - t.values);
        nn_tensor_export(&t, memory, again);
        assert_memory_equal(again, canonical, t.values * sizeof(float));
        base_free(canonical);
        base_free(again);
        base_free(memory);
    }
}

/* (O,I,H,W) = (9,11,3,2) element (8,10,2,1) as OIhw8i8o: [O/8=1][I/8=1][2][1][2][0]. */
static void blocked_place(void **state)
{
    struct nn_tensor t = shapes[2];
    float canonical[9 * 11 * 6] = {0}, memory[16 * 16 * 6];

    (void)state;
    nn_tensor_size(&t);
    canonical[((8 * 11 + 10) * 3 + 2) * 2 + 1] = 1;
    nn_tensor_import(&t, canonical, memory);
    assert_true(memory[((((1 * 2 + 1) * 3 + 2) * 2 + 1) * 8 + 2) * 8 + 0] == 1);
}

static void starts_by_the_rule(void **state)
{
    struct nn_tensor t = shapes[3];
    struct base_rng rng = base_rng_of(42, BASE_STREAM_INIT, 5, 0, 0);
    float memory[16 * 24], canonical[240];

    (void)state;
    t.bound = 0.25f;
    nn_tensor_size(&t);
    nn_tensor_start(&t, 42, 5, memory);
    nn_tensor_export(&t, memory, canonical);
    for (uint32_t e = 0; e < 240; e++)
        assert_true(canonical[e] == (2.0f * base_rng_unit(base_rng_u32(&rng, e)) - 1.0f) * 0.25f);
    t = nn_tensor_vector(13, NN_START_ONE, 0);
    nn_tensor_size(&t);
    nn_tensor_start(&t, 42, 0, memory);
    assert_true(memory[12] == 1 && memory[13] == 0 && memory[15] == 0);
    t.start = NN_START_ZERO;
    nn_tensor_start(&t, 42, 0, memory);
    assert_true(memory[0] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(blocked_place),
        cmocka_unit_test(starts_by_the_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
