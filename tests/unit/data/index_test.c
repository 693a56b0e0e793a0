/* SPDX-License-Identifier: MIT
 *
 * Indexes: written and read back, refused where a file says what cannot be, and samples that a set
 * is opened without, in the training and the validation part alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "data/index.h"
#include "support/datafiles.h"

static char *folder;
static const char SET[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static char *file_of(const char *text)
{
    support_write(folder, "index.json", text, strlen(text));
    return base_format("%s/index.json", folder);
}

static void test_comes_back(void **state)
{
    const uint32_t samples[] = {0, 3, 9};
    char *path = base_format("%s/index.json", folder);
    struct data_index a, b;

    (void)state;
    data_index_of_samples(SET, 10, samples, 3, &a);
    assert_int_equal(data_index_write(&a, path, json_pack("{s:s}", "why", "a test")), BASE_OK);
    if (data_index_read(path, &b) != BASE_OK)
        fail_msg("%s", base_message());
    assert_string_equal(b.set, SET);
    assert_string_equal(a.digest, b.digest);
    assert_int_equal(b.of, 10);
    assert_int_equal(b.count, 3);
    assert_null(b.users);
    assert_memory_equal(b.samples, samples, sizeof samples);
    assert_int_equal(data_index_check(&b, SET, true), BASE_ERR_DATA);
    assert_int_equal(data_index_check(&b, SET, false), BASE_OK);
    data_index_fini(&a);
    data_index_of_samples(SET, 10, samples, 2, &a);
    assert_string_not_equal(a.digest, b.digest);
    data_index_fini(&a);
    data_index_fini(&b);
    base_free(path);
}

static void test_bad_files(void **state)
{
    static const char *const bad[][2] = {
        {"[]", "index.json"},
        {"{\"set\": \"%s\", \"of\": 4}", "samples"},
        {"{\"set\": \"%s\", \"of\": 0, \"samples\": []}", "of"},
        {"{\"set\": \"abc\", \"of\": 4, \"samples\": []}", "'abc' is not the digest"},
        {"{\"set\": \"%s\", \"of\": 4, \"samples\": [1, 4]}", "entry 1 of its samples"},
        {"{\"set\": \"%s\", \"of\": 4, \"samples\": [-1]}", "entry 0 of its samples"},
        {"{\"set\": \"%s\", \"of\": 4, \"samples\": [\"1\"]}", "entry 0 of its samples"},
        {"{\"set\": \"%s\", \"of\": 4, \"samples\": [2, 1]}", "do not rise"},
        {"{\"set\": \"%s\", \"of\": 4, \"samples\": [2, 2]}", "do not rise"},
        {"{\"set\": \"%s\", \"of\": 1, \"samples\": [0, 0]}", "it lists 2 of 1"},
        {"{\"set\": \"%s\", \"of\": 4, \"users\": [7]}", "entry 0 of its users"},
        {"{\"set\": \"%s\", \"of\": 4, \"users\": [\"\"]}", "entry 0 of its users"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *gap = strstr(bad[i][0], "%s");
        char *text = gap == NULL
                         ? base_strdup(bad[i][0])
                         : base_format("%.*s%s%s", (int)(gap - bad[i][0]), bad[i][0], SET, gap + 2);
        char *path = file_of(text);
        struct data_index index;

        if (data_index_read(path, &index) == BASE_OK)
            fail_msg("%s is read", text);
        if (strstr(base_message(), bad[i][1]) == NULL)
            fail_msg("%s: '%s' does not say '%s'", text, base_message(), bad[i][1]);
        assert_null(index.samples);
        base_free(text);
        base_free(path);
    }
}

/* Which of 20 samples a set has in its training and validation parts; pixel 0 tells the sample. */
static uint32_t seen_by(struct data_options options, const struct data_index *index)
{
    struct data_set *set = NULL;
    uint32_t seen = 0;
    uint8_t pixels[20];

    options.exclude = index;
    if (data_open(folder, &options, &set) != BASE_OK)
        fail_msg("%s", base_message());
    assert_int_equal(data_describe(set)->count[DATA_TEST], 4);
    for (int part = 0; part < DATA_PARTS; part++)
        for (uint32_t i = 0; part != DATA_TEST && i < data_describe(set)->count[part]; i++) {
            assert_int_equal(data_pixels(set, (enum data_part)part, i, pixels), BASE_OK);
            seen |= 1u << (pixels[0] / 7);
        }
    data_close(set);
    return seen;
}

static void test_samples_are_left_out(void **state)
{
    const uint32_t samples[] = {0, 5, 6, 19};
    const uint32_t gone = 1u << 0 | 1u << 5 | 1u << 6 | 1u << 19, all = (1u << 20) - 1;
    const struct data_options plain = {0}, divided = {.validation = 0.5, .seed = 3};
    struct data_set *set = NULL;
    struct data_index index;

    (void)state;
    support_idx_set(folder, 20, 4);
    assert_int_equal(data_open(folder, &plain, &set), BASE_OK);
    data_index_of_samples(data_describe(set)->digest, 20, samples, 4, &index);
    data_close(set);
    assert_int_equal(seen_by(plain, NULL), all);
    assert_int_equal(seen_by(plain, &index), all & ~gone);
    assert_int_equal(seen_by(divided, &index), all & ~gone);
    data_index_fini(&index);
}

static void test_an_index_of_another_set_is_refused(void **state)
{
    const uint32_t samples[] = {1};
    struct data_options options = {0};
    struct data_set *set = NULL;
    struct data_index index;

    (void)state;
    support_idx_set(folder, 20, 4);
    data_index_of_samples(SET, 20, samples, 1, &index);
    options.exclude = &index;
    assert_int_equal(data_open(folder, &options, &set), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "another data set"));
    assert_null(set);
    data_index_fini(&index);
}

static int set_up(void **state)
{
    (void)state;
    folder = support_scratch();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_scratch_free(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_samples_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_index_of_another_set_is_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
