/* SPDX-License-Identifier: MIT
 *
 * The program as a function: an evaluation that is stopped still prints its one JSON object.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/stop.h"
#include "cli/cli.h"

/* The signal stays asked for, so this is the only test of its program. */
static void test_stopped_evaluation(void **state)
{
    static char *train[] = {
        "paceline", "train", "--model", "mlp:4x1", "--data", "synthetic:train=8,test=8",
        "--steps",  "0",     "--run",   "r",       "--quiet"};
    static char *eval[] = {"paceline", "eval", "r", "--json"};
    char dir[] = "/tmp/paceline-cli-XXXXXX";
    const char *code = NULL;
    json_t *object = NULL, *error = NULL;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(cli_main(sizeof train / sizeof *train, train), 0);
    base_stop_install(NULL);
    raise(SIGTERM);
    assert_non_null(freopen("out", "w", stdout));
    assert_int_equal(cli_main(sizeof eval / sizeof *eval, eval), 128 + SIGTERM);
    assert_int_equal(base_json_load("out", 4096, &object), BASE_OK);
    assert_int_equal(base_json_object(object, "error", &error), BASE_OK);
    assert_int_equal(base_json_string(error, "code", &code), BASE_OK);
    assert_string_equal(code, "interrupted");
    json_decref(object);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(base_remove_tree(dir), BASE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stopped_evaluation)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
