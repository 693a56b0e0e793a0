/* SPDX-License-Identifier: MIT
 *
 * Every level against plain loops: any number of sources, any alignment, in place, past the caches;
 * bfloat16 at its corners.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "coll/kernels.h"
#include "support/sums.h"

enum { MOST = 7, COUNT = 1000, ROOM = COUNT + 64 };

static _Alignas(64) float x[MOST][ROOM], y[MOST][ROOM];

static void one_sum(const struct coll_kernels *k, size_t count, int sources, int outs, size_t shift,
                    bool scaled, bool stream)
{
    static const float scale[MOST] = {0.5f, 0.25f, 0.1f, 3.0f, -1.0f, 0.3f, 0.7f};
    const float *from[MOST];
    float *to[MOST];

    for (int i = 0; i < MOST; i++) {
        from[i] = x[i] + shift * (size_t)i;
        to[i] = y[i] + shift;
        for (size_t j = 0; j < ROOM; j++)
            y[i][j] = 99;
    }
    k->sum(count, sources, from, scaled ? scale : NULL, outs, to, stream);
    for (size_t i = 0; i < count; i++) {
        volatile float sum = (scaled ? scale[0] : 1.0f) * from[0][i];

        for (int s = 1; s < sources; s++) {
            volatile float product = (scaled ? scale[s] : 1.0f) * from[s][i];

            sum = sum + product;
        }
        for (int o = 0; o < outs; o++)
            assert_true(to[o][i] == sum);
    }
    for (int o = 0; o < outs; o++)
        assert_true(to[o][count] == 99.0f && (shift == 0 || to[o][-1] == 99.0f));
}

static void test_sums(void **state)
{
    static const size_t counts[] = {0, 1, 7, 31, 32, 33, 64, 100, COUNT};

    (void)state;
    for (int i = 0; i < MOST; i++)
        sums_fill(i, ROOM, x[i]);
    for (enum base_cpu_level level = 0; level <= base_cpu_best(); level++) {
        const struct coll_kernels *k = coll_kernels_of(level);

        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int sources = 1; sources <= MOST; sources++)
                for (unsigned how = 0; how < 16; how++)
                    one_sum(k, counts[c], sources, how & 1 ? 3 : 1, how & 2 ? 5 : 0, how & 4,
                            how & 8);
    }
}

static void test_in_place(void **state)
{
    float sum[COUNT], more[COUNT];

    (void)state;
    sums_fill(0, COUNT, sum);
    sums_fill(1, COUNT, more);
    coll_add(COUNT, more, 0.5f, sum);
    coll_scale(COUNT, 3.0f, sum);
    for (size_t i = 0; i < COUNT; i++) {
        volatile float half = 0.5f * sums_value(0, i), both = sums_value(1, i) + half;

        assert_true(sum[i] == 3.0f * both);
    }
}

static float rounded(const struct coll_kernels *k, float value)
{
    float values[19] = {[18] = value}, back[19];
    uint16_t packed[19];

    k->pack(19, values, packed);
    k->unpack(19, packed, back);
    return back[18];
}

static void test_bf16_corners(void **state)
{
    (void)state;
    for (enum base_cpu_level level = 0; level <= base_cpu_best(); level++) {
        const struct coll_kernels *k = coll_kernels_of(level);

        assert_true(rounded(k, 1.0f) == 1.0f);
        assert_true(rounded(k, -0.0f) == 0.0f && signbit(rounded(k, -0.0f)));
        assert_true(rounded(k, 1.00390625f) == 1.0f);      /* a tie, to even */
        assert_true(rounded(k, 1.01171875f) == 1.015625f); /* a tie, to even */
        assert_true(rounded(k, 1.00390637f) == 1.0078125f);
        assert_true(isinf(rounded(k, 3.4e38f))); /* above the largest */
        assert_true(rounded(k, -INFINITY) == -INFINITY);
        assert_true(isnan(rounded(k, NAN)));
        assert_true(rounded(k, 1e-40f) == 0x1p-133f); /* the smallest */
    }
}

/* Packed onto itself, and unpacked out of the upper half of its own memory. */
static void test_bf16_in_place(void **state)
{
    (void)state;
    for (enum base_cpu_level level = 0; level <= base_cpu_best(); level++)
        for (size_t count = 1; count < 130; count++) {
            const struct coll_kernels *k = coll_kernels_of(level);
            float values[130], want[130];
            uint16_t packed[130];

            sums_fill((int)count, count, values);
            memcpy(want, values, sizeof want);
            coll_round(count, want);
            k->pack(count, values, packed);
            k->pack(count, values, (uint16_t *)values);
            assert_memory_equal(values, packed, 2 * count);
            memcpy((uint16_t *)values + count, packed, 2 * count);
            k->unpack(count, (uint16_t *)values + count, values);
            assert_memory_equal(values, want, 4 * count);
            for (size_t i = 0; i < count; i++)
                assert_true(fabsf(want[i] - sums_value((int)count, i)) <= 0x1p-8f * fabsf(want[i]));
        }
}

static void test_slices(void **state)
{
    (void)state;
    for (size_t count = 0; count < 300; count++)
        for (int size = 1; size <= 7; size++) {
            size_t next = 0, from, length;

            for (int rank = 0; rank < size; rank++) {
                coll_slice(count, rank, size, &from, &length);
                assert_int_equal(from, next);
                assert_true(from % 16 == 0 || length == 0);
                next = from + length;
            }
            assert_int_equal(next, count);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),         cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_bf16_corners), cmocka_unit_test(test_bf16_in_place),
        cmocka_unit_test(test_slices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
