/* SPDX-License-Identifier: MIT
 *
 * Results: kept in a file, found again by another call, locked against a second one; figures over
 * seeds; pictures of what is there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "lab/summary.h"
#include "lab/work.h"

static const char text[] =
    "{\"schema\": 1, \"about\": \"x\", \"seeds\": 2, \"baseline\": \"one\","
    " \"cases\": [{\"name\": \"one\", \"train\": {}, \"theirs\": {\"accuracy\": 0.25}},"
    "  {\"name\": \"many\", \"train\": {\"workers\": [4, 2]}}],"
    " \"columns\": [\"accuracy\", \"speedup\"], \"plots\": ["
    "  {\"name\": \"bars\", \"kind\": \"bars\", \"y\": \"accuracy\"},"
    "  {\"name\": \"workers\", \"kind\": \"lines\", \"x\": \"workers\", \"y\": \"accuracy\"},"
    "  {\"name\": \"epochs\", \"kind\": \"lines\", \"x\": \"epoch\", \"y\": \"loss\"},"
    "  {\"name\": \"steps\", \"kind\": \"lines\", \"x\": \"step\", \"y\": \"loss\","
    "   \"only\": [\"=4\", \"one\"]},"
    "  {\"name\": \"nothing\", \"kind\": \"bars\", \"y\": \"r2\"}]}";

struct place {
    char folder[32];
    struct lab lab;
};

static int make_place(void **state)
{
    struct place *p = base_calloc(1, sizeof *p);
    json_t *file = NULL;

    strcpy(p->folder, "/tmp/lab-test-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    assert_int_equal(base_json_parse(text, sizeof text - 1, &file), BASE_OK);
    assert_int_equal(lab_open("mine", file, &(struct lab_changes){0}, &p->lab), BASE_OK);
    json_decref(file);
    *state = p;
    return 0;
}

static int remove_place(void **state)
{
    struct place *p = *state;

    lab_close(&p->lab);
    assert_int_equal(base_remove_tree(p->folder), BASE_OK);
    base_free(p);
    return 0;
}

static void add(struct place *p, struct lab_results *r, size_t point, int64_t seed, double accuracy,
                double rate)
{
    char run[] = "elsewhere/runs/run-0";
    json_t *record;

    run[sizeof run - 2] = (char)('0' + point);
    record = json_pack("{s:{s:s, s:f, s:{s:f}}, s:[{s:f}, {s:f}], s:f}", "result", "run", run,
                       "samples_per_second", rate, "test", "accuracy", accuracy, "epochs", "loss",
                       2.0, "loss", 1.0, "wall_seconds", 10.0);

    assert_non_null(record);
    assert_int_equal(lab_results_add(r, &p->lab.points[point], seed, record), BASE_OK);
}

static void test_results(void **state)
{
    struct place *p = *state;
    struct lab_results r, second;

    assert_int_equal(lab_results_open(p->folder, "mine", false, false, &r), BASE_OK);
    assert_int_equal(lab_results_open(p->folder, "mine", false, false, &second), BASE_ERR_IO);
    assert_non_null(strstr(base_message(), "another paceline lab is at work"));
    lab_results_close(&second);
    assert_null(lab_results_get(&r, &p->lab.points[0], 1));
    add(p, &r, 0, 1, 0.5, 100);
    lab_results_close(&r);

    assert_int_equal(lab_results_open(p->folder, "mine", false, true, &r), BASE_OK);
    assert_non_null(lab_results_get(&r, &p->lab.points[0], 1));
    assert_null(lab_results_get(&r, &p->lab.points[0], 2));
    assert_null(lab_results_get(&r, &p->lab.points[1], 1));
    lab_results_close(&r);
    assert_int_equal(lab_results_open(p->folder, "mine", true, false, &r), BASE_OK);
    assert_null(lab_results_get(&r, &p->lab.points[0], 1));
    lab_results_close(&r);
    lab_results_close(&r);
    /* It is forgotten, not passed over once. */
    assert_int_equal(lab_results_open(p->folder, "mine", false, true, &r), BASE_OK);
    assert_null(lab_results_get(&r, &p->lab.points[0], 1));
    lab_results_close(&r);
}

static void test_bad_results(void **state)
{
    static const char *const bad[] = {"", "[]", "{\"schema\": 2, \"runs\": {}}", "{\"schema\": 1}",
                                      "{\"schema\": 1, \"runs\": []}"};
    struct place *p = *state;
    char *path = base_format("%s/results.json", p->folder);
    struct lab_results r;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(base_file_replace(path, bad[i], strlen(bad[i])), BASE_OK);
        assert_int_equal(lab_results_open(p->folder, "mine", false, false, &r), BASE_ERR_DATA);
        assert_non_null(strstr(base_message(), "--fresh forgets it"));
        lab_results_close(&r);
    }
    base_free(path);
}

static void test_figures(void **state)
{
    struct place *p = *state;
    struct lab_results r;
    struct lab_work work = {.lab = &p->lab, .results = &r, .cores = 2};
    struct lab_statistics s;
    json_t *cases;
    double seconds;

    assert_int_equal(lab_results_open(p->folder, "mine", true, false, &r), BASE_OK);
    assert_int_equal(lab_left(&work, &seconds), 6);
    assert_true(isnan(seconds));
    add(p, &r, 0, 1, 0.5, 100);
    add(p, &r, 0, 2, 0.7, 300);
    add(p, &r, 1, 1, 0.9, 400);
    assert_int_equal(lab_left(&work, &seconds), 3);
    assert_true(fabs(seconds - 30) < 1e-9);
    s = lab_point_figure(&p->lab, &r, "speedup", &p->lab.points[0]);
    assert_true(s.count == 2 && fabs(s.mean - 1) < 1e-9 && fabs(s.high - 1.5) < 1e-9);
    s = lab_point_figure(&p->lab, &r, "speedup", &p->lab.points[1]);
    assert_true(s.count == 1 && fabs(s.mean - 2) < 1e-9 && isnan(s.deviation));
    s = lab_point_figure(&p->lab, &r, "accuracy", &p->lab.points[2]);
    assert_true(s.count == 0 && isnan(s.mean));
    assert_true(lab_theirs(&p->lab.points[0], "accuracy") == 0.25);
    assert_true(isnan(lab_theirs(&p->lab.points[1], "accuracy")));
    cases = lab_summary(&p->lab, &r);
    assert_int_equal(json_array_size(cases), 3);
    json_decref(cases);
    lab_results_close(&r);
}

static char *read_plot(const struct place *p, const char *name)
{
    char *path = base_format("%s/%s.svg", p->folder, name), *svg = NULL;
    size_t count;

    if (base_exists(path))
        assert_int_equal(base_file_read(path, 1 << 20, &svg, &count), BASE_OK);
    base_free(path);
    return svg;
}

/* The first case's run has two steps in its events; the folders of the others are gone. */
static void make_events(const struct place *p)
{
    static const char lines[] = "{\"event\":\"step\",\"step\":1,\"loss\":2.5}\n"
                                "{\"event\":\"step\",\"step\":2,\"loss\":1.5}\n";
    char *folder = base_format("%s/runs/run-0", p->folder),
         *path = base_format("%s/events.jsonl", folder);

    assert_int_equal(base_make_dirs(folder), BASE_OK);
    assert_int_equal(base_file_replace(path, lines, sizeof lines - 1), BASE_OK);
    base_free(path);
    base_free(folder);
}

static void test_pictures(void **state)
{
    struct place *p = *state;
    struct lab_results r;
    json_t *paths = NULL;
    char *svg;

    assert_int_equal(lab_results_open(p->folder, "mine", true, false, &r), BASE_OK);
    assert_int_equal(lab_draw(&p->lab, &r, &paths), BASE_OK);
    assert_int_equal(json_array_size(paths), 0); /* nothing is done yet */
    json_decref(paths);
    add(p, &r, 0, 1, 0.5, 100);
    add(p, &r, 1, 1, 0.9, 400);
    add(p, &r, 2, 1, 0.8, 200);
    assert_int_equal(lab_draw(&p->lab, &r, &paths), BASE_OK);
    assert_int_equal(json_array_size(paths), 3); /* there are no folders of runs */
    json_decref(paths);
    make_events(p);
    assert_int_equal(lab_draw(&p->lab, &r, &paths), BASE_OK);
    assert_int_equal(json_array_size(paths), 4);
    json_decref(paths);
    svg = read_plot(p, "steps");
    assert_non_null(strstr(svg, ">one<"));
    assert_null(strstr(svg, ">many workers=2<"));
    base_free(svg);
    svg = read_plot(p, "bars");
    assert_non_null(strstr(svg, ">many workers=4<"));
    assert_non_null(strstr(svg, ">theirs<"));
    base_free(svg);
    svg =
        read_plot(p, "workers"); /* one line for each case; that of two points goes to the right */
    assert_non_null(strstr(svg, ">many<"));
    assert_non_null(strstr(svg, "L688.0 "));
    base_free(svg);
    svg = read_plot(p, "epochs");
    assert_non_null(strstr(svg, ">many workers=2<"));
    base_free(svg);
    assert_null(read_plot(p, "nothing"));
    lab_results_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_bad_results),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_pictures),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
