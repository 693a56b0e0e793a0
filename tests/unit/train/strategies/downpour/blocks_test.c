/* SPDX-License-Identifier: MIT
 *
 * Every sample is in one block, and the blocks are what their split promises.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "train/strategies/downpour/blocks.h"

enum { MOST = 997, CLASSES = 10, BLOCKS = 64 };

static uint32_t order[MOST], ids[MOST], counts[BLOCKS];
static int32_t classes[MOST];

static int32_t class_of(uint32_t id)
{
    return (int32_t)(id * 7 % CLASSES);
}

static struct train_division divide(enum train_split split, uint32_t blocks, uint32_t samples)
{
    struct base_rng rng = base_rng_of(5, BASE_STREAM_TEST, 2, blocks, samples);

    for (uint32_t i = 0; i < samples; i++)
        order[i] = i;
    base_rng_shuffle(&rng, order, samples);
    for (uint32_t i = 0; i < samples; i++)
        classes[i] = class_of(order[i]);
    return (struct train_division){split, blocks, samples, order, classes, CLASSES, 0.33, 1};
}

/* Places of the epoch's order, by id. */
static void check_order_in_block(uint32_t count, uint32_t samples)
{
    uint32_t place[MOST];

    for (uint32_t i = 0; i < samples; i++)
        place[order[i]] = i;
    for (uint32_t i = 1; i < count; i++)
        assert_true(place[ids[i - 1]] < place[ids[i]]);
}

static void test_every_sample_is_in_one_block(void **state)
{
    const uint32_t blocks[] = {1, 2, 3, 10, 11, 64}, samples[] = {1, 9, 100, MOST};

    (void)state;
    for (int split = 0; train_split_names[split] != NULL; split++)
        for (size_t b = 0; b < 6; b++)
            for (size_t n = 0; n < 4; n++) {
                struct train_division d = divide((enum train_split)split, blocks[b], samples[n]);
                uint8_t seen[MOST] = {0};
                uint32_t all = 0;

                downpour_blocks_count(&d, counts);
                for (uint32_t block = 0; block < d.blocks; block++) {
                    downpour_blocks_ids(&d, block, ids);
                    for (uint32_t i = 0; i < counts[block]; i++)
                        assert_int_equal(seen[ids[i]]++, 0);
                    check_order_in_block(counts[block], samples[n]);
                    all += counts[block];
                }
                assert_int_equal(all, samples[n]);
            }
}

static void test_equal_blocks_have_equal_shares_of_classes(void **state)
{
    struct train_division d = divide(DOWNPOUR_SPLIT_EQUAL, 7, MOST);
    uint32_t of[CLASSES] = {0};

    (void)state;
    for (uint32_t i = 0; i < MOST; i++)
        of[classes[i]]++;
    downpour_blocks_count(&d, counts);
    for (uint32_t block = 0; block < 7; block++) {
        uint32_t mine[CLASSES] = {0};

        assert_in_range(counts[block], MOST / 7, MOST / 7 + 1);
        downpour_blocks_ids(&d, block, ids);
        for (uint32_t i = 0; i < counts[block]; i++)
            mine[class_of(ids[i])]++;
        for (int c = 0; c < CLASSES; c++)
            assert_in_range(mine[c], of[c] / 7, of[c] / 7 + 1);
    }
}

static void test_class_blocks_have_classes_of_their_own(void **state)
{
    struct train_division d = divide(DOWNPOUR_SPLIT_CLASS, CLASSES, MOST);

    (void)state;
    downpour_blocks_count(&d, counts);
    for (uint32_t block = 0; block < CLASSES; block++) {
        downpour_blocks_ids(&d, block, ids);
        for (uint32_t i = 0; i < counts[block]; i++)
            assert_int_equal(class_of(ids[i]), block);
    }
    d.blocks = 3; /* several classes each */
    downpour_blocks_count(&d, counts);
    for (uint32_t block = 0; block < 3; block++) {
        downpour_blocks_ids(&d, block, ids);
        for (uint32_t i = 0; i < counts[block]; i++)
            assert_int_equal(class_of(ids[i]) * 3 / CLASSES, block);
    }
}

/* The shares of classes in a block; of large alpha they are nearly equal. */
static void test_dirichlet_blocks_are_uneven_and_the_same_in_any_order(void **state)
{
    struct train_division d = divide(DOWNPOUR_SPLIT_DIRICHLET, 10, MOST);
    uint32_t again[BLOCKS], most = 0, least = MOST;

    (void)state;
    downpour_blocks_count(&d, counts);
    for (uint32_t i = 0; i < MOST / 2; i++) { /* another order of the same samples */
        uint32_t id = order[i];

        order[i] = order[MOST - 1 - i];
        order[MOST - 1 - i] = id;
    }
    for (uint32_t i = 0; i < MOST; i++)
        classes[i] = class_of(order[i]);
    downpour_blocks_count(&d, again);
    assert_memory_equal(counts, again, 10 * sizeof *counts);
    for (uint32_t block = 0; block < 10; block++) {
        most = counts[block] > most ? counts[block] : most;
        least = counts[block] < least ? counts[block] : least;
    }
    assert_true(most > 2 * (least + 1));
    d.seed++;
    downpour_blocks_count(&d, again);
    assert_memory_not_equal(counts, again, 10 * sizeof *counts);
    d.alpha = 1e6;
    downpour_blocks_count(&d, counts);
    for (uint32_t block = 0; block < 10; block++)
        assert_in_range(counts[block], 90, 110);
}

static void test_samples_without_classes(void **state)
{
    struct train_division d = divide(DOWNPOUR_SPLIT_EQUAL, 4, 100);

    (void)state;
    d.classes = NULL;
    d.class_count = 1;
    downpour_blocks_count(&d, counts);
    for (int block = 0; block < 4; block++)
        assert_int_equal(counts[block], 25);
    d.split = DOWNPOUR_SPLIT_CLASS;
    downpour_blocks_count(&d, counts);
    for (int block = 0; block < 4; block++)
        assert_int_equal(counts[block], 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_sample_is_in_one_block),
        cmocka_unit_test(test_equal_blocks_have_equal_shares_of_classes),
        cmocka_unit_test(test_class_blocks_have_classes_of_their_own),
        cmocka_unit_test(test_dirichlet_blocks_are_uneven_and_the_same_in_any_order),
        cmocka_unit_test(test_samples_without_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
