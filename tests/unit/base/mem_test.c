/* SPDX-License-Identifier: MIT
 *
 * Memory: alignment, zeros, sizes that overflow or do not fit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static void test_tensor(void **state)
{
    float *values = NULL;

    (void)state;
    assert_int_equal(base_tensor(1001, sizeof(float), "values", &values), BASE_OK);
    assert_int_equal((uintptr_t)values % BASE_ALIGN, 0);
    for (int i = 0; i < 1001; i++)
        assert_true(values[i] == 0.0f);
    base_free(values);
    assert_int_equal(base_tensor(0, sizeof(float), "nothing", &values), BASE_OK);
    assert_non_null(values);
    base_free(values);
    base_free(NULL);
}

static void test_tensor_that_does_not_fit(void **state)
{
    static float there;
    float *values = &there;

    (void)state;
    assert_int_equal(base_tensor(SIZE_MAX / 2, 4, "values", &values), BASE_ERR_MEMORY);
    assert_null(values);
    values = &there;
    assert_int_equal(base_tensor(SIZE_MAX, 1, "values", &values), BASE_ERR_MEMORY);
    assert_null(values);
    values = &there;
    assert_int_equal(base_tensor(SIZE_MAX / 4, 2, "the weights", &values), BASE_ERR_MEMORY);
    assert_null(values);
    assert_non_null(strstr(base_message(), "no memory for the weights"));
}

static void test_checked_sizes(void **state)
{
    size_t result = 0;

    (void)state;
    assert_int_equal(base_mul(1u << 20, 1u << 20, &result), BASE_OK);
    assert_true(result == (size_t)1 << 40);
    assert_int_equal(base_mul(SIZE_MAX, 2, &result), BASE_ERR_MEMORY);
    assert_int_equal(base_mul((size_t)1 << 32, (size_t)1 << 32, &result), BASE_ERR_MEMORY);
    assert_int_equal(base_add(SIZE_MAX - 1, 1, &result), BASE_OK);
    assert_true(result == SIZE_MAX);
    assert_int_equal(base_add(SIZE_MAX, 1, &result), BASE_ERR_MEMORY);
}

static void test_text(void **state)
{
    char *format = base_format("%s-%d", "run", 7), *copy = base_strdup("abc");
    char *part = base_strndup("abcdef", 2);

    (void)state;
    assert_string_equal(format, "run-7");
    assert_string_equal(copy, "abc");
    assert_string_equal(part, "ab");
    base_free(format);
    base_free(copy);
    base_free(part);
}

static void test_peak_grows(void **state)
{
    const size_t more = (size_t)base_peak_memory() + (16u << 20);
    char *memory = NULL;

    (void)state;
    assert_true(base_peak_memory() > 0);
    assert_int_equal(base_tensor(more, 1, "more than ever", &memory), BASE_OK);
    assert_true(base_peak_memory() >= more); /* zeroed, so it was touched */
    base_free(memory);
    assert_true(base_peak_memory() >= more);
}

/* Whatever control groups say, it is some memory, and no more than the machine has. */
static void test_limit(void **state)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    (void)state;
    assert_in_range(base_memory_limit(), 1 << 20, machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensor),        cmocka_unit_test(test_tensor_that_does_not_fit),
        cmocka_unit_test(test_checked_sizes), cmocka_unit_test(test_text),
        cmocka_unit_test(test_peak_grows),    cmocka_unit_test(test_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
