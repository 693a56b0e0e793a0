/* SPDX-License-Identifier: MIT
 *
 * Checkpoint folders: what appears, what is kept, what is passed over, and what failure leaves.
 * Killed writers and damaged bytes are in conform/checkpoint_kill_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/checkpoint.h"
#include "store/safetensors.h"
#include "support/checkpoints.h"

static int make_folder(void **state)
{
    char *folder = base_strdup("/tmp/paceline-checkpoint-XXXXXX");

    *state = folder;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    base_status st = base_remove_tree(*state);

    base_free(*state);
    return st != BASE_OK;
}

static char *in(const char *dir, const char *name)
{
    return base_format("%s/%s", dir, name);
}

static void make(const char *dir, const char *name)
{
    char *path = in(dir, name);

    assert_int_equal(mkdir(path, 0777), 0);
    base_free(path);
}

static void move(const char *dir, const char *from, const char *to)
{
    char *a = in(dir, from), *b = in(dir, to);

    assert_int_equal(rename(a, b), 0);
    base_free(a);
    base_free(b);
}

static void put(const char *dir, const char *name, const char *text)
{
    char *path = in(dir, name);

    assert_int_equal(base_file_replace(path, text, strlen(text)), BASE_OK);
    base_free(path);
}

static void assert_names(const char *dir, const char *expected)
{
    struct base_str names = {0};
    char **list;
    size_t count;

    assert_int_equal(base_list_dir(dir, &list, &count), BASE_OK);
    base_str_add(&names, "%s", "");
    for (size_t i = 0; i < count; i++)
        base_str_add(&names, "%s%s", i ? " " : "", list[i]);
    assert_string_equal(names.text, expected);
    base_str_fini(&names);
    base_names_free(list, count);
}

static void assert_opens(const char *path, bool best, uint64_t step)
{
    struct store_checkpoint c;

    if (store_checkpoint_open(path, best, &c) != BASE_OK)
        fail_msg("%s", base_message());
    assert_int_equal(c.step, step);
    assert_true(support_is_right(&c));
    store_checkpoint_close(&c);
    store_checkpoint_close(&c); /* accepts zeros */
}

static void assert_refused(const char *path, bool best, const char *says)
{
    struct store_checkpoint c;

    assert_int_not_equal(store_checkpoint_open(path, best, &c), BASE_OK);
    assert_null(c.path);
    assert_null(c.manifest);
    if (strstr(base_message(), says) == NULL)
        fail_msg("'%s' lacks '%s'", base_message(), says);
}

static void newest_is_by_number(void **state)
{
    char *run = *state, *dir = in(run, "checkpoints"), *nine = in(dir, "step-9//");

    assert_int_equal(support_save(dir, 10, 0), BASE_OK);
    assert_int_equal(support_save(dir, 9, 0), BASE_OK);
    make(dir, "step-0100"); /* not what we write: none of these is a checkpoint */
    make(dir, "step-");
    make(dir, "step-11x");
    make(dir, "step-99999999999999999999");
    assert_opens(run, false, 10);
    assert_opens(dir, false, 10);
    assert_opens(nine, false, 9);
    move(dir, "step-10", "copy"); /* a copy under another name opens as itself */
    assert_opens(dir, false, 9);
    base_free(nine);
    nine = in(dir, "copy");
    assert_opens(nine, false, 10);
    base_free(nine);
    base_free(dir);
}

static void keeps_newest_and_best(void **state)
{
    char *dir = *state, *one = in(dir, "step-8");

    for (uint64_t step = 8; step <= 11; step++)
        assert_int_equal(support_save(dir, step, 2), BASE_OK);
    assert_names(dir, "step-10 step-11");
    assert_refused(dir, true, "marked best");
    assert_int_equal(store_mark_best(dir, 10), BASE_OK);
    for (uint64_t step = 12; step <= 14; step++)
        assert_int_equal(support_save(dir, step, 1), BASE_OK);
    assert_names(dir, "best step-10 step-14");
    assert_opens(dir, true, 10);
    assert_opens(dir, false, 14);
    assert_int_equal(store_mark_best(dir, 14), BASE_OK);
    assert_opens(dir, true, 14);
    /* Another try from an earlier step: the new one stays, whatever is later. */
    assert_int_equal(support_save(dir, 8, 1), BASE_OK);
    assert_names(dir, "best step-10 step-14 step-8");
    assert_refused(one, true, "is one checkpoint");
    /* Unsure which is best: nothing is removed. */
    put(dir, "best", "nonsense");
    assert_int_equal(support_save(dir, 15, 1), BASE_OK);
    assert_names(dir, "best step-10 step-14 step-15 step-8");
    assert_refused(dir, true, "does not name a checkpoint");
    base_free(one);
}

static void replaces_a_step(void **state)
{
    char *dir = *state, *step = in(dir, "step-5"), *junk;

    assert_int_equal(support_save(dir, 5, 0), BASE_OK);
    put(step, "model.safetensors", "broken");
    assert_refused(step, false, "model.safetensors has 6 bytes");
    assert_int_equal(support_save(dir, 5, 0), BASE_OK);
    assert_opens(step, false, 5);
    assert_names(dir, "step-5");
    /* A writer that could not exchange was killed between its two renames. */
    move(dir, "step-5", "step-5.old");
    assert_opens(dir, false, 5);
    assert_int_equal(support_save(dir, 5, 0), BASE_OK);
    assert_names(dir, "step-5");
    assert_opens(dir, false, 5);
    junk = in(dir, "step-6"); /* a file in the way is no obstacle */
    put(dir, "step-6", "junk");
    assert_int_equal(support_save(dir, 6, 0), BASE_OK);
    assert_opens(junk, false, 6);
    base_free(junk);
    junk = in(dir, "step-7"); /* nor is a link that leads nowhere, which readers pass over */
    assert_int_equal(symlink("nowhere", junk), 0);
    assert_opens(dir, false, 6);
    assert_int_equal(support_save(dir, 7, 0), BASE_OK);
    assert_opens(dir, false, 7);
    assert_names(dir, "step-5 step-6 step-7");
    base_free(junk);
    base_free(step);
}

/* Step 2 has file `name` of step 1, or its own text. True: step 1's was taken. */
static bool save_after(const char *dir, const char *name, uint64_t former)
{
    struct store_save *save;
    bool repeated;

    assert_int_equal(store_save_begin(dir, 2, &save), BASE_OK);
    store_save_after(save, former);
    repeated = store_save_repeat(save, name);
    if (!repeated)
        assert_int_equal(base_file_replace(store_save_path(save, name), "other", 5), BASE_OK);
    assert_int_equal(store_save_commit(save, NULL, 0), BASE_OK);
    return repeated;
}

static void takes_a_file_of_the_checkpoint_before(void **state)
{
    char *one = in(*state, "step-1"), *two = in(*state, "step-2"), *file = in(two, "same");
    struct store_checkpoint c;
    struct store_save *save;
    struct stat info;

    assert_int_equal(store_save_begin(*state, 1, &save), BASE_OK);
    assert_false(store_save_repeat(save, "same")); /* of no checkpoint */
    assert_int_equal(base_file_replace(store_save_path(save, "same"), "text", 4), BASE_OK);
    assert_int_equal(store_save_commit(save, NULL, 0), BASE_OK);

    assert_false(save_after(*state, "another", 1));
    assert_false(save_after(*state, "same", 7));
    assert_true(save_after(*state, "same", 1));
    assert_int_equal(stat(file, &info), 0);
    assert_int_equal(info.st_nlink, 2);
    assert_int_equal(base_remove_tree(one), BASE_OK);
    assert_int_equal(store_checkpoint_open(*state, false, &c), BASE_OK); /* size and digest hold */
    assert_int_equal(c.step, 2);
    store_checkpoint_close(&c);
    assert_int_equal(base_file_replace(file, "damaged", 7), BASE_OK);
    assert_refused(two, false, "same");
    base_free(file);
    base_free(two);
    base_free(one);
}

/* What a writer left is told by the lock that ended with it. Its process id may have been given to
 * another process since (here this test's parent), or be that of a process that was not reaped. */
static void removes_leftovers(void **state)
{
    char *dir = *state, name[64], expected[128];
    char *locked = in(dir, ".step-7.tmp-1"), *mine;
    struct store_save *save;
    int lock, pipes[2];
    pid_t zombie;
    char byte;

    assert_int_equal(pipe(pipes), 0);
    zombie = fork();
    if (zombie == 0)
        _exit(0);
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &byte, 1), 0); /* the child has ended */
    close(pipes[0]);
    snprintf(name, sizeof name, ".step-3.tmp-%d", (int)zombie);
    make(dir, name);
    snprintf(name, sizeof name, "best.tmp-%d", (int)zombie);
    put(dir, name, "step-3");
    snprintf(name, sizeof name, ".step-4.tmp-%d", (int)getpid());
    make(dir, name);
    snprintf(name, sizeof name, ".step-6.tmp-%d", (int)getppid());
    make(dir, name);
    make(dir, ".step-7.tmp-1");
    assert_true((lock = base_lock(locked)) >= 0); /* at work: hands off */
    assert_int_equal(base_lock(locked), -1);
    make(dir, "other.tmp-1");
    assert_int_equal(store_save_begin(dir, 4, &save), BASE_OK);
    mine = base_strdup(store_save_path(save, "x"));
    *strrchr(mine, '/') = '\0';
    snprintf(expected, sizeof expected, "%s .step-7.tmp-1 other.tmp-1", strrchr(mine, '/') + 1);
    assert_names(dir, expected);
    assert_int_equal(base_lock(mine), -1); /* the writer has it */
    store_save_abandon(save);
    store_save_abandon(NULL);
    assert_names(dir, ".step-7.tmp-1 other.tmp-1");
    close(lock);
    assert_int_equal(support_save(dir, 5, 0), BASE_OK);
    assert_names(dir, "other.tmp-1 step-5");
    assert_int_equal(waitpid(zombie, NULL, 0), zombie);
    base_free(mine);
    base_free(locked);
}

/* Runs `open` with stderr in a file and returns what it said. */
static char *said_while_opening(const char *dir, uint64_t step)
{
    char *path = in(dir, "said"), *text;
    int keep = dup(2), fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666);
    size_t count;

    assert_true(keep >= 0 && fd >= 0);
    dup2(fd, 2);
    assert_opens(dir, false, step);
    dup2(keep, 2);
    close(keep);
    close(fd);
    assert_int_equal(base_file_read(path, 1 << 16, &text, &count), BASE_OK);
    base_free(path);
    return text;
}

static void falls_back_and_says_so(void **state)
{
    char *dir = *state, *four = in(dir, "step-4"), *three = in(dir, "step-3"), *said;

    for (uint64_t step = 1; step <= 5; step++)
        assert_int_equal(support_save(dir, step, 0), BASE_OK);
    make(dir, "step-6");
    move(dir, "step-5", "step-7");
    put(four, "manifest.json", "{}");
    said = in(three, "state.safetensors");
    unlink(said);
    base_free(said);
    said = said_while_opening(dir, 2);
    assert_non_null(strstr(said, "step-7 is passed over"));
    assert_non_null(strstr(said, "holds step 5"));
    assert_non_null(strstr(said, "step-6 is passed over"));
    assert_non_null(strstr(said, "manifest.json: No such file"));
    assert_non_null(strstr(said, "step-4 is passed over"));
    assert_non_null(strstr(said, "does not begin with its digest"));
    assert_non_null(strstr(said, "step-3 is passed over"));
    assert_non_null(strstr(said, "state.safetensors is missing"));
    assert_null(strstr(said, "step-2"));
    base_free(said);
    base_free(four);
    base_free(three);
}

static void refuses_what_is_not_there(void **state)
{
    char *dir = *state, *absent = in(dir, "absent"), *file = in(dir, "file");
    char *one = in(dir, "step-1"), *model = in(one, "model.safetensors");

    assert_refused(dir, false, "there is no checkpoint (step-N)");
    assert_refused(absent, false, "no such folder");
    put(dir, "file", "x");
    assert_refused(file, false, "not a folder");
    assert_int_equal(support_save(dir, 1, 0), BASE_OK);
    unlink(model);
    assert_int_equal(mkfifo(model, 0666), 0); /* must not be waited on */
    assert_refused(one, false, "is not a file");
    assert_refused(dir, false, "none of the 1 checkpoints");
    assert_int_equal(support_save(file, 1, 0), BASE_ERR_IO);
    assert_non_null(strstr(base_message(), file));
    base_free(model);
    base_free(one);
    base_free(file);
    base_free(absent);
}

static void manifest_is_checked(void **state)
{
#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "JSON"},
        {"[]", "object expected"},
        {"{}", "\"schema\" is missing"},
        {"{\"schema\":2}", "schema 2 is unknown"},
        {"{\"schema\":1}", "\"step\" is missing"},
        {"{\"schema\":1,\"step\":-1}", "negative"},
        {"{\"schema\":1,\"step\":1.5}", "wrong type"},
        {"{\"schema\":1,\"step\":1,\"step\":2}", "duplicate"},
        {"{\"schema\":1,\"step\":1,\"files\":[]}", "wrong type"},
        {"{\"schema\":1,\"step\":1,\"files\":{\"a\":1}}", "an object expected"},
        {"{\"schema\":1,\"step\":1,\"files\":{\"../a\":{}}}", "plain file name"},
        {"{\"schema\":1,\"step\":1,\"files\":{\"b/a\":{}}}", "plain file name"},
        {"{\"schema\":1,\"step\":1,\"files\":{\"\":{}}}", "plain file name"},
        {"{\"schema\":1,\"step\":1,\"files\":{\"manifest.json\":{}}}", "plain file name"},
        {"{\"schema\":1,\"step\":1,\"files\":{\"a\":{}}}", "\"bytes\" is missing"},
        {"{\"schema\":1,\"step\":1,\"files\":{\"a\":{\"bytes\":1}}}", "\"sha256\" is missing"},
        {"{\"schema\":1,\"step\":1,\"files\":{\"a\":{\"bytes\":-1,\"sha256\":\"" DIGEST "\"}}}",
         "malformed"},
        {"{\"schema\":1,\"step\":1,\"files\":{\"a\":{\"bytes\":1,\"sha256\":\"abc\"}}}",
         "malformed"},
    };
    const char *good =
        "{\"schema\":1,\"step\":1,\"files\":{\"a\":{\"bytes\":1,\"sha256\":\"" DIGEST "\"}}}";
    json_t *manifest;

    (void)state;
    assert_int_equal(store_manifest_parse(good, strlen(good), false, &manifest), BASE_OK);
    json_decref(manifest);
    assert_int_equal(store_manifest_parse(good, strlen(good), true, &manifest), BASE_ERR_DATA);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(store_manifest_parse(bad[i].text, strlen(bad[i].text), false, &manifest),
                         BASE_ERR_DATA);
        assert_null(manifest);
        if (strstr(base_message(), bad[i].says) == NULL)
            fail_msg("%s: '%s' lacks '%s'", bad[i].text, base_message(), bad[i].says);
    }
}

/* The digest is that of all bytes after it, as sha256sum can check. */
static void digest_is_plain(void **state)
{
    char *dir = *state, *path = in(dir, "step-3/manifest.json"), *text, hex[BASE_SHA256_HEX];
    size_t count;

    assert_int_equal(support_save(dir, 3, 0), BASE_OK);
    assert_int_equal(base_file_read(path, 1 << 16, &text, &count), BASE_OK);
    base_sha256(text + 75, count - 75, hex);
    assert_memory_equal(text, "{\"digest\":\"", 11);
    assert_memory_equal(text + 11, hex, 64);
    base_free(text);
    base_free(path);
}

static void unreadable_manifest_is_not_written(void **state)
{
    char *dir = *state;
    struct store_save *save;
    json_t *manifest = json_pack("{s:o}", "nul", json_stringn("a\0b", 3));

    assert_int_equal(store_save_begin(dir, 1, &save), BASE_OK);
    assert_int_equal(store_save_commit(save, manifest, 0), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "would not be read back"));
    assert_names(dir, "");
    json_decref(manifest);
    /* A file that was announced but not written. */
    assert_int_equal(store_save_begin(dir, 1, &save), BASE_OK);
    assert_string_equal(store_save_path(save, "a"), store_save_path(save, "a"));
    assert_int_equal(store_save_commit(save, NULL, 0), BASE_ERR_IO);
    assert_names(dir, "");
}

/* In a child: every save on a file system of `pages` pages either works or leaves nothing. */
static int save_until_full(const char *dir, int pages)
{
    char *options = base_format("size=%dk", 4 * pages);
    bool mounted = (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
                   mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                   mount("none", dir, "tmpfs", 0, options) == 0;

    base_free(options);
    if (!mounted)
        return 2;
    for (uint64_t step = 1; step < 100; step++) {
        struct store_checkpoint c = {0};

        if (support_save(dir, step, 0) == BASE_OK)
            continue;
        if (strstr(base_message(), "No space left") == NULL || strstr(base_message(), dir) == NULL)
            return 3;
        if (step > 1 && (store_checkpoint_open(dir, false, &c) != BASE_OK || c.step != step - 1 ||
                         !support_is_right(&c)))
            return 4;
        store_checkpoint_close(&c);
        return 0;
    }
    return 5;
}

static void full_disk_leaves_nothing(void **state)
{
    for (int pages = 3; pages < 24; pages++) {
        int status;
        pid_t child = fork();

        if (child == 0)
            _exit(save_until_full(*state, pages));
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
            skip(); /* no right to mount; safetensors_test fills /dev/full */
        assert_int_equal(status, 0);
    }
}

static void newest_digest_needs_no_files(void **state)
{
    const char *dir = *state;
    struct store_checkpoint checkpoint;
    char *manifest, *weights = in(dir, "step-12/model.safetensors"), *digest;

    assert_null(store_newest_digest(dir));
    assert_int_equal(support_save(dir, 1, 0), BASE_OK);
    assert_int_equal(support_save(dir, 12, 0), BASE_OK);
    assert_int_equal(store_checkpoint_open(dir, false, &checkpoint), BASE_OK);
    assert_int_equal(unlink(weights), 0);
    digest = store_newest_digest(dir);
    assert_string_equal(digest, json_string_value(json_object_get(checkpoint.manifest, "digest")));
    base_free(digest);
    store_checkpoint_close(&checkpoint);
    manifest = in(dir, "step-12/manifest.json");
    assert_int_equal(truncate(manifest, 100), 0); /* no digest of an older one in its place */
    assert_null(store_newest_digest(dir));
    base_free(manifest);
    base_free(weights);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(newest_is_by_number),
        TEST(newest_digest_needs_no_files),
        TEST(keeps_newest_and_best),
        TEST(replaces_a_step),
        TEST(takes_a_file_of_the_checkpoint_before),
        TEST(removes_leftovers),
        TEST(falls_back_and_says_so),
        TEST(refuses_what_is_not_there),
        TEST(manifest_is_checked),
        TEST(digest_is_plain),
        TEST(full_disk_leaves_nothing),
        TEST(unreadable_manifest_is_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
