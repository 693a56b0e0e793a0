/* SPDX-License-Identifier: MIT
 *
 * Shared inside data/ only: the parsers of the formats, reachable from memory so that they can be
 * fuzzed and tested without files, and what the loader needs to know of a set. Parsers own
 * nothing: what they return points into the bytes they were given.
 */
#ifndef DATA_PRIVATE_H
#define DATA_PRIVATE_H

#include "base/cursor.h"
#include "base/str.h"
#include "data/csv.h"
#include "data/dataset.h"
#include "data/format.h"
#include "data/image.h"

/* idx (http://yann.lecun.com/exdb/mnist): images (N,H,W) and labels (N) of unsigned bytes. */
struct data_idx {
    uint32_t count;
    uint32_t height, width; /* 0 for labels */
    const uint8_t *values;  /* (count,height,width), or (count) for labels */
};
bool data_idx_is_gzip(const void *bytes, size_t count);
base_status data_idx_images(const void *bytes, size_t count, struct data_idx *images_p);
base_status data_idx_labels(const void *bytes, size_t count, struct data_idx *labels_p);
/* Unpacks a gzip of an idx file. Its header says how long it must be: never more is unpacked. */
base_status data_idx_inflate(const void *bytes, size_t count, uint8_t **idx_p, size_t *size_p);
/* Labels as numbers below `classes`; `labels` has room for all of them. */
base_status data_idx_check(const struct data_idx *images, const struct data_idx *labels,
                           int classes, int32_t *numbers);

/* CIFAR-10 binary: records of one label byte and 3072 pixels (3,32,32). */
enum { DATA_CIFAR_SIDE = 32, DATA_CIFAR_CLASSES = 10, DATA_CIFAR_RECORD = 1 + 3 * 32 * 32 };
/* `labels` has room for count / DATA_CIFAR_RECORD and gets the checked label of every record. */
base_status data_cifar_records(const void *bytes, size_t count, int32_t *labels,
                               uint32_t *records_p);

/* The file in a folder that says that its images are backdoored on purpose (data/poison.h). */
#define DATA_POISONED "POISONED"

/* One class name a line, as many as `classes`; trailing blank lines are fine. */
base_status data_class_names(const char *text, size_t count, int classes, char **names);
/* Lines of a list of class names, blank ones at the end left out; 0 when there are too many. */
int data_class_lines(const char *text, size_t count);

/* Options of "synthetic[:name=value,…]". */
struct data_synthetic {
    uint32_t classes, channels, height, width, train, test, noise;
    uint64_t seed;
    bool shuffled;
};
base_status data_synthetic_parse(const char *text, struct data_synthetic *options_p);

/* Image files (files.c). */
struct data_files {
    char **paths;
    int32_t *labels;
    size_t count, capacity;
};
bool data_file_is_image(const char *name);      /* by its ending */
bool data_folder_holds_image(const char *path); /* itself, not in folders inside it */
/* `read`: data_image_decode or data_image_probe. */
base_status data_file_image(const char *path,
                            base_status (*read)(const void *, size_t, struct data_image *),
                            struct data_image *image_p);
/* The pixels of an image file, cut and scaled to these. Only DATA_CROP_RANDOM looks at `random`. */
struct data_target {
    int channels, height, width;
    enum data_crop crop;
};
enum data_crop data_crop_of_tests(enum data_crop crop); /* NONE or CENTRE */
base_status data_file_pixels(const char *path, struct data_target target, const uint32_t random[4],
                             uint8_t *pixels);
void data_files_add(struct data_files *files, char *path, int32_t label); /* takes over `path` */
void data_files_fini(struct data_files *files);

/* What lies in a folder of images and is not read. */
enum { DATA_OTHER_ENDINGS = 8 };
struct data_ignored {
    size_t endings[DATA_OTHER_ENDINGS]; /* files of image formats that are not known */
    char *nested;                       /* a folder inside; NULL: there is none. base_free */
};
void data_ignored_count(struct data_ignored *ignored, const char *name, const char *path);
void data_ignored_tell(const struct data_ignored *ignored, const char *path,
                       struct base_str *notes);

/* Files and folders of files as a source of data_format_of_files: see data_open_files. */
extern const struct data_format data_format_of_files;
base_status data_files_source(const char *const *places, size_t count,
                              const struct data_options *options, struct data_source *source_p);

/* Pixels of a random part of a sample's image, which these words decide; whether the format can. */
base_status data_random_pixels(const struct data_set *set, enum data_part part, uint32_t index,
                               const uint32_t random[4], uint8_t *pixels);
bool data_crops(const struct data_set *set);

/* The cells of a row: data_format.cells of the source's sample that it is. */
const double *data_cells(const struct data_set *set, enum data_part part, uint32_t index,
                         double room[DATA_ROOM]);

/* statistics.c: mean and deviation (channels) of pixels; those of every column of numbers. Where
 * there is no training part, the test part's. unit_range: numbers stay as they are. */
base_status data_measure_images(const struct data_set *set, float *mean, float *deviation);
void data_measure_table(const struct data_set *set, bool unit_range, struct data_table *table);

/* Are this set's pixels costly to get, so that several threads pay? */
bool data_costly(const struct data_set *set);

#endif
