/* SPDX-License-Identifier: MIT
 *
 * PACELINE_CPU with a name that is no level: the best level is used all the same. (nn/simd_test.c
 * checks a name that is one; the choice is made once in a process.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/cpu_level.h"
#include "base/log.h"

static void an_unknown_level_is_ignored(void **unused)
{
    (void)unused;
    assert_int_equal(base_cpu_level(), base_cpu_best());
    assert_true(base_cpu_best() < BASE_CPU_LEVELS);
}

static void levels_have_names_of_their_own(void **unused)
{
    (void)unused;
    assert_string_equal(base_cpu_level_name(BASE_CPU_portable), "portable");
    for (enum base_cpu_level level = 1; level < BASE_CPU_LEVELS; level++)
        assert_true(strcmp(base_cpu_level_name(level), base_cpu_level_name(level - 1)) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_level_is_ignored),
        cmocka_unit_test(levels_have_names_of_their_own),
    };

    setenv("PACELINE_CPU", "abacus", 1);
    base_log_level(BASE_QUIET);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
