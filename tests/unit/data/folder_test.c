/* SPDX-License-Identifier: MIT
 *
 * Folders of images, one a class: both layouts, mixed sizes and kinds, damage found by the loader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <png.h>

#include "base/log.h"
#include "base/mem.h"
#include "data/loader.h"
#include "support/datafiles.h"
#include "support/images.h"

static const struct data_options PLAIN = {.unit_range = true};

static void put_png(const char *folder, const char *name, int type, int height, int width)
{
    uint8_t *bytes = NULL;
    size_t count = support_png(type, 8, 0, height, width, &bytes);

    support_write(folder, name, bytes, count);
    base_free(bytes);
}

static void put_jpeg(const char *folder, const char *name, int samples, int height, int width)
{
    uint8_t *bytes = NULL;
    size_t count = support_jpeg(samples, 0, height, width, &bytes);

    support_write(folder, name, bytes, count);
    base_free(bytes);
}

static void fails_with(const char *what, const char *part)
{
    struct data_set *set = NULL;

    assert_int_equal(data_open(what, &PLAIN, &set), BASE_ERR_DATA);
    if (strstr(base_message(), part) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), part);
}

/* Of the three for training two are 6x8 and have colour, so all get that. */
static void test_train_and_test(void **state)
{
    struct data_set *set = NULL;
    char *folder = support_scratch();
    uint8_t pixels[3 * 6 * 8];

    (void)state;
    put_png(folder, "train/ant/1.png", PNG_COLOR_TYPE_RGB, 6, 8);
    put_png(folder, "train/ant/2.PNG", PNG_COLOR_TYPE_GRAY, 12, 16);
    put_jpeg(folder, "train/bee/x.jpeg", 3, 6, 8);
    put_jpeg(folder, "test/bee/y.jpg", 1, 3, 3);
    support_write(folder, "train/bee/readme.txt", "no image", 8);
    support_write(folder, "train/.cache/1.png", "no class", 8);
    assert_int_equal(data_open(folder, &PLAIN, &set), BASE_OK);
    assert_string_equal(data_describe(set)->format, "folder");
    assert_int_equal(data_describe(set)->classes, 2);
    assert_string_equal(data_describe(set)->class_names[1], "bee");
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 3);
    assert_int_equal(data_describe(set)->count[DATA_TEST], 1);
    assert_int_equal(data_describe(set)->channels, 3);
    assert_int_equal(data_describe(set)->height, 6);
    assert_int_equal(data_describe(set)->width, 8);
    assert_int_equal(data_label(set, DATA_TRAIN, 1), 0);
    assert_int_equal(data_label(set, DATA_TRAIN, 2), 1);
    assert_int_equal(data_label(set, DATA_TEST, 0), 1);
    assert_int_equal(data_pixels(set, DATA_TRAIN, 0, pixels), BASE_OK);
    assert_int_equal(pixels[6 * 8 + 8 + 2], support_level(1, 1, 2));
    assert_int_equal(data_pixels(set, DATA_TRAIN, 1, pixels), BASE_OK); /* halved: means of four */
    assert_int_equal(pixels[0], (0 + 16 + 8 + 24) / 4);
    assert_memory_equal(pixels, pixels + 48, 48);
    assert_int_equal(data_pixels(set, DATA_TEST, 0, pixels), BASE_OK);
    data_close(set);
    support_scratch_free(folder);
}

/* Neither the first file nor a large one decides; what is wished is followed. */
static void test_shape(void **state)
{
    struct data_set *set = NULL;
    char *folder = support_scratch();

    (void)state;
    put_png(folder, "train/ant/1.png", PNG_COLOR_TYPE_GRAY, 300, 200);
    put_png(folder, "train/ant/2.png", PNG_COLOR_TYPE_RGB, 12, 16);
    put_jpeg(folder, "train/bee/x.jpeg", 3, 8, 10);
    assert_int_equal(data_open(folder, &PLAIN, &set), BASE_OK);
    assert_int_equal(data_describe(set)->channels, 3);
    assert_int_equal(data_describe(set)->height, 12);
    assert_int_equal(data_describe(set)->width, 16);
    data_close(set);
    put_png(folder, "train/bee/y.png", PNG_COLOR_TYPE_GRAY, 1000, 500);
    put_png(folder, "train/bee/z.png", PNG_COLOR_TYPE_GRAY, 1000, 500);
    put_png(folder, "train/bee/zz.png", PNG_COLOR_TYPE_GRAY, 1000, 500);
    put_png(folder, "train/bee/zzz.png", PNG_COLOR_TYPE_GRAY, 1000, 500);
    assert_int_equal(data_open(folder, &PLAIN, &set), BASE_OK);
    assert_int_equal(data_describe(set)->height, 256);
    assert_int_equal(data_describe(set)->width, 128);
    data_close(set);
    assert_int_equal(
        data_open(folder, &(struct data_options){.channels = 1, .height = 5, .width = 7}, &set),
        BASE_OK);
    assert_int_equal(data_describe(set)->channels, 1);
    assert_int_equal(data_describe(set)->height, 5);
    assert_int_equal(data_describe(set)->width, 7);
    data_close(set);
    assert_int_equal(data_open(folder, &(struct data_options){.channels = 4}, &set), BASE_ERR_DATA);
    support_scratch_free(folder);
}

static void test_classes_alone(void **state)
{
    struct data_set *set = NULL;
    char *folder = support_scratch();

    (void)state;
    for (int i = 0; i < 25; i++) {
        char *name = base_format("%s/%02d.png", i % 5 == 0 ? "cat" : "dog", i);

        put_png(folder, name, PNG_COLOR_TYPE_GRAY, 4, 4);
        base_free(name);
    }
    assert_int_equal(data_open(folder, &PLAIN, &set), BASE_OK);
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 23); /* 5 cats and 18 of 20 dogs */
    assert_int_equal(data_describe(set)->count[DATA_TEST], 2);
    assert_int_equal(data_label(set, DATA_TEST, 0), 1);
    assert_int_equal(data_describe(set)->channels, 1);
    data_close(set);
    support_scratch_free(folder);
}

static void test_bad_folders(void **state)
{
    char *folder = support_scratch();

    (void)state;
    put_png(folder, "train/a/1.png", PNG_COLOR_TYPE_GRAY, 4, 4);
    put_png(folder, "test/b/1.png", PNG_COLOR_TYPE_GRAY, 4, 4);
    fails_with(folder, "test/b is a class without images in train/");
    support_write(folder, "train/b/notes.txt", "", 0);
    fails_with(folder, "test/b is a class without images in train/");
    put_png(folder, "train/b/1.png", PNG_COLOR_TYPE_GRAY, 4, 4);
    support_write(folder, "train/a/0.png", "not an image", 12); /* the first of all */
    fails_with(folder, "train/a/0.png: neither PNG nor JPEG");
    support_scratch_free(folder);
}

/* A damaged file is named by the batch that needs it, and only by that one. */
static void test_damage_reaches_the_caller(void **state)
{
    struct data_set *set = NULL;
    struct data_loader *loader = NULL;
    struct data_batch batch;
    char *folder = support_scratch();
    static const uint32_t ids[] = {0, 3, 1, 2};

    (void)state;
    for (int i = 0; i < 4; i++) {
        char *name = base_format("train/a/%d.png", i);

        put_png(folder, name, PNG_COLOR_TYPE_GRAY, 4, 4);
        base_free(name);
    }
    support_write(folder, "train/a/2.png", "\x89PNG\r\n\x1a\nbroken", 14);
    assert_int_equal(data_open(folder, &PLAIN, &set), BASE_OK);
    assert_int_equal(data_loader_new(set, DATA_TRAIN, 2, (struct data_share){0}, 1,
                                     (struct data_augment){0}, &loader),
                     BASE_OK);
    assert_int_equal(data_loader_begin(loader, 0, ids, 4), BASE_OK);
    assert_int_equal(data_loader_next(loader, &batch), BASE_OK);
    assert_int_equal(batch.count, 2);
    assert_int_equal(data_loader_next(loader, &batch), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "train/a/2.png: not a sound PNG"));
    data_loader_free(loader);
    data_close(set);
    assert_int_equal(data_open(folder, &(struct data_options){0}, &set), BASE_ERR_DATA);
    support_scratch_free(folder);
}

/* What a trained model with classes "b" and "c" asks for: nothing is held out, a strange class has
 * no label, a sample tells its file. */
static void test_to_predict(void **state)
{
    char *folder = support_scratch(), *path;
    char *names[] = {"c", "b"};
    struct data_options options = PLAIN;
    struct data_set *set = NULL;

    (void)state;
    options.classes = 2;
    options.class_names = names;
    for (int i = 0; i < 12; i++) {
        char *name = base_format("a/%02d.png", i);

        put_png(folder, name, PNG_COLOR_TYPE_GRAY, 4, 4);
        base_free(name);
    }
    put_png(folder, "b/1.png", PNG_COLOR_TYPE_GRAY, 4, 4);
    assert_int_equal(data_open(folder, &options, &set), BASE_ERR_DATA);
    options.any_class = options.whole = true;
    assert_int_equal(data_open(folder, &options, &set), BASE_OK);
    assert_int_equal(data_describe(set)->count[DATA_TEST], 13);
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 0);
    assert_int_equal(data_label(set, DATA_TEST, 0), DATA_NO_LABEL);
    assert_int_equal(data_label(set, DATA_TEST, 12), 1);
    path = base_format("%s/b/1.png", folder);
    assert_string_equal(data_file(set, DATA_TEST, 12), path);
    base_free(path);
    data_close(set);
    support_scratch_free(folder);
}

/* Files and a folder of files as one set; a damaged one among them, which a loader may tolerate. */
static void test_files(void **state)
{
    char *folder = support_scratch(), *odd = base_format("%s/odd", folder);
    char *missing = base_format("%s/9.png", folder), *deep = base_format("%s/deep", folder);
    const char *places[] = {odd, folder, missing};
    struct data_options options = PLAIN;
    struct data_loader *loader = NULL;
    struct data_set *set = NULL;
    struct data_batch b;
    const uint32_t ids[] = {0, 1, 2, 3};

    (void)state;
    put_jpeg(folder, "odd", 3, 9, 7);
    put_png(folder, "1.png", PNG_COLOR_TYPE_GRAY, 4, 4);
    put_png(folder, "deep/1.png", PNG_COLOR_TYPE_GRAY, 4, 4);
    support_write(folder, "2.png", "nothing", 7);
    assert_true(data_is_files(odd) && data_is_files(folder) && data_is_files(missing));
    assert_true(data_is_files(deep));
    assert_false(data_is_files("mnist") || data_is_files("synthetic"));
    assert_int_equal(data_open_files(places, 3, &options, &set), BASE_ERR_DATA);
    assert_null(set);
    options.channels = 3;
    options.height = options.width = 4;
    options.classes = 5;
    options.class_names = (char *[]){"a", "b", "c", "d", "e"};
    assert_int_equal(data_open_files(places, 3, &options, &set), BASE_OK);
    assert_int_equal(data_describe(set)->count[DATA_TEST], 4);
    assert_int_equal(data_describe(set)->classes, 5);
    assert_string_equal(data_file(set, DATA_TEST, 0), odd);
    assert_string_equal(data_file(set, DATA_TEST, 3), missing);
    assert_int_equal(data_label(set, DATA_TEST, 0), DATA_NO_LABEL);
    assert_int_equal(data_loader_new(set, DATA_TEST, 4, (struct data_share){0}, 0,
                                     (struct data_augment){0}, &loader),
                     BASE_OK);
    assert_int_equal(data_loader_begin(loader, 0, ids, 4), BASE_OK);
    assert_int_equal(data_loader_next(loader, &b), BASE_ERR_DATA);
    data_loader_tolerate(loader);
    for (int again = 0; again < 2; again++) { /* what was bad in a slot is forgotten */
        assert_int_equal(data_loader_begin(loader, 0, ids + again, (size_t)(4 - again)), BASE_OK);
        assert_int_equal(data_loader_next(loader, &b), BASE_OK);
        assert_int_equal(b.count, 4 - again);
        assert_null(b.bad[0]);
        assert_non_null(strstr(b.bad[2 - again], "2.png: neither PNG nor JPEG"));
        assert_non_null(strstr(b.bad[3 - again], "9.png: No such file"));
        assert_true(b.x[0] >= 0 && b.x[(2 - again) * 48] == 0 && b.labels[2] == DATA_NO_LABEL);
    }
    data_loader_free(loader);
    data_close(set);
    base_free(odd);
    base_free(missing);
    base_free(deep);
    support_scratch_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_and_test),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_classes_alone),
        cmocka_unit_test(test_to_predict),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_bad_folders),
        cmocka_unit_test(test_damage_reaches_the_caller),
    };

    base_log_level(BASE_QUIET);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
