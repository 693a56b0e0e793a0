/* SPDX-License-Identifier: MIT
 *
 * Reads the files of a source into memory as they stand, a block of bytes at a time, on all threads
 * of a team. A block has the lines that begin in it. What comes out depends on the text alone: ids
 * and levels are numbered by thread while they are read and get their final numbers afterwards.
 *
 * An attempt takes for granted that ids are numbers and that there are few levels, as is usual and
 * quick. A line that shows otherwise ends it, and the next one knows better.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "recsys/lines_private.h"

enum { TAIL = 4096 };

/* ---- blocks of text ---- */

static void cut_into_blocks(const struct recsys_source *source, struct recsys_text *t)
{
    const uint64_t block = source->block;
    size_t count = 0;

    for (size_t f = 0; f < source->file_count; f++)
        count += source->files[f].size / block + 1;
    t->blocks = base_calloc(count, sizeof *t->blocks);
    for (size_t f = 0; f < source->file_count; f++)
        for (uint64_t at = 0; at < source->files[f].size; at += block) {
            uint64_t left = source->files[f].size - at;

            t->blocks[t->block_count++] = (struct recsys_block){
                .file = (uint32_t)f, .begin = at, .end = at + (left < block ? left : block)};
        }
}

static base_status read_at(int fd, const char *path, uint64_t from, size_t count, char *to)
{
    while (count > 0) {
        ssize_t got = pread(fd, to, count, (off_t)from);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return base_fail(BASE_ERR_IO, "cannot read %s: %m", path);
        if (got == 0)
            return base_fail(BASE_ERR_DATA, "%s was cut short while it was read", path);
        to += got;
        from += (uint64_t)got;
        count -= (size_t)got;
    }
    return BASE_OK;
}

/* The rest of the line that crosses the block's end, as far as a line may go. */
static base_status read_tail(int fd, const struct recsys_file *file, uint64_t end, char *text,
                             size_t *count)
{
    base_status st = BASE_OK;
    size_t most = *count + RECSYS_MAX_LINE;

    while (*count > 0 && text[*count - 1] != '\n' && end < file->size && *count < most) {
        size_t more = file->size - end < TAIL ? (size_t)(file->size - end) : TAIL;
        const char *stop;

        TRY(read_at(fd, file->path, end, more, text + *count));
        stop = memchr(text + *count, '\n', more);
        *count += stop != NULL ? (size_t)(stop + 1 - (text + *count)) : more;
        end += more;
    }
out:
    return st;
}

/* The lines that begin in a block; `buffer` has as many bytes as room_for says. */
static base_status load_block(const struct recsys_file *file, const struct recsys_block *b,
                              char *buffer, const char **text_p, size_t *length_p)
{
    base_status st = BASE_OK;
    uint64_t from = b->begin > 0 ? b->begin - 1 : 0; /* does a line end in front of it? */
    size_t count = (size_t)(b->end - from), size = 0;
    const char *text = buffer;
    int fd = -1;

    *length_p = 0;
    TRY(base_open_regular(file->path, &fd, &size));
    TRY(read_at(fd, file->path, from, count, buffer));
    if (b->begin > 0) {
        const char *stop = memchr(buffer, '\n', count);

        text = stop != NULL ? stop + 1 : buffer + count;
    }
    if (text < buffer + count) {
        TRY(read_tail(fd, file, b->end, buffer, &count));
        *length_p = (size_t)(buffer + count - text);
    }
    memset(buffer + count, 0, RECSYS_SLACK);
    *text_p = text;
out:
    if (fd >= 0)
        close(fd);
    return st;
}

/* ---- an attempt ---- */

struct reader {
    struct recsys_parser parser;
    char *buffer;
    base_status st;
    char *message; /* of a failure, in the thread that it happened in */
};

struct attempt {
    struct recsys_text *text;
    struct reader *readers; /* (threads) */
    _Atomic unsigned broken;
    _Atomic uint64_t bytes; /* that were read */
    uint64_t total;
};

/* Bytes of the lines that begin in any one block, with a byte before them and zeros behind. */
static size_t room_for(const struct recsys_text *t)
{
    uint64_t most = 0;

    for (size_t i = 0; i < t->block_count; i++) {
        const struct recsys_block *b = &t->blocks[i];
        uint64_t left = t->source->files[b->file].size - b->begin;
        uint64_t room = b->end - b->begin + RECSYS_MAX_LINE + TAIL;

        room = room < left ? room : left;
        most = room > most ? room : most;
    }
    return (size_t)most + 1 + RECSYS_SLACK;
}

static void reader_init(struct reader *r, struct attempt *a, int thread)
{
    size_t room = room_for(a->text), ratings = room / RECSYS_LEAST_LINE + 1;
    struct recsys_text *t = a->text;
    struct recsys_parser *p = &r->parser;

    p->users = t->users;
    p->items = t->items;
    p->user_texts = t->user_texts;
    p->item_texts = t->item_texts;
    p->floats = t->floats;
    p->thread = thread;
    p->levels = &t->levels[thread];
    p->broken = &a->broken;
    p->limit = UINT32_MAX;
    r->buffer = base_calloc(room, 1);
    p->user = base_calloc(ratings, sizeof *p->user);
    p->item = base_calloc(ratings, sizeof *p->item);
    p->time = base_calloc(ratings, sizeof *p->time);
    p->code = base_calloc(ratings, sizeof *p->code);
    p->value = p->floats ? base_calloc(ratings, sizeof *p->value) : NULL;
}

static void reader_fini(struct reader *r)
{
    base_free(r->buffer);
    base_free(r->parser.user);
    base_free(r->parser.item);
    base_free(r->parser.time);
    base_free(r->parser.code);
    base_free(r->parser.value);
    base_free(r->message);
}

static void *copy_of(const void *from, size_t count, size_t size)
{
    void *copy = base_realloc(NULL, count, size);

    memcpy(copy, from, count * size);
    return copy;
}

static void keep_ratings(const struct recsys_parser *p, bool timed, struct recsys_block *b)
{
    b->count = p->count;
    b->thread = p->thread;
    if (p->count == 0)
        return;
    b->user = copy_of(p->user, p->count, sizeof *p->user);
    b->item = copy_of(p->item, p->count, sizeof *p->item);
    b->time = timed ? copy_of(p->time, p->count, sizeof *p->time) : NULL;
    b->rating = p->floats ? copy_of(p->value, p->count, sizeof *p->value)
                          : copy_of(p->code, p->count, sizeof *p->code);
}

static void read_block(const void *context, int unit, int thread)
{
    struct attempt *a = (struct attempt *)(uintptr_t)context;
    struct reader *r = &a->readers[thread];
    struct recsys_block *b = &a->text->blocks[unit];
    const struct recsys_file *file = &a->text->source->files[b->file];
    const char *text;
    size_t length;
    uint64_t done;

    if (r->st != BASE_OK || atomic_load(&a->broken) != 0)
        return;
    r->st = load_block(file, b, r->buffer, &text, &length);
    if (r->st != BASE_OK) {
        r->message = base_strdup(base_message());
        return;
    }
    r->parser.block = b;
    recsys_parser_take(&r->parser, &file->layout);
    recsys_parse(&r->parser, text, length);
    keep_ratings(&r->parser, a->text->timed, b);
    done = atomic_fetch_add(&a->bytes, b->end - b->begin) + b->end - b->begin;
    if (thread == 0)
        base_progress(false, "reading %s: %d %%", a->text->source->place,
                      (int)(100 * done / a->total));
}

static void forget_ratings(struct recsys_text *t)
{
    for (size_t i = 0; i < t->block_count; i++) {
        struct recsys_block *b = &t->blocks[i];

        base_free(b->user);
        base_free(b->item);
        base_free(b->time);
        base_free(b->rating);
        base_free(b->bad);
        *b = (struct recsys_block){
            .file = b->file, .begin = b->begin, .end = b->end, .orphaned = b->orphaned};
    }
    recsys_census_free(t->users);
    recsys_census_free(t->items);
    t->users = t->items = NULL;
}

static void begin_attempt(struct recsys_text *t)
{
    t->users = recsys_census_new(t->user_texts, t->threads);
    t->items = recsys_census_new(t->item_texts, t->threads);
    for (int i = 0; i < t->threads; i++) {
        recsys_levels_init(&t->levels[i]);
        t->levels[i].lowest = INFINITY;
        t->levels[i].highest = -INFINITY;
    }
}

static base_status attempt_to_read(struct recsys_text *t, struct base_team *team,
                                   unsigned *broken_p)
{
    base_status st = BASE_OK;
    struct attempt a = {.text = t};

    a.readers = base_calloc((size_t)t->threads, sizeof *a.readers);
    for (size_t i = 0; i < t->block_count; i++)
        a.total += t->blocks[i].end - t->blocks[i].begin;
    begin_attempt(t);
    for (int i = 0; i < t->threads; i++)
        reader_init(&a.readers[i], &a, i);
    base_team_run(team, (int)t->block_count, read_block, &a);
    base_progress_clear();
    for (int i = 0; i < t->threads && st == BASE_OK; i++)
        if (a.readers[i].st != BASE_OK)
            st = base_fail(a.readers[i].st, "%s", a.readers[i].message);
    for (int i = 0; i < t->threads; i++)
        reader_fini(&a.readers[i]);
    base_free(a.readers);
    *broken_p = a.broken;
    return st;
}

/* ---- what comes after ---- */

/* Blocks whose first ratings have no item, because no heading above them names one; false: there is
 * none. All is read again: users and values of such lines have been counted. */
static bool find_orphans(struct recsys_text *t)
{
    uint32_t item = UINT32_MAX;
    bool found = false;

    for (size_t i = 0; i < t->block_count; i++) {
        struct recsys_block *b = &t->blocks[i];

        if (b->begin == 0)
            item = UINT32_MAX;
        if (b->headless > 0 && item == UINT32_MAX)
            found = b->orphaned = true;
        if (b->has_heading)
            item = b->last_heading;
    }
    return found;
}

/* A block's first ratings are of the item that the blocks before it named last. */
static void carry_headings(struct recsys_text *t)
{
    uint32_t item = UINT32_MAX;

    for (size_t i = 0; i < t->block_count; i++) {
        struct recsys_block *b = &t->blocks[i];

        if (b->headless > 0)
            recsys_census_number(t->items, item);
        for (uint32_t k = 0; k < b->headless; k++)
            b->item[k] = item;
        if (b->has_heading)
            item = b->last_heading;
    }
}

static base_status count_ratings(struct recsys_text *t)
{
    uint64_t lines = 0;

    t->count = t->bad_lines = 0;
    for (size_t i = 0; i < t->block_count; i++) {
        t->count += t->blocks[i].count;
        t->bad_lines += t->blocks[i].bad_lines;
        lines += t->blocks[i].lines;
    }
    if (t->count > 0 && t->bad_lines <= t->count)
        return BASE_OK;
    for (size_t i = 0; i < t->block_count; i++)
        if (t->blocks[i].bad_lines > 0 && t->blocks[i].bad != NULL) {
            struct base_str what = {0};
            base_status st;

            recsys_fault_text(&t->source->files[t->blocks[i].file].layout, t->blocks[i].bad, &what);
            st = base_fail(BASE_ERR_DATA,
                           "%s: %llu of %llu lines are no ratings; the first, line %llu of %s: %s",
                           t->source->place, (unsigned long long)t->bad_lines,
                           (unsigned long long)lines,
                           (unsigned long long)recsys_first_line_of(t, i) + t->blocks[i].bad->line,
                           t->source->files[t->blocks[i].file].path, what.text);
            base_str_fini(&what);
            return st;
        }
    return base_fail(BASE_ERR_DATA, "%s has no ratings", t->source->place);
}

base_status recsys_text_read(const struct recsys_source *source, int threads,
                             struct base_team *team, struct recsys_text *t)
{
    base_status st = BASE_OK;
    unsigned broken = 0;
    bool orphans = false;

    *t = (struct recsys_text){.source = source, .threads = threads};
    t->levels = base_calloc((size_t)threads, sizeof *t->levels);
    t->timed = recsys_has_role(&source->files[0].layout, RECSYS_TIME);
    cut_into_blocks(source, t);
    do {
        forget_ratings(t);
        TRY(attempt_to_read(t, team, &broken));
        if (broken == 0 && !t->floats && recsys_count_levels(t) > RECSYS_MAX_LEVELS)
            broken = RECSYS_NEEDS_FLOATS;
        t->user_texts = t->user_texts || (broken & RECSYS_NEEDS_USER_TEXTS) != 0;
        t->item_texts = t->item_texts || (broken & RECSYS_NEEDS_ITEM_TEXTS) != 0;
        t->floats = t->floats || (broken & RECSYS_NEEDS_FLOATS) != 0;
        orphans = broken == 0 && find_orphans(t);
        if (orphans) /* as if their lines were not there */
            t->user_texts = t->item_texts = t->floats = false;
    } while (broken != 0 || orphans);
    carry_headings(t);
    TRY(count_ratings(t));
    recsys_census_close(t->users);
    recsys_census_close(t->items);
out:
    return st;
}

void recsys_text_close(struct recsys_text *t)
{
    forget_ratings(t);
    base_free(t->blocks);
    base_free(t->levels);
    *t = (struct recsys_text){0};
}

/* ---- where a rating stands ---- */

uint64_t recsys_first_line_of(const struct recsys_text *t, size_t block)
{
    uint64_t line = 1;

    for (size_t i = block; i > 0 && t->blocks[i].begin > 0; i--)
        line += t->blocks[i - 1].lines;
    return line;
}

base_status recsys_line_of(struct recsys_text *t, size_t block, uint32_t index, uint64_t *line_p)
{
    base_status st = BASE_OK;
    struct recsys_block b = t->blocks[block], again = {.begin = b.begin, .orphaned = b.orphaned};
    struct attempt a = {.text = t};
    struct reader r = {0};
    const char *text;
    size_t length;

    reader_init(&r, &a, b.thread);
    TRY(load_block(&t->source->files[b.file], &b, r.buffer, &text, &length));
    r.parser.block = &again;
    recsys_parser_take(&r.parser, &t->source->files[b.file].layout);
    r.parser.limit = index + 1;
    recsys_parse(&r.parser, text, length);
    *line_p = recsys_first_line_of(t, block) + again.lines - 1;
out:
    base_free(again.bad);
    reader_fini(&r);
    return st;
}
