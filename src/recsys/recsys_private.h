/* SPDX-License-Identifier: MIT
 *
 * Shared inside recsys/ only: the way of ratings from text into a cache.
 *
 *     source.c   which files, how they are cut, who they are
 *     text.c     the files, block by block, on several threads
 *     lines.c    lines of text as ratings; fields.c cuts them
 *     census.c   the ids that were seen, and their numbers
 *     group.c    the ratings of each user together, each pair once
 *     scale.c    the values that ratings take
 *     cache.c    the file: written whole or not at all, checked when it is mapped
 */
#ifndef RECSYS_PRIVATE_H
#define RECSYS_PRIVATE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "base/team.h"
#include "recsys/format.h"
#include "recsys/ratings.h"

/* ---- fields of text (fields.c) ---- */

struct recsys_field {
    const char *at;
    size_t length;
};

/* The line's fields by role; their number, or 0: a quote is not closed. */
int recsys_cut(const struct recsys_layout *layout, const char *line, size_t length,
               struct recsys_field fields[RECSYS_ROLES]);
/* The number of fields of a line, however many there are. */
int recsys_count_fields(const char *separator, const char *line, size_t length);
/* A decimal number without sign, leading zeros and blanks that is at most `most`. */
bool recsys_number(struct recsys_field field, uint32_t most, uint32_t *number_p);
/* A finite number. */
bool recsys_real(struct recsys_field field, float *value_p);
/* Seconds or milliseconds since 1970, or a date as in "2005-09-06" or "2005-09-06 12:30:00". */
bool recsys_time(struct recsys_field field, uint32_t *seconds_p);
/* 00:00 of a day, in seconds since 1970; false: there is no such day, or it does not fit. */
bool recsys_date(unsigned year, unsigned month, unsigned day, uint32_t *seconds_p);

/* ---- sources ---- */

struct recsys_file {
    char *path;
    uint64_t size;
    struct recsys_layout layout;
};

struct recsys_source {
    struct recsys_file *files;
    size_t file_count;
    uint32_t block;                     /* bytes of text that are read at once */
    const struct recsys_format *format; /* of the first file */
    char identity[BASE_SHA256_HEX];     /* of names, sizes, times of change and layouts */
    char *beside;                       /* the cache's place beside it */
    char *place;                        /* absolute path of what was opened */
    char *all;                          /* the same of it and all that is added, a line each */
    uid_t owner;                        /* of the first file */
};

base_status recsys_source_open(const char *path, const struct recsys_options *options,
                               struct recsys_source *source_p);
void recsys_source_close(struct recsys_source *source); /* accepts zeros */

/* What formats ask of a file's beginning: its first line, without a mark of UTF-8 and its end; is a
 * line a rating when it is cut so; are most of the first lines? */
struct recsys_field recsys_first_line(const char *text, size_t count);
bool recsys_fits_line(const struct recsys_layout *layout, struct recsys_field line);
bool recsys_fits(const struct recsys_layout *layout, const char *text, size_t count);
/* Has a line such a field? */
bool recsys_has_role(const struct recsys_layout *layout, enum recsys_role role);

/* Columns as a person writes them, and the separator that the text has if NULL. */
base_status recsys_columns(const char *columns, const char *separator, const char *text,
                           size_t count, struct recsys_layout *layout_p);

/* ---- ids that are seen while text is read ---- */

enum { RECSYS_MOST_NUMBER = (1 << 28) - 1 }; /* larger ids are texts */

struct recsys_census;
struct recsys_census *recsys_census_new(bool texts, int threads);
void recsys_census_free(struct recsys_census *census); /* accepts NULL */
/* Numbers, at most RECSYS_MOST_NUMBER: any thread. */
void recsys_census_number(struct recsys_census *census, uint32_t number);
/* Texts: what this thread calls it. */
uint32_t recsys_census_text(struct recsys_census *census, int thread, struct recsys_field id);
/* Numbers all that was seen by the order of ids; afterwards what was staged has its rank. */
void recsys_census_close(struct recsys_census *census);
uint32_t recsys_census_rank(const struct recsys_census *census, int thread, uint32_t staged);
/* The ids, valid as long as the census. */
struct recsys_ids recsys_census_ids(const struct recsys_census *census);

/* ---- ratings as they stand in the text ---- */

enum recsys_fault {
    RECSYS_GOOD,
    RECSYS_BAD_FIELDS,
    RECSYS_BAD_QUOTE,
    RECSYS_BAD_USER,
    RECSYS_BAD_ITEM,
    RECSYS_BAD_RATING,
    RECSYS_BAD_TIME,
    RECSYS_BAD_LENGTH,
    RECSYS_BAD_HEADING, /* a rating before the first "ITEM:" */
};

enum { RECSYS_EXAMPLES = 10, RECSYS_EXCERPT = 48, RECSYS_MAX_LINE = 65536 };

struct recsys_bad {
    uint64_t line; /* from 0, in its block */
    enum recsys_fault fault;
    int found; /* fields */
    char excerpt[RECSYS_EXCERPT];
};

/* A part of a file's bytes, and the ratings on the lines that begin there. */
struct recsys_block {
    uint32_t file;
    uint64_t begin, end;
    uint64_t lines; /* that begin in it */
    uint32_t count;
    uint32_t *user, *item, *time; /* (count); ids as staged, later their ranks; time may be NULL */
    void *rating;                 /* (count) codes of the thread's levels, or floats */
    int thread;                   /* the one whose names these are */
    uint32_t first_user, last_user; /* ranks */
    uint32_t headless; /* of its ratings, the first so many are of the item in force before it */
    bool orphaned;     /* there is no such item: an attempt to read has shown it */
    bool has_heading;
    uint32_t last_heading; /* staged item */
    uint64_t bad_lines;
    struct recsys_bad *bad; /* the first of them, at most RECSYS_EXAMPLES */
};

struct recsys_levels {
    uint32_t count;
    float level[RECSYS_MAX_LEVELS];
    int16_t slot[1024];    /* by hash: index of a level, or -1 */
    int16_t tenths[100];   /* of 0.0 … 9.9: index of the level, or -1 */
    uint8_t decimals;      /* most that a value was written with */
    float lowest, highest; /* of floats */
};

struct recsys_text {
    const struct recsys_source *source;
    int threads;
    struct recsys_block *blocks;
    size_t block_count;
    struct recsys_census *users, *items;
    bool user_texts, item_texts; /* ids are no numbers */
    bool floats;                 /* more than RECSYS_MAX_LEVELS values */
    bool timed;
    struct recsys_levels *levels; /* (threads) */
    uint64_t count, bad_lines;
};

base_status recsys_text_read(const struct recsys_source *source, int threads,
                             struct base_team *team, struct recsys_text *text_p);
void recsys_text_close(struct recsys_text *text); /* accepts zeros */
uint32_t recsys_count_levels(const struct recsys_text *text);
void recsys_levels_init(struct recsys_levels *levels);
/* The code of a value; -1: there are too many. */
int recsys_level(struct recsys_levels *levels, float value);
/* The scale of all threads' levels, and what each thread's codes are in it (threads, 256). */
void recsys_scale_of(const struct recsys_text *text, struct recsys_scale *scale_p, uint8_t *codes);
/* What is wrong with a line, for a person. */
void recsys_fault_text(const struct recsys_layout *layout, const struct recsys_bad *bad,
                       struct base_str *text);
/* The line, from 1, that rating `index` of a block stands on. */
base_status recsys_line_of(struct recsys_text *text, size_t block, uint32_t index,
                           uint64_t *line_p);
uint64_t recsys_first_line_of(const struct recsys_text *text, size_t block);

enum { RECSYS_SLACK = 16 }; /* zeros that follow a text which is parsed */

/* ---- the cache ---- */

/* What the file holds, in this order. */
enum recsys_section {
    RECSYS_USER_START,
    RECSYS_COLUMN,
    RECSYS_RATED,
    RECSYS_TIMES,
    RECSYS_USER_IDS,
    RECSYS_USER_TEXT,
    RECSYS_ITEM_IDS,
    RECSYS_ITEM_TEXT,
    RECSYS_EXAMPLE,
    RECSYS_SECTIONS,
};

struct recsys_header {
    char magic[8];
    uint32_t order; /* of bytes: 0x01020304 */
    uint32_t users, items;
    uint32_t first_time, last_time;
    uint32_t user_texts, item_texts, timed;
    uint64_t count, bad_lines, duplicates;
    uint64_t at[RECSYS_SECTIONS], bytes[RECSYS_SECTIONS];
    uint64_t sums_at; /* where the checksums of the file's slabs begin, and the slabs end */
    struct recsys_scale scale;
    char identity[BASE_SHA256_HEX], digest[BASE_SHA256_HEX], format[16];
    uint32_t sums_crc;
    uint32_t crc; /* of all above */
};

/* Numbers and groups what was read, once, and writes it to `fd`, an empty file. Fills in what the
 * header says of it. */
base_status recsys_group(struct recsys_text *text, struct base_team *team, int fd, const char *path,
                         struct recsys_header *header);
base_status recsys_write_at(int fd, const char *path, uint64_t at, const void *bytes, size_t count);
/* The sections are in the file: writes the checksums after them and the header before them. */
base_status recsys_cache_seal(int fd, const char *path, struct base_team *team,
                              struct recsys_header *header);
/* Maps a cache and checks every byte of it. `source`: it must be of that, and no user may be able
 * to change it who could not change the text; BASE_ERR_IO otherwise. NULL: it is our own. */
base_status recsys_cache_open(const char *path, const struct recsys_source *source,
                              struct base_team *team, struct recsys_ratings *ratings);

/* 0: one a core, and no more than make sense for so many ratings. */
int recsys_threads(int wanted, uint64_t ratings);

#endif
