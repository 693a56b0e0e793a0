/* SPDX-License-Identifier: MIT
 *
 * A folder of images, one folder per class: train/CLASS/ and test/CLASS/ or one of them, and
 * with train/ also val/CLASS/ or valid/CLASS/; or CLASS/ alone, of which every tenth image, by
 * name, is then kept for tests. All images are turned into gray or colour and scaled to one size,
 * whole or a part of its proportions: those the caller wishes, or else the median size of a sample
 * of the files, and colour if one of them has colour. Only names are kept; a file is read and
 * decoded when its pixels are asked for, in the thread that asks.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/data_private.h"

enum {
    HELD_OUT = 10,
    SHAPE_SAMPLE = 256, /* files whose headers are read to choose a shape */
    SEARCH_DEPTH = 5,   /* how far down images are looked for, to explain a mistake */
    LONGEST_SIDE = 256  /* of the shape that is chosen: photographs make models of TFLOPs */
};

struct folder {
    struct data_files parts[DATA_PARTS];
    char **class_names;
    size_t classes;
    struct base_str notes;
    struct data_ignored ignored;
    char **bad; /* messages about the files that were left out */
    size_t bad_count;
    struct data_target target; /* that images are converted to */
};

/* Does `path` hold a folder with an image? */
static bool holds_classes(const char *path)
{
    char **names = NULL;
    size_t count = 0;
    bool found = false;

    if (!base_is_dir(path) || base_list_dir(path, &names, &count) != BASE_OK)
        return false;
    for (size_t i = 0; i < count && !found; i++) {
        char *child = base_format("%s/%s", path, names[i]);

        found = names[i][0] != '.' && data_folder_holds_image(child);
        base_free(child);
    }
    base_names_free(names, count);
    return found;
}

static bool folder_recognise(const char *path)
{
    char *train = base_format("%s/train", path), *test = base_format("%s/test", path);
    bool found = holds_classes(train) || holds_classes(test) || holds_classes(path);

    base_free(test);
    base_free(train);
    return found;
}

/* A folder that holds images, `depth` levels down at most; NULL: none. base_free. */
static char *find_images(const char *path, int depth)
{
    char **names = NULL, *found = data_folder_holds_image(path) ? base_strdup(path) : NULL;
    size_t count = 0;

    if (found == NULL && depth > 0 && base_is_dir(path) &&
        base_list_dir(path, &names, &count) == BASE_OK)
        for (size_t i = 0; i < count && found == NULL; i++) {
            char *child = base_format("%s/%s", path, names[i]);

            found = names[i][0] != '.' ? find_images(child, depth - 1) : NULL;
            base_free(child);
        }
    base_names_free(names, count);
    return found;
}

static base_status folder_explain(const char *path)
{
    base_status st = BASE_OK;
    char *found = find_images(path, SEARCH_DEPTH);

    if (found != NULL)
        st = base_fail(BASE_ERR_DATA,
                       "the images in %s are not in folders of classes: %s needs train/CLASS/ and "
                       "test/CLASS/, or CLASS/, with no other folder in between",
                       found, path);
    base_free(found);
    return st;
}

/* The images of one class, by name; with `held_out` every tenth goes there. None is no error. */
static base_status add_class(const char *path, int32_t label, struct folder *s,
                             struct data_files *list, struct data_files *held_out, size_t *images_p)
{
    char **names = NULL;
    size_t count = 0;
    base_status st = base_list_dir(path, &names, &count);

    *images_p = 0;
    for (size_t i = 0; st == BASE_OK && i < count; i++) {
        char *child = base_format("%s/%s", path, names[i]);

        if (data_file_is_image(names[i])) {
            ++*images_p;
            data_files_add(held_out != NULL && *images_p % HELD_OUT == 0 ? held_out : list, child,
                           label);
            continue;
        }
        data_ignored_count(&s->ignored, names[i], child);
        base_free(child);
    }
    if (st == BASE_OK && *images_p == 0)
        base_str_add(&s->notes, "%s holds no .png, .jpg or .jpeg and is left out\n", path);
    base_names_free(names, count);
    return st;
}

/* Every folder in `path` that holds images is a class, which the set has from now on. */
static base_status add_part(const char *path, struct folder *s, struct data_files *list,
                            struct data_files *held_out)
{
    base_status st = BASE_OK;
    char **names = NULL;
    size_t count = 0, images;

    TRY(base_list_dir(path, &names, &count));
    s->class_names = base_calloc(count, sizeof *s->class_names);
    for (size_t i = 0; i < count && st == BASE_OK; i++) {
        char *child = base_format("%s/%s", path, names[i]);

        images = 0;
        if (names[i][0] != '.' && base_is_dir(child))
            st = add_class(child, (int32_t)s->classes, s, list, held_out, &images);
        if (images > 0)
            s->class_names[s->classes++] = base_strdup(names[i]);
        base_free(child);
    }
    TRY(st);
    if (s->classes > DATA_MAX_CLASSES)
        TRY(base_fail(BASE_ERR_DATA, "%s holds %zu class folders; 1 to %d can be read", path,
                      s->classes, DATA_MAX_CLASSES));
out:
    base_names_free(names, count);
    return st;
}

static base_status add_known_class(const char *path, const char *name, struct folder *s,
                                   struct data_files *list)
{
    size_t label = 0, images;

    if (name[0] == '.' || !base_is_dir(path))
        return BASE_OK;
    while (label < s->classes && strcmp(name, s->class_names[label]) != 0)
        label++;
    if (label == s->classes && data_folder_holds_image(path))
        return base_fail(BASE_ERR_DATA, "%s is a class without images in train/", path);
    return add_class(path, (int32_t)label, s, list, NULL, &images);
}

/* A part whose classes must be among those of the training part; some may have no images here. */
static base_status add_known(const char *path, struct folder *s, struct data_files *list)
{
    base_status st = BASE_OK;
    char **names = NULL;
    size_t count = 0;

    TRY(base_list_dir(path, &names, &count));
    for (size_t i = 0; i < count && st == BASE_OK; i++) {
        char *child = base_format("%s/%s", path, names[i]);

        st = add_known_class(child, names[i], s, list);
        base_free(child);
    }
out:
    base_names_free(names, count);
    return st;
}

static base_status add_all(const char *path, bool whole, struct folder *s)
{
    base_status st = BASE_OK;
    char *train = base_format("%s/train", path), *test = base_format("%s/test", path);
    char *validation = base_format("%s/val", path);

    if (!base_is_dir(validation)) {
        base_free(validation);
        validation = base_format("%s/valid", path);
    }
    if (!holds_classes(train) && holds_classes(test)) {
        TRY(add_part(test, s, &s->parts[DATA_TEST], NULL));
        goto out;
    }
    if (!holds_classes(train) && whole) {
        TRY(add_part(path, s, &s->parts[DATA_TEST], NULL));
        goto out;
    }
    if (!holds_classes(train)) {
        TRY(add_part(path, s, &s->parts[DATA_TRAIN], &s->parts[DATA_TEST]));
        base_info("%s has no train/ and test/: of each class every %dth image, by name, is for "
                  "tests (%zu of %zu)",
                  path, HELD_OUT, s->parts[DATA_TEST].count,
                  s->parts[DATA_TEST].count + s->parts[DATA_TRAIN].count);
        goto out;
    }
    TRY(add_part(train, s, &s->parts[DATA_TRAIN], NULL));
    if (base_is_dir(test))
        TRY(add_known(test, s, &s->parts[DATA_TEST]));
    if (base_is_dir(validation))
        TRY(add_known(validation, s, &s->parts[DATA_VALIDATION]));
out:
    base_free(validation);
    base_free(train);
    base_free(test);
    return st;
}

/* ---- files that cannot be read ---- */

/* Decodes all of a list and takes out what cannot be, up to `most` in all. */
static base_status leave_out_of(struct data_files *list, size_t most, struct folder *s)
{
    size_t kept = 0, count = list->count;
    base_status st = BASE_OK;

    for (size_t i = 0; i < count; i++) {
        struct data_image image;

        st = data_file_image(list->paths[i], data_image_decode, &image);
        data_image_fini(&image);
        if (st == BASE_OK) {
            list->labels[kept] = list->labels[i];
            list->paths[kept++] = list->paths[i];
            continue;
        }
        s->bad = base_realloc(s->bad, s->bad_count + 1, sizeof *s->bad);
        s->bad[s->bad_count++] = base_strdup(base_message());
        base_free(list->paths[i]);
    }
    list->count = kept;
    return s->bad_count > most ? base_fail(BASE_ERR_DATA,
                                           "%zu files cannot be read, more than --skip-bad %zu, "
                                           "such as %s",
                                           s->bad_count, most, s->bad[0])
                               : BASE_OK;
}

static base_status leave_out(const char *path, size_t most, struct folder *s)
{
    base_status st = BASE_OK;

    if (most == 0)
        goto out;
    for (int part = 0; part < DATA_PARTS; part++)
        TRY(base_prefix(leave_out_of(&s->parts[part], most, s), "%s", path));
    for (size_t i = 0; i < s->bad_count; i++)
        base_str_add(&s->notes, "left out: %s\n", s->bad[i]);
    if (s->bad_count > 0)
        base_str_add(&s->notes, "%zu file%s of %s left out (--skip-bad)\n", s->bad_count,
                     base_plural((int64_t)s->bad_count), path);
    if (s->parts[DATA_TRAIN].count == 0 && s->parts[DATA_TEST].count == 0)
        TRY(base_fail(BASE_ERR_DATA, "%s holds no image that can be read, such as %s", path,
                      s->bad[0]));
out:
    return st;
}

/* ---- the shape ---- */

struct sample {
    size_t count, gray;
    int heights[SHAPE_SAMPLE], widths[SHAPE_SAMPLE]; /* sorted when all are there */
};

static int by_size(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Headers of evenly spread files. The first must be sound; damage in the others is told by the
 * batch that needs them. */
static base_status take_sample(const struct data_files *list, struct sample *sample)
{
    base_status st = BASE_OK;
    size_t wanted = list->count < SHAPE_SAMPLE ? list->count : SHAPE_SAMPLE;

    *sample = (struct sample){0};
    for (size_t i = 0; i < wanted; i++) {
        struct data_image image;

        st = data_file_image(list->paths[i * list->count / wanted], data_image_probe, &image);
        if (st != BASE_OK && i > 0)
            continue;
        TRY(st);
        sample->heights[sample->count] = image.height;
        sample->widths[sample->count++] = image.width;
        sample->gray += image.channels == 1;
    }
    qsort(sample->heights, sample->count, sizeof *sample->heights, by_size);
    qsort(sample->widths, sample->count, sizeof *sample->widths, by_size);
    st = BASE_OK;
out:
    return st;
}

static void tell_shape(const char *path, struct folder *s, const struct sample *sample,
                       bool size_was_wished, bool colour_was_wished)
{
    size_t last = sample->count - 1;
    const int *h = sample->heights, *w = sample->widths;
    const bool cropped = s->target.crop != DATA_CROP_NONE;

    if (!size_was_wished && (h[0] != h[last] || w[0] != w[last]))
        base_str_add(
            &s->notes,
            "the images of %s are %d to %d high and %d to %d wide; all are %sscaled to %dx%d "
            "(height x width)%s; --image-size HxW chooses another\n",
            path, h[0], h[last], w[0], w[last], cropped ? "cropped and " : "", s->target.height,
            s->target.width,
            cropped ? "" : ", whatever their proportions, which --crop centre keeps");
    else if (!size_was_wished && (h[0] != s->target.height || w[0] != s->target.width))
        base_str_add(&s->notes,
                     "the images of %s are %dx%d (height x width) and are scaled to %dx%d; "
                     "--image-size HxW chooses another\n",
                     path, h[0], w[0], s->target.height, s->target.width);
    if (!colour_was_wished && sample->gray > 0 && sample->gray < sample->count)
        base_str_add(&s->notes,
                     "%zu of %zu images of %s are gray, the others have colour; all are read as "
                     "colour; --channels 1 makes all gray\n",
                     sample->gray, sample->count, path);
}

static base_status choose_shape(const char *path, const struct data_options *options,
                                struct folder *s)
{
    base_status st = BASE_OK;
    const struct data_files *train = &s->parts[DATA_TRAIN];
    struct sample *sample = base_calloc(1, sizeof *sample);
    int longest;

    s->target.channels = options->channels;
    s->target.height = options->height;
    s->target.width = options->width;
    if (s->target.channels > 0 && s->target.height > 0 && s->target.width > 0)
        goto out;
    TRY(take_sample(train->count > 0 ? train : &s->parts[DATA_TEST], sample));
    if (s->target.channels == 0)
        s->target.channels = sample->gray < sample->count ? 3 : 1;
    if (s->target.height == 0 || s->target.width == 0) {
        s->target.height = sample->heights[(sample->count - 1) / 2];
        s->target.width = sample->widths[(sample->count - 1) / 2];
        longest = s->target.height > s->target.width ? s->target.height : s->target.width;
        if (longest > LONGEST_SIDE) {
            s->target.height = (s->target.height * LONGEST_SIDE + longest - 1) / longest;
            s->target.width = (s->target.width * LONGEST_SIDE + longest - 1) / longest;
        }
    }
    tell_shape(path, s, sample, options->height > 0, options->channels > 0);
out:
    base_free(sample);
    return st;
}

/* Names and sizes, not contents: reading a million images to open a set would be absurd. */
static base_status digest(const struct folder *s, size_t skipped, char hex[BASE_SHA256_HEX],
                          char names_hex[BASE_SHA256_HEX])
{
    base_status st = BASE_OK;
    struct base_str text = {0}, names = {0};

    for (int part = 0; part < DATA_PARTS; part++)
        for (size_t i = 0; i < s->parts[part].count; i++) {
            const char *path = s->parts[part].paths[i];
            struct stat info;

            if (stat(path, &info) != 0)
                TRY(base_fail(BASE_ERR_IO, "cannot look at %s: %m", path));
            base_str_add(&text, "%d %s %lld\n", part, path + skipped, (long long)info.st_size);
            base_str_add(&names, "%d %s\n", part, path + skipped);
        }
    base_sha256(text.text != NULL ? text.text : "", text.length, hex);
    base_sha256(names.text != NULL ? names.text : "", names.length, names_hex);
out:
    base_str_fini(&text);
    base_str_fini(&names);
    return st;
}

static void folder_close(void *state)
{
    struct folder *s = state;

    if (s == NULL)
        return;
    for (int part = 0; part < DATA_PARTS; part++)
        data_files_fini(&s->parts[part]);
    base_names_free(s->class_names, s->classes);
    base_names_free(s->bad, s->bad_count);
    base_str_fini(&s->notes);
    base_free(s->ignored.nested);
    base_free(s);
}

static base_status folder_open(const char *path, const struct data_options *options,
                               struct data_source *source_p)
{
    base_status st = BASE_OK;
    struct folder *s = base_calloc(1, sizeof *s);
    const struct data_files *train = &s->parts[DATA_TRAIN], *test = &s->parts[DATA_TEST];
    const struct data_files *validation = &s->parts[DATA_VALIDATION];
    char hex[BASE_SHA256_HEX] = {0}, names[BASE_SHA256_HEX] = {0};

    if (options->channels != 0 && options->channels != 1 && options->channels != 3)
        TRY(base_fail(BASE_ERR_DATA,
                      "%s: images of files are gray (1 channel) or colour (3), not "
                      "of %d channels",
                      path, options->channels));
    TRY(add_all(path, options->whole, s));
    if (train->count > UINT32_MAX || test->count > UINT32_MAX || validation->count > UINT32_MAX)
        TRY(base_fail(BASE_ERR_DATA, "%s holds too many images", path));
    data_ignored_tell(&s->ignored, path, &s->notes);
    if (s->ignored.nested != NULL)
        base_str_add(&s->notes,
                     "folders inside class folders are not read, such as %s; a class has its "
                     "images in one folder\n",
                     s->ignored.nested);
    TRY(leave_out(path, options->skip_bad, s));
    s->target.crop = data_crop_of_tests(options->crop);
    TRY(choose_shape(path, options, s));
    TRY(digest(s, strlen(path), hex, names));
    *source_p = (struct data_source){
        .state = s,
        .channels = s->target.channels,
        .height = s->target.height,
        .width = s->target.width,
        .crop = s->target.crop,
        .classes = (int)s->classes,
        .class_names = s->class_names,
        .count = {(uint32_t)train->count, (uint32_t)test->count, (uint32_t)validation->count},
        .labels = {train->labels, test->labels, validation->labels},
        .notes = s->notes.text,
        .bad = s->bad,
        .bad_count = s->bad_count,
        .costly = true};
    memcpy(source_p->digest, hex, sizeof hex);
    memcpy(source_p->names, names, sizeof names);
    s = NULL;
out:
    folder_close(s);
    return st;
}

static base_status folder_pixels(const void *state, enum data_part part, uint32_t index,
                                 uint8_t *pixels)
{
    const struct folder *s = state;

    return data_file_pixels(s->parts[part].paths[index], s->target, NULL, pixels);
}

static base_status folder_random_pixels(const void *state, enum data_part part, uint32_t index,
                                        const uint32_t random[4], uint8_t *pixels)
{
    const struct folder *s = state;
    struct data_target target = s->target;

    target.crop = DATA_CROP_RANDOM;
    return data_file_pixels(s->parts[part].paths[index], target, random, pixels);
}

static const char *folder_file(const void *state, enum data_part part, uint32_t index)
{
    const struct folder *s = state;

    return s->parts[part].paths[index];
}

const struct data_format data_format_folder = {
    .name = "folder",
    .help = "PNG or JPEG images in train/CLASS/ and test/CLASS/ or one of them, or in CLASS/ alone",
    .recognise = folder_recognise,
    .explain = folder_explain,
    .open = folder_open,
    .pixels = folder_pixels,
    .file = folder_file,
    .random_pixels = folder_random_pixels,
    .close = folder_close,
};
