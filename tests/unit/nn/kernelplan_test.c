/* SPDX-License-Identifier: MIT
 *
 * Kernel plans: chosen by shape, forced, taken as given. What is chosen depends on the shape and
 * the CPU level alone: not on timings, not on what an earlier --tune left, not on threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "nn/conv/kernelplan.h"
#include "nn/conv/tune.h"
#include "nn/threads.h"

static const char text[] = "input 3x12x12\nclasses 4\n"
                           "conv 16 3x3 pad=1 name=first\nrelu\n"
                           "conv 16 3x3 pad=1 name=second\nrelu\n"
                           "conv 16 3x3 pad=1 name=third\nrelu\n"
                           "conv 8 5x5 stride=2 name=fourth\ndense classes\n";

struct fixture {
    struct nn_graph *graph;
    struct nn_setup setup;
};

static int make(void **state)
{
    struct fixture *f = base_calloc(1, sizeof *f);

    f->setup = (struct nn_setup){.n_max = 4, .training = true};
    *state = f;
    return nn_graph_new(text, "test", (struct nn_shape){0}, 0, &f->graph) != BASE_OK;
}

static int unmake(void **state)
{
    struct fixture *f = *state;

    nn_graph_free(f->graph);
    base_free(f);
    return 0;
}

static char *plan(struct fixture *f, const char *kernels, bool tune)
{
    char *made = NULL;

    assert_int_equal(
        nn_kernelplan_make(f->graph, &f->setup, (struct nn_kernelplan_wish){kernels, tune}, &made),
        BASE_OK);
    return made;
}

/* Every convolution is in the plan, and the plan can be computed with. */
static void test_auto(void **state)
{
    struct fixture *f = *state;

    for (int tune = 0; tune < 2; tune++) {
        char *made = plan(f, "auto", tune);
        struct nn_net *net = NULL;

        assert_non_null(strstr(made, "first="));
        assert_non_null(strstr(made, " second="));
        assert_non_null(strstr(made, " fourth=onednn")); /* alone with 5x5 and a stride */
        f->setup.kernels = made;
        assert_int_equal(nn_net_new(f->graph, &f->setup, &net), BASE_OK);
        assert_string_equal(nn_net_kernels(net), made);
        nn_net_free(net);
        base_free(made);
    }
}

static void test_forced(void **state)
{
    struct fixture *f = *state;
    char *made = plan(f, "onednn", false);

    assert_string_equal(made, "first=onednn second=onednn third=onednn fourth=onednn");
    base_free(made);
    made = plan(f, "winograd2", false);
    assert_non_null(strstr(made, "second=winograd2 third=winograd2 fourth=onednn"));
    base_free(made);
    made = plan(f, "second=onednn third=winograd4", false);
    assert_string_equal(made, "second=onednn third=winograd4");
    base_free(made);
}

static void assert_refused(struct fixture *f, const char *kernels, const char *words)
{
    char *made = NULL;

    assert_int_equal(
        nn_kernelplan_make(f->graph, &f->setup, (struct nn_kernelplan_wish){kernels, false}, &made),
        BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), words));
    assert_null(made);
}

static void test_refused(void **state)
{
    assert_refused(*state, "winograd3", "winograd");
    assert_refused(*state, "gemm1x1", "serves no convolution");
    assert_refused(*state, "second=magic", "magic");
    assert_refused(*state, "fifth=onednn", "fifth");
}

/* Names are checked without a model. */
static void test_check(void **state)
{
    static const char *const good[] = {NULL, "", "auto", "onednn", "a=onednn", "a=onednn b=direct"};
    static const char *const bad[] = {"magic", "onednn direct", "auto ",
                                      "a=",    "a=magic",       "a=onednn b=auto"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(nn_kernelplan_check(good[i]), BASE_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(nn_kernelplan_check(bad[i]), BASE_ERR_USAGE);
}

/* Every choice that --tune remembered becomes onednn. */
static void poison(const char *cache)
{
    json_t *json = NULL, *machine, *value;
    const char *name, *shape;
    char *bytes;

    assert_int_equal(base_json_load(cache, 1 << 20, &json), BASE_OK);
    json_object_foreach(json, name, machine) json_object_foreach(machine, shape, value)
        json_string_set(value, "onednn");
    bytes = json_dumps(json, 0);
    assert_int_equal(base_file_replace(cache, bytes, strlen(bytes)), BASE_OK);
    free(bytes);
    json_decref(json);
}

/* A memory of --tune that says otherwise, and another number of threads, change nothing. */
static void test_no_timing(void **state)
{
    struct fixture *f = *state;
    char *cache = nn_tune_cache(), *made = plan(f, "auto", false), *again;

    base_free(plan(f, "auto", true));
    poison(cache);
    again = plan(f, "auto", true);
    assert_string_equal(again, "first=onednn second=onednn third=onednn fourth=onednn");
    base_free(again);
    for (int threads = 1; threads <= 3; threads++) {
        nn_threads_set(threads);
        again = plan(f, "auto", false);
        assert_string_equal(again, made);
        base_free(again);
    }
    base_free(cache);
    base_free(made);
}

/* ---- the rule ---- */

static struct nn_conv_shape shape_of(int in, int side, int out, int kernel, int stride, int n)
{
    const int pad = kernel / 2, result = (side + 2 * pad - kernel) / stride + 1;

    return (struct nn_conv_shape){.in = {.c = in, .h = side, .w = side, .planar = in < NN_BLOCK},
                                  .out = {.c = out, .h = result, .w = result},
                                  .kernel = {kernel, kernel},
                                  .stride = {stride, stride},
                                  .pad = {pad, pad},
                                  .groups = 1,
                                  .bias = true,
                                  .n_max = n,
                                  .training = true,
                                  .want_dx = in >= NN_BLOCK};
}

/* Where the difference is large, so that new rates keep it. */
static void test_known_shapes(void **state)
{
    static const struct {
        int in, side, out, kernel, stride, n;
        const char *avx2, *portable;
    } known[] = {
        {1, 28, 32, 3, 1, 64, "direct", "direct"},
        {64, 16, 128, 3, 1, 1, "winograd4", "winograd4"},
        {64, 32, 64, 3, 1, 64, "winograd4", "winograd4"},
        {256, 8, 256, 3, 1, 16, "winograd4", "winograd4"},
        {512, 4, 512, 3, 1, 2, "winograd2", "winograd2"},
        {512, 4, 512, 3, 1, 256, "winograd4", "winograd4"},
        {512, 2, 512, 3, 1, 64, "toeplitz2", "toeplitz2"},
        {32, 3, 32, 3, 1, 4, "onednn", "winograd4"},
        {24, 30, 32, 3, 2, 64, "onednn", "winograd4s2"},
        {64, 32, 128, 1, 2, 64, "onednn", "onednn"},
        {32, 28, 64, 5, 1, 16, "onednn", "onednn"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct nn_conv_shape s = shape_of(known[i].in, known[i].side, known[i].out, known[i].kernel,
                                          known[i].stride, known[i].n);
        const char *avx2 = nn_conv_cheapest(&s, BASE_CPU_avx2)->name;
        const char *portable = nn_conv_cheapest(&s, BASE_CPU_portable)->name;

        if (strcmp(avx2, known[i].avx2) != 0 || strcmp(portable, known[i].portable) != 0)
            fail_msg("%s: %s and %s", nn_conv_shape_text(&s), avx2, portable);
    }
}

/* Any shape gets a candidate that serves it, and more work never costs less. */
static void test_any_shape(void **state)
{
    static const int channels[] = {1, 3, 8, 20, 64, 512}, sides[] = {1, 2, 5, 28, 224};
    static const int kernels[] = {1, 3, 5, 7};

    (void)state;
    for (int at = 0; at < 6 * 6 * 5 * 4 * 2 * 2 * BASE_CPU_LEVELS; at++) {
        int rest = at;
        struct nn_conv_shape s;
        enum base_cpu_level level = (enum base_cpu_level)(rest % BASE_CPU_LEVELS);
        const struct nn_conv *conv;
        double cost;

        rest /= BASE_CPU_LEVELS;
        s = shape_of(channels[rest % 6], sides[rest / 6 % 5], channels[rest / 30 % 6],
                     kernels[rest / 180 % 4], 1 + rest / 720 % 2, 7);
        s.training = rest / 1440 % 2 == 0;
        s.want_dx = s.want_dx && s.training;
        conv = nn_conv_cheapest(&s, level);
        cost = conv->cost(&s, level);
        assert_true(conv->serves(&s));
        assert_true(isfinite(cost) && cost > 0);
        s.n_max = 14;
        assert_true(conv->cost(&s, level) > cost);
    }
}

/* Groups are served by the reference alone. */
static void test_groups(void **state)
{
    struct nn_conv_shape s = shape_of(16, 8, 16, 3, 1, 4);

    (void)state;
    s.groups = 4;
    assert_ptr_equal(nn_conv_cheapest(&s, BASE_CPU_avx2), nn_conv_reference());
    assert_ptr_equal(nn_conv_cheapest(&s, BASE_CPU_portable), nn_conv_reference());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_known_shapes),
        cmocka_unit_test(test_any_shape),
        cmocka_unit_test(test_groups),
        cmocka_unit_test_setup_teardown(test_auto, make, unmake),
        cmocka_unit_test_setup_teardown(test_forced, make, unmake),
        cmocka_unit_test_setup_teardown(test_refused, make, unmake),
        cmocka_unit_test_setup_teardown(test_no_timing, make, unmake),
    };

    char folder[64];
    int failed;

    snprintf(folder, sizeof folder, "/tmp/kernelplan-%d", (int)getpid());
    setenv("XDG_CACHE_HOME", folder, 1);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    base_ignore(base_remove_tree(folder));
    return failed;
}
