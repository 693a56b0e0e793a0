/* SPDX-License-Identifier: MIT
 *
 * A data set: labelled images of one shape, in parts. A format (data/formats/) serves raw pixels
 * and labels; everything above (order, augmentation, normalisation, batches) is the same for
 * all formats. Reading is thread-safe; opening and closing are not.
 */
#ifndef DATA_DATASET_H
#define DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/status.h"

enum { DATA_MAX_CHANNELS = 4, DATA_MAX_SIDE = 4096, DATA_MAX_CLASSES = 65536 };

/* Validation is carved out of the training part by data_open, unless the source has such a part. */
enum data_part { DATA_TRAIN, DATA_TEST, DATA_VALIDATION, DATA_PARTS };

enum { DATA_NO_LABEL = -1 }; /* of a sample whose class is not known */

struct data_table;

struct data_info {
    char *name;         /* what the person wrote */
    char *path;         /* where it is, absolute, in UTF-8; NULL: `name` is no path */
    const char *format; /* name of the format that serves it */
    int channels, height, width;
    int classes;
    char **class_names;                 /* `classes` of them */
    const struct data_table *table;     /* of a table; NULL: images, whose pixels have … */
    uint32_t count[DATA_PARTS];         /* samples in each part */
    float mean[DATA_MAX_CHANNELS];      /* … scaled to [0,1], over the training part … */
    float deviation[DATA_MAX_CHANNELS]; /* … x' = (x/255 - mean) / deviation */
    char digest[BASE_SHA256_HEX]; /* identity of the set: shape, counts, labels, source bytes */
    char names[BASE_SHA256_HEX];  /* of its files' names alone, not their sizes; "": none */
    char *const *bad;             /* what is wrong with each file that was left out … */
    size_t bad_count;             /* … of which there are so many (skip_bad) */
};

struct data_options {
    double validation; /* share of the training part kept apart, 0 … 0.9 */
    uint64_t seed;     /* of that split */
    uint32_t skip_bad; /* leave out up to so many files that cannot be read; all are tried first */
    bool unit_range;   /* no normalisation: pixels only scaled to [0,1] (mean 0, deviation 1) */
    /* A shape to convert images to, each 0: as the format decides. Formats whose images all have
     * one shape keep that; the caller compares. */
    int channels, height, width;
    /* Normalise by these instead of the set's own statistics: a trained model wants what it was
     * trained with. */
    bool has_statistics;
    float mean[DATA_MAX_CHANNELS], deviation[DATA_MAX_CHANNELS];
    /* A trained model's classes: labels are numbered by these names, and a class that is not among
     * them is an error. 0: the set's own. A set without names keeps its numbers. */
    int classes;
    char *const *class_names;
    /* To predict: a class that is not among the model's is no error, its samples have no label; and
     * a source without parts is not divided, all of it is the test part. */
    bool any_class, whole;
};

struct data_set;

/* `what` is a name `data get` knows, a file or folder, or "synthetic[:options]". */
base_status data_open(const char *what, const struct data_options *options,
                      struct data_set **set_p);
/* Images without labels: files, whatever their names, and the images right in a folder, as one set
 * whose samples are all in the test part. The options must give a shape. */
base_status data_open_files(const char *const *places, size_t count,
                            const struct data_options *options, struct data_set **set_p);
/* Is it one of these two, rather than something for data_open? So is an image that is not there. */
bool data_is_files(const char *place);
void data_close(struct data_set *set); /* accepts NULL */

/* Says what a person should know of the files: one of a job's workers calls it. */
void data_warn(const struct data_set *set);

const struct data_info *data_describe(const struct data_set *set);

/* Sample `index` of a part: its file (NULL: it is none), its label, and its pixels (C,H,W),
 * 0 … 255. */
const char *data_file(const struct data_set *set, enum data_part part, uint32_t index);
int32_t data_label(const struct data_set *set, enum data_part part, uint32_t index);
base_status data_pixels(const struct data_set *set, enum data_part part, uint32_t index,
                        uint8_t *pixels);

#endif
