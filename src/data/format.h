/* SPDX-License-Identifier: MIT
 *
 * What a file in data/formats/ provides: `const struct data_format data_format_NAME`.
 * A source owns its memory; labels are checked against `classes` when it is opened, so that
 * later reads need no check. Files are only read through base/cursor.h.
 */
#ifndef DATA_FORMAT_H
#define DATA_FORMAT_H

#include "data/dataset.h"

enum { DATA_ROOM = 4 }; /* cells of a row that is made when it is asked for */

struct data_source {
    void *state; /* the format's own; closed by format->close */
    int channels, height, width, classes;
    enum data_crop crop; /* that `pixels` does: NONE or CENTRE */
    /* Of a table, whose features are `channels`; owned by the state. data_open fills in the
     * statistics, unless they are those of options->table. NULL: images. */
    struct data_table *table;
    bool undivided;                    /* a table in one file: all rows are in the training part */
    char **class_names;                /* NULL: "0", "1", … */
    uint32_t count[DATA_PARTS];        /* a missing part is 0 */
    const int32_t *labels[DATA_PARTS]; /* DATA_NO_LABEL: not known; NULL: a number is predicted */
    const char *notes;                 /* for data_warn, a line each; NULL: none */
    char digest[BASE_SHA256_HEX];      /* of what identifies the source's bytes */
    char names[BASE_SHA256_HEX];       /* of the names of many files; "": it has none */
    char *const *bad;                  /* as in data_info */
    size_t bad_count;
    /* Known normalisation; has_statistics false: data_open measures the training part. */
    bool has_statistics;
    /* Pixels are decoded or computed on demand: statistics come from a sample of the training
     * part, and the loader uses several threads. */
    bool costly;
    float mean[DATA_MAX_CHANNELS], deviation[DATA_MAX_CHANNELS];
};

struct data_format {
    const char *name, *help;
    /* Does this path (or name) look like ours? Cheap; must not fail. */
    bool (*recognise)(const char *path);
    /* Of what no format recognises: fails with the reason where it is nearly ours. Optional. */
    base_status (*explain)(const char *path);
    /* Of the options it may follow the wished shape, crop, skip_bad, whole and what is said of
     * tables; the rest is data_open's business. */
    base_status (*open)(const char *path, const struct data_options *options,
                        struct data_source *source_p);
    /* Pixels (C,H,W) of one image; called from several threads at once. */
    base_status (*pixels)(const void *state, enum data_part part, uint32_t index, uint8_t *pixels);
    /* The same of a random part of the image, which these words decide. NULL: images are not
     * cropped, and the source's crop is NONE. */
    base_status (*random_pixels)(const void *state, enum data_part part, uint32_t index,
                                 const uint32_t random[4], uint8_t *pixels);
    /* The file that one sample is. Optional: samples are no files. */
    const char *(*file)(const void *state, enum data_part part, uint32_t index);
    /* Of a table instead: the cells of one row (data/table.h), those of the inputs and then the
     * target's: in the source's memory, where they stay valid, or of up to DATA_ROOM of them in
     * `room`. */
    const double *(*cells)(const void *state, enum data_part part, uint32_t index,
                           double room[DATA_ROOM]);
    void (*close)(void *state); /* accepts NULL and half-built */
};

/* A set whose source is the caller's, and of no format of the registry. Takes the source over, on
 * failure, too. */
base_status data_open_source(const char *what, const struct data_format *format,
                             const struct data_source *source, const struct data_options *options,
                             struct data_set **set_p);

extern const struct data_format *const data_format_registry[];
extern const size_t data_format_count;

#endif
