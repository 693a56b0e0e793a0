/* SPDX-License-Identifier: MIT
 *
 * The cache file: a header, sections, and a CRC32C of every slab of each section. It is in this
 * machine's order of bytes and is mapped as it is. Opening it reads all of it once, on all threads:
 * the checksums find damage, and the bounds of every index are checked besides, so that no file,
 * however it came about, leads outside of the map.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/map.h"
#include "base/mem.h"
#include "recsys/recsys_private.h"

static const char MAGIC[8] = "PLrating";
enum { ORDER = 0x01020304, SLAB = 4 << 20 };

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { COMPARE_CRC = 0 }; /* a fuzzer would never find one */
#else
enum { COMPARE_CRC = 1 };
#endif

/* ---- checksums ---- */

struct summing {
    const uint8_t *bytes; /* of the file */
    const struct recsys_header *header;
    uint32_t *sums; /* (slabs) */
};

static uint64_t slabs_of(const struct recsys_header *h, enum recsys_section section)
{
    return (h->bytes[section] + SLAB - 1) / SLAB;
}

static uint64_t count_slabs(const struct recsys_header *h)
{
    uint64_t count = 0;

    for (int s = 0; s < RECSYS_SECTIONS; s++)
        count += slabs_of(h, (enum recsys_section)s);
    return count;
}

static void sum_slab(const void *context, int unit, int thread)
{
    const struct summing *s = context;
    uint64_t slab = (uint64_t)unit, left;
    int section = 0;

    (void)thread;
    while (slab >= slabs_of(s->header, (enum recsys_section)section))
        slab -= slabs_of(s->header, (enum recsys_section)section++);
    left = s->header->bytes[section] - slab * SLAB;
    s->sums[unit] = base_crc32c(0, s->bytes + s->header->at[section] + slab * SLAB,
                                left < SLAB ? (size_t)left : SLAB);
}

static uint32_t header_crc(const struct recsys_header *h)
{
    return base_crc32c(0, h, offsetof(struct recsys_header, crc));
}

/* Of what was read, not of how it was written: no times of files, no bad lines. */
static void digest_of(struct recsys_header *h, const uint32_t *sums, uint64_t examples)
{
    struct base_str text = {0};
    uint64_t slabs = count_slabs(h) - examples;

    base_str_append(&text, (const char *)&h->users, sizeof h->users);
    base_str_append(&text, (const char *)&h->items, sizeof h->items);
    base_str_append(&text, (const char *)&h->count, sizeof h->count);
    base_str_append(&text, (const char *)&h->scale, sizeof h->scale);
    base_str_append(&text, (const char *)sums, slabs * sizeof *sums);
    base_sha256(text.text, text.length, h->digest);
    base_str_fini(&text);
}

base_status recsys_cache_seal(int fd, const char *path, struct base_team *team,
                              struct recsys_header *h)
{
    base_status st = BASE_OK;
    uint64_t slabs = count_slabs(h), last = 0;
    struct base_map map = {0};
    struct summing s = {.header = h};
    static const uint8_t end = 0;

    memcpy(h->magic, MAGIC, sizeof h->magic);
    h->order = ORDER;
    for (int i = 0; i < RECSYS_SECTIONS; i++)
        last = h->at[i] + h->bytes[i] > last ? h->at[i] + h->bytes[i] : last;
    h->sums_at = (last + 63) / 64 * 64;
    TRY(base_tensor(slabs, sizeof *s.sums, "checksums", &s.sums));
    /* The file must be as long as its sections before they are mapped. */
    TRY(recsys_write_at(fd, path, h->sums_at + slabs * sizeof *s.sums, &end, 1));
    TRY(base_map_open(path, &map));
    s.bytes = map.bytes;
    base_team_run(team, (int)slabs, sum_slab, &s);
    digest_of(h, s.sums, slabs_of(h, RECSYS_EXAMPLE));
    h->sums_crc = base_crc32c(0, s.sums, slabs * sizeof *s.sums);
    h->crc = header_crc(h);
    TRY(recsys_write_at(fd, path, h->sums_at, s.sums, slabs * sizeof *s.sums));
    TRY(recsys_write_at(fd, path, 0, h, sizeof *h));
out:
    base_map_close(&map);
    base_free(s.sums);
    return st;
}

/* ---- checks ---- */

static base_status damaged(const char *what)
{
    return base_fail(BASE_ERR_DATA, "the cache is damaged: %s", what);
}

static bool is_ended(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static uint64_t expected_bytes(const struct recsys_header *h, enum recsys_section section)
{
    switch (section) {
    case RECSYS_USER_START:
        return ((uint64_t)h->users + 1) * sizeof(uint64_t);
    case RECSYS_COLUMN:
        return h->count * sizeof(uint32_t);
    case RECSYS_RATED:
        return h->count * (h->scale.levels > 0 ? 1 : sizeof(float));
    case RECSYS_TIMES:
        return h->timed ? h->count * sizeof(uint32_t) : 0;
    case RECSYS_USER_IDS:
        return h->user_texts ? ((uint64_t)h->users + 1) * 8 : (uint64_t)h->users * 4;
    case RECSYS_ITEM_IDS:
        return h->item_texts ? ((uint64_t)h->items + 1) * 8 : (uint64_t)h->items * 4;
    default:
        return h->bytes[section];
    }
}

static bool scale_is_good(const struct recsys_scale *s)
{
    bool good = s->levels <= RECSYS_MAX_LEVELS && isfinite(s->lowest) && isfinite(s->highest) &&
                s->lowest <= s->highest && s->step >= 0 && isfinite(s->step);

    for (uint32_t i = 0; good && i < s->levels; i++)
        good = s->level[i] >= s->lowest && s->level[i] <= s->highest &&
               (i == 0 || s->level[i - 1] < s->level[i]);
    return good;
}

static base_status check_header(const struct base_map *map, const char *identity,
                                struct recsys_header *h)
{
    base_status st = BASE_OK;

    if (map->count < sizeof *h)
        TRY(damaged("it is too short"));
    TRY(base_map_copy(map, 0, sizeof *h, h));
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0 || h->order != ORDER)
        TRY(base_fail(BASE_ERR_DATA, "this is no cache of ratings of this version and machine"));
    if (COMPARE_CRC && h->crc != header_crc(h))
        TRY(damaged("its header has another checksum"));
    if (!is_ended(h->identity, sizeof h->identity) || !is_ended(h->digest, sizeof h->digest) ||
        !is_ended(h->format, sizeof h->format))
        TRY(damaged("a text does not end"));
    if (identity != NULL && strcmp(identity, h->identity) != 0)
        TRY(base_fail(BASE_ERR_DATA, "the cache is of another version of the text"));
    if (h->count == 0 || h->count > UINT64_MAX / 64 || h->users == 0 || h->items == 0 ||
        h->users == UINT32_MAX || h->items == UINT32_MAX || !scale_is_good(&h->scale))
        TRY(damaged("its counts are impossible"));
    for (int i = 0; i < RECSYS_SECTIONS; i++)
        if (h->at[i] % 64 != 0 || h->at[i] > map->count || h->bytes[i] > map->count - h->at[i] ||
            h->bytes[i] != expected_bytes(h, (enum recsys_section)i))
            TRY(damaged("a section is not where it should be"));
    if (h->sums_at % 64 != 0 || h->sums_at > map->count ||
        count_slabs(h) > (map->count - h->sums_at) / sizeof(uint32_t))
        TRY(damaged("it is too short"));
out:
    return st;
}

static base_status check_sums(const struct base_map *map, struct base_team *team,
                              const struct recsys_header *h)
{
    base_status st = BASE_OK;
    size_t slabs = (size_t)count_slabs(h);
    const uint8_t *there = map->bytes + h->sums_at;
    struct summing s = {.bytes = map->bytes, .header = h};

    if (!COMPARE_CRC)
        return BASE_OK;
    if (base_crc32c(0, there, slabs * sizeof *s.sums) != h->sums_crc)
        TRY(damaged("its checksums have another checksum"));
    TRY(base_tensor(slabs, sizeof *s.sums, "checksums", &s.sums));
    base_team_run(team, (int)slabs, sum_slab, &s);
    if (memcmp(s.sums, there, slabs * sizeof *s.sums) != 0)
        TRY(damaged("a part of it has another checksum"));
out:
    base_free(s.sums);
    return st;
}

struct checking {
    const struct recsys_ratings *ratings;
    int units;
    _Atomic bool wrong;
};

/* Rows of one of `units` equal parts: items are known ones and rise, codes are of levels. */
static void check_rows(const void *context, int unit, int thread)
{
    struct checking *c = (struct checking *)(uintptr_t)context;
    const struct recsys_rows *rows = &c->ratings->by_user;
    uint64_t share = rows->rows / (uint32_t)c->units + 1, first = share * (uint64_t)unit;
    uint64_t end = first + share < rows->rows ? first + share : rows->rows;
    uint32_t most_item = 0;
    uint8_t most_code = 0;
    const struct recsys_scale *scale = &c->ratings->scale;
    bool rising = true, within = true;

    (void)thread;
    for (uint64_t r = first; r < end; r++)
        for (uint64_t k = rows->start[r]; k < rows->start[r + 1]; k++) {
            uint32_t item = rows->column[k];

            most_item = item > most_item ? item : most_item;
            rising = rising && (k == rows->start[r] || rows->column[k - 1] < item);
        }
    for (uint64_t k = first < end ? rows->start[first] : 0;
         rows->code != NULL && first < end && k < rows->start[end]; k++)
        most_code = rows->code[k] > most_code ? rows->code[k] : most_code;
    for (uint64_t k = first < end ? rows->start[first] : 0;
         rows->value != NULL && first < end && k < rows->start[end]; k++)
        within = within && rows->value[k] >= scale->lowest && rows->value[k] <= scale->highest;
    if (!rising || !within || most_item >= rows->columns ||
        (rows->code != NULL && most_code >= scale->levels))
        atomic_store(&c->wrong, true);
}

static bool starts_rise(const uint64_t *start, uint64_t count, uint64_t last, uint64_t least)
{
    bool rise = start[0] == 0 && start[count] == last;

    for (uint64_t i = 0; i < count && rise; i++)
        rise = start[i] + least <= start[i + 1] && start[i] <= last;
    return rise;
}

static bool ids_are_good(const struct recsys_ids *ids, uint64_t text_bytes)
{
    if (ids->number != NULL) {
        for (uint32_t i = 1; i < ids->count; i++)
            if (ids->number[i - 1] >= ids->number[i])
                return false;
        return true;
    }
    if (ids->text_start == NULL || !starts_rise(ids->text_start, ids->count, text_bytes, 2))
        return false;
    for (uint32_t i = 0; i < ids->count; i++)
        if (ids->text[ids->text_start[i + 1] - 1] != '\0')
            return false;
    for (uint32_t i = 1; i < ids->count; i++)
        if (strcmp(ids->text + ids->text_start[i - 1], ids->text + ids->text_start[i]) >= 0)
            return false;
    return true;
}

static base_status check_contents(const struct recsys_ratings *r, const struct recsys_header *h,
                                  struct base_team *team)
{
    base_status st = BASE_OK;
    struct checking c = {.ratings = r, .units = 64};

    if (!starts_rise(r->by_user.start, r->users, r->count, 0))
        TRY(damaged("users' ratings do not follow each other"));
    if (!ids_are_good(&r->user_ids, h->bytes[RECSYS_USER_TEXT]) ||
        !ids_are_good(&r->item_ids, h->bytes[RECSYS_ITEM_TEXT]))
        TRY(damaged("ids do not rise"));
    if (r->faults.examples != NULL && r->faults.examples[h->bytes[RECSYS_EXAMPLE] - 1] != '\0')
        TRY(damaged("a text does not end"));
    base_team_run(team, c.units, check_rows, &c);
    if (c.wrong)
        TRY(damaged("a rating is of no known item or level"));
out:
    return st;
}

/* ---- opening ---- */

static struct recsys_ids ids_at(const uint8_t *bytes, const struct recsys_header *h, bool texts,
                                uint32_t count, enum recsys_section section)
{
    const void *first = bytes + h->at[section];

    return (struct recsys_ids){.count = count,
                               .number = texts ? NULL : first,
                               .text_start = texts ? first : NULL,
                               .text = texts ? (const char *)bytes + h->at[section + 1] : NULL};
}

static void point_into(const uint8_t *bytes, const struct recsys_header *h,
                       struct recsys_ratings *r)
{
    const void *rated = bytes + h->at[RECSYS_RATED];

    r->users = h->users;
    r->items = h->items;
    r->count = h->count;
    r->scale = h->scale;
    r->first_time = h->first_time;
    r->last_time = h->last_time;
    r->by_user = (struct recsys_rows){
        .rows = h->users,
        .columns = h->items,
        .count = h->count,
        .start = (const void *)(bytes + h->at[RECSYS_USER_START]),
        .column = (const void *)(bytes + h->at[RECSYS_COLUMN]),
        .code = h->scale.levels > 0 ? rated : NULL,
        .value = h->scale.levels > 0 ? NULL : rated,
        .time = h->timed ? (const void *)(bytes + h->at[RECSYS_TIMES]) : NULL,
    };
    r->user_ids = ids_at(bytes, h, h->user_texts, h->users, RECSYS_USER_IDS);
    r->item_ids = ids_at(bytes, h, h->item_texts, h->items, RECSYS_ITEM_IDS);
    r->faults = (struct recsys_faults){
        h->bad_lines, h->duplicates,
        h->bytes[RECSYS_EXAMPLE] > 0 ? (const char *)bytes + h->at[RECSYS_EXAMPLE] : NULL};
    memcpy(r->digest, h->digest, sizeof r->digest);
}

/* Checks are worth nothing where another user writes after them. */
static base_status check_writers(const struct base_map *map, const struct recsys_source *source)
{
    if (map->owner != geteuid() && map->owner != 0 && map->owner != source->owner)
        return base_fail(BASE_ERR_IO, "it belongs to another user");
    if ((map->mode & (S_IWGRP | S_IWOTH)) != 0)
        return base_fail(BASE_ERR_IO, "other users may write to it");
    return BASE_OK;
}

base_status recsys_cache_open(const char *path, const struct recsys_source *source,
                              struct base_team *team, struct recsys_ratings *r)
{
    base_status st = BASE_OK;
    struct recsys_header *h = base_calloc(1, sizeof *h);
    struct base_map *map = base_calloc(1, sizeof *map);

    TRY(base_map_open(path, map));
    if (source != NULL)
        TRY(check_writers(map, source));
    TRY(check_header(map, source != NULL ? source->identity : NULL, h));
    TRY(check_sums(map, team, h));
    point_into(map->bytes, h, r);
    TRY(check_contents(r, h, team));
    memcpy(r->format, h->format, sizeof r->format);
    r->map = map;
    map = NULL;
out:
    if (map != NULL)
        base_map_close(map);
    base_free(map);
    base_free(h);
    return base_prefix(st, "%s", path);
}
