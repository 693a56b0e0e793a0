/* SPDX-License-Identifier: MIT
 *
 * Kernels chosen by time: every layer gets one that serves, choices are remembered, and a broken
 * memory does no harm.
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
#include "nn/conv/tune.h"

static const char text[] = "input 3x12x12\nclasses 4\n"
                           "conv 16 3x3 pad=1 name=first\nrelu\n"
                           "conv 16 3x3 pad=1 name=second\nrelu\n"
                           "conv 16 3x3 pad=1 name=third\nrelu\n"
                           "conv 8 5x5 stride=2 name=fourth\ndense classes\n";

struct fixture {
    struct nn_graph *graph;
    struct nn_planned *layers;
    int count;
    char cache[64];
};

static int make(void **state)
{
    const struct nn_setup setup = {.n_max = 4, .training = true};
    struct fixture *f = base_calloc(1, sizeof *f);

    snprintf(f->cache, sizeof f->cache, "tune-%d/kernels.json", (int)getpid());
    *state = f;
    if (nn_graph_new(text, "test", (struct nn_shape){0}, 0, &f->graph) != BASE_OK)
        return 1;
    f->layers = nn_kernelplan_layers(f->graph, &setup, &f->count);
    return f->count != 4;
}

static int unmake(void **state)
{
    struct fixture *f = *state;

    base_free(f->layers);
    nn_graph_free(f->graph);
    *strrchr(f->cache, '/') = '\0';
    base_ignore(base_remove_tree(f->cache));
    base_free(f);
    return 0;
}

/* The candidate of `second`. */
static const char *tune(struct fixture *f, const char *cache)
{
    for (int i = 0; i < f->count; i++)
        f->layers[i].conv = NULL;
    assert_int_equal(nn_tune(f->layers, f->count, cache), BASE_OK);
    return f->layers[1].conv->name;
}

static void test_chooses(void **state)
{
    struct fixture *f = *state;

    tune(f, NULL);
    for (int i = 0; i < f->count; i++)
        assert_true(f->layers[i].conv->serves(&f->layers[i].shape));
    assert_ptr_equal(f->layers[1].conv, f->layers[2].conv); /* one shape */
    assert_string_equal(f->layers[3].conv->name, "onednn"); /* alone with 5x5 and a stride */
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
    const char *made = tune(f, f->cache), *other;
    char *edited, *found, *bytes = NULL;

    assert_int_equal(remembered_choices(f, &bytes), 3); /* second and third are one shape */
    assert_string_equal(tune(f, f->cache), made);
    found = strstr(bytes, "16x12x12 16x12x12");
    assert_non_null(found);
    found = strstr(found, "\": \"") + 4;
    other = strncmp(found, "winograd2", 9) == 0 ? "winograd4" : "winograd2";
    edited = base_format("%.*s%s%s", (int)(found - bytes), bytes, other, strchr(found, '"'));
    assert_int_equal(base_file_replace(f->cache, edited, strlen(edited)), BASE_OK);
    assert_string_equal(tune(f, f->cache), other);
    base_free(edited);
    base_free(bytes);
}

/* Choices between other candidates are not taken over: a new one has its chance. */
static void test_new_candidate(void **state)
{
    struct fixture *f = *state;
    char *fewer, *found, *bytes = NULL;

    tune(f, f->cache);
    assert_int_equal(remembered_choices(f, &bytes), 3);
    found = strstr(bytes, " winograd4");
    assert_non_null(found);
    fewer = base_format("%.*s%s", (int)(found - bytes), bytes, found + strlen(" winograd4"));
    assert_int_equal(base_file_replace(f->cache, fewer, strlen(fewer)), BASE_OK);
    base_free(bytes);
    tune(f, f->cache);
    assert_int_equal(remembered_choices(f, &bytes), 6);
    base_free(bytes);
    base_free(fewer);
}

static void test_broken_memory(void **state)
{
    static const char *const broken[] = {"", "{", "[1,2]", "{\"x\":", "\xff\xfe"};
    struct fixture *f = *state;

    tune(f, f->cache);
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        json_t *json = NULL;

        assert_int_equal(base_file_replace(f->cache, broken[i], strlen(broken[i])), BASE_OK);
        tune(f, f->cache);
        assert_int_equal(base_json_load(f->cache, 1 << 20, &json), BASE_OK);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_chooses, make, unmake),
        cmocka_unit_test_setup_teardown(test_remembered, make, unmake),
        cmocka_unit_test_setup_teardown(test_new_candidate, make, unmake),
        cmocka_unit_test_setup_teardown(test_broken_memory, make, unmake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
