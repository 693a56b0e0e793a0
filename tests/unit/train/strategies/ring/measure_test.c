/* SPDX-License-Identifier: MIT
 *
 * Quotas and crowded hosts make measured times longer; room to spare does not make them shorter.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/strategies/ring/measure.h"

static void test_stretch(void **state)
{
    (void)state;
    assert_true(ring_measure_stretch(0.5, 1, 1) == 2); /* half a CPU */
    assert_true(ring_measure_stretch(2, 4, 1) == 2);   /* four workers on two cores */
    assert_true(ring_measure_stretch(2, 2, 2) == 2);
    assert_true(ring_measure_stretch(8, 2, 2) == 1);
    assert_true(ring_measure_stretch(INFINITY, 64, 64) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stretch)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
