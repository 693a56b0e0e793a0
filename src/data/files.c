/* SPDX-License-Identifier: MIT
 *
 * Lists of image files, which folders of classes and the files that a person names have in common;
 * and a set of such files without labels. Only names are kept; a file is read and decoded when its
 * pixels are asked for, in the thread that asks.
 */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "data/data_private.h"

enum { FILE_LIMIT = 64 << 20 };

/* Files that look like images and cannot be read. */
static const char *const other_endings[DATA_OTHER_ENDINGS] = {".webp", ".gif",  ".bmp",  ".tif",
                                                              ".tiff", ".heic", ".avif", ".ppm"};

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), n = strlen(ending);

    return length > n && name[0] != '.' && strcasecmp(name + length - n, ending) == 0;
}

bool data_file_is_image(const char *name)
{
    return ends_with(name, ".png") || ends_with(name, ".jpg") || ends_with(name, ".jpeg");
}

bool data_folder_holds_image(const char *path)
{
    char **names = NULL;
    size_t count = 0;
    bool found = false;

    if (!base_is_dir(path) || base_list_dir(path, &names, &count) != BASE_OK)
        return false;
    for (size_t i = 0; i < count && !found; i++)
        found = data_file_is_image(names[i]);
    base_names_free(names, count);
    return found;
}

base_status data_file_image(const char *path,
                            base_status (*read)(const void *, size_t, struct data_image *),
                            struct data_image *image_p)
{
    base_status st = BASE_OK;
    char *bytes = NULL;
    size_t count = 0;

    *image_p = (struct data_image){0};
    TRY(base_file_read(path, FILE_LIMIT, &bytes, &count));
    TRY(base_prefix(read(bytes, count, image_p), "%s", path));
out:
    base_free(bytes);
    return st;
}

void data_files_add(struct data_files *files, char *path, int32_t label)
{
    if (files->count == files->capacity) {
        files->capacity = files->capacity > 0 ? files->capacity * 2 : 256;
        files->paths = base_realloc(files->paths, files->capacity, sizeof *files->paths);
        files->labels = base_realloc(files->labels, files->capacity, sizeof *files->labels);
    }
    files->paths[files->count] = path;
    files->labels[files->count++] = label;
}

void data_files_fini(struct data_files *files)
{
    base_names_free(files->paths, files->count);
    base_free(files->labels);
    *files = (struct data_files){0};
}

void data_ignored_count(struct data_ignored *ignored, const char *name, const char *path)
{
    for (size_t i = 0; i < DATA_OTHER_ENDINGS; i++)
        ignored->endings[i] += ends_with(name, other_endings[i]);
    if (ignored->nested == NULL && name[0] != '.' && base_is_dir(path))
        ignored->nested = base_strdup(path);
}

void data_ignored_tell(const struct data_ignored *ignored, const char *path, struct base_str *notes)
{
    struct base_str list = {0};

    for (size_t i = 0; i < DATA_OTHER_ENDINGS; i++)
        if (ignored->endings[i] > 0)
            base_str_add(&list, "%s%zu %s", list.length > 0 ? ", " : "", ignored->endings[i],
                         other_endings[i]);
    if (list.length > 0)
        base_str_add(notes, "%s: ignored %s; only .png, .jpg and .jpeg are read\n", path,
                     list.text);
    base_str_fini(&list);
}

enum data_crop data_crop_of_tests(enum data_crop crop)
{
    return crop == DATA_CROP_NONE ? DATA_CROP_NONE : DATA_CROP_CENTRE;
}

base_status data_file_pixels(const char *path, struct data_target target, const uint32_t random[4],
                             uint8_t *pixels)
{
    struct data_image image;
    base_status st = data_file_image(path, data_image_decode, &image);

    if (st == BASE_OK) {
        data_image_crop(&image, target.crop, target.height, target.width, random);
        data_image_fit(&image, target.channels, target.height, target.width, pixels);
    }
    data_image_fini(&image);
    return st;
}

/* ---- a set of files ---- */

struct file_set {
    struct data_files files;
    struct base_str notes;
    struct data_target target;
};

static void files_close(void *state)
{
    struct file_set *s = state;

    if (s == NULL)
        return;
    data_files_fini(&s->files);
    base_str_fini(&s->notes);
    base_free(s);
}

static base_status add_folder(struct file_set *s, const char *path)
{
    struct data_ignored ignored = {0};
    char **names = NULL;
    size_t count = 0;
    base_status st = base_list_dir(path, &names, &count);

    for (size_t i = 0; st == BASE_OK && i < count; i++) {
        char *child = base_format("%s/%s", path, names[i]);

        if (data_file_is_image(names[i])) {
            data_files_add(&s->files, child, DATA_NO_LABEL);
            continue;
        }
        data_ignored_count(&ignored, names[i], child);
        base_free(child);
    }
    data_ignored_tell(&ignored, path, &s->notes);
    if (ignored.nested != NULL)
        base_str_add(&s->notes, "%s holds images, so folders in it are not read, such as %s\n",
                     path, ignored.nested);
    base_free(ignored.nested);
    base_names_free(names, count);
    return st;
}

static base_status files_pixels(const void *state, enum data_part part, uint32_t index,
                                uint8_t *pixels)
{
    const struct file_set *s = state;

    (void)part;
    return data_file_pixels(s->files.paths[index], s->target, NULL, pixels);
}

static const char *files_file(const void *state, enum data_part part, uint32_t index)
{
    const struct file_set *s = state;

    (void)part;
    return s->files.paths[index];
}

/* Not in the registry: what it opens has no single name. */
const struct data_format data_format_of_files = {
    .name = "files",
    .help = "PNG or JPEG files without labels",
    .pixels = files_pixels,
    .file = files_file,
    .close = files_close,
};

base_status data_files_source(const char *const *places, size_t count,
                              const struct data_options *options, struct data_source *source_p)
{
    base_status st = BASE_OK;
    struct file_set *s = base_calloc(1, sizeof *s);

    *source_p = (struct data_source){0};
    s->target = (struct data_target){options->channels, options->height, options->width,
                                     data_crop_of_tests(options->crop)};
    if (options->channels != 1 && options->channels != 3)
        TRY(base_fail(BASE_ERR_DATA,
                      "images of files are gray (1 channel) or colour (3), not of %d channels",
                      options->channels));
    for (size_t i = 0; i < count; i++)
        if (base_is_dir(places[i]))
            TRY(add_folder(s, places[i]));
        else
            data_files_add(&s->files, base_strdup(places[i]), DATA_NO_LABEL);
    if (s->files.count > UINT32_MAX)
        TRY(base_fail(BASE_ERR_DATA, "%zu images are too many", s->files.count));
    *source_p = (struct data_source){
        .state = s,
        .channels = options->channels,
        .height = options->height,
        .width = options->width,
        .crop = s->target.crop,
        .classes = options->classes > 0 ? options->classes : 1,
        .count = {[DATA_TEST] = (uint32_t)s->files.count},
        .labels = {[DATA_TEST] = s->files.labels},
        .notes = s->notes.text,
        .costly = true,
    };
    s = NULL;
out:
    files_close(s);
    return st;
}
