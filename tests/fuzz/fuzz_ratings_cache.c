/* covers: src/recsys/cache.c */
/* SPDX-License-Identifier: MIT
 *
 * Cache files of ratings, with checksums that fit: whatever is accepted leads nowhere outside of
 * the file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "recsys/recsys_private.h"

static void use(const struct recsys_ratings *r)
{
    struct recsys_rows by_item;
    double sum = 0;

    for (uint64_t k = 0; k < r->count; k++)
        sum += (double)recsys_value(&r->scale, &r->by_user, k);
    for (uint32_t i = 0; i < r->items; i++) {
        struct recsys_id text;
        uint32_t number;

        if (!recsys_id_find(&r->item_ids, recsys_id_text(&r->item_ids, i, &text), &number) &&
            r->item_ids.number == NULL)
            abort();
    }
    if (recsys_transpose(&r->by_user, true, 1, &by_item) == BASE_OK &&
        by_item.start[by_item.rows] != r->count)
        abort();
    recsys_rows_fini(&by_item);
    if (sum != sum)
        abort();
    recsys_warn(r);
}

/* Sections of a file begin at multiples of 64; an input has them one after the other, after the
 * header. False: it is none. */
static bool unfold(const uint8_t *bytes, size_t count, uint8_t *file, size_t room)
{
    struct recsys_header h;
    size_t from = sizeof h;

    memset(file, 0, room);
    if (count < sizeof h)
        return false;
    memcpy(&h, bytes, sizeof h);
    memcpy(file, bytes, sizeof h);
    for (int s = 0; s < RECSYS_SECTIONS; s++) {
        if (h.bytes[s] > count - from || h.at[s] > room || h.bytes[s] > room - h.at[s])
            break; /* to be found by the parser */
        memcpy(file + h.at[s], bytes + from, (size_t)h.bytes[s]);
        from += (size_t)h.bytes[s];
    }
    return true;
}

static void open_cache(const char *path)
{
    struct recsys_ratings *r = base_calloc(1, sizeof *r);
    struct base_team *team = NULL;

    r->path = base_strdup("x");
    if (base_team_new(1, &team) == BASE_OK && recsys_cache_open(path, NULL, team, r) == BASE_OK)
        use(r);
    base_team_free(team);
    recsys_ratings_close(r);
}

static void open_text(const char *path)
{
    struct recsys_ratings *r;

    if (recsys_ratings_open(path, &(struct recsys_options){.threads = 1, .no_cache = true}, &r) ==
        BASE_OK)
        use(r);
    recsys_ratings_close(r);
}

/* Text after a zero byte is made into a cache and opened; all else is a cache. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    enum { ROOM = 1 << 15 };
    static uint8_t file[ROOM];
    int fd = memfd_create("cache", 0);
    char *path = base_format("/proc/self/fd/%d", fd);

    base_log_level(BASE_QUIET);
    if (count > 1 && bytes[0] == 0 && write(fd, bytes + 1, count - 1) == (ssize_t)count - 1)
        open_text(path);
    else if (unfold(bytes, count, file, ROOM) && write(fd, file, ROOM) == ROOM)
        open_cache(path);
    base_free(path);
    close(fd);
    return 0;
}
