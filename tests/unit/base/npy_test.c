/* SPDX-License-Identifier: MIT
 *
 * Files of NumPy: header, alignment, values; nothing is left of one that was not committed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/npy.h"

static int make_folder(void **state)
{
    char *folder = base_strdup("/tmp/npy-test-XXXXXX");

    assert_non_null(mkdtemp(folder));
    *state = folder;
    return 0;
}

static int remove_folder(void **state)
{
    assert_int_equal(base_remove_tree(*state), BASE_OK);
    base_free(*state);
    return 0;
}

static void test_file(void **state)
{
    const float values[6] = {0, 1, 2, 3, 4, 5.5f};
    char *path = base_format("%s/a.npy", (char *)*state), *bytes = NULL;
    struct base_npy npy;
    size_t count, header;

    assert_int_equal(base_npy_begin(path, "<f4", (const size_t[]){2, 3}, 2, &npy), BASE_OK);
    assert_int_equal(base_npy_write(&npy, values, 2 * sizeof *values), BASE_OK);
    assert_int_equal(base_npy_write(&npy, values + 2, 4 * sizeof *values), BASE_OK);
    assert_int_equal(base_npy_commit(&npy), BASE_OK);
    base_npy_end(&npy);
    assert_int_equal(base_file_read(path, 4096, &bytes, &count), BASE_OK);
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00", 8);
    header = 10 + (size_t)(unsigned char)bytes[8] + 256 * (size_t)(unsigned char)bytes[9];
    assert_int_equal(header % 64, 0);
    assert_int_equal(bytes[header - 1], '\n');
    assert_non_null(
        strstr(bytes + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }"));
    assert_int_equal(count, header + sizeof values);
    assert_memory_equal(bytes + header, values, sizeof values);
    base_free(bytes);
    base_free(path);
}

static void test_incomplete(void **state)
{
    char *path = base_format("%s/b.npy", (char *)*state), **names = NULL;
    const float value = 1;
    struct base_npy npy = {0};
    size_t count;

    base_npy_end(&npy);
    assert_int_equal(base_npy_begin(path, "<f4", (const size_t[]){2}, 1, &npy), BASE_OK);
    assert_int_equal(base_npy_write(&npy, &value, sizeof value), BASE_OK);
    assert_int_equal(base_npy_commit(&npy), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "lacks 4 bytes"));
    base_npy_end(&npy);
    assert_int_equal(base_list_dir(*state, &names, &count), BASE_OK);
    assert_int_equal(count, 0);
    base_names_free(names, count);
    assert_int_not_equal(base_npy_begin("/nowhere/at/all.npy", "<f4", (const size_t[]){1}, 1, &npy),
                         BASE_OK);
    base_npy_end(&npy);
    base_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_incomplete, make_folder, remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
