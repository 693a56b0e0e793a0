/* SPDX-License-Identifier: MIT
 *
 * Bodies of predictions: images, JSON, float32; who takes which, and what is refused.
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
#include "support/images.h"

static char *labels[] = {"a", "b"};
static struct model_about about = {.classes = 2,
                                   .labels = labels,
                                   .input = {.c = 1, .h = 2, .w = 2},
                                   .mean = {0.5f},
                                   .deviation = {0.25f}};

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
        cmocka_unit_test(test_json),    cmocka_unit_test(test_json_refused),
        cmocka_unit_test(test_raw),     cmocka_unit_test(test_image),
        cmocka_unit_test(test_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
