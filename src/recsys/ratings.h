/* SPDX-License-Identifier: MIT
 *
 * Ratings in memory: who rated what, how, and when. A set is read once from text (recsys/formats/)
 * into a cache file, which is then mapped: opening it again costs a check of its checksums. What
 * is here points into the map, is never written to, and may be read by any thread.
 *
 * Users and items are numbered from 0 in the order of their ids (numbers by value, texts by bytes),
 * so numbers depend neither on the order of lines nor on how many threads read them.
 *
 * Ratings are kept grouped by user. The same grouped by item is made on demand (recsys_transpose):
 * it is read by some models only, and takes less time to make than to read from a disk.
 */
#ifndef RECSYS_RATINGS_H
#define RECSYS_RATINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/status.h"

enum { RECSYS_MAX_LEVELS = 256, RECSYS_MAX_ID = 255 }; /* bytes of an id */

/* The values that ratings take. Up to RECSYS_MAX_LEVELS of them are levels, and a rating is the
 * index of its level; with more, `levels` is 0 and a rating is a float. */
struct recsys_scale {
    float lowest, highest;
    float step; /* all values are lowest + n * step; 0: no such step was found */
    uint32_t levels;
    float level[RECSYS_MAX_LEVELS]; /* rising */
};

/* Ratings grouped by row: a user and its items, or an item and its users. */
struct recsys_rows {
    uint32_t rows, columns;
    uint64_t count;
    const uint64_t *start;  /* (rows+1): row r has the ratings start[r] … start[r+1]-1 */
    const uint32_t *column; /* (count), rising within a row: a pair is there once */
    const uint8_t *code;    /* (count), of scale.level; NULL: `value` instead */
    const float *value;     /* (count); NULL: `code` instead */
    const uint32_t *time;   /* (count), seconds since 1970; NULL: not known */
};

/* Ids of users or items, both ways. Either numbers or texts, both rising. */
struct recsys_ids {
    uint32_t count;
    const uint32_t *number;     /* (count); NULL: texts */
    const uint64_t *text_start; /* (count+1), where each begins in … */
    const char *text;           /* … this, each with a zero at its end */
};

/* What was left out while the text was read. */
struct recsys_faults {
    uint64_t bad_lines;  /* that are no rating: fields missing, not a number, not UTF-8 … */
    uint64_t duplicates; /* pairs of a user and an item that came again; the last one counts */
    /* The first of them, a line each, with their numbers: "ratings.csv, line 7: …". NULL: none. */
    const char *examples;
};

struct recsys_ratings {
    uint32_t users, items;
    uint64_t count;
    struct recsys_scale scale;
    struct recsys_rows by_user;
    struct recsys_ids user_ids, item_ids;
    uint32_t first_time, last_time; /* seconds since 1970; both 0 without times */
    struct recsys_faults faults;
    char format[16];              /* the reader: "csv", "netflix", … */
    char digest[BASE_SHA256_HEX]; /* of the ratings and ids, however they were written */
    /* Below: how it is kept. */
    char *path;  /* what was opened */
    char *cache; /* the cache's file; NULL: in memory only */
    bool cached; /* it was there already: no text was read */
    void *map;
};

/* A column of text with `columns`: which of them is which, as in "user,item,rating,time". A name
 * that is none of these is skipped ("user,-,item,rating"); without a rating, each is 1. */
struct recsys_options {
    const char *columns;   /* NULL: the format is found by content */
    const char *separator; /* with `columns`; NULL: found by content */
    int threads;           /* 0: one a core */
    bool strict;           /* bad lines and duplicates are errors */
    bool no_cache;         /* neither look for a cache nor leave one */
    uint32_t block;        /* bytes of text that a thread reads at once; 0: a megabyte */
    /* Files or folders whose ratings come after those of the path, in this order: one set. */
    const char *const *added;
    int added_count;
};

/* Does `path` look like ratings? A file or a folder; reads a few kilobytes. */
bool recsys_is_ratings(const char *path);

/* Where the ratings are that a person names: in the folder of a set that `data get` knows, if it is
 * there; else the name is a path; base_free. */
base_status recsys_ratings_path(const char *name, char **path_p);

/* Opens the ratings in a file or a folder: from the cache where it is current, else from text, with
 * a progress line. Bad lines are counted, not told: recsys_warn does. */
base_status recsys_ratings_open(const char *path, const struct recsys_options *options,
                                struct recsys_ratings **ratings_p);
void recsys_ratings_close(struct recsys_ratings *ratings); /* accepts NULL */

/* Warns of what was left out: one of a job's workers calls it. */
void recsys_warn(const struct recsys_ratings *ratings);

/* The value of rating k of some rows. */
static inline float recsys_value(const struct recsys_scale *scale, const struct recsys_rows *rows,
                                 uint64_t k)
{
    return rows->code != NULL ? scale->level[rows->code[k]] : rows->value[k];
}

/* Days since 1970 of a time. */
static inline uint32_t recsys_day(uint32_t time)
{
    return time / 86400;
}

/* The number of an id; false: it is not known. */
bool recsys_id_find(const struct recsys_ids *ids, const char *id, uint32_t *number_p);
/* The numbers that the ids `of` have among `in`, RECSYS_NO_ID: none; base_free. */
#define RECSYS_NO_ID UINT32_MAX
uint32_t *recsys_ids_match(const struct recsys_ids *of, const struct recsys_ids *in);
/* The id of a number, in `text` or in the set itself. */
struct recsys_id {
    char text[16];
};
const char *recsys_id_text(const struct recsys_ids *ids, uint32_t number, struct recsys_id *text);

/* Rows that own their memory: the same ratings grouped by column, on `threads` threads (0: one a
 * core), the same for any number of them. `times`: with their times, if they have any. Release
 * with recsys_rows_fini. */
base_status recsys_transpose(const struct recsys_rows *rows, bool times, int threads,
                             struct recsys_rows *transposed_p);
/* Ratings dealt to parts (count), each of which has all rows, and in them its ratings in the same
 * order. The dealer says for each rating of a row to which part it goes, or RECSYS_NO_PART: to
 * none; it is called from several threads, twice for each row, and must always say the same.
 * `times`: as above. */
enum { RECSYS_MAX_PARTS = 3, RECSYS_NO_PART = RECSYS_MAX_PARTS };
typedef void recsys_dealer(const void *context, uint32_t row, uint8_t *part_of);
base_status recsys_deal(const struct recsys_rows *rows, recsys_dealer *dealer, const void *context,
                        bool times, int threads, int count, struct recsys_rows *parts_p);
void recsys_rows_fini(struct recsys_rows *rows); /* of these two alone; accepts zeros */

#endif
