/* SPDX-License-Identifier: MIT
 *
 * Places of lent memory: no two buffers that are needed at the same time overlap, whatever the
 * groups' sizes, and the pool is as small as it can be where that is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "train/pool.h"

enum { MOST = 40 };

static bool apart(size_t a, size_t b, size_t a_floats, size_t b_floats)
{
    return a + a_floats <= b || b + b_floats <= a;
}

/* What is in use while group g computes: its weights, those that are gathered for the next one, its
 * gradients, and the gradients of the one before until they are summed. */
static void check(const struct train_pool *p, const size_t *floats)
{
    for (int g = 0; g < p->groups; g++) {
        if (p->forward != NULL) {
            assert_true(p->forward[g] % 16 == 0 && p->forward[g] + floats[g] <= p->floats);
            assert_true(p->backward[g] % 16 == 0 && p->backward[g] + floats[g] <= p->floats);
        }
        if (p->gradients != NULL)
            assert_true(p->gradients[g] % 16 == 0 && p->gradients[g] + floats[g] <= p->floats);
        if (p->forward != NULL && p->gradients != NULL)
            assert_true(apart(p->backward[g], p->gradients[g], floats[g], floats[g]));
        if (g == 0)
            continue;
        if (p->forward != NULL) {
            assert_true(apart(p->forward[g - 1], p->forward[g], floats[g - 1], floats[g]));
            assert_true(apart(p->backward[g - 1], p->backward[g], floats[g - 1], floats[g]));
        }
        if (p->gradients != NULL)
            assert_true(apart(p->gradients[g - 1], p->gradients[g], floats[g - 1], floats[g]));
        if (p->forward != NULL && p->gradients != NULL)
            assert_true(apart(p->backward[g - 1], p->gradients[g], floats[g - 1], floats[g]));
    }
}

static void test_equal(void **state)
{
    size_t floats[MOST];
    struct train_pool pool;

    (void)state;
    for (int i = 0; i < MOST; i++)
        floats[i] = 1600;
    train_pool_plan(&pool, floats, MOST, true, true);
    check(&pool, floats);
    assert_int_equal(pool.floats, 3 * 1600);
    train_pool_fini(&pool);
    train_pool_plan(&pool, floats, MOST, false, true);
    check(&pool, floats);
    assert_null(pool.forward);
    assert_int_equal(pool.floats, 2 * 1600);
    train_pool_fini(&pool);
    train_pool_plan(&pool, floats, MOST, true, false);
    check(&pool, floats);
    assert_null(pool.gradients);
    assert_int_equal(pool.floats, 2 * 1600);
    train_pool_fini(&pool);
    train_pool_fini(&pool); /* accepts zeros */
}

/* One group that is much larger than the others: its weights, its gradients and one neighbour. */
static void test_one_large(void **state)
{
    const size_t floats[] = {160, 160, 16000, 320, 160};
    struct train_pool pool;

    (void)state;
    train_pool_plan(&pool, floats, 5, true, true);
    check(&pool, floats);
    assert_in_range(pool.floats, 2 * 16000 + 320, 2 * 16000 + 640);
    train_pool_fini(&pool);
}

static void test_few(void **state)
{
    const size_t one[] = {17};
    struct train_pool pool;

    (void)state;
    train_pool_plan(&pool, one, 1, true, true);
    check(&pool, one);
    assert_int_equal(pool.floats, 2 * 32);
    train_pool_fini(&pool);
    train_pool_plan(&pool, one, 0, true, true);
    assert_int_equal(pool.floats, 0);
    train_pool_fini(&pool);
}

static void test_random(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 500; seed++) {
        const struct base_rng rng = base_rng_of(seed, BASE_STREAM_TEST, 2, 0, 0);
        int groups = 1 + (int)(base_rng_u32(&rng, 0) % MOST);
        size_t floats[MOST], most = 0;
        struct train_pool pool;

        for (int i = 0; i < groups; i++) {
            floats[i] = 1 + base_rng_u32(&rng, (uint32_t)i + 1) % 100000;
            most = floats[i] > most ? floats[i] : most;
        }
        train_pool_plan(&pool, floats, groups, seed % 3 != 0, seed % 3 != 1);
        check(&pool, floats);
        assert_in_range(pool.floats, most, 3 * (most + 16));
        train_pool_fini(&pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_one_large),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
