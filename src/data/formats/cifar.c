/* SPDX-License-Identifier: MIT
 *
 * CIFAR-10's binary version: a folder with data_batch_1.bin … data_batch_5.bin and test_batch.bin,
 * or one that holds it as cifar-10-batches-bin. Class names come from batches.meta.txt where that
 * is there. The files stay memory-mapped.
 */
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "data/data_private.h"

enum { TRAIN_FILES = 5, FILES = TRAIN_FILES + 1, META_LIMIT = 1 << 16 };

struct cifar {
    struct base_map files[FILES]; /* the test batch last */
    uint32_t first[FILES];        /* index of a file's first sample in its part */
    int32_t *labels[DATA_PARTS];
    char **class_names;
};

/* The folder that has the batches, or NULL. */
static char *find_folder(const char *path)
{
    static const char *const places[] = {"", "/cifar-10-batches-bin"};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *folder = base_format("%s%s", path, places[i]);
        char *file = base_format("%s/data_batch_1.bin", folder);
        bool found = base_exists(file);

        base_free(file);
        if (found)
            return folder;
        base_free(folder);
    }
    return NULL;
}

static bool cifar_recognise(const char *path)
{
    char *folder = find_folder(path);
    bool found = folder != NULL;

    base_free(folder);
    return found;
}

static void cifar_close(void *state)
{
    struct cifar *s = state;

    if (s == NULL)
        return;
    for (int i = 0; i < FILES; i++)
        base_map_close(&s->files[i]);
    base_free(s->labels[DATA_TRAIN]);
    base_free(s->labels[DATA_TEST]);
    if (s->class_names != NULL)
        base_names_free(s->class_names, DATA_CIFAR_CLASSES);
    base_free(s);
}

static base_status name_classes(struct cifar *s, const char *folder)
{
    base_status st = BASE_OK;
    char *path = base_format("%s/batches.meta.txt", folder), *text = NULL;
    size_t count = 0;

    if (base_exists(path)) {
        s->class_names = base_calloc(DATA_CIFAR_CLASSES, sizeof *s->class_names);
        TRY(base_file_read(path, META_LIMIT, &text, &count));
        TRY(base_prefix(data_class_names(text, count, DATA_CIFAR_CLASSES, s->class_names), "%s",
                        path));
    }
out:
    base_free(text);
    base_free(path);
    return st;
}

/* Maps file `i` and appends its labels to those of `part`, of which there are `*count_p`. */
static base_status load(struct cifar *s, const char *path, int i, enum data_part part,
                        uint32_t *count_p)
{
    base_status st = BASE_OK;
    uint32_t records = 0;
    size_t room;

    TRY(base_map_open(path, &s->files[i]));
    room = *count_p + s->files[i].count / DATA_CIFAR_RECORD;
    if (room > INT32_MAX)
        TRY(base_fail(BASE_ERR_DATA, "%s holds too many samples", path));
    s->labels[part] = base_realloc(s->labels[part], room, sizeof(int32_t));
    TRY(base_prefix(data_cifar_records(s->files[i].bytes, s->files[i].count,
                                       s->labels[part] + *count_p, &records),
                    "%s", path));
    s->first[i] = *count_p;
    *count_p += records;
out:
    return st;
}

static base_status load_all(struct cifar *s, const char *folder, uint32_t count[DATA_PARTS],
                            char digests[FILES][BASE_SHA256_HEX])
{
    base_status st = BASE_OK;
    char *path = NULL;

    for (int i = 0; i < FILES; i++) {
        enum data_part part = i < TRAIN_FILES ? DATA_TRAIN : DATA_TEST;

        base_free(path);
        path = part == DATA_TRAIN ? base_format("%s/data_batch_%d.bin", folder, i + 1)
                                  : base_format("%s/test_batch.bin", folder);
        TRY(load(s, path, i, part, &count[part]));
        base_sha256(s->files[i].bytes, s->files[i].count, digests[i]);
    }
out:
    base_free(path);
    return st;
}

static base_status cifar_open(const char *path, const struct data_options *options,
                              struct data_source *source_p)
{
    base_status st = BASE_OK;
    struct cifar *s = base_calloc(1, sizeof *s);
    char *folder = find_folder(path);
    char digests[FILES][BASE_SHA256_HEX] = {0};
    uint32_t count[DATA_PARTS] = {0};

    (void)options;
    if (folder == NULL)
        TRY(base_fail(BASE_ERR_DATA, "%s has no data_batch_1.bin", path));
    TRY(load_all(s, folder, count, digests));
    TRY(name_classes(s, folder));
    *source_p = (struct data_source){
        .state = s,
        .channels = 3,
        .height = DATA_CIFAR_SIDE,
        .width = DATA_CIFAR_SIDE,
        .classes = DATA_CIFAR_CLASSES,
        .class_names = s->class_names,
        .count = {count[DATA_TRAIN], count[DATA_TEST]},
        .labels = {s->labels[DATA_TRAIN], s->labels[DATA_TEST]},
    };
    base_sha256(digests, sizeof digests, source_p->digest);
    s = NULL;
out:
    base_free(folder);
    cifar_close(s);
    return st;
}

static base_status cifar_pixels(const void *state, enum data_part part, uint32_t index,
                                uint8_t *pixels)
{
    const struct cifar *s = state;
    int file = part == DATA_TEST ? FILES - 1 : TRAIN_FILES - 1;

    while (part == DATA_TRAIN && s->first[file] > index)
        file--;
    return base_map_copy(&s->files[file], (size_t)(index - s->first[file]) * DATA_CIFAR_RECORD + 1,
                         DATA_CIFAR_RECORD - 1, pixels);
}

const struct data_format data_format_cifar = {
    .name = "cifar",
    .help = "CIFAR-10's binary version: a folder with data_batch_1.bin … 5 and test_batch.bin",
    .recognise = cifar_recognise,
    .open = cifar_open,
    .pixels = cifar_pixels,
    .close = cifar_close,
};
