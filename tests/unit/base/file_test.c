/* SPDX-License-Identifier: MIT
 *
 * Files: whole reads, atomic replacement, folders, digests; and what the system refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"

static char folder[] = "/tmp/paceline-file-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return chdir("/") != 0 || base_remove_tree(folder) != BASE_OK || base_exists(folder);
}

static void must(base_status st)
{
    if (st != BASE_OK)
        fail_msg("%s", base_message());
}

static void test_read(void **state)
{
    char *bytes = NULL;
    size_t count = 0;

    (void)state;
    must(base_file_replace("five", "a\0cde", 5));
    must(base_file_read("five", 5, &bytes, &count));
    assert_int_equal(count, 5);
    assert_memory_equal(bytes, "a\0cde", 6); /* with a zero after the last byte */
    base_free(bytes);
    assert_int_equal(base_file_read("five", 4, &bytes, &count), BASE_ERR_DATA);
    assert_null(bytes);
    assert_string_equal(base_message(), "five is too large (5 bytes, at most 4)");
    assert_int_equal(base_file_read("absent", 9, &bytes, &count), BASE_ERR_IO);
    assert_string_equal(base_message(), "cannot open absent: No such file or directory");
    assert_int_equal(base_file_read(".", 9, &bytes, &count), BASE_ERR_IO);
    assert_string_equal(base_message(), ". is not a file");
}

static void test_replace(void **state)
{
    char **names = NULL;
    char *bytes = NULL;
    size_t count = 0;

    (void)state;
    must(base_make_dirs("replace"));
    must(base_file_replace("replace/f", "old", 3));
    must(base_file_replace("replace/f", "newer", 5));
    must(base_file_read("replace/f", 99, &bytes, &count));
    assert_string_equal(bytes, "newer");
    base_free(bytes);
    assert_int_equal(base_file_replace("absent/f", "x", 1), BASE_ERR_IO);
    must(base_make_dirs("replace/full/of"));
    assert_int_equal(base_file_replace("replace/full", "x", 1),
                     BASE_ERR_IO); /* a folder is there */
    must(base_list_dir("replace", &names, &count));
    assert_int_equal(count, 2); /* no temporary file is left by what failed */
    assert_string_equal(names[0], "f");
    assert_string_equal(names[1], "full");
    base_names_free(names, count);
}

/* In pieces: nothing is there before the commit, and nothing is left without it. */
static void test_replace_in_pieces(void **state)
{
    struct base_replacement r;
    char **names = NULL, *bytes = NULL;
    size_t count = 0;

    (void)state;
    must(base_make_dirs("pieces"));
    must(base_file_replace("pieces/f", "old", 3));
    for (int commits = 0; commits < 2; commits++) {
        must(base_replace_begin("pieces/f", &r));
        must(base_replace_write(&r, "ne", 2));
        must(base_replace_write(&r, "w\0er", 4));
        if (commits)
            must(base_replace_commit(&r));
        base_replace_end(&r);
        must(base_file_read("pieces/f", 99, &bytes, &count));
        assert_int_equal(count, commits ? 6 : 3);
        assert_memory_equal(bytes, commits ? "new\0er" : "old", count);
        base_free(bytes);
    }
    assert_int_equal(base_replace_begin("absent/f", &r), BASE_ERR_IO);
    base_replace_end(&r);
    base_replace_end(&r);
    must(base_list_dir("pieces", &names, &count));
    assert_int_equal(count, 1);
    base_names_free(names, count);
}

/* Temporary names differ each time, and a link of such a name is neither followed nor replaced. */
static void test_temporary_names(void **state)
{
    char *a = base_temporary("f"), *b = base_temporary("f"), *known, *bytes = NULL;
    size_t count = 0;

    (void)state;
    assert_int_equal(strncmp(a, "f.tmp-", 6), 0);
    assert_int_equal(strlen(a), 6 + 16);
    assert_string_not_equal(a, b);
    base_free(a);
    base_free(b);
    /* The name of former versions: a link there led the bytes to its target. */
    must(base_make_dirs("names"));
    must(base_file_replace("names/target", "precious", 8));
    known = base_format("names/f.tmp-%d", (int)getpid());
    assert_int_equal(symlink("target", known), 0);
    must(base_file_replace("names/f", "new", 3));
    must(base_file_read("names/target", 99, &bytes, &count));
    assert_string_equal(bytes, "precious");
    base_free(bytes);
    base_free(known);
}

/* A temporary file is removed by the next one that replaces the same file, unless it is locked. */
static void test_leftovers(void **state)
{
    int lock;

    (void)state;
    must(base_make_dirs("left"));
    must(base_file_replace("left/f.tmp-1", "half", 4)); /* process 1 lives, but has no lock */
    must(base_file_replace("left/f.tmp-2", "half", 4));
    must(base_file_replace("left/ff.tmp-3", "other", 5));
    assert_true((lock = base_lock("left/f.tmp-2")) >= 0);
    assert_int_equal(base_lock("left/f.tmp-2"), -1);
    assert_int_equal(base_lock("left/absent"), -1);
    must(base_file_replace("left/f", "whole", 5));
    assert_false(base_exists("left/f.tmp-1"));
    assert_true(base_exists("left/f.tmp-2"));
    assert_true(base_exists("left/ff.tmp-3"));
    close(lock);
    must(base_remove_leftovers("left", "f.tmp-"));
    assert_false(base_exists("left/f.tmp-2"));
    assert_true(base_exists("left/f"));
    assert_int_equal(base_remove_leftovers("absent", "f.tmp-"), BASE_ERR_IO);
}

/* Opening a FIFO for reading waits for a writer, which may never come. */
static void test_fifo_is_not_waited_on(void **state)
{
    char hex[BASE_SHA256_HEX], *bytes = NULL;
    struct base_map map;
    size_t count = 0;

    (void)state;
    assert_int_equal(mkfifo("fifo", 0666), 0);
    alarm(10);
    assert_int_equal(base_file_read("fifo", 9, &bytes, &count), BASE_ERR_IO);
    assert_string_equal(base_message(), "fifo is not a file");
    assert_int_equal(base_map_open("fifo", &map), BASE_ERR_IO);
    assert_int_equal(base_sha256_file("fifo", hex), BASE_ERR_IO);
    alarm(0);
}

static void test_make_dirs(void **state)
{
    (void)state;
    must(base_make_dirs("a/b/c"));
    must(base_make_dirs("a/b/c"));
    must(base_make_dirs("a/b//d/"));
    assert_true(base_is_dir("a/b/c"));
    assert_true(base_is_dir("a/b/d"));
    assert_true(base_exists("a"));
    assert_false(base_is_dir("a/x"));
    must(base_file_replace("a/file", "x", 1));
    assert_false(base_is_dir("a/file"));
    assert_int_equal(base_make_dirs("a/file/under"), BASE_ERR_IO);
    assert_non_null(strstr(base_message(), "cannot make the folder a/file"));
    assert_int_equal(base_make_dirs(""), BASE_ERR_IO);
    assert_int_equal(base_sync_dir("a/x"), BASE_ERR_IO);
    must(base_sync_dir("a"));
}

static void test_list_is_sorted(void **state)
{
    static const char *const made[] = {"b", "B", "a10", ".hidden", "a9"};
    static const char *const sorted[] = {".hidden", "B", "a10", "a9", "b"};
    char **names = NULL;
    size_t count = 0;

    (void)state;
    for (int i = 0; i < 5; i++) {
        char *path = base_format("list/%s", made[i]);

        must(base_make_dirs(path));
        base_free(path);
    }
    must(base_list_dir("list", &names, &count));
    assert_int_equal(count, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(names[i], sorted[i]);
    base_names_free(names, count);
    assert_int_equal(base_list_dir("absent", &names, &count), BASE_ERR_IO);
    assert_null(names);
    base_names_free(names, count);
}

static void test_remove_tree_follows_no_link(void **state)
{
    (void)state;
    must(base_make_dirs("outside"));
    must(base_file_replace("outside/kept", "x", 1));
    must(base_make_dirs("tree/deep/er"));
    must(base_file_replace("tree/deep/f", "x", 1));
    assert_int_equal(symlink("../outside", "tree/link"), 0);
    must(base_remove_tree("tree"));
    assert_false(base_exists("tree"));
    assert_true(base_exists("outside/kept"));
    must(base_remove_tree("tree"));
}

static void test_digest(void **state)
{
    static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    static const char none[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    char hex[BASE_SHA256_HEX];

    (void)state;
    base_sha256("abc", 3, hex);
    assert_string_equal(hex, abc);
    must(base_file_replace("abc", "abc", 3));
    must(base_sha256_file("abc", hex));
    assert_string_equal(hex, abc);
    must(base_file_replace("none", "", 0));
    must(base_sha256_file("none", hex));
    assert_string_equal(hex, none);
    assert_int_equal(base_sha256_file("absent", hex), BASE_ERR_IO);
    assert_string_equal(hex, "");
    assert_int_equal(base_sha256_file(".", hex), BASE_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_replace_in_pieces),
        cmocka_unit_test(test_make_dirs),
        cmocka_unit_test(test_list_is_sorted),
        cmocka_unit_test(test_remove_tree_follows_no_link),
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_fifo_is_not_waited_on),
        cmocka_unit_test(test_temporary_names),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
