/* SPDX-License-Identifier: MIT
 *
 * Fields of lines; fields as ids, values and times; good ones and bad ones.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "recsys/recsys_private.h"

static struct recsys_field field(const char *text)
{
    return (struct recsys_field){text, strlen(text)};
}

static void cuts(const char *separator, const char *line, int found, const char *user,
                 const char *rating)
{
    struct recsys_layout layout = {.columns = 4,
                                   .role = {RECSYS_USER, RECSYS_SKIP, RECSYS_RATING, RECSYS_TIME}};
    struct recsys_field f[RECSYS_ROLES] = {0};

    strcpy(layout.separator, separator);
    assert_int_equal(recsys_cut(&layout, line, strlen(line), f), found);
    if (user != NULL)
        assert_true(f[RECSYS_USER].length == strlen(user) &&
                    memcmp(f[RECSYS_USER].at, user, strlen(user)) == 0);
    if (rating != NULL)
        assert_true(f[RECSYS_RATING].length == strlen(rating) &&
                    memcmp(f[RECSYS_RATING].at, rating, strlen(rating)) == 0);
}

static void test_cut(void **state)
{
    (void)state;
    cuts(",", "1,2,3,4", 4, "1", "3");
    cuts(",", "1,2", 2, "1", NULL);
    cuts(",", "", 1, "", NULL);
    cuts(",", ",,,", 4, "", "");
    cuts(",", "1,2,3,4,5", 5, "1", "3");
    cuts(",", " 1 ,2,\t3 ,4", 4, "1", "3");
    cuts("::", "1::2::3::4", 4, "1", "3");
    cuts("::", "1:2::3::4:::", 4, "1:2", "4");
    cuts("\t", "a b\tx\t5\t9", 4, "a b", "5");
    cuts(" ", "  1  2 3\t4 ", 4, "1", "3");
    cuts(",", "\"a,b\",2,\"3\" ,4", 4, "a,b", "3");
    cuts(",", "\"a,b,2,3", 0, NULL, NULL);
    cuts(",", "\"a\"b,2,3,4", 0, NULL, NULL);
    cuts(",", "\"", 0, NULL, NULL);
}

static void test_numbers(void **state)
{
    static const char *const bad[] = {"",           "-1",          "+1", "01", "1.0",
                                      "4294967296", "99999999999", "1 ", "x",  "268435456"};
    uint32_t number;

    (void)state;
    assert_true(recsys_number(field("0"), 9, &number) && number == 0);
    assert_true(recsys_number(field("4294967295"), UINT32_MAX, &number) && number == UINT32_MAX);
    assert_true(recsys_number(field("268435455"), RECSYS_MOST_NUMBER, &number));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(recsys_number(field(bad[i]), RECSYS_MOST_NUMBER, &number));
}

static void test_reals(void **state)
{
    static const char *const bad[] = {"",   "nan",  "NaN", "inf",   "-inf", "0x10",
                                      "1e", "1e99", "4,5", "4.5.6", "--1",  "four"};
    float value;

    (void)state;
    assert_true(recsys_real(field("4.5"), &value) && value == 4.5f);
    assert_true(recsys_real(field("-9.75"), &value) && value == -9.75f);
    assert_true(recsys_real(field("1e2"), &value) && value == 100);
    assert_true(recsys_real(field("-0"), &value) && !signbit(value));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(recsys_real(field(bad[i]), &value));
}

static void is_time(const char *text, uint32_t want)
{
    uint32_t seconds;

    assert_true(recsys_time(field(text), &seconds));
    assert_int_equal(seconds, want);
}

static void test_times(void **state)
{
    static const char *const bad[] = {"",
                                      "-5",
                                      "2005-02-29",
                                      "2005-13-01",
                                      "2005-00-01",
                                      "1969-12-31",
                                      "2107-01-01",
                                      "2005-09-06x",
                                      "2005-09-06 25:00",
                                      "now",
                                      "99999999999999",
                                      "2005-9-6",
                                      "2005-09-06 1"};
    uint32_t seconds;

    (void)state;
    is_time("0", 0);
    is_time("964982703", 964982703);
    is_time("964982703.25", 964982703);
    is_time("964982703000", 964982703); /* milliseconds */
    is_time("1970-01-01", 0);
    is_time("2005-09-06", 1125964800);
    is_time("2004-02-29", 1078012800);
    is_time("2005-09-06 12:30:01", 1125964800 + 45001);
    is_time("2005-09-06T12:30Z", 1125964800 + 45000);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(recsys_time(field(bad[i]), &seconds));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_reals),
        cmocka_unit_test(test_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
