/* SPDX-License-Identifier: MIT
 *
 * The idx files of MNIST and its kin: big-endian header, then unsigned bytes. Opened as a folder
 * with train and t10k files, or as one images file whose labels file lies beside it. Plain files
 * are mapped, gzip ones are unpacked into memory once. There are ten classes unless a file
 * classes.txt beside the images names more or fewer, one a line.
 */
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "data/data_private.h"

enum { DEFAULT_CLASSES = 10, MOST_CLASSES = 256, CLASSES_LIMIT = 1 << 20, NOTES_LIMIT = 1 << 12 };

/* The labels of Fashion-MNIST's training part, which say nothing about what they mean. */
static const char FASHION_DIGEST[] =
    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9";
static const char FASHION_NAMES[] =
    "T-shirt/top\nTrouser\nPullover\nDress\nCoat\nSandal\nShirt\nSneaker\nBag\nAnkle boot\n";

/* One file: mapped, and unpacked where it is gzip. */
struct idx_file {
    struct base_map map;
    uint8_t *unpacked;
    const uint8_t *bytes;
    size_t count;
};

struct idx {
    struct idx_file images[DATA_PARTS], labels[DATA_PARTS];
    struct data_idx pixels[DATA_PARTS];
    int32_t *numbers[DATA_PARTS];
    char **class_names;
    int classes;
    char *notes; /* of data/poison.h; NULL: none */
};

/* Maps a file and unpacks it where it is gzip. */
static base_status load(const char *path, struct idx_file *file)
{
    base_status st = BASE_OK;

    TRY(base_map_open(path, &file->map));
    file->bytes = file->map.bytes;
    file->count = file->map.count;
    if (data_idx_is_gzip(file->bytes, file->count)) {
        TRY(base_prefix(
            data_idx_inflate(file->map.bytes, file->map.count, &file->unpacked, &file->count), "%s",
            path));
        file->bytes = file->unpacked;
        base_map_close(&file->map);
    }
out:
    return st;
}

static void unload(struct idx_file *file)
{
    base_map_close(&file->map);
    base_free(file->unpacked);
}

/* FOLDER/PART-WHAT-idxD-ubyte in one of its spellings, or NULL. */
static char *find_file(const char *folder, const char *part, const char *what, int dimensions)
{
    for (int form = 0; form < 4; form++) {
        char *path = base_format("%s/%s-%s%sidx%d-ubyte%s", folder, part, what,
                                 form % 2 == 0 ? "-" : ".", dimensions, form < 2 ? "" : ".gz");

        if (base_exists(path))
            return path;
        base_free(path);
    }
    return NULL;
}

/* Where the images and labels of each part are; NULL for a part that is not there. */
struct places {
    char *folder;
    char *images[DATA_PARTS], *labels[DATA_PARTS];
};

static void places_fini(struct places *p)
{
    base_free(p->folder);
    for (int part = 0; part < DATA_PARTS; part++) {
        base_free(p->images[part]);
        base_free(p->labels[part]);
    }
}

static base_status locate_in_folder(const char *folder, struct places *p)
{
    static const char *const names[] = {[DATA_TRAIN] = "train", [DATA_TEST] = "t10k"};

    p->folder = base_strdup(folder);
    for (int part = DATA_TRAIN; part <= DATA_TEST; part++) {
        p->images[part] = find_file(folder, names[part], "images", 3);
        p->labels[part] = find_file(folder, names[part], "labels", 1);
        if (part == DATA_TEST && p->images[part] == NULL && p->labels[part] == NULL)
            continue; /* a set without a test part */
        if (p->images[part] == NULL || p->labels[part] == NULL)
            return base_fail(BASE_ERR_DATA, "%s has no %s-%s-ubyte, plain or .gz", folder,
                             names[part], p->images[part] == NULL ? "images-idx3" : "labels-idx1");
    }
    return BASE_OK;
}

/* The length of PART in the file name PART-images-idx3-ubyte[.gz], or -1. */
static int part_length(const char *name)
{
    const char *at = strstr(name, "-images");

    if (at == NULL || strncmp(at + strlen("-images") + 1, "idx3-ubyte", 10) != 0)
        return -1;
    return (int)(at - name);
}

/* One images file: the training part, unless its name says that it is for tests. */
static base_status locate_beside(const char *path, struct places *p)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    char *stem = base_strndup(name, (size_t)part_length(name));
    bool test = strcmp(stem, "t10k") == 0 || strcmp(stem, "test") == 0;
    int part = test ? DATA_TEST : DATA_TRAIN;
    base_status st = BASE_OK;

    p->folder = slash != NULL ? base_strndup(path, (size_t)(slash - path)) : base_strdup(".");
    p->images[part] = base_strdup(path);
    p->labels[part] = find_file(p->folder, stem, "labels", 1);
    if (p->labels[part] == NULL)
        st = base_fail(BASE_ERR_DATA, "%s has no labels: %s-labels-idx1-ubyte is not beside it",
                       path, stem);
    base_free(stem);
    return st;
}

static bool idx_recognise(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *found;
    bool known;

    if (!base_is_dir(path))
        return base_exists(path) && part_length(slash != NULL ? slash + 1 : path) >= 0;
    found = find_file(path, "train", "images", 3);
    known = found != NULL;
    base_free(found);
    return known;
}

static void idx_close(void *state)
{
    struct idx *s = state;

    if (s == NULL)
        return;
    for (int part = 0; part < DATA_PARTS; part++) {
        unload(&s->images[part]);
        unload(&s->labels[part]);
        base_free(s->numbers[part]);
    }
    if (s->class_names != NULL)
        base_names_free(s->class_names, (size_t)s->classes);
    base_free(s->notes);
    base_free(s);
}

/* A set that is poisoned says so whenever it is opened. */
static base_status read_notes(struct idx *s, const char *folder)
{
    char *path = base_format("%s/" DATA_POISONED, folder);
    size_t count;
    base_status st =
        base_exists(path) ? base_file_read(path, NOTES_LIMIT, &s->notes, &count) : BASE_OK;

    base_free(path);
    return st;
}

/* From classes.txt, or because the labels are those of Fashion-MNIST, or just ten numbers. */
static base_status name_classes(struct idx *s, const char *folder, const char *labels_digest)
{
    base_status st = BASE_OK;
    char *path = base_format("%s/classes.txt", folder), *text = NULL;
    const char *names = NULL;
    size_t count = 0;

    s->classes = DEFAULT_CLASSES;
    if (base_exists(path)) {
        TRY(base_file_read(path, CLASSES_LIMIT, &text, &count));
        s->classes = data_class_lines(text, count);
        if (s->classes < 1 || s->classes > MOST_CLASSES)
            TRY(base_fail(BASE_ERR_DATA, "%s must name 1 to %d classes, one a line", path,
                          MOST_CLASSES));
        names = text;
    } else if (strcmp(labels_digest, FASHION_DIGEST) == 0) {
        names = FASHION_NAMES;
        count = strlen(names);
    }
    if (names != NULL) {
        s->class_names = base_calloc((size_t)s->classes, sizeof *s->class_names);
        TRY(base_prefix(data_class_names(names, count, s->classes, s->class_names), "%s", path));
    }
out:
    base_free(text);
    base_free(path);
    return st;
}

static base_status load_part(struct idx *s, const struct places *p, int part)
{
    base_status st = BASE_OK;
    struct data_idx labels = {0};

    TRY(base_prefix(data_idx_images(s->images[part].bytes, s->images[part].count, &s->pixels[part]),
                    "%s", p->images[part]));
    TRY(base_prefix(data_idx_labels(s->labels[part].bytes, s->labels[part].count, &labels), "%s",
                    p->labels[part]));
    TRY(base_tensor(labels.count, sizeof(int32_t), "labels", &s->numbers[part]));
    TRY(base_prefix(data_idx_check(&s->pixels[part], &labels, s->classes, s->numbers[part]), "%s",
                    p->labels[part]));
out:
    return st;
}

/* Loads what `p` names; `digests` gets the SHA-256 of the four (unpacked) files, one after the
 * other, zeros where there is none. */
static base_status load_all(struct idx *s, const struct places *p, char digests[4][BASE_SHA256_HEX])
{
    base_status st = BASE_OK;

    for (int part = DATA_TRAIN; part <= DATA_TEST; part++) {
        if (p->images[part] == NULL)
            continue;
        TRY(load(p->images[part], &s->images[part]));
        TRY(load(p->labels[part], &s->labels[part]));
        base_sha256(s->images[part].bytes, s->images[part].count, digests[2 * part]);
        base_sha256(s->labels[part].bytes, s->labels[part].count, digests[2 * part + 1]);
    }
    TRY(name_classes(s, p->folder, digests[1]));
    for (int part = DATA_TRAIN; part <= DATA_TEST; part++)
        if (p->images[part] != NULL)
            TRY(load_part(s, p, part));
    if (p->images[DATA_TRAIN] != NULL && p->images[DATA_TEST] != NULL &&
        (s->pixels[DATA_TRAIN].height != s->pixels[DATA_TEST].height ||
         s->pixels[DATA_TRAIN].width != s->pixels[DATA_TEST].width))
        TRY(base_fail(BASE_ERR_DATA, "%s has images of another size than %s", p->images[DATA_TEST],
                      p->images[DATA_TRAIN]));
out:
    return st;
}

static base_status idx_open(const char *path, const struct data_options *options,
                            struct data_source *source_p)
{
    base_status st = BASE_OK;
    struct idx *s = base_calloc(1, sizeof *s);
    struct places p = {0};
    char digests[4][BASE_SHA256_HEX] = {0};
    const struct data_idx *shape;

    (void)options;
    TRY(base_is_dir(path) ? locate_in_folder(path, &p) : locate_beside(path, &p));
    TRY(load_all(s, &p, digests));
    TRY(read_notes(s, p.folder));
    shape = &s->pixels[p.images[DATA_TRAIN] != NULL ? DATA_TRAIN : DATA_TEST];
    *source_p = (struct data_source){
        .state = s,
        .channels = 1,
        .height = (int)shape->height,
        .width = (int)shape->width,
        .classes = s->classes,
        .class_names = s->class_names,
        .count = {s->pixels[DATA_TRAIN].count, s->pixels[DATA_TEST].count},
        .labels = {s->numbers[DATA_TRAIN], s->numbers[DATA_TEST]},
        .notes = s->notes,
    };
    base_sha256(digests, sizeof digests, source_p->digest);
    s = NULL;
out:
    places_fini(&p);
    idx_close(s);
    return st;
}

static base_status idx_pixels(const void *state, enum data_part part, uint32_t index,
                              uint8_t *pixels)
{
    const struct idx *s = state;
    const struct data_idx *images = &s->pixels[part];
    const struct idx_file *file = &s->images[part];
    size_t size = (size_t)images->height * images->width;
    size_t from = (size_t)(images->values - file->bytes) + index * size;

    if (file->unpacked == NULL)
        return base_map_copy(&file->map, from, size, pixels);
    memcpy(pixels, file->unpacked + from, size);
    return BASE_OK;
}

const struct data_format data_format_idx = {
    .name = "idx",
    .help = "MNIST's files, plain or .gz: a folder with train-images-idx3-ubyte and its labels "
            "(and t10k-…), or one images file beside its labels",
    .recognise = idx_recognise,
    .open = idx_open,
    .pixels = idx_pixels,
    .close = idx_close,
};
