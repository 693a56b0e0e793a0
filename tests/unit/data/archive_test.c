/* SPDX-License-Identifier: MIT
 *
 * The readers of tar, zip and deflated streams: good archives, every truncation of them, entries
 * that would leave their folder, and archives that say one thing and hold another.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "data/data_get_private.h"
#include "support/archives.h"

static const char TEXT[] = "the quick brown fox, the quick brown fox, the quick brown fox";

/* Wants what does not start with "skip"; notes entries and bytes as "name=bytes;". */
static base_status note_begin(void *state, const char *entry, bool *wanted_p)
{
    *wanted_p = strncmp(entry, "skip", 4) != 0;
    if (*wanted_p)
        base_str_add(state, "%s=", entry);
    return BASE_OK;
}

static base_status note_bytes(void *state, const uint8_t *bytes, size_t count)
{
    base_str_append(state, (const char *)bytes, count);
    return BASE_OK;
}

static base_status note_end(void *state)
{
    base_str_add(state, ";");
    return BASE_OK;
}

static base_status read_tgz(const struct base_str *gz, uint64_t limit, struct base_str *notes)
{
    struct data_sink sink = {notes, note_begin, note_bytes, note_end};
    struct data_inflate stream;
    base_status st =
        data_inflate_init(&stream, DATA_INFLATE_GZIP, base_cursor_of(gz->text, gz->length), limit);

    assert_int_equal(st, BASE_OK);
    st = data_tar_read((struct data_input){&stream, data_inflate_read}, &sink);
    data_inflate_fini(&stream);
    return st;
}

static base_status read_zip(const struct base_str *zip, struct base_str *notes)
{
    struct data_sink sink = {notes, note_begin, note_bytes, note_end};

    return data_zip_read(zip->text, zip->length, 1000, &sink);
}

static void make_tar(struct base_str *tar)
{
    test_tar_add(tar, "folder/", '5', "", 0);
    test_tar_add(tar, "skip/long-name", 'L', "a name\n", 7);
    test_tar_add(tar, "folder/a", '0', TEXT, strlen(TEXT));
    test_tar_add(tar, "skip", '0', TEXT, strlen(TEXT));
    test_tar_add(tar, "empty", '0', "", 0);
    test_tar_end(tar);
}

static void test_tar(void **state)
{
    struct base_str tar = {0}, gz = {0}, notes = {0};
    char *expected = base_format("folder/a=%s;empty=;", TEXT);

    (void)state;
    make_tar(&tar);
    test_gzip(tar.text, tar.length, &gz);
    assert_int_equal(read_tgz(&gz, 100000, &notes), BASE_OK);
    assert_string_equal(notes.text, expected);
    for (size_t count = 0; count < gz.length; count++) { /* every truncation is seen */
        struct base_str cut = {.text = gz.text, .length = count};

        assert_int_equal(read_tgz(&cut, 100000, &notes), BASE_ERR_DATA);
    }
    assert_int_equal(read_tgz(&gz, tar.length - 1, &notes), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "more than the"));
    base_free(expected);
    base_str_fini(&tar);
    base_str_fini(&gz);
    base_str_fini(&notes);
}

static void test_tar_damage(void **state)
{
    struct base_str tar = {0}, gz = {0}, notes = {0};

    (void)state;
    make_tar(&tar);
    tar.text[3] ^= 1; /* a name */
    test_gzip(tar.text, tar.length, &gz);
    assert_int_equal(read_tgz(&gz, 100000, &notes), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "checksum"));
    gz.text[gz.length - 5] ^= 1; /* gzip's own sum */
    assert_int_equal(read_tgz(&gz, 100000, &notes), BASE_ERR_DATA);
    base_str_fini(&gz);
    tar.length = 700; /* whole gzip around half a tar */
    tar.text[3] ^= 1;
    test_gzip(tar.text, tar.length, &gz);
    assert_int_equal(read_tgz(&gz, 100000, &notes), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "tar archive ends too early"));
    base_str_fini(&tar);
    base_str_fini(&gz);
    base_str_fini(&notes);
}

static void make_zip(struct test_zip *zip, const char *comment)
{
    test_zip_add(zip, "set/", "", 0, false);
    test_zip_add(zip, "set/a", TEXT, strlen(TEXT), true);
    test_zip_add(zip, "skip", TEXT, strlen(TEXT), true);
    test_zip_add(zip, "set/b", "plain", 5, false);
    test_zip_end(zip, comment);
}

static void test_zip(void **state)
{
    static const char *const comments[] = {"", "PK\5\6 a comment that looks like an end record"};
    char *expected = base_format("set/=;set/a=%s;set/b=plain;", TEXT);

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct test_zip zip = {0};
        struct base_str notes = {0};

        make_zip(&zip, comments[i]);
        assert_int_equal(read_zip(&zip.bytes, &notes), BASE_OK);
        assert_string_equal(notes.text, expected);
        for (size_t count = 0; count < zip.bytes.length; count++) {
            struct base_str cut = {.text = zip.bytes.text, .length = count};

            assert_int_equal(read_zip(&cut, &notes), BASE_ERR_DATA);
        }
        base_str_fini(&notes);
        test_zip_fini(&zip);
    }
    base_free(expected);
}

/* Every bit of a zip: never bytes other than the right ones under a name and an OK. */
static void test_zip_bits(void **state)
{
    struct test_zip zip = {0};
    char *good_a = base_format("set/a=%s;", TEXT);

    (void)state;
    test_zip_add(&zip, "set/a", TEXT, strlen(TEXT), true);
    test_zip_end(&zip, "");
    for (size_t bit = 0; bit < zip.bytes.length * 8; bit++) {
        struct base_str notes = {0};

        zip.bytes.text[bit / 8] = (char)(zip.bytes.text[bit / 8] ^ 1 << bit % 8);
        if (read_zip(&zip.bytes, &notes) == BASE_OK && notes.text != NULL &&
            strstr(notes.text, "set/a=") != NULL)
            assert_string_equal(notes.text, good_a);
        base_str_fini(&notes);
        zip.bytes.text[bit / 8] = (char)(zip.bytes.text[bit / 8] ^ 1 << bit % 8);
    }
    base_free(good_a);
    test_zip_fini(&zip);
}

static void test_zip_limit(void **state)
{
    struct test_zip zip = {0};
    struct base_str notes = {0};
    char *zeros = base_calloc(2000, 1);

    (void)state;
    test_zip_add(&zip, "bomb", zeros, 2000, true);
    test_zip_end(&zip, "");
    assert_int_equal(read_zip(&zip.bytes, &notes), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "more bytes than allowed"));
    base_free(zeros);
    base_str_fini(&notes);
    test_zip_fini(&zip);
}

static void test_names(void **state)
{
    static const char *const good[] = {"a", "a/b", "a/b/", "..a", "a..", "a/...", "./a"};
    static const char *const bad[] = {"",       "/a",   "..",   "../a",   "a/..",
                                      "a/../b", "a\\b", "a\nb", "a/\x7f", "a//../b"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(data_entry_check(good[i]), BASE_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct test_zip zip = {0};
        struct base_str tar = {0}, gz = {0}, notes = {0};

        assert_int_equal(data_entry_check(bad[i]), BASE_ERR_DATA);
        test_zip_add(&zip, bad[i], "x", 1, false);
        test_zip_end(&zip, "");
        assert_int_equal(read_zip(&zip.bytes, &notes), BASE_ERR_DATA);
        test_tar_add(&tar, bad[i], '0', "x", 1);
        test_tar_end(&tar);
        test_gzip(tar.text, tar.length, &gz);
        assert_int_equal(read_tgz(&gz, 100000, &notes), BASE_ERR_DATA);
        assert_null(notes.text);
        test_zip_fini(&zip);
        base_str_fini(&tar);
        base_str_fini(&gz);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tar),       cmocka_unit_test(test_tar_damage),
        cmocka_unit_test(test_zip),       cmocka_unit_test(test_zip_bits),
        cmocka_unit_test(test_zip_limit), cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
