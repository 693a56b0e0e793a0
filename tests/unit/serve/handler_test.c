/* SPDX-License-Identifier: MIT
 *
 * Bodies of predictions: images, JSON, float32, rows of tables; who takes which, and what is
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <png.h>
#include <string.h>

#include "base/mem.h"
#include "serve/handler.h"
#include "serve/v2_parse.h"
#include "support/images.h"

static char *labels[] = {"a", "b"};
static struct model_about about = {.classes = 2,
                                   .labels = labels,
                                   .input = {.c = 1, .h = 2, .w = 2},
                                   .mean = {0.5f},
                                   .deviation = {0.25f}};

/* Two columns and a number to predict: features are size, blue and red. */
static char *colours[] = {"blue", "red"};
static struct data_column columns[] = {
    {.name = "size", .kind = DATA_NUMBER, .fill = 4, .mean = 2, .deviation = 0.5},
    {.name = "colour", .kind = DATA_CATEGORY, .categories = colours, .category_count = 2}};
static struct data_table table = {
    .columns = columns, .column_count = 2, .features = 3, .target = {.name = "price"}};
static char *target[] = {"price"};
static struct model_about rows_about = {
    .classes = 1, .labels = target, .input = {.c = 3, .h = 1, .w = 1}, .table = &table};

static base_status read_text(const char *type, const char *text, struct serve_samples *samples)
{
    struct serve_body body = {type, text, strlen(text)};

    return serve_read(NULL, &about, &body, samples);
}

static void test_json(void **state)
{
    static const char *const one[] = {"[1,2,3,4]", " \n[[[1,2],[3,4]]]", "{\"data\":[1,2,3,4.0]}",
                                      "{\"inputs\":[[1,2,3,4]]}"};
    static const char *const several[] = {"[[1,2,3,4],[5,6,7,8]]", "[1,2,3,4,5,6,7,8]",
                                          "{\"instances\":[[1,2,3,4],[5,6,7,8]]}"};
    struct serve_samples samples;

    (void)state;
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        assert_int_equal(read_text("", one[i], &samples), BASE_OK);
        assert_int_equal(samples.n, 1);
        assert_false(samples.list);
        assert_true(samples.x[0] == 1 && samples.x[3] == 4);
        base_free(samples.x);
    }
    for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
        assert_int_equal(read_text("application/json", several[i], &samples), BASE_OK);
        assert_int_equal(samples.n, 2);
        assert_true(samples.list);
        assert_true(samples.x[7] == 8);
        base_free(samples.x);
    }
    assert_int_equal(read_text("", "{\"instances\":[[1,2,3,4]]}", &samples), BASE_OK);
    assert_true(samples.n == 1 && samples.list); /* a list of one is a list */
    base_free(samples.x);
}

static void test_json_refused(void **state)
{
    static const char *const bad[] = {"[]",
                                      "[1,2,3]",
                                      "[1,2,3,4,5]",
                                      "{}",
                                      "[1,2,3,true]",
                                      "[1,2,3,\"4\"]",
                                      "[1,2,3,4",
                                      "{\"instances\":7}",
                                      "[1e39,2,3,4]",
                                      "{\"data\":null}",
                                      "[[[[[[[[[1,2,3,4]]]]]]]]]",
                                      "[1,2,3,4]x"};
    struct serve_samples samples;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read_text("application/json", bad[i], &samples), BASE_ERR_DATA);
        assert_null(samples.x);
    }
}

static void test_raw(void **state)
{
    static const float good[] = {1, -2, 3.5f, 4}, bad[] = {1, 2, 3, INFINITY};
    struct serve_body body = {"application/octet-stream", good, sizeof good};
    struct serve_samples samples;

    (void)state;
    assert_int_equal(serve_read(NULL, &about, &body, &samples), BASE_OK);
    assert_int_equal(samples.n, 1);
    assert_memory_equal(samples.x, good, sizeof good);
    base_free(samples.x);
    body.count--;
    assert_int_equal(serve_read(NULL, &about, &body, &samples), BASE_ERR_DATA);
    body.count = 0;
    assert_int_equal(serve_read(NULL, &about, &body, &samples), BASE_ERR_DATA);
    body = (struct serve_body){"application/octet-stream", bad, sizeof bad};
    assert_int_equal(serve_read(NULL, &about, &body, &samples), BASE_ERR_DATA);
    body = (struct serve_body){"text/plain", good, sizeof good};
    assert_int_equal(serve_read(NULL, &about, &body, &samples), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "PNG or JPEG"));
}

/* The first byte of a number may be any letter; in a form JSON has this type, too. */
static void test_raw_or_json(void **state)
{
    static const uint8_t brackets[] = "[[[[{{{{ [[[{{{{";
    struct serve_body body = {"application/octet-stream", brackets, 16};
    struct serve_samples samples;

    (void)state;
    assert_int_equal(serve_read(NULL, &about, &body, &samples), BASE_OK);
    assert_int_equal(samples.n, 1);
    assert_memory_equal(samples.x, brackets, 16);
    base_free(samples.x);
    body = (struct serve_body){"application/octet-stream", " [1,2, 3,4.0000]", 16, .in_form = true};
    assert_int_equal(serve_read(NULL, &about, &body, &samples), BASE_OK);
    assert_true(samples.n == 1 && samples.x[3] == 4);
    base_free(samples.x);
}

static void test_image(void **state)
{
    uint8_t *png = NULL, *jpeg = NULL;
    struct serve_body body = {"text/plain", .max_pixels = 600}; /* whatever its type says */
    struct serve_samples samples;

    (void)state;
    body.count = support_png(PNG_COLOR_TYPE_GRAY, 8, 0, 2, 2, &png);
    body.bytes = png;
    assert_int_equal(serve_read(NULL, &about, &body, &samples), BASE_OK);
    for (int i = 0; i < 4; i++) {
        float want = ((float)support_level(0, i / 2, i % 2) / 255 - 0.5f) / 0.25f;

        assert_true(fabsf(samples.x[i] - want) < 1e-5f);
    }
    base_free(samples.x);
    body.count -= 20;
    assert_int_equal(serve_read(NULL, &about, &body, &samples), BASE_ERR_DATA);
    body.count = support_jpeg(3, 0, 30, 20, &jpeg);
    body.bytes = jpeg;
    assert_int_equal(serve_read(NULL, &about, &body, &samples), BASE_OK); /* grey, scaled */
    base_free(samples.x);
    body.max_pixels = 599;
    assert_int_equal(serve_read(NULL, &about, &body, &samples), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "20x30 pixels"));
    base_free(png);
    base_free(jpeg);
}

static base_status read_rows(const char *text, struct serve_samples *samples)
{
    struct serve_body body = {"", text, strlen(text)};

    return serve_read(NULL, &rows_about, &body, samples);
}

static void test_table(void **state)
{
    static const char *const one[] = {
        "{\"size\":3,\"colour\":\"red\"}", "{\"colour\":\"red\",\"size\":\"3\",\"price\":7}",
        "[3,\"red\"]", "{\"data\":[3,\"red\"]}", "{\"inputs\":{\"size\":3,\"colour\":\"red\"}}"};
    static const char *const several[] = {
        "[[3,\"red\"],[null,\"mauve\"]]", "{\"instances\":[[3,\"red\"],[null,\"mauve\"]]}",
        "[{\"size\":3,\"colour\":\"red\"},{\"size\":null,\"colour\":\"mauve\"}]"};
    static const float want[] = {2, 0, 1, 4, 0, 0}; /* of 3 red, and of nothing that is known */
    struct serve_samples samples;

    (void)state;
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        assert_int_equal(read_rows(one[i], &samples), BASE_OK);
        assert_true(samples.n == 1 && !samples.list);
        assert_memory_equal(samples.x, want, 3 * sizeof *want);
        base_free(samples.x);
    }
    for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
        assert_int_equal(read_rows(several[i], &samples), BASE_OK);
        assert_true(samples.n == 2 && samples.list);
        assert_memory_equal(samples.x, want, sizeof want);
        base_free(samples.x);
    }
    columns[0].name = "data"; /* a column may have a name that rows may be under */
    assert_int_equal(read_rows("{\"data\":3,\"colour\":\"red\"}", &samples), BASE_OK);
    assert_memory_equal(samples.x, want, 3 * sizeof *want);
    base_free(samples.x);
    columns[0].name = "size";
}

static void test_table_refused(void **state)
{
    static const char *const bad[] = {"[]",
                                      "{}",
                                      "[3]",
                                      "[3,\"red\",1]",
                                      "[\"large\",\"red\"]",
                                      "{\"size\":3}",
                                      "{\"size\":3,\"colour\":\"red\",\"weight\":1}",
                                      "{\"size\":[3],\"colour\":\"red\"}",
                                      "[[3,\"red\"],3]",
                                      "{\"instances\":7}",
                                      "hello"};
    uint8_t *png = NULL;
    struct serve_body body = {.type = "", .max_pixels = 600};
    struct serve_samples samples;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (read_rows(bad[i], &samples) == BASE_OK)
            fail_msg("%s is taken", bad[i]);
        assert_null(samples.x);
    }
    assert_true(read_rows("[[3,\"red\"],[3]]", &samples) != BASE_OK);
    assert_non_null(strstr(base_message(), "row 2"));
    body.count = support_png(PNG_COLOR_TYPE_RGB, 8, 0, 2, 2, &png);
    body.bytes = png;
    assert_int_equal(serve_read(NULL, &rows_about, &body, &samples), BASE_ERR_MODEL);
    assert_non_null(strstr(base_message(), "not images"));
    base_free(png);
    body = (struct serve_body){"", "[3,\"red\"]", 9};
    assert_int_equal(serve_read("table", &about, &body, &samples), BASE_ERR_MODEL);
}

/* Pixels have up to four channels, a row has thousands of features. */
static void test_v2_pixels_of_table(void **state)
{
    static const char text[] = "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,%d],\"datatype\":"
                               "\"%s\",\"data\":[%s1]}]}";
    struct model_about wide = rows_about;
    struct serve_samples samples = {0};
    char zeros[2 * 999 + 1] = "", *body;
    json_t *id;

    (void)state;
    wide.input.c = 1000;
    for (int i = 0; i < 999; i++)
        memcpy(zeros + 2 * i, "0,", 2);
    body = base_format(text, 1000, "UINT8", zeros);
    assert_int_equal(serve_v2_parse(&wide, body, strlen(body), &id, &samples), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "rows of a table"));
    base_free(samples.x);
    base_free(body);
    body = base_format(text, 1000, "FP32", zeros);
    assert_int_equal(serve_v2_parse(&wide, body, strlen(body), &id, &samples), BASE_OK);
    assert_true(samples.n == 1 && samples.x[999] == 1);
    base_free(samples.x);
    base_free(body);
}

static void test_by_name(void **state)
{
    struct serve_body body = {"", "[1,2,3,4]", 9};
    const struct serve_handler *handler;
    struct serve_samples samples;

    (void)state;
    assert_int_equal(serve_handler_find("image_classifier", &handler), BASE_OK);
    assert_string_equal(handler->name, "image");
    assert_int_equal(serve_handler_find("my_handler.py", &handler), BASE_ERR_USAGE);
    assert_int_equal(serve_read("json", &about, &body, &samples), BASE_OK);
    base_free(samples.x);
    assert_int_equal(serve_read("image", &about, &body, &samples), BASE_ERR_DATA);
    assert_int_equal(serve_read("nothing", &about, &body, &samples), BASE_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_refused),
        cmocka_unit_test(test_raw),
        cmocka_unit_test(test_image),
        cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_raw_or_json),
        cmocka_unit_test(test_table_refused),
        cmocka_unit_test(test_v2_pixels_of_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
