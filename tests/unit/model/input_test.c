/* SPDX-License-Identifier: MIT
 *
 * An image that a model is asked about becomes the same bits as if it lay in a folder that eval
 * reads, whatever was cropped; in training another part of it is seen each epoch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <png.h>

#include "base/log.h"
#include "base/mem.h"
#include "data/loader.h"
#include "model/input.h"
#include "support/datafiles.h"
#include "support/images.h"

enum { IMAGES = 3, H = 6, W = 5, VALUES = 3 * H * W };

static const int heights[IMAGES] = {9, 12, 5}, widths[IMAGES] = {14, 6, 5};

/* One class of three images of different proportions; *bytes_p are those of image `index`. */
static char *make_folder(int index, uint8_t **bytes_p, size_t *count_p)
{
    char *folder = support_scratch();

    for (int i = 0; i < IMAGES; i++) {
        uint8_t *bytes = NULL;
        size_t count = support_png(PNG_COLOR_TYPE_RGB, 8, 0, heights[i], widths[i], &bytes);
        char *name = base_format("train/ant/%d.png", i);

        support_write(folder, name, bytes, count);
        base_free(name);
        if (i == index) {
            *bytes_p = bytes;
            *count_p = count;
        } else {
            base_free(bytes);
        }
    }
    return folder;
}

/* x (VALUES) of image `index` in that epoch, as a loader gives it. */
static void load(const struct data_set *set, uint32_t index, uint32_t epoch, bool crop, float *x)
{
    struct data_loader *loader = NULL;
    struct data_batch batch;

    assert_int_equal(data_loader_new(set, DATA_TRAIN, 1, (struct data_share){0}, 7,
                                     (struct data_augment){.crop = crop}, &loader),
                     BASE_OK);
    assert_int_equal(data_loader_begin(loader, epoch, &index, 1), BASE_OK);
    assert_int_equal(data_loader_next(loader, &batch), BASE_OK);
    assert_int_equal(batch.count, 1);
    memcpy(x, batch.x, VALUES * sizeof *x);
    data_loader_free(loader);
}

static struct data_set *open_set(const char *folder, enum data_crop crop)
{
    struct data_set *set = NULL;

    assert_int_equal(
        data_open(folder,
                  &(struct data_options){.channels = 3, .height = H, .width = W, .crop = crop},
                  &set),
        BASE_OK);
    return set;
}

static void test_same_bits(void **state)
{
    (void)state;
    for (int crop = DATA_CROP_NONE; crop <= DATA_CROP_RANDOM; crop++)
        for (int i = 0; i < IMAGES; i++) {
            uint8_t *bytes = NULL;
            size_t count = 0;
            char *folder = make_folder(i, &bytes, &count);
            struct data_set *set = open_set(folder, (enum data_crop)crop);
            struct model_about about;
            float want[VALUES], is[VALUES];

            load(set, (uint32_t)i, 0, false, want);
            model_about_init(&about, "dense 1\n", "", data_describe(set), json_object());
            assert_int_equal(about.crop,
                             crop == DATA_CROP_NONE ? DATA_CROP_NONE : DATA_CROP_CENTRE);
            assert_int_equal(model_input_image(&about, bytes, count, is), BASE_OK);
            assert_memory_equal(is, want, sizeof want);
            model_about_fini(&about);
            data_close(set);
            support_scratch_free(folder);
            base_free(bytes);
        }
}

/* Seed, epoch and sample decide what is seen in training. */
static void test_random_crops(void **state)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    char *folder = make_folder(0, &bytes, &count);
    struct data_set *set = open_set(folder, DATA_CROP_RANDOM);
    float once[VALUES], again[VALUES], later[VALUES], centre[VALUES];

    (void)state;
    load(set, 1, 3, true, once);
    load(set, 1, 3, true, again);
    load(set, 1, 4, true, later);
    load(set, 1, 3, false, centre);
    assert_memory_equal(once, again, sizeof once);
    assert_memory_not_equal(once, later, sizeof once);
    assert_memory_not_equal(once, centre, sizeof once);
    data_close(set);
    support_scratch_free(folder);
    base_free(bytes);
}

static void test_refused(void **state)
{
    struct data_loader *loader = NULL;
    struct data_set *set = NULL;
    const struct model_about about = {.input = {.c = 3, .h = H, .w = W}};
    float x[VALUES];

    (void)state;
    assert_int_equal(model_input_image(&about, "GIF89a", 6, x), BASE_ERR_DATA);
    assert_int_equal(data_open("synthetic", &(struct data_options){.crop = DATA_CROP_CENTRE}, &set),
                     BASE_OK);
    assert_int_equal(data_describe(set)->crop, DATA_CROP_NONE);
    assert_int_equal(data_loader_new(set, DATA_TRAIN, 1, (struct data_share){0}, 7,
                                     (struct data_augment){.crop = true}, &loader),
                     BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "synthetic all have one shape"));
    data_close(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_random_crops),
        cmocka_unit_test(test_refused),
    };

    base_log_level(BASE_QUIET);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
