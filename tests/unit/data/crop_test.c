/* SPDX-License-Identifier: MIT
 *
 * Which part of an image is kept: the centre, anywhere, all of it; every size and proportion.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/image.h"

/* Pixel (c,y,x) is 100 * c + 10 * y + x. */
static struct data_image image_of(int channels, int height, int width)
{
    struct data_image image = {channels, height, width,
                               base_calloc((size_t)(channels * height * width), 1)};
    uint8_t *at = image.pixels;

    for (int c = 0; c < channels; c++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                *at++ = (uint8_t)(100 * c + 10 * y + x);
    return image;
}

/* The image is now the part at (top,left) of what image_of made. */
static void assert_part(const struct data_image *image, int top, int left, int height, int width)
{
    const uint8_t *at = image->pixels;

    assert_int_equal(image->height, height);
    assert_int_equal(image->width, width);
    for (int c = 0; c < image->channels; c++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                assert_int_equal(*at++, (uint8_t)(100 * c + 10 * (top + y) + left + x));
}

static void assert_centre(int height, int width, int to_height, int to_width, const int part[4])
{
    struct data_image image = image_of(3, height, width);

    data_image_crop(&image, DATA_CROP_CENTRE, to_height, to_width, NULL);
    assert_part(&image, part[0], part[1], part[2], part[3]);
    data_image_fini(&image);
}

static void test_centre(void **state)
{
    (void)state;
    assert_centre(6, 10, 32, 32, (int[]){0, 2, 6, 6});
    assert_centre(10, 6, 32, 32, (int[]){2, 0, 6, 6});
    assert_centre(6, 6, 4, 8, (int[]){1, 0, 3, 6});   /* twice as wide as high */
    assert_centre(5, 9, 10, 18, (int[]){0, 0, 5, 9}); /* the proportions already: all of it */
    assert_centre(1, 9, 4, 4, (int[]){0, 4, 1, 1});
    assert_centre(9, 9, 1, 4096, (int[]){4, 0, 1, 9}); /* never less than a pixel */
}

static void test_none(void **state)
{
    struct data_image image = image_of(3, 6, 9);

    (void)state;
    data_image_crop(&image, DATA_CROP_NONE, 4, 4, NULL);
    assert_part(&image, 0, 0, 6, 9);
    data_image_fini(&image);
}

/* All random words give a part of the image, of 8 to 100 % of it but for rounding, and its
 * proportions are at most 4:3 off. */
static void test_random_is_inside(void **state)
{
    struct base_rng rng = base_rng_of(1, BASE_STREAM_TEST, 0, 0, 0);
    uint32_t words[4];
    double least = 1, most = 0, wide = 1, tall = 1;

    (void)state;
    for (uint32_t i = 0; i < 2000; i++) {
        struct data_image image = image_of(1, 40, 40);
        double area, proportion;

        base_rng_block(&rng, i, words);
        data_image_crop(&image, DATA_CROP_RANDOM, 16, 16, words);
        assert_in_range(image.height, 1, 40);
        assert_in_range(image.width, 1, 40);
        assert_in_range(image.pixels[0], 0, 255);
        area = image.height * image.width / 1600.0;
        proportion = (double)image.width / image.height;
        least = area < least ? area : least;
        most = area > most ? area : most;
        wide = proportion > wide ? proportion : wide;
        tall = proportion < tall ? proportion : tall;
        data_image_fini(&image);
    }
    assert_true(least > 0.06 && least < 0.1);
    assert_true(most > 0.9);
    assert_true(wide > 1.25 && wide < 1.45);
    assert_true(tall < 0.8 && tall > 0.69);
}

/* The words alone decide; the extreme ones too; and any shape is served. */
static void test_random_is_decided(void **state)
{
    static const uint32_t all[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}, none[4] = {0};
    static const uint32_t some[4] = {1u << 31, 77, 5u << 28, 9u << 28};
    static const int sides[] = {1, 2, 3, 7, 25};

    (void)state;
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 5; j++) {
            struct data_image a = image_of(3, sides[i], sides[j]),
                              b = image_of(3, sides[i], sides[j]);

            data_image_crop(&a, DATA_CROP_RANDOM, 8, 24, some);
            data_image_crop(&b, DATA_CROP_RANDOM, 8, 24, some);
            assert_int_equal(a.height, b.height);
            assert_int_equal(a.width, b.width);
            assert_memory_equal(a.pixels, b.pixels, (size_t)(3 * a.height * a.width));
            data_image_fini(&b);
            data_image_crop(&a, DATA_CROP_RANDOM, 8, 24, all);
            data_image_crop(&a, DATA_CROP_RANDOM, 8, 24, none);
            assert_true(a.height >= 1 && a.width >= 1);
            data_image_fini(&a);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_centre),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_random_is_inside),
        cmocka_unit_test(test_random_is_decided),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
