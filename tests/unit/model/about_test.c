/* SPDX-License-Identifier: MIT
 *
 * What a manifest says: the same after a round trip, in the fields and the order that
 * docs/json.md promises; and every field that is missing, of the wrong type or at odds with
 * another is refused in a sentence that names it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/about.h"

static const char good[] =
    "{'model':'dense 2\\n','classes':2,'labels':['cat','caf\xc3\xa9'],'input':[3,4,5],"
    "'mean':[0.125,0.25,0],'deviation':[0.5,1,2],'kernels':'conv1=onednn',"
    "'data':{'name':'some','format':'folder','digest':'abc'},'settings':{'model':'m','lr':0.1}}";

/* `text` with " for '. */
static json_t *parse(const char *text)
{
    char *copy = base_strdup(text);
    json_t *json = NULL;

    for (char *at = copy; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    if (base_json_parse(copy, strlen(copy), &json) != BASE_OK)
        fail_msg("%s: %s", base_message(), copy);
    base_free(copy);
    return json;
}

static void test_reads(void **state)
{
    struct model_about about;
    json_t *json = parse(good);

    (void)state;
    assert_int_equal(model_about_from_json(json, &about), BASE_OK);
    json_decref(json);
    assert_string_equal(about.model, "dense 2\n");
    assert_int_equal(about.classes, 2);
    assert_string_equal(about.labels[1], "caf\xc3\xa9");
    assert_int_equal(about.input.c, 3);
    assert_int_equal(about.input.h, 4);
    assert_int_equal(about.input.w, 5);
    assert_true(about.mean[1] == 0.25f && about.deviation[2] == 2);
    assert_string_equal(about.kernels, "conv1=onednn");
    assert_string_equal(about.data, "some");
    assert_string_equal(about.format, "folder");
    assert_string_equal(about.digest, "abc");
    assert_string_equal(json_string_value(json_object_get(about.settings, "model")), "m");
    model_about_fini(&about);
    model_about_fini(&about);
}

static void test_round_trip(void **state)
{
    char *names[] = {"a", "b", "c"};
    const struct data_info info = {.name = "d",
                                   .format = "idx",
                                   .channels = 1,
                                   .height = 28,
                                   .width = 27,
                                   .classes = 3,
                                   .class_names = names,
                                   .mean = {0.1f},
                                   .deviation = {1.0f / 3},
                                   .digest = "0123"};
    struct model_about about, again;
    json_t *json;
    char *text;

    (void)state;
    model_about_init(&about, "dense 3\n", "", &info, json_pack("{s:i}", "seed", 7));
    json = model_about_to_json(&about);
    text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text, "{\"model\":\"dense 3\\n\",\"classes\":3,\"labels\":[\"a\",\"b\","
                              "\"c\"],\"input\":[1,28,27],\"mean\":[0.10000000149011612],"
                              "\"deviation\":[0.3333333432674408],\"kernels\":\"\",\"data\":{"
                              "\"name\":\"d\",\"format\":\"idx\",\"digest\":\"0123\"},"
                              "\"settings\":{\"seed\":7}}");
    assert_int_equal(model_about_from_json(json, &again), BASE_OK);
    assert_true(again.mean[0] == about.mean[0] && again.deviation[0] == about.deviation[0]);
    model_about_fini(&about);
    json_decref(json);
    assert_int_equal(again.crop, DATA_CROP_NONE);
    again.crop = DATA_CROP_CENTRE;
    json = model_about_to_json(&again);
    model_about_fini(&again);
    free(text);
    text = json_dumps(json, JSON_COMPACT);
    assert_non_null(strstr(text, "[0.3333333432674408]"));
    assert_non_null(strstr(text, "\"crop\":\"centre\""));
    assert_int_equal(model_about_from_json(json, &again), BASE_OK);
    assert_int_equal(again.crop, DATA_CROP_CENTRE);
    model_about_fini(&again);
    free(text);
    json_decref(json);
}

/* `good` with field `key` replaced by `value` (NULL: taken out) is refused, and `words` are in the
 * message. */
static void refuse(const char *key, const char *value, const char *words)
{
    json_t *json = parse(good), *fields = value != NULL ? parse(value) : NULL;
    struct model_about about = {.classes = 1};

    if (fields != NULL)
        json_object_update(json, fields);
    else
        json_object_del(json, key);
    if (model_about_from_json(json, &about) != BASE_ERR_DATA)
        fail_msg("%s was taken", value != NULL ? value : key);
    if (strstr(base_message(), words) == NULL || strstr(base_message(), key) == NULL)
        fail_msg("%s: no \"%s\" in: %s", value != NULL ? value : key, words, base_message());
    assert_null(about.model);
    assert_int_equal(about.classes, 0);
    json_decref(fields);
    json_decref(json);
}

static void test_missing(void **state)
{
    json_t *json = parse(good);
    struct model_about about;
    const char *key;
    json_t *value;

    (void)state;
    json_object_foreach(json, key, value) refuse(key, NULL, "is missing");
    json_decref(json);
    assert_int_equal(model_about_from_json(NULL, &about), BASE_ERR_DATA);
}

static void test_refuses(void **state)
{
    (void)state;
    refuse("model", "{'model':7}", "wrong type");
    refuse("classes", "{'classes':0}", "1 to 65536");
    refuse("classes", "{'classes':-2}", "1 to 65536");
    refuse("classes", "{'classes':4294967298}", "1 to 65536");
    refuse("classes", "{'classes':2.0}", "wrong type");
    refuse("labels", "{'labels':['cat']}", "1 entries, but there are 2 classes");
    refuse("labels", "{'classes':3}", "2 entries, but there are 3 classes");
    refuse("labels", "{'labels':['cat',null]}", "entry 1");
    refuse("labels", "{'labels':'ab'}", "wrong type");
    refuse("input", "{'input':[3,4]}", "2 entries, but there are 3 dimensions");
    refuse("input", "{'input':[3,4,5,6]}", "4 entries");
    refuse("input", "{'input':[3,0,5]}", "entry 1");
    refuse("input", "{'input':[5,4,5]}", "1 to 4");
    refuse("input", "{'input':[3,4,4294967297]}", "1 to 4096");
    refuse("input", "{'input':[3,4,'5']}", "entry 2");
    refuse("mean", "{'mean':[0,0]}", "2 entries, but there are 3 channels");
    refuse("mean", "{'input':[1,4,5]}", "3 entries, but there are 1 channels");
    refuse("mean", "{'mean':[0,0,1e39]}", "entry 2");
    refuse("mean", "{'mean':[0,'x',0]}", "entry 1");
    refuse("deviation", "{'deviation':[1]}", "1 entries");
    refuse("deviation", "{'deviation':[1,0,1]}", "entry 1");
    refuse("deviation", "{'deviation':[1,1,-1]}", "entry 2");
    refuse("deviation", "{'deviation':[1e-60,1,1]}", "entry 0"); /* 0 as a float */
    refuse("crop", "{'crop':'random'}", "none or centre expected");
    refuse("crop", "{'crop':1}", "wrong type");
    refuse("kernels", "{'kernels':null}", "wrong type");
    refuse("data", "{'data':'some'}", "wrong type");
    refuse("name", "{'data':{'format':'f','digest':'d'}}", "\"data\"");
    refuse("format", "{'data':{'name':'n','digest':'d'}}", "\"data\"");
    refuse("digest", "{'data':{'name':'n','format':'f','digest':1}}", "\"data\"");
    refuse("settings", "{'settings':[]}", "wrong type");
}

/* ---- tables ---- */

#define NUMBER "{'name':'age','kind':'number','fill':30,'mean':30.5,'deviation':12}"
#define PRICE "{'name':'price','kind':'number','fill':30,'mean':30.5,'deviation':12}"
#define COLOUR "{'name':'colour','kind':'category','categories':['','red']}"
static const char of_table[] =
    "{'model':'dense 2\\n','classes':2,'labels':['cat','dog'],'input':[3,1,1],'kernels':'',"
    "'table':{'columns':[" NUMBER "," COLOUR "],'target':{'name':'kind','kind':'category'}},"
    "'data':{'name':'t.csv','format':'csv','digest':'abc','test_share':0.25,'test_seed':9},"
    "'settings':{}}";

static void test_table(void **state)
{
    struct model_about about;
    json_t *json = parse(of_table), *again;

    (void)state;
    assert_int_equal(model_about_from_json(json, &about), BASE_OK);
    assert_int_equal(about.table->column_count, 2);
    assert_int_equal(about.table->features, 3);
    assert_string_equal(about.table->columns[1].categories[1], "red");
    assert_string_equal(about.table->target.categories[1], "dog"); /* the labels */
    assert_false(model_about_is_regression(&about));
    assert_true(about.test_share == 0.25 && about.test_seed == 9);
    again = model_about_to_json(&about);
    model_about_fini(&about);
    assert_int_equal(model_about_from_json(again, &about), BASE_OK);
    assert_true(about.table->columns[0].mean == 30.5 && about.table->columns[0].fill == 30);
    model_about_fini(&about);
    json_decref(json);
    json_decref(again);
}

static void test_regression(void **state)
{
    struct model_about about;
    json_t *json = parse(of_table),
           *fields = parse("{'classes':1,'labels':['price'],'table':{"
                           "'columns':[" NUMBER "," COLOUR "],'target':" PRICE "}}");

    (void)state;
    json_object_update(json, fields);
    assert_int_equal(model_about_from_json(json, &about), BASE_OK);
    assert_true(model_about_is_regression(&about));
    assert_true(model_about_number(&about, 2) == 54.5);
    model_about_fini(&about);
    json_decref(json);
    json_decref(fields);
}

/* of_table with another "table" is refused. */
static void refuse_table(const char *table, const char *words)
{
    json_t *json = parse(of_table);
    struct model_about about;

    json_object_set_new(json, "table", parse(table));
    assert_int_equal(model_about_from_json(json, &about), BASE_ERR_DATA);
    if (strstr(base_message(), words) == NULL || strstr(base_message(), "\"table\"") == NULL)
        fail_msg("no \"%s\" in: %s", words, base_message());
    json_decref(json);
}

static void test_refuses_tables(void **state)
{
    (void)state;
    refuse_table("[]", "is not an object");
    refuse_table("{'columns':[]}", "target");
    refuse_table("{'columns':[],'target':{'name':'k','kind':'category'}}", "1 to 16384");
    refuse_table("{'columns':[" NUMBER "],'target':{'name':'k','kind':'category'}}",
                 "1 features, but \"input\" has 3");
    refuse_table("{'columns':[" COLOUR "],'target':" NUMBER "}", "but there are 2 classes");
    refuse_table("{'columns':[{'name':'x','kind':'odd'}],'target':{'name':'k','kind':'category'}}",
                 "number or category expected");
    refuse_table("{'columns':[{'name':'x','kind':'number','fill':0,'mean':0,'deviation':0}],"
                 "'target':{'name':'k','kind':'category'}}",
                 "divided by it");
    refuse_table("{'columns':[{'name':'x','kind':'category','categories':[1]}],"
                 "'target':{'name':'k','kind':'category'}}",
                 "entry 0 of \"categories\"");
    refuse_table("{'columns':[{'name':'x','kind':'category','categories':['a','b','a']}],"
                 "'target':{'name':'k','kind':'category'}}",
                 "'a' is there twice");
    refuse_table("{'columns':[" COLOUR "," COLOUR "],'target':{'name':'k','kind':'category'}}",
                 "entry 1 of \"columns\": 'colour' is there twice");
    refuse_table("{'columns':[" COLOUR "],'target':{'name':'colour','kind':'category'}}",
                 "'colour' is there twice");
}

/* A class that stands alone: what is told of a wrong label names two of them. */
/* The text assumes one input and so many classes; the model was trained for others. */
static void test_text(void **state)
{
    static const struct {
        const char *given, *told;
    } cases[] = {
        {"dense classes\n", "input 4x1x1\nclasses 3\ndense classes\n"},
        {"# mine\ninput 1x28x28\n classes 10 # or more\n\nrelu name=input\ndense classes",
         "input 4x1x1\nclasses 3\n# mine\n\nrelu name=input\ndense classes"},
        {"\tinput\t1x2x2\r\nclasses\t1", "input 4x1x1\nclasses 3\n"},
        {"inputs\n", "input 4x1x1\nclasses 3\ninputs\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_about about = {.model = (char *)(uintptr_t)cases[i].given,
                                    .classes = 3,
                                    .input = {.c = 4, .h = 1, .w = 1}};
        char *text = model_about_text(&about);

        assert_string_equal(text, cases[i].told);
        base_free(text);
    }
}

static void test_one_class(void **state)
{
    json_t *json = parse(of_table), *fields = parse("{'classes':1,'labels':['cat']}");
    struct model_about about;

    (void)state;
    json_object_update(json, fields);
    assert_int_equal(model_about_from_json(json, &about), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "the target is a category, but there is 1 class"));
    json_decref(fields);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),          cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_missing),        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_table),          cmocka_unit_test(test_regression),
        cmocka_unit_test(test_refuses_tables), cmocka_unit_test(test_one_class),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
