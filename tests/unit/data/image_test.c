/* SPDX-License-Identifier: MIT
 *
 * PNG and JPEG of every kind, cut short everywhere, too large, and no images at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <png.h>

#include "base/mem.h"
#include "data/image.h"
#include "support/images.h"

enum { H = 6, W = 9 };

static struct data_image decoded(uint8_t *bytes, size_t count)
{
    struct data_image image, header;

    assert_int_equal(data_image_probe(bytes, count, &header), BASE_OK);
    if (data_image_decode(bytes, count, &image) != BASE_OK)
        fail_msg("%s", base_message());
    base_free(bytes);
    assert_int_equal(image.height, H);
    assert_int_equal(image.width, W);
    assert_null(header.pixels);
    assert_int_equal(header.channels, image.channels);
    assert_int_equal(header.height, H);
    assert_int_equal(header.width, W);
    return image;
}

/* All pixels of an image within `slack` of the ramp. */
static void is_ramp(const struct data_image *image, int slack)
{
    for (int c = 0; c < image->channels; c++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                assert_true(abs(image->pixels[(c * H + y) * W + x] - support_level(c, y, x)) <=
                            slack);
}

static void test_png_kinds(void **state)
{
    static const struct {
        int type, depth, channels;
    } kinds[] = {
        {PNG_COLOR_TYPE_GRAY, 8, 1},       {PNG_COLOR_TYPE_GRAY, 16, 1},
        {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 1}, {PNG_COLOR_TYPE_GRAY_ALPHA, 16, 1},
        {PNG_COLOR_TYPE_RGB, 8, 3},        {PNG_COLOR_TYPE_RGB, 16, 3},
        {PNG_COLOR_TYPE_RGB_ALPHA, 8, 3},  {PNG_COLOR_TYPE_RGB_ALPHA, 16, 3},
    };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof kinds / sizeof kinds[0]; i++) {
        uint8_t *bytes = NULL;
        size_t k = i / 2;
        size_t count = support_png(kinds[k].type, kinds[k].depth, i % 2 != 0, H, W, &bytes);
        struct data_image image = decoded(bytes, count);

        assert_int_equal(image.channels, kinds[k].channels);
        is_ramp(&image, 0);
        data_image_fini(&image);
    }
}

static void test_png_few_bits(void **state)
{
    (void)state;
    for (int depth = 1; depth <= 4; depth *= 2) {
        uint8_t *bytes = NULL;
        size_t count = support_png(PNG_COLOR_TYPE_GRAY, depth, 0, H, W, &bytes);
        struct data_image image = decoded(bytes, count);

        assert_int_equal(image.channels, 1);
        assert_int_equal(image.pixels[0], 0);
        assert_int_equal(image.pixels[1], 255);
        data_image_fini(&image);
        count = support_png(PNG_COLOR_TYPE_PALETTE, depth, 0, H, W, &bytes);
        image = decoded(bytes, count);
        assert_int_equal(image.channels, 3);
        assert_int_equal(image.pixels[1], 16);
        assert_int_equal(image.pixels[H * W + 1], 239);
        assert_int_equal(image.pixels[2 * H * W + 1], 1);
        data_image_fini(&image);
    }
}

static void test_jpeg_kinds(void **state)
{
    (void)state;
    for (int progressive = 0; progressive < 2; progressive++)
        for (int samples = 1; samples <= 4; samples += samples == 1 ? 2 : 1) {
            uint8_t *bytes = NULL;
            size_t count = support_jpeg(samples, progressive, H, W, &bytes);
            struct data_image image = decoded(bytes, count);

            assert_int_equal(image.channels, samples == 1 ? 1 : 3);
            is_ramp(&image, 6); /* CMYK without black, inverted: the same ramp */
            data_image_fini(&image);
        }
}

/* Without the Adobe marker CMYK is ink, not light. */
static void test_cmyk_without_adobe(void **state)
{
    uint8_t *bytes = NULL, *marker;
    size_t count = support_jpeg(4, 0, H, W, &bytes);
    struct data_image image;

    (void)state;
    marker = memmem(bytes, count, "Adobe", 5);
    assert_non_null(marker);
    marker[0] = 'a';
    image = decoded(bytes, count);
    for (int i = 0; i < 3 * H * W; i++)
        assert_true(image.pixels[i] <= 1); /* black ink everywhere */
    data_image_fini(&image);
}

/* The bytes in a block of their own: a read past the end is seen. */
static void refuses(const uint8_t *bytes, size_t count)
{
    uint8_t *copy = base_calloc(count, 1);
    struct data_image image;

    memcpy(copy, bytes, count);
    base_ignore(data_image_probe(copy, count, &image)); /* the damage may be after the header */
    assert_null(image.pixels);
    assert_int_equal(data_image_decode(copy, count, &image), BASE_ERR_DATA);
    assert_null(image.pixels);
    assert_true(strlen(base_message()) > 0);
    base_free(copy);
}

static void test_every_truncation(void **state)
{
    uint8_t *bytes = NULL;
    size_t count = support_png(PNG_COLOR_TYPE_RGB, 8, 1, H, W, &bytes);

    (void)state;
    for (size_t cut = 0; cut < count; cut++)
        refuses(bytes, cut);
    base_free(bytes);
    count = support_jpeg(3, 0, H, W, &bytes);
    for (size_t cut = 0; cut < count - 2; cut++)
        refuses(bytes, cut);
    base_free(bytes);
}

static void test_damage(void **state)
{
    uint8_t *bytes = NULL;
    size_t count = support_png(PNG_COLOR_TYPE_GRAY, 8, 0, H, W, &bytes);

    (void)state;
    bytes[29] ^= 1; /* the header's checksum */
    refuses(bytes, count);
    assert_non_null(strstr(base_message(), "not a sound PNG"));
    base_free(bytes);
    refuses((const uint8_t *)"GIF89a but not an image", 23);
    assert_non_null(strstr(base_message(), "neither PNG nor JPEG"));
}

static void test_too_large(void **state)
{
    uint8_t *bytes = NULL, *size;
    size_t count = support_jpeg(1, 0, H, W, &bytes);
    static const uint8_t frame[] = {0xff, 0xc0, 0, 11, 8};

    (void)state;
    size = (uint8_t *)memmem(bytes, count, frame, sizeof frame) + sizeof frame;
    size[0] = 0xff; /* 65286 rows */
    refuses(bytes, count);
    assert_non_null(strstr(base_message(), "pixels; 1 to"));
    base_free(bytes);
    count = support_png(PNG_COLOR_TYPE_GRAY, 1, 0, 1, DATA_MAX_SIDE + 1, &bytes);
    refuses(bytes, count);
    base_free(bytes);
    count = support_png(PNG_COLOR_TYPE_GRAY, 1, 0, 1, DATA_MAX_SIDE, &bytes);
    {
        struct data_image image;

        assert_int_equal(data_image_decode(bytes, count, &image), BASE_OK);
        data_image_fini(&image);
    }
    base_free(bytes);
}

static void test_fit(void **state)
{
    uint8_t gray[4] = {0, 100, 200, 100}, out[3 * 16];
    uint8_t colour[3] = {255, 0, 0};
    struct data_image image = {1, 2, 2, gray};

    (void)state;
    data_image_fit(&image, 1, 2, 2, out); /* the same size: the same pixels */
    assert_memory_equal(out, gray, 4);
    data_image_fit(&image, 3, 4, 4, out); /* corners stay, all planes alike */
    assert_int_equal(out[0], 0);
    assert_int_equal(out[3], 100);
    assert_int_equal(out[12], 200);
    assert_int_equal(out[1], 25);
    assert_int_equal(out[5], 63); /* .75 * .25 * (100 + 200) + .25 * .25 * 100 = 62.5 */
    assert_memory_equal(out, out + 16, 16);
    assert_memory_equal(out, out + 32, 16);
    data_image_fit(&image, 1, 1, 1, out);
    assert_int_equal(out[0], 100);
    image = (struct data_image){3, 1, 1, colour};
    data_image_fit(&image, 1, 1, 2, out);
    assert_int_equal(out[0], 76);
    assert_int_equal(out[1], 76);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png_kinds),        cmocka_unit_test(test_png_few_bits),
        cmocka_unit_test(test_jpeg_kinds),       cmocka_unit_test(test_cmyk_without_adobe),
        cmocka_unit_test(test_every_truncation), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_too_large),        cmocka_unit_test(test_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
