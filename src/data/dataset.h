/* SPDX-License-Identifier: MIT
 *
 * A data set: labelled images of one shape or rows of a table (data/table.h), in parts. A format
 * (data/formats/) serves raw pixels or cells, and labels; everything above (parts, order,
 * augmentation, normalisation, batches) is the same for all formats. A table of F features is
 * served as images of Fx1x1. Reading is thread-safe; opening and closing are not.
 */
#ifndef DATA_DATASET_H
#define DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/status.h"

enum { DATA_MAX_CHANNELS = 4, DATA_MAX_SIDE = 4096, DATA_MAX_CLASSES = 65536 };

/* What is kept for tests of a table in one file, unless said otherwise. */
#define DATA_TEST_SHARE 0.2

/* Validation is carved out of the training part by data_open, unless the source has such a part;
 * of a table in one file, the test part, too. */
enum data_part { DATA_TRAIN, DATA_TEST, DATA_VALIDATION, DATA_PARTS };

enum { DATA_NO_LABEL = -1 }; /* of a sample whose class is not known */

/* Which part of an image is scaled to the set's size: all of it, whatever its proportions; the
 * largest part of the right proportions in the middle; another part each time. */
enum data_crop { DATA_CROP_NONE, DATA_CROP_CENTRE, DATA_CROP_RANDOM };
extern const char *const data_crop_names[]; /* by number, NULL-ended */

struct data_table;
struct data_index;

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
    enum data_crop
        crop;           /* what data_pixels does with images of other proportions: NONE or CENTRE */
    double test_share;  /* the test part was carved out as data_options says, … */
    uint64_t test_seed; /* … with this seed; 0: it was not */
    char digest[BASE_SHA256_HEX]; /* identity of the set: shape, counts, labels, source bytes */
    char names[BASE_SHA256_HEX];  /* of its files' names alone, not their sizes; "": none */
    char *const *bad;             /* what is wrong with each file or row that was left out … */
    size_t bad_count;             /* … of which there are so many (skip_bad) */
};

struct data_options {
    double test_share; /* of a table in one file: share of it that is the test part, 0 … 0.9 */
    double validation; /* share of the training part kept apart, 0 … 0.9 */
    uint64_t seed;     /* of these splits */
    /* Samples of the source's training part that neither training nor validation sees; NULL: none.
     * They are left out after the splits, which stay what they were. */
    const struct data_index *exclude;
    uint32_t skip_bad; /* leave out up to so many files that cannot be read; all are tried first */
    bool unit_range;   /* no normalisation: pixels only scaled to [0,1] (mean 0, deviation 1) */
    /* Of tables: the column to predict (NULL: the last), and "NAME=number|category|ignore". */
    const char *target;
    const char *const *wishes;
    int wish_count;
    /* A shape to convert images to, each 0: as the format decides. Formats whose images all have
     * one shape keep that; the caller compares. */
    int channels, height, width;
    /* Formats whose images all have one shape do not follow it. With RANDOM, data_pixels cuts the
     * centre: the loader asks for other parts of the training samples. */
    enum data_crop crop;
    /* Normalise by these instead of the set's own statistics: a trained model wants what it was
     * trained with. */
    bool has_statistics;
    float mean[DATA_MAX_CHANNELS], deviation[DATA_MAX_CHANNELS];
    /* A trained model's classes: labels are numbered by these names, and a class that is not among
     * them is an error. 0: the set's own. A set without names keeps its numbers. */
    int classes;
    char *const *class_names;
    /* To predict: a class that is not among the model's is no error, its samples have no label, nor
     * have rows of a table without the target; and a source without parts is not divided, all of it
     * is the test part. */
    bool any_class, whole;
    /* A trained model's table: columns are matched by name and read as its training did. All rows
     * of a table in one file are test samples, unless it is the set of this digest. */
    const struct data_table *table;
    const char *trained_on;
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

/* A class by its name or number. */
base_status data_class_find(const struct data_info *info, const char *text, int32_t *label_p);

/* The number of a sample of the training or validation part in the source's training part, by which
 * an index lists it (data/index.h). */
uint32_t data_number_in_source(const struct data_set *set, enum data_part part, uint32_t index);

/* Is it a number that is to be predicted, and not a class? */
bool data_is_regression(const struct data_info *info);

/* Sample `index` of a part: its file (NULL: it is none), its label, and its pixels (C,H,W),
 * 0 … 255, or of a table its features (C), standardised, and the number to be predicted, as it is
 * and standardised, NAN where it is not known. */
const char *data_file(const struct data_set *set, enum data_part part, uint32_t index);
int32_t data_label(const struct data_set *set, enum data_part part, uint32_t index);
base_status data_pixels(const struct data_set *set, enum data_part part, uint32_t index,
                        uint8_t *pixels);
void data_features(const struct data_set *set, enum data_part part, uint32_t index, float *x);
double data_target(const struct data_set *set, enum data_part part, uint32_t index);
float data_number(const struct data_set *set, enum data_part part, uint32_t index);

#endif
