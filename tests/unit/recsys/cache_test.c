/* SPDX-License-Identifier: MIT
 *
 * The cache of ratings: found, made again when the text changes, and refused when it is damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "support/texts.h"

static void test_cache(void **state)
{
    const struct recsys_options options = {0};
    char *cache = base_format("%s/r.csv.paceline", texts_folder);
    struct recsys_ratings *r;
    char digest[BASE_SHA256_HEX];

    (void)state;
    texts_put("r.csv", "user,item,rating\n1,1,5\n1,1,4\n1,x,3\nbad\n");
    r = texts_open_with("r.csv", &options);
    assert_false(r->cached);
    assert_string_equal(r->cache, cache);
    strcpy(digest, r->digest);
    recsys_ratings_close(r);
    r = texts_open_with("r.csv", &options);
    assert_true(r->cached);
    assert_string_equal(r->digest, digest);
    assert_true(r->faults.bad_lines == 1 && r->faults.duplicates == 1);
    assert_non_null(strstr(r->faults.examples, "line 5: "));
    texts_hold(r, "csv", "1 1 4;1 x 3;");
    texts_put("r.csv", "user,item,rating\n1,1,5\n1,1,4\n1,y,3\nbad\n"); /* the same size */
    r = texts_open_with("r.csv", &options);
    assert_false(r->cached);
    texts_hold(r, "csv", "1 1 4;1 y 3;");
    r = texts_open_with("r.csv", &(struct recsys_options){.no_cache = true});
    assert_false(r->cached);
    assert_null(r->cache);
    recsys_ratings_close(r);
    base_free(cache);
}

/* Damage anywhere makes it anew; no byte of it is trusted. */
static void test_damage(void **state)
{
    const struct recsys_options options = {0};
    char *cache = base_format("%s/d.csv.paceline", texts_folder), *bytes;
    size_t count;

    (void)state;
    texts_put("d.csv", "user,item,rating,time\n1,a,5,1\n1,b,4,2\n2,a,3,3\nbad\n");
    recsys_ratings_close(texts_open_with("d.csv", &options));
    assert_int_equal(base_file_read(cache, 1 << 20, &bytes, &count), BASE_OK);
    for (size_t at = 0; at + 1 < count; at += at < sizeof(struct recsys_header) ? 37 : 64) {
        bool padding = bytes[at] == 0;
        struct recsys_ratings *r;

        bytes[at] ^= 0x20;
        assert_int_equal(base_file_replace(cache, bytes, count), BASE_OK);
        bytes[at] ^= 0x20;
        r = texts_open_with("d.csv", &options);
        if (!padding)
            assert_false(r->cached);
        texts_hold(r, "csv", "1 a 5 1;1 b 4 2;2 a 3 3;");
    }
    for (size_t left = 0; left < count; left += 1000) {
        assert_int_equal(base_file_replace(cache, bytes, left), BASE_OK);
        texts_hold(texts_open_with("d.csv", &options), "csv", "1 a 5 1;1 b 4 2;2 a 3 3;");
    }
    base_free(bytes);
    base_free(cache);
}

/* Several processes at once: all see the same, and one cache is left and nothing else. */
static void test_processes(void **state)
{
    enum { PROCESSES = 4 };
    char *text = texts_large(false, 50000), *path = base_format("%s/many", texts_folder), **names;
    pid_t children[PROCESSES];
    size_t count;

    (void)state;
    texts_put("many/p.csv", text);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct recsys_ratings *r = NULL;
            char *file = base_format("%s/p.csv", path);
            base_status st = recsys_ratings_open(file, &(struct recsys_options){0}, &r);

            _exit(st == BASE_OK && r->count + r->faults.duplicates == 49950 ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(base_list_dir(path, &names, &count), BASE_OK);
    assert_int_equal(count, 2);
    assert_string_equal(names[1], "p.csv.paceline");
    base_names_free(names, count);
    base_free(path);
    base_free(text);
}

static void test_no_place(void **state)
{
    struct recsys_ratings *r;
    char *taken = base_format("%s/taken", texts_folder);

    (void)state;
    /* A folder in the cache's place cannot be replaced; then the cache folder is used. */
    setenv("XDG_CACHE_HOME", taken, 1);
    texts_put("n.csv", "user,item,rating\n1,1,5\n");
    texts_put("n.csv.paceline/x", "");
    base_log_level(BASE_QUIET);
    r = texts_open_with("n.csv", &(struct recsys_options){0});
    assert_non_null(r->cache);
    assert_non_null(strstr(r->cache, "/taken/paceline/ratings/"));
    recsys_ratings_close(r);
    r = texts_open_with("n.csv", &(struct recsys_options){0});
    assert_true(r->cached);
    recsys_ratings_close(r);
    setenv("XDG_CACHE_HOME", "/proc/nothing", 1);
    r = texts_open_with("n.csv", &(struct recsys_options){0});
    assert_null(r->cache);
    texts_hold(r, "csv", "1 1 5;");
    base_free(taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_no_place),
    };

    return cmocka_run_group_tests(tests, texts_set_up, texts_tear_down);
}
