/* SPDX-License-Identifier: MIT
 *
 * From ratings as they stand in the text to ratings by user. Users are cut into spans of about
 * equally many ratings. A thread collects those of one span from all blocks, in the order of the
 * text, sorts each user's by item and leaves out pairs that come again. As many spans as there are
 * threads are in memory at a time; they are written to the file before the next ones begin. Which
 * thread has which span changes nothing.
 *
 * What was read (13 bytes a rating) and the spans in hand are all that is in memory, not the whole
 * result beside it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "recsys/recsys_private.h"

enum { SPANS_PER_THREAD = 4, FEW = 32, ALIGN = 4096 };

struct pair {
    uint32_t user, item;
};

/* Memory for the ratings of one span, used for one after the other. */
struct desk {
    uint32_t *column, *time;
    uint8_t *rating;
    uint64_t *next;         /* (users) where the next rating goes */
    uint64_t *keys, *other; /* (most of a user) for sorting */
};

/* Some users and their ratings. */
struct span {
    uint32_t user, end;      /* the first, and the one after the last */
    uint64_t room;           /* ratings, with those that come again */
    uint64_t count;          /* without */
    uint32_t *column, *time; /* as in its desk, while it is in hand */
    uint8_t *rating;
    uint64_t *next, *keys, *other;
    uint32_t first_time, last_time;
    uint64_t at;                        /* of its first rating in the file's sections */
    struct pair again[RECSYS_EXAMPLES]; /* pairs that come again */
    uint64_t duplicates;
    base_status st; /* of writing */
    char *message;
};

struct grouping {
    struct recsys_text *text;
    size_t size;              /* bytes of a rating's code or value */
    uint8_t *codes;           /* (threads, 256) */
    _Atomic uint32_t *degree; /* (users), without duplicates in the end */
    struct desk *desks;       /* (threads) */
    struct span *spans;
    int count;
    int begin; /* the first span in hand */
    int fd;
    const char *path;
    struct recsys_header *header;
};

/* ---- final numbers ---- */

static void number_ids(const struct recsys_census *census, int thread, uint32_t *id, uint32_t count)
{
    uint32_t last = id[0], rank = recsys_census_rank(census, thread, last);

    for (uint32_t k = 0; k < count; k++) {
        if (id[k] != last) {
            last = id[k];
            rank = recsys_census_rank(census, thread, last);
        }
        id[k] = rank;
    }
}

static void number_block(const void *context, int unit, int thread)
{
    const struct grouping *g = context;
    struct recsys_block *b = &g->text->blocks[unit];
    uint8_t *code = b->rating;

    (void)thread;
    if (b->count == 0)
        return;
    number_ids(g->text->users, b->thread, b->user, b->count);
    number_ids(g->text->items, b->thread, b->item, b->count);
    for (uint32_t k = 0; k < b->count && !g->text->floats; k++)
        code[k] = g->codes[b->thread * RECSYS_MAX_LEVELS + code[k]];
    b->first_user = b->last_user = b->user[0];
    for (uint32_t k = 0, run; k < b->count; k += run) {
        uint32_t user = b->user[k];

        for (run = 1; k + run < b->count && b->user[k + run] == user;)
            run++;
        atomic_fetch_add_explicit(&g->degree[user], run, memory_order_relaxed);
        b->first_user = user < b->first_user ? user : b->first_user;
        b->last_user = user > b->last_user ? user : b->last_user;
    }
}

/* ---- one span ---- */

/* Ratings of a span's users, in the order of the text. `size` is known where it is called, so that
 * the copy is one instruction. */
static inline void collect(const struct grouping *g, struct span *s, size_t size)
{
    uint32_t users = s->end - s->user;

    for (size_t i = 0; i < g->text->block_count; i++) {
        const struct recsys_block *b = &g->text->blocks[i];

        if (b->count == 0 || b->last_user < s->user || b->first_user >= s->end)
            continue;
        for (uint32_t k = 0; k < b->count; k++) {
            uint32_t user = b->user[k] - s->user;
            uint64_t to;

            if (user >= users)
                continue;
            to = s->next[user]++;
            s->column[to] = b->item[k];
            memcpy(s->rating + to * size, (const uint8_t *)b->rating + k * size, size);
            if (b->time != NULL)
                s->time[to] = b->time[k];
        }
    }
}

/* Keys of (item, position) by item; those of one item stay in their order. */
static uint64_t *sort_keys(uint64_t *keys, uint64_t *other, uint32_t count, uint32_t items)
{
    if (count <= FEW) {
        for (uint32_t i = 1; i < count; i++) {
            uint64_t key = keys[i];
            uint32_t at = i;

            for (; at > 0 && keys[at - 1] > key; at--)
                keys[at] = keys[at - 1];
            keys[at] = key;
        }
        return keys;
    }
    for (int shift = 32; shift < 64 && (items - 1) >> (shift - 32) != 0; shift += 8) {
        uint32_t place[257] = {0};
        uint64_t *swap = keys;

        for (uint32_t i = 0; i < count; i++)
            place[((keys[i] >> shift) & 255) + 1]++;
        for (int i = 0; i < 256; i++)
            place[i + 1] += place[i];
        for (uint32_t i = 0; i < count; i++)
            other[place[(keys[i] >> shift) & 255]++] = keys[i];
        keys = other;
        other = swap;
    }
    return keys;
}

static void permute(void *values, size_t size, const uint64_t *keys, uint32_t count, void *room)
{
    uint8_t *from = values, *to = room;

    for (uint32_t i = 0; i < count; i++)
        memcpy(to + i * size, from + (uint32_t)keys[i] * size, size);
    memcpy(from, to, count * size);
}

/* Puts the `count` ratings from `at` in order of their items. */
static void sort_user(const struct grouping *g, struct span *s, uint64_t at, uint32_t count)
{
    uint64_t *sorted, *room;

    for (uint32_t i = 0; i < count; i++)
        s->keys[i] = (uint64_t)s->column[at + i] << 32 | i;
    sorted = sort_keys(s->keys, s->other, count, g->header->items);
    room = sorted == s->keys ? s->other : s->keys;
    permute(s->rating + at * g->size, g->size, sorted, count, room);
    if (s->time != NULL)
        permute(s->time + at, sizeof *s->time, sorted, count, room);
    for (uint32_t i = 0; i < count; i++)
        s->column[at + i] = (uint32_t)(sorted[i] >> 32);
}

static bool is_rising(const uint32_t *x, uint32_t count)
{
    bool rising = true;

    for (uint32_t i = 1; i < count; i++)
        rising = rising && x[i - 1] < x[i];
    return rising;
}

static void move_rating(const struct grouping *g, struct span *s, uint64_t from, uint64_t to)
{
    s->column[to] = s->column[from];
    memcpy(s->rating + to * g->size, s->rating + from * g->size, g->size);
    if (s->time != NULL)
        s->time[to] = s->time[from];
}

/* Of a user's sorted ratings, the last of each item; how many are left. */
static uint32_t keep_last(const struct grouping *g, struct span *s, uint32_t user, uint64_t at,
                          uint32_t count)
{
    uint64_t to = s->count;

    for (uint64_t k = at; k < at + count; k++) {
        if (k + 1 < at + count && s->column[k] == s->column[k + 1]) {
            if (s->duplicates < RECSYS_EXAMPLES)
                s->again[s->duplicates] = (struct pair){user, s->column[k]};
            s->duplicates++;
            continue;
        }
        if (to != k)
            move_rating(g, s, k, to);
        to++;
    }
    return (uint32_t)(to - s->count);
}

static void find_times(struct span *s)
{
    s->first_time = UINT32_MAX;
    s->last_time = 0;
    for (uint64_t k = 0; k < s->count && s->time != NULL; k++) {
        s->first_time = s->time[k] < s->first_time ? s->time[k] : s->first_time;
        s->last_time = s->time[k] > s->last_time ? s->time[k] : s->last_time;
    }
}

static void group_span(const void *context, int unit, int thread)
{
    const struct grouping *g = context;
    struct span *s = &g->spans[g->begin + unit];
    uint64_t at = 0;

    for (uint32_t u = s->user; u < s->end; at += g->degree[u++])
        s->next[u - s->user] = at;
    if (g->size == 1)
        collect(g, s, 1);
    else
        collect(g, s, sizeof(float));
    at = 0;
    for (uint32_t u = s->user; u < s->end; u++) {
        uint32_t count = g->degree[u], kept = count;
        bool rising = is_rising(s->column + at, count);

        if (!rising)
            sort_user(g, s, at, count);
        if (!rising || s->count != at)
            kept = keep_last(g, s, u, at, count);
        atomic_store_explicit(&g->degree[u], kept, memory_order_relaxed);
        s->count += kept;
        at += count;
    }
    find_times(s);
    if (thread == 0)
        base_progress(false, "grouping %s by user: %d %%", g->text->source->place,
                      100 * g->begin / g->count);
}

/* ---- the file ---- */

base_status recsys_write_at(int fd, const char *path, uint64_t at, const void *bytes, size_t count)
{
    const char *from = bytes;

    while (count > 0) {
        ssize_t put = pwrite(fd, from, count, (off_t)at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return base_write_failed(path);
        from += put;
        at += (uint64_t)put;
        count -= (size_t)put;
    }
    return BASE_OK;
}

static void write_span(const void *context, int unit, int thread)
{
    const struct grouping *g = context;
    const struct recsys_header *h = g->header;
    struct span *s = &g->spans[g->begin + unit];
    base_status st = BASE_OK;

    (void)thread;
    TRY(recsys_write_at(g->fd, g->path, h->at[RECSYS_COLUMN] + s->at * sizeof *s->column, s->column,
                        s->count * sizeof *s->column));
    TRY(recsys_write_at(g->fd, g->path, h->at[RECSYS_RATED] + s->at * g->size, s->rating,
                        s->count * g->size));
    if (s->time != NULL)
        TRY(recsys_write_at(g->fd, g->path, h->at[RECSYS_TIMES] + s->at * sizeof *s->time, s->time,
                            s->count * sizeof *s->time));
out:
    s->st = st;
    s->message = st != BASE_OK ? base_strdup(base_message()) : NULL;
}

/* Large enough for any span. */
static base_status set_up_desks(struct grouping *g)
{
    base_status st = BASE_OK;
    uint64_t room = 0, users = 0;
    uint32_t most = 0;
    int desks = g->count < g->text->threads ? g->count : g->text->threads;

    for (int i = 0; i < g->count; i++) {
        room = g->spans[i].room > room ? g->spans[i].room : room;
        users =
            g->spans[i].end - g->spans[i].user > users ? g->spans[i].end - g->spans[i].user : users;
    }
    for (uint32_t u = 0; u < g->header->users; u++)
        most = g->degree[u] > most ? g->degree[u] : most;
    g->desks = base_calloc((size_t)g->text->threads, sizeof *g->desks);
    for (int i = 0; i < desks; i++) {
        struct desk *d = &g->desks[i];

        TRY(base_tensor_unset(room, sizeof *d->column, "ratings by user", &d->column));
        TRY(base_tensor_unset(room, g->size, "ratings by user", &d->rating));
        if (g->text->timed)
            TRY(base_tensor_unset(room, sizeof *d->time, "times of ratings", &d->time));
        TRY(base_tensor(users, sizeof *d->next, "users", &d->next));
        TRY(base_tensor_unset(most, sizeof *d->keys, "keys for sorting", &d->keys));
        TRY(base_tensor_unset(most, sizeof *d->other, "keys for sorting", &d->other));
    }
out:
    return st;
}

static void free_desks(struct grouping *g)
{
    for (int i = 0; g->desks != NULL && i < g->text->threads; i++) {
        base_free(g->desks[i].column);
        base_free(g->desks[i].rating);
        base_free(g->desks[i].time);
        base_free(g->desks[i].next);
        base_free(g->desks[i].keys);
        base_free(g->desks[i].other);
    }
    base_free(g->desks);
}

static void take_desk(struct span *s, const struct desk *d)
{
    s->column = d->column;
    s->rating = d->rating;
    s->time = d->time;
    s->next = d->next;
    s->keys = d->keys;
    s->other = d->other;
}

/* As many spans as there are threads: group, write, forget. */
static base_status run_wave(struct grouping *g, struct base_team *team, int count)
{
    base_status st = BASE_OK;
    struct recsys_header *h = g->header;
    struct span *s = g->spans + g->begin;

    for (int i = 0; i < count; i++)
        take_desk(&s[i], &g->desks[i]);
    base_team_run(team, count, group_span, g);
    for (int i = 0; i < count; i++) {
        s[i].at = h->count;
        h->count += s[i].count;
        h->duplicates += s[i].duplicates;
        h->first_time = s[i].first_time < h->first_time ? s[i].first_time : h->first_time;
        h->last_time = s[i].last_time > h->last_time ? s[i].last_time : h->last_time;
    }
    base_team_run(team, count, write_span, g);
    for (int i = 0; i < count; i++)
        if (s[i].st != BASE_OK)
            TRY(base_fail(s[i].st, "%s", s[i].message));
out:
    for (int i = 0; i < count; i++)
        base_free(s[i].message);
    return st;
}

static void cut_into_spans(struct grouping *g)
{
    int most = g->text->threads * SPANS_PER_THREAD;
    uint64_t done = 0;
    uint32_t user = 0;

    g->spans = base_calloc((size_t)most, sizeof *g->spans);
    while (user < g->header->users) {
        struct span *s = &g->spans[g->count++];
        uint64_t goal = g->text->count * (uint64_t)g->count / (uint64_t)most;

        s->user = user;
        while (user < g->header->users && (s->room == 0 || done + s->room < goal))
            s->room += g->degree[user++];
        if (g->count == most)
            for (; user < g->header->users; user++)
                s->room += g->degree[user];
        s->end = user;
        done += s->room;
    }
}

/* ---- examples of what was left out ---- */

static void bad_examples(const struct recsys_text *t, struct base_str *text)
{
    int told = 0;

    for (size_t i = 0; i < t->block_count && told < RECSYS_EXAMPLES; i++)
        for (uint64_t k = 0; t->blocks[i].bad != NULL && told < RECSYS_EXAMPLES &&
                             k < RECSYS_EXAMPLES && k < t->blocks[i].bad_lines;
             k++, told++) {
            const struct recsys_bad *bad = &t->blocks[i].bad[k];
            uint64_t line = recsys_first_line_of(t, i) + bad->line;

            base_str_add(text, "%s, line %" PRIu64 ": ", t->source->files[t->blocks[i].file].path,
                         line);
            recsys_fault_text(&t->source->files[t->blocks[i].file].layout, bad, text);
            base_str_add(text, "\n");
        }
}

/* The last line that a pair stands on. */
static base_status find_pair(struct recsys_text *t, struct pair pair, size_t *block_p,
                             uint64_t *line_p)
{
    for (size_t i = t->block_count; i-- > 0;)
        for (uint32_t k = t->blocks[i].count; k-- > 0;)
            if (t->blocks[i].user[k] == pair.user && t->blocks[i].item[k] == pair.item) {
                *block_p = i;
                return recsys_line_of(t, i, k, line_p);
            }
    return base_fail(BASE_ERR_INTERNAL, "a rating that came twice is not there");
}

static base_status duplicate_examples(struct grouping *g, struct base_str *text)
{
    base_status st = BASE_OK;
    struct recsys_ids users = recsys_census_ids(g->text->users);
    struct recsys_ids items = recsys_census_ids(g->text->items);
    int told = 0;

    for (int i = 0; i < g->count && told < RECSYS_EXAMPLES; i++)
        for (uint64_t k = 0;
             k < g->spans[i].duplicates && told < RECSYS_EXAMPLES && k < RECSYS_EXAMPLES;
             k++, told++) {
            struct pair pair = g->spans[i].again[k];
            struct recsys_id user, item;
            size_t block;
            uint64_t line;

            TRY(find_pair(g->text, pair, &block, &line));
            base_str_add(
                text, "%s, line %llu: user %s rates item %s again; the last rating counts\n",
                g->text->source->files[g->text->blocks[block].file].path, (unsigned long long)line,
                recsys_id_text(&users, pair.user, &user), recsys_id_text(&items, pair.item, &item));
        }
out:
    return st;
}

/* ---- all ---- */

static uint64_t place(struct recsys_header *h, enum recsys_section section, uint64_t at,
                      uint64_t bytes)
{
    h->at[section] = (at + ALIGN - 1) / ALIGN * ALIGN;
    h->bytes[section] = bytes;
    return h->at[section] + bytes;
}

/* Where sections go. The ratings may become fewer; what follows them does not move. */
static void place_sections(struct grouping *g, const struct recsys_ids ids[2], size_t examples)
{
    struct recsys_header *h = g->header;
    uint64_t at = ALIGN;

    at = place(h, RECSYS_USER_START, at, ((uint64_t)h->users + 1) * sizeof(uint64_t));
    at = place(h, RECSYS_COLUMN, at, g->text->count * sizeof(uint32_t));
    at = place(h, RECSYS_RATED, at, g->text->count * g->size);
    at = place(h, RECSYS_TIMES, at, g->text->timed ? g->text->count * sizeof(uint32_t) : 0);
    for (int side = 0; side < 2; side++) {
        enum recsys_section to = side == 0 ? RECSYS_USER_IDS : RECSYS_ITEM_IDS;
        uint64_t count = ids[side].count;

        at = place(h, to, at, ids[side].number != NULL ? count * 4 : (count + 1) * 8);
        at = place(h, to + 1, at,
                   ids[side].number != NULL ? 0 : ids[side].text_start[ids[side].count]);
    }
    place(h, RECSYS_EXAMPLE, at, examples);
}

static base_status write_ids(struct grouping *g, const struct recsys_ids ids[2])
{
    base_status st = BASE_OK;
    const struct recsys_header *h = g->header;

    for (int side = 0; side < 2; side++) {
        enum recsys_section to = side == 0 ? RECSYS_USER_IDS : RECSYS_ITEM_IDS;
        const void *first = ids[side].number != NULL ? (const void *)ids[side].number
                                                     : (const void *)ids[side].text_start;

        TRY(recsys_write_at(g->fd, g->path, h->at[to], first, h->bytes[to]));
        TRY(recsys_write_at(g->fd, g->path, h->at[to + 1], ids[side].text, h->bytes[to + 1]));
    }
out:
    return st;
}

static base_status write_starts(struct grouping *g)
{
    base_status st = BASE_OK;
    struct recsys_header *h = g->header;
    uint64_t *start = NULL;

    TRY(base_tensor((size_t)h->users + 1, sizeof *start, "users", &start));
    for (uint32_t u = 0; u < h->users; u++)
        start[u + 1] = start[u] + g->degree[u];
    TRY(recsys_write_at(g->fd, g->path, h->at[RECSYS_USER_START], start,
                        h->bytes[RECSYS_USER_START]));
    h->bytes[RECSYS_COLUMN] = h->count * sizeof(uint32_t);
    h->bytes[RECSYS_RATED] = h->count * g->size;
    h->bytes[RECSYS_TIMES] = g->text->timed ? h->count * sizeof(uint32_t) : 0;
out:
    base_free(start);
    return st;
}

static base_status write_sections(struct grouping *g, struct base_team *team)
{
    base_status st = BASE_OK;
    const struct recsys_ids ids[2] = {recsys_census_ids(g->text->users),
                                      recsys_census_ids(g->text->items)};
    struct base_str examples = {0};

    place_sections(g, ids, 0);
    for (g->begin = 0; g->begin < g->count; g->begin += g->text->threads) {
        int left = g->count - g->begin;

        TRY(run_wave(g, team, left < g->text->threads ? left : g->text->threads));
    }
    base_progress_clear();
    TRY(write_ids(g, ids));
    TRY(write_starts(g));
    bad_examples(g->text, &examples);
    TRY(duplicate_examples(g, &examples));
    g->header->bytes[RECSYS_EXAMPLE] = examples.length > 0 ? examples.length + 1 : 0;
    TRY(recsys_write_at(g->fd, g->path, g->header->at[RECSYS_EXAMPLE], examples.text,
                        g->header->bytes[RECSYS_EXAMPLE]));
out:
    base_str_fini(&examples);
    return st;
}

base_status recsys_group(struct recsys_text *t, struct base_team *team, int fd, const char *path,
                         struct recsys_header *h)
{
    base_status st = BASE_OK;
    struct grouping g = {.text = t, .fd = fd, .path = path, .header = h};

    g.size = t->floats ? sizeof(float) : 1;
    g.codes = base_calloc((size_t)t->threads, RECSYS_MAX_LEVELS);
    h->users = recsys_census_ids(t->users).count;
    h->items = recsys_census_ids(t->items).count;
    h->user_texts = t->user_texts;
    h->item_texts = t->item_texts;
    h->timed = t->timed;
    h->bad_lines = t->bad_lines;
    h->first_time = UINT32_MAX;
    recsys_scale_of(t, &h->scale, g.codes);
    TRY(base_tensor(h->users, sizeof *g.degree, "users", &g.degree));
    base_team_run(team, (int)t->block_count, number_block, &g);
    cut_into_spans(&g);
    TRY(set_up_desks(&g));
    TRY(write_sections(&g, team));
    if (!t->timed)
        h->first_time = 0;
out:
    free_desks(&g);
    base_free(g.spans);
    base_free(g.codes);
    base_free((void *)g.degree);
    return st;
}
