/* SPDX-License-Identifier: MIT
 *
 * PACELINE_CPU with a name that is no level: the best level is used all the same. (simd_test.c
 * checks a name that is one; the choice is made once in a process.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nn/simd/simd.h"

static void an_unknown_level_is_ignored(void **unused)
{
    const struct nn_simd *const *levels = nn_simd_levels();
    size_t last = 0;

    (void)unused;
    while (levels[last + 1])
        last++;
    assert_ptr_equal(nn_simd(), levels[last]);
    assert_ptr_equal(nn_simd(), nn_simd());
}

static void levels_have_names_of_their_own(void **unused)
{
    const struct nn_simd *const *levels = nn_simd_levels();

    (void)unused;
    assert_string_equal(levels[0]->name, "portable");
    for (size_t i = 1; levels[i]; i++)
        assert_true(strcmp(levels[i]->name, levels[i - 1]->name) != 0);
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
