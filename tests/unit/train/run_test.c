/* SPDX-License-Identifier: MIT
 *
 * A run's folder belongs to one process at a time. One that is ending is waited for. What run.json
 * says is checked, and a refusal names the file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "train/run.h"

enum { HOLD = 300 * 1000 }; /* microseconds */

static struct train_run made_in(char *folder)
{
    struct train_run run = {0};

    assert_non_null(mkdtemp(folder));
    assert_int_equal(train_run_create(folder, "one", "stem", false, &run), BASE_OK);
    return run;
}

/* A process that has the lock until HOLD after `*go_p` is closed; it is taken when this returns. */
static pid_t holder(const struct train_run *run, int *go_p)
{
    int ready[2], go[2];
    char word;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct train_run own = {.path = run->path, .name = run->name};

        close(go[1]);
        if (train_run_lock(&own, 0) != BASE_OK || write(ready[1], "", 1) != 1 ||
            read(go[0], &word, 1) != 0)
            _exit(1);
        usleep(HOLD);
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &word, 1), 1);
    close(ready[0]);
    close(go[0]);
    *go_p = go[1];
    return pid;
}

static void test_lock(void **state)
{
    char folder[] = "/tmp/run-test-XXXXXX";
    struct train_run run = made_in(folder);
    double start = base_now();
    int status, go;
    pid_t pid = holder(&run, &go);

    (void)state;
    assert_int_equal(train_run_lock(&run, 0), BASE_ERR_USAGE);
    assert_false(run.locked);
    assert_int_equal(train_run_lock(&run, HOLD / 30e6), BASE_ERR_USAGE);
    assert_true(base_now() - start >= HOLD / 30e6);
    close(go);
    assert_int_equal(train_run_lock(&run, 60), BASE_OK);
    assert_true(run.locked);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    rmdir(run.path);
    train_run_close(&run);
    rmdir(folder);
}

/* A run is lost when no process has its lock, whatever has become of the process id. */
static void test_status(void **state)
{
    char folder[] = "/tmp/run-test-XXXXXX";
    struct train_run run = made_in(folder);
    int status, go;
    pid_t pid;

    (void)state;
    assert_string_equal(train_run_status(&run), "unknown");
    assert_int_equal(train_run_save(&run, "running"), BASE_OK); /* with this process's id, alive */
    assert_string_equal(train_run_status(&run), "lost");
    pid = holder(&run, &go);
    assert_string_equal(train_run_status(&run), "running");
    close(go);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_string_equal(train_run_status(&run), "lost");
    assert_int_equal(train_run_save(&run, "done"), BASE_OK);
    assert_string_equal(train_run_status(&run), "done");
    train_run_close(&run);
    assert_int_equal(base_remove_tree(folder), BASE_OK);
}

/* An epoch too many for the limit on file sizes: the run's end is told all the same. */
static void test_no_room(void **state)
{
    char folder[] = "/tmp/run-test-XXXXXX", *file;
    struct train_run run = made_in(folder), found = {0};
    json_t *epochs = json_array();
    struct rlimit before, tight;
    struct stat written;

    (void)state;
    json_object_set_new(run.json, "epochs", epochs);
    for (int i = 0; i < 20; i++)
        json_array_append_new(epochs, json_pack("{s:i}", "epoch", i));
    assert_int_equal(train_run_save(&run, "running"), BASE_OK);
    file = base_format("%s/run.json", run.path);
    assert_int_equal(stat(file, &written), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = (struct rlimit){(rlim_t)written.st_size, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    json_array_append_new(epochs, json_pack("{s:i}", "epoch", 20));
    assert_int_equal(train_run_save(&run, "running"), BASE_ERR_IO);
    assert_int_equal(train_run_save(&run, "failed"), BASE_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(train_run_open(folder, "one", &found), BASE_OK);
    assert_string_equal(train_run_status(&found), "failed");
    assert_int_equal(json_array_size(json_object_get(found.json, "epochs")), 21);
    train_run_close(&found);
    train_run_close(&run);
    base_free(file);
    assert_int_equal(base_remove_tree(folder), BASE_OK);
}

static void test_about(void **state)
{
    struct train_run run = {.path = "runs/one", .json = json_object()};
    struct model_about about;

    (void)state;
    assert_int_equal(train_run_about(&run, &about), BASE_ERR_DATA);
    assert_string_equal(base_message(),
                        "runs/one/run.json: \"about\" is missing, an object expected");
    json_object_set_new(run.json, "about",
                        json_pack("{s:s, s:i}", "model", "dense 2", "classes", 0));
    assert_int_equal(train_run_about(&run, &about), BASE_ERR_DATA);
    assert_string_equal(base_message(),
                        "runs/one/run.json: \"about\": \"classes\" is 0, 1 to 65536 expected");
    assert_null(about.model);
    json_decref(run.json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lock), cmocka_unit_test(test_status),
                                       cmocka_unit_test(test_no_room),
                                       cmocka_unit_test(test_about)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
