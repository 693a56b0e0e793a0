/* SPDX-License-Identifier: MIT
 *
 * Kernel plans: chosen, forced, taken as given, remembered; a broken memory does no harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "nn/tune.h"

static const char text[] = "input 3x12x12\nclasses 4\n"
                           "conv 16 3x3 pad=1 name=first\nrelu\n"
                           "conv 16 3x3 pad=1 name=second\nrelu\n"
                           "conv 16 3x3 pad=1 name=third\nrelu\n"
                           "conv 8 5x5 stride=2 name=fourth\ndense classes\n";

struct fixture {
    struct nn_graph *graph;
    struct nn_setup setup;
    char cache[64];
};

static int make(void **state)
{
    struct fixture *f = base_calloc(1, sizeof *f);

    snprintf(f->cache, sizeof f->cache, "tune-%d/kernels.json", (int)getpid());
    f->setup = (struct nn_setup){.n_max = 4, .training = true};
    *state = f;
    return nn_graph_new(text, "test", (struct nn_shape){0}, 0, &f->graph) != BASE_OK;
}

static int unmake(void **state)
{
    struct fixture *f = *state;

    nn_graph_free(f->graph);
    *strrchr(f->cache, '/') = '\0';
    base_ignore(base_remove_tree(f->cache));
    base_free(f);
    return 0;
}

static char *plan(struct fixture *f, const char *wish, const char *cache)
{
    char *made = NULL;

    assert_int_equal(nn_tune(f->graph, &f->setup, wish, cache, &made), BASE_OK);
    return made;
}

/* Every convolution is in the plan, and the plan can be computed with. */
static void test_auto(void **state)
{
    struct fixture *f = *state;
    char *made = plan(f, "auto", NULL);
    struct nn_net *net = NULL;

    assert_non_null(strstr(made, "first="));
    assert_non_null(strstr(made, " second="));
    assert_non_null(strstr(made, " fourth=onednn")); /* nobody else serves 5x5 with a stride */
    f->setup.kernels = made;
    assert_int_equal(nn_net_new(f->graph, &f->setup, &net), BASE_OK);
    assert_string_equal(nn_net_kernels(net), made);
    nn_net_free(net);
    base_free(made);
}

static void test_forced(void **state)
{
    struct fixture *f = *state;
    char *made = plan(f, "onednn", NULL);

    assert_string_equal(made, "first=onednn second=onednn third=onednn fourth=onednn");
    base_free(made);
    made = plan(f, "winograd2", NULL);
    assert_non_null(strstr(made, "second=winograd2 third=winograd2 fourth=onednn"));
    base_free(made);
    made = plan(f, "second=onednn third=winograd4", NULL);
    assert_string_equal(made, "second=onednn third=winograd4");
    base_free(made);
}

static void test_refused(void **state)
{
    struct fixture *f = *state;
    char *made = NULL;

    assert_int_equal(nn_tune(f->graph, &f->setup, "winograd3", NULL, &made), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "winograd"));
    assert_null(made);
    assert_int_equal(nn_tune(f->graph, &f->setup, "gemm1x1", NULL, &made), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "serves no convolution"));
    assert_int_equal(nn_tune(f->graph, &f->setup, "second=magic", NULL, &made), BASE_ERR_USAGE);
    assert_int_equal(nn_tune(f->graph, &f->setup, "fifth=onednn", NULL, &made), BASE_ERR_USAGE);
    assert_null(made);
}

/* Names are checked without a model. */
static void test_check(void **state)
{
    static const char *const good[] = {NULL, "", "auto", "onednn", "a=onednn", "a=onednn b=direct"};
    static const char *const bad[] = {"magic", "onednn direct", "auto ",
                                      "a=",    "a=magic",       "a=onednn b=auto"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(nn_tune_check(good[i]), BASE_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(nn_tune_check(bad[i]), BASE_ERR_USAGE);
}

static size_t remembered_choices(const struct fixture *f, char **bytes_p)
{
    size_t count = 0, lines = 0;

    assert_int_equal(base_file_read(f->cache, 1 << 20, bytes_p, &count), BASE_OK);
    for (const char *at = *bytes_p; (at = strstr(at, " train")) != NULL; at++)
        lines++;
    return lines;
}

/* What was timed once is not timed again: a choice written into the cache by hand is taken. */
static void test_remembered(void **state)
{
    struct fixture *f = *state;
    char *made = plan(f, "auto", f->cache), *again, *edited, *found, *bytes = NULL;

    assert_int_equal(remembered_choices(f, &bytes), 3); /* second and third are one shape */
    again = plan(f, "auto", f->cache);
    assert_string_equal(again, made);
    found = strstr(bytes, "16x12x12 16x12x12");
    assert_non_null(found);
    found = strstr(found, "\": \"") + 4;
    edited = base_format("%.*s%s%s", (int)(found - bytes), bytes,
                         strncmp(found, "winograd2", 9) == 0 ? "winograd4" : "winograd2",
                         strchr(found, '"'));
    assert_int_equal(base_file_replace(f->cache, edited, strlen(edited)), BASE_OK);
    base_free(again);
    again = plan(f, "auto", f->cache);
    assert_string_not_equal(again, made);
    base_free(edited);
    base_free(bytes);
    base_free(again);
    base_free(made);
}

/* Choices between other candidates are not taken over: a new one has its chance. */
static void test_new_candidate(void **state)
{
    struct fixture *f = *state;
    char *fewer, *found, *bytes = NULL;

    base_free(plan(f, "auto", f->cache));
    assert_int_equal(remembered_choices(f, &bytes), 3); /* second and third are one shape */
    found = strstr(bytes, " winograd4");
    assert_non_null(found);
    fewer = base_format("%.*s%s", (int)(found - bytes), bytes, found + strlen(" winograd4"));
    assert_int_equal(base_file_replace(f->cache, fewer, strlen(fewer)), BASE_OK);
    base_free(bytes);
    base_free(plan(f, "auto", f->cache));
    assert_int_equal(remembered_choices(f, &bytes), 6);
    base_free(bytes);
    base_free(fewer);
}

static void test_broken_memory(void **state)
{
    static const char *const broken[] = {"", "{", "[1,2]", "{\"x\":", "\xff\xfe"};
    struct fixture *f = *state;

    base_free(plan(f, "auto", f->cache));
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        json_t *json = NULL;

        assert_int_equal(base_file_replace(f->cache, broken[i], strlen(broken[i])), BASE_OK);
        base_free(plan(f, "auto", f->cache));
        assert_int_equal(base_json_load(f->cache, 1 << 20, &json), BASE_OK);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test_setup_teardown(test_auto, make, unmake),
        cmocka_unit_test_setup_teardown(test_forced, make, unmake),
        cmocka_unit_test_setup_teardown(test_refused, make, unmake),
        cmocka_unit_test_setup_teardown(test_remembered, make, unmake),
        cmocka_unit_test_setup_teardown(test_new_candidate, make, unmake),
        cmocka_unit_test_setup_teardown(test_broken_memory, make, unmake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
