/* SPDX-License-Identifier: MIT
 *
 * Who has told workers different things (train/robust_private.h), where one that does lies about
 * itself, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "train/robust_private.h"

/* As rank 0: `heard` has a letter for what each worker says that it has heard of the one of that
 * rank. */
static enum robust_words judge(const char *heard, int rank)
{
    struct train_robust r = {.size = (int)strlen(heard)};
    const size_t bytes = robust_echo_bytes(r.size);
    enum robust_words words;

    r.echoes = base_calloc((size_t)r.size, bytes);
    for (int a = 0; a < r.size; a++)
        memset(r.echoes + (size_t)a * bytes + (size_t)(1 + rank) * TRAIN_ROBUST_DIGEST, heard[a],
               TRAIN_ROBUST_DIGEST);
    words = robust_judge_words(&r, rank);
    base_free(r.echoes);
    return words;
}

static void test_the_word_of_a_worker_about_itself_does_not_count(void **state)
{
    (void)state;
    assert_int_equal(judge("xyx", 2), ROBUST_UNCLEAR);
    assert_int_equal(judge("xxyyx", 4), ROBUST_UNCLEAR);
    assert_int_equal(judge("xyyx", 3), ROBUST_UNLIKE);
    assert_int_equal(judge("xxyy", 3), ROBUST_ALIKE);
}

static void test_honest_workers_are_not_blamed_for_what_others_say(void **state)
{
    (void)state;
    assert_int_equal(judge("xx", 1), ROBUST_ALIKE);
    assert_int_equal(judge("xzx", 2), ROBUST_UNCLEAR);
    assert_int_equal(judge("xxzx", 3), ROBUST_ALIKE);
    assert_int_equal(judge("xxzzx", 4), ROBUST_UNCLEAR);
    assert_int_equal(judge("xzzz", 0), ROBUST_ALIKE); /* itself */
}

static void test_who_tells_all_different_things_is_blamed(void **state)
{
    (void)state;
    assert_int_equal(judge("xyzx", 3), ROBUST_UNLIKE);
    assert_int_equal(judge("xyyyy", 4), ROBUST_UNLIKE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_word_of_a_worker_about_itself_does_not_count),
        cmocka_unit_test(test_honest_workers_are_not_blamed_for_what_others_say),
        cmocka_unit_test(test_who_tells_all_different_things_is_blamed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
