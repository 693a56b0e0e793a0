/* covers: src/recsys/fields.c src/recsys/lines.c src/recsys/source.c src/recsys/text.c
 * src/recsys/group.c src/recsys/census.c src/recsys/scale.c src/recsys/formats/csv.c
 * src/recsys/formats/dat.c src/recsys/formats/tab.c src/recsys/formats/netflix.c
 * src/recsys/formats/columns.c */
/* SPDX-License-Identifier: MIT
 *
 * Texts of ratings, from recognising the format to the mapped result. Whatever is accepted has
 * items in order, every rating on its scale, and ids that are found again. The first byte chooses
 * how the text is read: by content, or with --columns.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "recsys/ratings.h"

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
    struct recsys_options options = {.threads = 1, .no_cache = true};
    struct recsys_ratings *ratings = NULL;
    int fd;
    char *path;

    if (count == 0)
        return 0;
    base_log_level(BASE_QUIET);
    options.columns = columns[bytes[0] & 7];
    options.separator = options.columns != NULL ? separators[(bytes[0] >> 3) & 3] : NULL;
    options.strict = (bytes[0] & 32) != 0;
    fd = memfd_create("text", 0);
    path = base_format("/proc/self/fd/%d", fd);
    if (fd >= 0 && write(fd, bytes + 1, count - 1) == (ssize_t)count - 1 &&
        recsys_ratings_open(path, &options, &ratings) == BASE_OK)
        check_ratings(ratings);
    recsys_ratings_close(ratings);
    base_free(path);
    close(fd);
    return 0;
}
