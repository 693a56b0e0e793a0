/* SPDX-License-Identifier: MIT
 *
 * Lab files: cases become points, in order and with names; what a call changes; every way a file
 * can be wrong has a sentence that names the place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "lab/lab.h"
#include "lab/results.h"

static base_status open_text(const char *text, const struct lab_changes *changes, struct lab *lab_p)
{
    json_t *file = NULL;
    base_status st = base_json_parse(text, strlen(text), &file);

    *lab_p = (struct lab){0};
    if (st == BASE_OK)
        st = lab_open("mine", file, changes, lab_p);
    json_decref(file);
    return st;
}

#define GRID                                                                                \
    "{\"schema\": 1, \"about\": \"a grid\","                                                \
    " \"train\": {\"model\": \"m\", \"lr\": 0.1, \"flip\": true},"                          \
    " \"cases\": [{\"name\": \"one\", \"train\": {\"strategy\": \"single\"}},"              \
    "  {\"train\": {\"strategy\": [\"ddp\", \"local-sgd:k=8\"], \"workers\": [2, 4],"       \
    "   \"lr\": 0.2}}],"                                                                    \
    " \"seeds\": [3, 7], \"baseline\": \"one\", \"columns\": [\"speedup\", \"time.wait\"]," \
    " \"quick\": {\"train\": {\"epochs\": 1, \"workers\": 2}, \"seeds\": 1}}"

static void assert_words(const struct lab_point *point, int64_t seed, const char *wanted)
{
    char **words = lab_words(point, seed);
    struct base_str line = {0};

    for (size_t i = 0; words[i] != NULL; i++)
        base_str_add(&line, "%s ", words[i]);
    assert_string_equal(line.text, wanted);
    base_str_fini(&line);
    lab_words_free(words);
}

static void test_grid(void **state)
{
    static const char *const names[] = {"one", "ddp workers=2 lr=0.2", "ddp workers=4 lr=0.2",
                                        "local-sgd:k=8 workers=2 lr=0.2",
                                        "local-sgd:k=8 workers=4 lr=0.2"};
    struct lab lab;

    (void)state;
    assert_int_equal(open_text(GRID, &(struct lab_changes){0}, &lab), BASE_OK);
    assert_int_equal(lab.point_count, 5);
    assert_int_equal(lab.seed_count, 2);
    assert_int_equal(lab.seeds[1], 7);
    assert_ptr_equal(lab.baseline, &lab.points[0]);
    assert_words(&lab.points[0], 3, "--model=m --lr=0.1 --flip=on --strategy=single --seed=3 ");
    assert_words(&lab.points[3], 7,
                 "--model=m --lr=0.2 --flip=on --strategy=local-sgd:k=8 "
                 "--workers=2 --seed=7 ");
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(lab.points[i].name, names[i]);
    assert_string_equal(lab.points[0].group, "one");
    assert_string_equal(lab.points[1].group, "lr=0.2");
    lab_close(&lab);
}

static void test_across(void **state)
{
    static const char *const rows[] = {"one", "workers=2", "workers=2", "workers=4", "workers=4"};
    struct lab lab;

    (void)state;
    assert_int_equal(open_text("{\"schema\": 1, \"about\": \"x\", \"across\": \"strategy\","
                               " \"cases\": [{\"name\": \"one\", \"train\": {\"lr\": 1}},"
                               " {\"train\": {\"workers\": [2, 4],"
                               " \"strategy\": [\"ddp\", \"zero\"]}}]}",
                               &(struct lab_changes){0}, &lab),
                     BASE_OK);
    assert_string_equal(lab.across, "strategy");
    assert_int_equal(lab.point_count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(lab.points[i].row, rows[i]);
    assert_string_equal(lab.points[4].name, "workers=4 zero");
    lab_close(&lab);
}

static void test_changes(void **state)
{
    struct lab_changes changes = {.quick = true,
                                  .sets = {.at = {"lr=0.5", "data=a=b", "flip=false"}, .count = 3}};
    struct lab lab;

    (void)state;
    assert_int_equal(open_text(GRID, &changes, &lab), BASE_OK);
    assert_int_equal(lab.point_count, 3); /* "quick" has one number of workers */
    assert_int_equal(lab.seed_count, 1);
    assert_words(&lab.points[0], 1,
                 "--model=m --lr=0.5 --flip=off --strategy=single --epochs=1 "
                 "--workers=2 --data=a=b --seed=1 ");
    lab_close(&lab);
    changes = (struct lab_changes){.seeds = 4};
    assert_int_equal(open_text(GRID, &changes, &lab), BASE_OK);
    assert_int_equal(lab.seed_count, 4);
    assert_int_equal(lab.seeds[3], 4);
    lab_close(&lab);
    changes = (struct lab_changes){.sets = {.at = {"lr"}, .count = 1}};
    assert_int_equal(open_text(GRID, &changes, &lab), BASE_ERR_USAGE);
    lab_close(&lab);
}

/* A case's own launcher counts, an empty one is none, and runs that are launched in different ways
 * are different runs. The quick form has no launchers, and no cases that are about theirs. */
static void test_launch(void **state)
{
    const char *text =
        "{\"schema\": 1, \"about\": \"\", \"launch\": [\"env\", \"A=1\"], \"cases\": ["
        "{\"name\": \"a\", \"train\": {}},"
        "{\"name\": \"b\", \"train\": {}, \"launch\": [\"nice\"]},"
        "{\"name\": \"c\", \"train\": {}, \"launch\": []}], \"quick\": {}}";
    char ids[3][LAB_ID];
    struct lab lab;

    (void)state;
    assert_int_equal(open_text(text, &(struct lab_changes){0}, &lab), BASE_OK);
    assert_int_equal(json_array_size(lab.points[0].launch), 2);
    assert_string_equal(json_string_value(json_array_get(lab.points[1].launch, 0)), "nice");
    assert_null(lab.points[2].launch);
    for (int i = 0; i < 3; i++)
        lab_run_id(&lab.points[i], 1, ids[i]);
    assert_string_not_equal(ids[0], ids[1]);
    assert_string_not_equal(ids[0], ids[2]);
    lab_close(&lab);
    assert_int_equal(open_text(text, &(struct lab_changes){.quick = true}, &lab), BASE_OK);
    assert_int_equal(lab.point_count, 2); /* not b, which is about its launcher */
    assert_null(lab.points[0].launch);
    assert_string_equal(lab.points[1].name, "c");
    lab_close(&lab);
}

static void test_select(void **state)
{
    struct lab lab;

    (void)state;
    assert_int_equal(open_text(GRID, &(struct lab_changes){0}, &lab), BASE_OK);
    assert_int_equal(lab_select(&lab, &(struct base_texts){.at = {"ddp", "one"}, .count = 2}),
                     BASE_OK);
    assert_true(lab.points[0].selected && lab.points[2].selected && !lab.points[3].selected);
    assert_int_equal(lab_select(&lab, &(struct base_texts){.at = {"dpd"}, .count = 1}),
                     BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "unknown case 'dpd'"));
    assert_int_equal(lab_select(&lab, &(struct base_texts){0}), BASE_OK);
    assert_true(lab.points[3].selected);
    lab_close(&lab);
}

/* A case may have fewer seeds than the others, and never more. */
static void test_seeds_of_a_case(void **state)
{
    static const char text[] =
        "{\"schema\": 1, \"about\": \"x\", \"seeds\": 3, \"cases\": ["
        "{\"name\": \"a\", \"train\": {}}, {\"name\": \"b\", \"train\": {}, \"seeds\": 1}]}";
    struct lab lab;

    (void)state;
    assert_int_equal(open_text(text, &(struct lab_changes){0}, &lab), BASE_OK);
    assert_int_equal(lab_seeds_of(&lab, &lab.points[0]), 3);
    assert_int_equal(lab_seeds_of(&lab, &lab.points[1]), 1);
    assert_int_equal(lab_runs(&lab), 4);
    lab.points[0].selected = false;
    assert_int_equal(lab_runs(&lab), 1);
    lab.points[1].most_seeds = 9;
    assert_int_equal(lab_seeds_of(&lab, &lab.points[1]), 3);
    lab_close(&lab);
}

/* A run is known by its command line alone. */
static void test_ids(void **state)
{
    struct lab lab, other;
    char a[LAB_ID], b[LAB_ID];

    (void)state;
    assert_int_equal(open_text(GRID, &(struct lab_changes){0}, &lab), BASE_OK);
    assert_int_equal(open_text(GRID, &(struct lab_changes){.seeds = 9}, &other), BASE_OK);
    lab_run_id(&lab.points[1], 3, a);
    lab_run_id(&other.points[1], 3, b);
    assert_string_equal(a, b);
    lab_run_id(&other.points[1], 4, b);
    assert_string_not_equal(a, b);
    lab_run_id(&other.points[2], 3, b);
    assert_string_not_equal(a, b);
    lab_close(&other);
    lab_close(&lab);
}

#define HEAD "{\"schema\": 1, \"about\": \"x\", "
#define CASES "\"cases\": [{\"train\": {\"model\": \"m\"}}]"

static void test_bad_files(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"[]", "lab mine: not a JSON object"},
        {"{\"about\": \"x\"}", "\"schema\" is missing"},
        {"{\"schema\": 2, \"about\": \"x\"}", "\"schema\" is 2"},
        {"{\"schema\": 1}", "\"about\" is missing"},
        {"{\"schema\": 1, \"about\": 3}", "\"about\" is of the wrong type"},
        {HEAD "\"case\": []}", "unknown key 'case'; did you mean 'cases'?"},
        {HEAD "\"cases\": {}}", "\"cases\" is of the wrong type, a list expected"},
        {HEAD "\"cases\": []}", "\"cases\" is empty"},
        {HEAD "\"across\": \"lr\", \"cases\": [{\"train\": {\"flip\": true}}]}",
         "\"across\" is 'lr', an option that no case has"},
        {HEAD "\"cases\": [3]}", "case 1: not an object"},
        {HEAD "\"cases\": [{\"nam\": \"x\"}]}", "case 1: unknown key 'nam'"},
        {HEAD "\"cases\": [{\"name\": \"x\"}]}", "case 1: \"train\" is missing"},
        {HEAD "\"cases\": [{\"name\": \"\", \"train\": {}}]}", "\"name\" is empty"},
        {HEAD "\"cases\": [{\"train\": {\"lr\": null}}]}", "case 1: \"lr\" takes a text, a number"},
        {HEAD "\"cases\": [{\"train\": {\"lr\": []}}]}", "the list of \"lr\" has 0 values"},
        {HEAD "\"cases\": [{\"train\": {\"lr\": [1, [2]]}}]}", "value 2 of \"lr\" is neither"},
        {HEAD "\"cases\": [{\"train\": {\"seed\": 1}}]}", "\"seeds\" says which"},
        {HEAD "\"cases\": [{\"train\": {\"runs-dir\": \"x\"}}]}", "the lab itself sets runs-dir"},
        {HEAD "\"cases\": [{\"train\": {\"lr\": [1, 1]}}]}", "two cases are called 'lr=1'"},
        {HEAD "\"cases\": [{\"train\": {\"lr\": [1, 2]}, \"theirs\": {}}]}",
         "\"theirs\" is of one"},
        {HEAD "\"cases\": [{\"train\": {}, \"theirs\": {\"accurracy\": 1}}]}",
         "did you mean 'accuracy'?"},
        {HEAD "\"cases\": [{\"train\": {}, \"theirs\": {\"accuracy\": \"1\"}}]}",
         "\"theirs\" of all: \"accuracy\" is of the wrong type"},
        {HEAD CASES ", \"seeds\": 0}", "\"seeds\" is 0"},
        {HEAD CASES ", \"seeds\": [1, 1]}", "\"seeds\" has 1 twice"},
        {HEAD CASES ", \"seeds\": [\"a\"]}", "\"seeds\" takes whole numbers"},
        {HEAD CASES ", \"seeds\": \"a\"}", "\"seeds\" takes a number of seeds or a list"},
        {HEAD CASES ", \"parallel\": 1}", "\"parallel\" is missing, or is neither"},
        {HEAD CASES ", \"columns\": [\"loss\", \"sekonds\"]}", "\"columns\": unknown figure"},
        {HEAD CASES ", \"columns\": [1]}", "\"columns\" takes names"},
        {HEAD CASES ", \"columns\": []}", "\"columns\" takes a list of 1 to"},
        {HEAD CASES ", \"columns\": [\"speedup\"]}", "the column speedup needs a \"baseline\""},
        {HEAD CASES ", \"columns\": [\"seconds@1\"]}", "'seconds@1' is not known of every epoch"},
        {HEAD CASES ", \"columns\": [\"accuracy@0\"]}", "'accuracy@0' names no epoch"},
        {HEAD CASES ", \"baseline\": \"none\"}", "unknown baseline 'none'"},
        {HEAD CASES ", \"plots\": [{}]}", "plot 1: \"name\" is missing"},
        {HEAD CASES ", \"plots\": [{\"name\": \"../x\"}]}", "\"name\" is '../x'"},
        {HEAD CASES ", \"plots\": [{\"name\": \"a\", \"kind\": \"pie\"}]}", "unknown kind 'pie'"},
        {HEAD CASES ", \"plots\": [{\"name\": \"a\", \"kind\": \"scatter\", \"x\": \"workers\", "
                    "\"y\": \"loss\"}]}",
         "workers"},
        {HEAD CASES ", \"plots\": [{\"name\": \"a\", \"kind\": \"scatter\", \"x\": \"loss\", "
                    "\"y\": \"loss\", \"series\": \"lr\"}]}",
         "a scatter has a dot a case"},
        {HEAD "\"cases\": [{\"train\": {}, \"seeds\": 0}]}", "\"seeds\""},
        {HEAD CASES ", \"plots\": [{\"name\": \"a\", \"kind\": \"lines\", \"y\": \"loss\"}]}",
         "\"x\" is missing"},
        {HEAD CASES ", \"plots\": [{\"name\": \"a\", \"kind\": \"bars\", \"y\": \"loss\", "
                    "\"log_y\": true}]}",
         "are of lines"},
        {HEAD CASES ", \"plots\": [{\"name\": \"a\", \"kind\": \"lines\", \"x\": \"epoch\", "
                    "\"y\": \"seconds\"}]}",
         "plot 1: 'seconds' is not known of every epoch"},
        {HEAD CASES ", \"plots\": [{\"name\": \"a\", \"kind\": \"lines\", \"x\": \"step\", "
                    "\"y\": \"accuracy\"}]}",
         "plot 1: 'accuracy' is not known of every step"},
        {HEAD CASES ", \"plots\": [{\"name\": \"a\", \"kind\": \"lines\", \"x\": \"step\", "
                    "\"y\": \"loss\", \"series\": \"lr\"}]}",
         "\"series\" is not for steps"},
        {HEAD CASES ", \"plots\": [{\"name\": \"a\", \"kind\": \"bars\", \"y\": \"loss\", "
                    "\"only\": [1]}]}",
         "\"only\" is not a list of parts"},
        {HEAD CASES ", \"plots\": [{\"name\": \"a\", \"kind\": \"bars\", \"y\": \"loss\", "
                    "\"only\": []}]}",
         "\"only\" is not a list of parts"},
        {HEAD CASES ", \"quick\": {\"epochs\": 1}}", "\"quick\": unknown key 'epochs'"},
        {HEAD CASES ", \"quick\": 1}", "\"quick\" is of the wrong type"},
        {HEAD CASES ", \"launch\": \"env\"}", "\"launch\" is of the wrong type, a list expected"},
        {HEAD CASES ", \"launch\": [1]}", "\"launch\" takes a list of words"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct lab lab;

        if (open_text(bad[i].text, &(struct lab_changes){0}, &lab) == BASE_OK ||
            strstr(base_message(), bad[i].message) == NULL)
            fail_msg("%s: '%s', not '%s'", bad[i].text, base_message(), bad[i].message);
        lab_close(&lab);
    }
}

/* Small files that stand for more runs than a person can mean. */
static void test_too_many(void **state)
{
    struct base_str text = {0};
    struct lab lab;

    (void)state;
    base_str_add(&text, HEAD "\"cases\": [{\"train\": {");
    for (int option = 0; option < 40; option++)
        base_str_add(&text, "%s\"o%d\": [1, 2, 3, 4, 5, 6, 7, 8]", option > 0 ? ", " : "", option);
    base_str_add(&text, "}}]}");
    assert_int_equal(open_text(text.text, &(struct lab_changes){0}, &lab), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "more than 1000 combinations"));
    lab_close(&lab);
    base_str_fini(&text);
    base_str_add(&text, HEAD "\"seeds\": 1000, \"cases\": [{\"train\": {"
                             "\"a\": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], \"b\": [1, 2]}}]}");
    assert_int_equal(open_text(text.text, &(struct lab_changes){0}, &lab), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "are more than 10000 runs"));
    lab_close(&lab);
    base_str_fini(&text);
}

static void test_find(void **state)
{
    json_t *file;
    char *name;

    (void)state;
    for (const struct lab_builtin *b = lab_builtins; b->name != NULL; b++) {
        struct lab lab;

        assert_int_equal(lab_find(b->name, &file, &name), BASE_OK);
        assert_string_equal(name, b->name);
        assert_int_equal(lab_open(name, file, &(struct lab_changes){.quick = true}, &lab), BASE_OK);
        lab_close(&lab);
        json_decref(file);
        base_free(name);
    }
    assert_int_equal(lab_find("s44", &file, &name), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "did you mean"));
    assert_int_equal(lab_find("not/there.json", &file, &name), BASE_ERR_IO);
    assert_null(file);
    assert_null(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid),     cmocka_unit_test(test_across),
        cmocka_unit_test(test_changes),  cmocka_unit_test(test_launch),
        cmocka_unit_test(test_select),   cmocka_unit_test(test_seeds_of_a_case),
        cmocka_unit_test(test_ids),      cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_too_many), cmocka_unit_test(test_find),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
