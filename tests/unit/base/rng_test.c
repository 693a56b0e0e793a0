/* SPDX-License-Identifier: MIT
 *
 * Philox4x32-10 against the known answers of Random123 (kat_vectors), the counter layout against
 * numbers of tools/philox.py, and the shuffle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

static void check_known(const uint32_t counter[4], const uint32_t key[2], const uint32_t answer[4])
{
    struct base_rng rng = {{key[0], key[1]}, {0, counter[1], counter[2], counter[3]}};
    uint32_t words[4];

    base_rng_block(&rng, counter[0], words);
    assert_memory_equal(words, answer, sizeof words);
}

static void test_known_answers(void **state)
{
    const uint32_t ones = 0xffffffffu;

    (void)state;
    check_known((uint32_t[]){0, 0, 0, 0}, (uint32_t[]){0, 0},
                (uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check_known((uint32_t[]){ones, ones, ones, ones}, (uint32_t[]){ones, ones},
                (uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check_known((uint32_t[]){0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                (uint32_t[]){0xa4093822, 0x299f31d0},
                (uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

/* tools/philox.py 0x0123456789abcdef 7 5 6 7 9: files and outsiders rely on this layout. */
static void test_counter_layout(void **state)
{
    static const uint32_t known[9] = {0x5a8b9555, 0xa404e86c, 0x410b9e5c, 0x4c46d61c, 0x993ab9a5,
                                      0x5950d01e, 0x93369d7c, 0x5d0a67bd, 0xbda92c26};
    struct base_rng rng = base_rng_of(0x0123456789abcdefull, BASE_STREAM_TEST, 5, 6, 7);

    (void)state;
    for (uint32_t i = 0; i < 9; i++)
        assert_int_equal(base_rng_u32(&rng, i), known[i]);
}

/* Each coordinate must reach the numbers: two that collide would correlate a run's draws. */
static void test_coordinates_differ(void **state)
{
    const struct base_rng rngs[] = {
        base_rng_of(1, BASE_STREAM_INIT, 0, 0, 0),
        base_rng_of(1ull << 32, BASE_STREAM_INIT, 0, 0, 0),
        base_rng_of(1, BASE_STREAM_SHUFFLE, 0, 0, 0),
        base_rng_of(1, BASE_STREAM_INIT, 1, 0, 0),
        base_rng_of(1, BASE_STREAM_INIT, 0, 1, 0),
        base_rng_of(1, BASE_STREAM_INIT, 0, 0, 1),
    };
    const size_t count = sizeof rngs / sizeof rngs[0];

    (void)state;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            uint32_t a[4], b[4];

            base_rng_block(&rngs[i], 0, a);
            base_rng_block(&rngs[j], 0, b);
            assert_memory_not_equal(a, b, sizeof a);
        }
    }
}

static void test_unit_range(void **state)
{
    (void)state;
    assert_true(base_rng_unit(0) == 0.0f);
    assert_true(base_rng_unit(0xff) == 0.0f);
    assert_true(base_rng_unit(0x80000000u) == 0.5f);
    assert_true(base_rng_unit(0xffffffffu) == 1.0f - 0x1p-24f);
}

enum { COUNT = 1000 };

static void shuffled(uint32_t epoch, uint32_t order[COUNT])
{
    struct base_rng rng = base_rng_of(3, BASE_STREAM_SHUFFLE, 0, epoch, 0);

    for (uint32_t i = 0; i < COUNT; i++)
        order[i] = i;
    base_rng_shuffle(&rng, order, COUNT);
}

static void test_shuffle_is_permutation(void **state)
{
    uint32_t order[COUNT], seen[COUNT] = {0}, moved = 0;

    (void)state;
    shuffled(1, order);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(order[i] < COUNT);
        assert_int_equal(seen[order[i]]++, 0);
        moved += order[i] != i;
    }
    assert_true(moved > COUNT * 9 / 10);
}

static void test_shuffle_is_deterministic(void **state)
{
    uint32_t a[COUNT], b[COUNT], other[COUNT];

    (void)state;
    shuffled(1, a);
    shuffled(1, b);
    shuffled(2, other);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, other, sizeof a);
}

static void test_shuffle_of_few(void **state)
{
    struct base_rng rng = base_rng_of(3, BASE_STREAM_SHUFFLE, 0, 0, 0);
    uint32_t one = 42;

    (void)state;
    base_rng_shuffle(&rng, NULL, 0);
    base_rng_shuffle(&rng, &one, 1);
    assert_int_equal(one, 42);
}

/* All six orders of three values appear about equally often over 6000 epochs. */
static void test_shuffle_is_uniform(void **state)
{
    uint32_t tally[27] = {0};
    static const int orders[6] = {5, 7, 11, 15, 19, 21}; /* 012 021 102 120 201 210 in base 3 */

    (void)state;
    for (uint32_t epoch = 0; epoch < 6000; epoch++) {
        struct base_rng rng = base_rng_of(9, BASE_STREAM_SHUFFLE, 0, epoch, 0);
        uint32_t v[3] = {0, 1, 2};

        base_rng_shuffle(&rng, v, 3);
        tally[v[0] * 9 + v[1] * 3 + v[2]]++;
    }
    for (int i = 0; i < 6; i++)
        assert_in_range(tally[orders[i]], 850, 1150); /* 5 standard deviations of 29 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_counter_layout),
        cmocka_unit_test(test_coordinates_differ),
        cmocka_unit_test(test_unit_range),
        cmocka_unit_test(test_shuffle_is_permutation),
        cmocka_unit_test(test_shuffle_is_deterministic),
        cmocka_unit_test(test_shuffle_of_few),
        cmocka_unit_test(test_shuffle_is_uniform),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
