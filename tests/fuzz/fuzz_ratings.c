/* covers: src/recsys/fields.c src/recsys/lines.c src/recsys/source.c src/recsys/text.c
 * src/recsys/group.c src/recsys/census.c src/recsys/scale.c src/recsys/formats/csv.c
 * src/recsys/formats/dat.c src/recsys/formats/tab.c src/recsys/formats/netflix.c
 * src/recsys/formats/columns.c */
/* SPDX-License-Identifier: MIT
 *
 * Texts of ratings, from recognising the format to the mapped result. Whatever is accepted has
 * items in order, every rating on its scale, and ids that are found again.
 *
 * The first byte chooses how the text is read. Bits 0 to 2: by content, or with --columns. Bits 3
 * and 4: the separator. Bit 5: --strict. Bits 6 and 7: as one file; in small blocks, which
 * must make no difference; with the text after a byte 0x1e as the file of --add; in a folder, where
 * bits 0 to 2 choose its name, and with a cache, which must say the same.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "recsys/ratings.h"

enum { WHOLE, BLOCKS, ADDED, FOLDER };

/* ---- files, in memory ---- */

static char folder[] = "/dev/shm/fuzz_ratings_XXXXXX";
static char text_path[sizeof folder + 8], added_path[sizeof folder + 8],
    set_path[sizeof folder + 8];

static void remove_folder(void)
{
    base_ignore(base_remove_tree(folder));
}

static void make_folder(void)
{
    char inner[sizeof set_path + 16];

    if (mkdtemp(folder) == NULL || atexit(remove_folder) != 0)
        abort();
    snprintf(text_path, sizeof text_path, "%s/text", folder);
    snprintf(added_path, sizeof added_path, "%s/added", folder);
    snprintf(set_path, sizeof set_path, "%s/set", folder);
    snprintf(inner, sizeof inner, "%s/training_set", set_path);
    if (mkdir(set_path, 0700) != 0 || mkdir(inner, 0700) != 0)
        abort();
}

static void write_file(const char *path, const uint8_t *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");

    if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0)
        abort();
}

/* ---- what was accepted ---- */

static void check_ids(const struct recsys_ids *ids)
{
    for (uint32_t i = 0; i < ids->count; i++) {
        struct recsys_id text;
        uint32_t number;

        if (!recsys_id_find(ids, recsys_id_text(ids, i, &text), &number) || number != i)
            abort();
    }
}

static void check_ratings(const struct recsys_ratings *r)
{
    const struct recsys_rows *rows = &r->by_user;

    check_ids(&r->user_ids);
    check_ids(&r->item_ids);
    for (uint32_t u = 0; u < r->users; u++)
        for (uint64_t k = rows->start[u]; k < rows->start[u + 1]; k++) {
            float value = recsys_value(&r->scale, rows, k);

            if (!(value >= r->scale.lowest && value <= r->scale.highest) ||
                rows->column[k] >= r->items ||
                (k > rows->start[u] && rows->column[k - 1] >= rows->column[k]))
                abort();
        }
    if (rows->start[r->users] != r->count)
        abort();
    if ((r->faults.bad_lines + r->faults.duplicates > 0) != (r->faults.examples != NULL))
        abort();
    recsys_warn(r);
}

/* Opened in another way it is the same. */
static void check_again(const struct recsys_ratings *r, const char *path,
                        const struct recsys_options *options, bool cached)
{
    struct recsys_ratings *again;

    if (recsys_ratings_open(path, options, &again) != BASE_OK ||
        strcmp(again->digest, r->digest) != 0 || again->cached != cached ||
        again->faults.bad_lines != r->faults.bad_lines ||
        again->faults.duplicates != r->faults.duplicates)
        abort();
    recsys_ratings_close(again);
}

/* ---- an input ---- */

static void try_file(const struct recsys_options *options, bool in_blocks)
{
    struct recsys_options blocks = *options;
    struct recsys_ratings *ratings, *refused;

    blocks.block = 61;
    if (recsys_ratings_open(text_path, options, &ratings) == BASE_OK) {
        check_ratings(ratings);
        if (in_blocks)
            check_again(ratings, text_path, &blocks, false);
    } else if (in_blocks && recsys_ratings_open(text_path, &blocks, &refused) == BASE_OK) {
        abort();
    }
    recsys_ratings_close(ratings);
}

static void try_added(struct recsys_options options, const uint8_t *text, size_t count)
{
    const uint8_t *stop = count > 0 ? memchr(text, 0x1e, count) : NULL;
    const size_t first = stop != NULL ? (size_t)(stop - text) : count;
    const size_t rest = stop != NULL ? count - first - 1 : 0;

    write_file(text_path, text, first);
    write_file(added_path, text + count - rest, rest);
    options.added = (const char *const[]){added_path};
    options.added_count = 1;
    try_file(&options, false);
}

static void try_folder(const char *name, bool strict, const uint8_t *text, size_t count)
{
    struct recsys_options options = {.threads = 1, .strict = strict};
    struct recsys_ratings *ratings;
    char path[sizeof set_path + 32], *cache = NULL;

    snprintf(path, sizeof path, "%s/%s", set_path, name);
    write_file(path, text, count);
    if (recsys_ratings_open(set_path, &options, &ratings) == BASE_OK) {
        check_ratings(ratings);
        cache = base_strdup(ratings->cache);
        check_again(ratings, set_path, &options, true);
        if (!recsys_is_ratings(set_path))
            abort();
    }
    recsys_ratings_close(ratings);
    unlink(path);
    if (cache != NULL)
        unlink(cache);
    base_free(cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const char *const columns[] = {NULL,
                                          NULL,
                                          "user,item,rating,time",
                                          "item,user",
                                          "x,user,item,time,rating",
                                          "user,item,user",
                                          "rating",
                                          "user,item,rating"};
    static const char *const separators[] = {NULL, "=>", " ", ""};
    static const char *const names[] = {"ratings.csv",
                                        "ratings.dat",
                                        "u.data",
                                        "combined_data_1.txt",
                                        "mv_0000001.txt",
                                        "training_set/mv_0000001.txt",
                                        "training_set/ratings.csv",
                                        "notes.txt"};
    struct recsys_options options = {.threads = 1, .no_cache = true};

    if (count == 0)
        return 0;
    base_log_level(BASE_QUIET);
    if (text_path[0] == '\0')
        make_folder();
    options.columns = columns[bytes[0] & 7];
    options.separator = options.columns != NULL ? separators[(bytes[0] >> 3) & 3] : NULL;
    options.strict = (bytes[0] & 32) != 0;
    if (bytes[0] >> 6 == FOLDER) {
        try_folder(names[bytes[0] & 7], options.strict, bytes + 1, count - 1);
    } else if (bytes[0] >> 6 == ADDED) {
        try_added(options, bytes + 1, count - 1);
    } else {
        write_file(text_path, bytes + 1, count - 1);
        try_file(&options, bytes[0] >> 6 == BLOCKS);
    }
    return 0;
}
