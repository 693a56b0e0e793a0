/* SPDX-License-Identifier: MIT
 *
 * Writes made-up ratings as text. A piece is the text of some users or, of Netflix' form, some
 * items; threads write a few pieces at a time into memory, and then each into its place of the
 * file.
 */
#include "recsys/make.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/team.h"
#include "recsys/make_private.h"
#include "recsys/recsys_private.h"

enum { LINE = 48, PIECE = 64 << 10 }; /* bytes of a line at most; ratings of a piece, about */

/* ---- lines ---- */

static char *put_text(char *to, const char *text)
{
    return stpcpy(to, text);
}

static char *put_number(char *to, uint32_t number)
{
    char digits[10];
    int count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        *to++ = digits[--count];
    return to;
}

static char *put_stars(char *to, uint8_t halves, bool decimals)
{
    to = put_number(to, halves / 2);
    if (decimals)
        to = put_text(to, halves % 2 != 0 ? ".5" : ".0");
    return to;
}

static char *put_date(char *to, uint32_t seconds)
{
    time_t moment = (time_t)seconds;
    struct tm parts;

    gmtime_r(&moment, &parts);
    return to + strftime(to, LINE / 2, "%Y-%m-%d", &parts);
}

/* ---- formats ---- */

struct form {
    const char *name, *titles, *separator;
    bool decimals; /* 4.0 also where all stars are whole */
};

static const struct form forms[] = {
    {"csv", "userId,movieId,rating,timestamp\n", ",", true},
    {"dat", "", "::", false},
    {"netflix", "", ",", false},
    {"tab", "", "\t", false},
};
enum { NETFLIX = 2, FORMS = sizeof forms / sizeof forms[0] };
const char *const recsys_make_formats[] = {"csv", "dat", "netflix", "tab", NULL};

/* ---- pieces ---- */

struct piece {
    uint32_t first, end; /* users, or items */
    char *text;
    uint64_t length, at; /* in the file */
    base_status st;
    char *message;
};

struct making {
    struct recsys_maker maker;
    const struct form *form;
    bool decimals;
    struct recsys_made *made; /* (threads) */
    struct piece *pieces;
    int count, begin;                    /* pieces; the first in hand */
    struct recsys_rows by_user, by_item; /* of Netflix' form: codes are half stars */
    int fd;
    const char *path;
};

static char *put_rating(const struct making *m, char *to, uint32_t user, uint32_t item,
                        uint8_t halves, uint32_t seconds)
{
    const char *separator = m->form->separator;

    to = put_text(put_number(to, user + 1), separator);
    to = put_text(put_number(to, item + 1), separator);
    to = put_text(put_stars(to, halves, m->decimals), separator);
    to = put_number(to, seconds);
    *to++ = '\n';
    return to;
}

static char *write_user(struct making *m, struct recsys_made *made, uint32_t user, char *to)
{
    recsys_make_user(&m->maker, user, made);
    for (uint32_t i = 0; i < made->count; i++)
        to = put_rating(m, to, user, made->items[i], made->halves[i], made->times[i]);
    return to;
}

static char *write_item(const struct making *m, uint32_t item, char *to)
{
    const struct recsys_rows *rows = &m->by_item;

    if (rows->start[item] == rows->start[item + 1])
        return to;
    to = put_text(put_number(to, item + 1), ":\n");
    for (uint64_t k = rows->start[item]; k < rows->start[item + 1]; k++) {
        to = put_text(put_number(to, rows->column[k] + 1), ",");
        to = put_text(put_stars(to, rows->code[k], m->decimals), ",");
        to = put_date(to, rows->time[k]);
        *to++ = '\n';
    }
    return to;
}

static void make_piece(const void *context, int unit, int thread)
{
    struct making *m = (struct making *)(uintptr_t)context;
    struct piece *p = &m->pieces[m->begin + unit];
    char *to = p->text;

    for (uint32_t i = p->first; i < p->end; i++)
        to = m->by_item.rows > 0 ? write_item(m, i, to) : write_user(m, &m->made[thread], i, to);
    p->length = (uint64_t)(to - p->text);
}

static void write_piece(const void *context, int unit, int thread)
{
    const struct making *m = context;
    struct piece *p = &m->pieces[m->begin + unit];

    (void)thread;
    p->st = recsys_write_at(m->fd, m->path, p->at, p->text, p->length);
    p->message = p->st != BASE_OK ? base_strdup(base_message()) : NULL;
}

static void cut_into_pieces(struct making *m, const uint64_t *start, uint32_t rows)
{
    uint32_t row = 0;

    m->pieces = base_calloc((size_t)(start[rows] / PIECE) + 2, sizeof *m->pieces);
    while (row < rows) {
        struct piece *p = &m->pieces[m->count++];

        p->first = row;
        while (row < rows && (row == p->first || start[row + 1] - start[p->first] <= PIECE ||
                              start[row] - start[p->first] < PIECE))
            row++;
        p->end = row;
    }
}

static base_status write_wave(struct making *m, struct base_team *team, const uint64_t *start,
                              int count, uint64_t *at)
{
    base_status st = BASE_OK;
    struct piece *p = m->pieces + m->begin;

    for (int i = 0; i < count; i++) {
        uint64_t lines = start[p[i].end] - start[p[i].first] + p[i].end - p[i].first;

        TRY(base_tensor(lines + 1, LINE, "text", &p[i].text));
    }
    base_team_run(team, count, make_piece, m);
    for (int i = 0; i < count; i++) {
        p[i].at = *at;
        *at += p[i].length;
    }
    base_team_run(team, count, write_piece, m);
    for (int i = 0; i < count; i++)
        if (p[i].st != BASE_OK)
            TRY(base_fail(p[i].st, "%s", p[i].message));
out:
    for (int i = 0; i < count; i++) {
        base_free(p[i].text);
        base_free(p[i].message);
    }
    return st;
}

static base_status write_pieces(struct making *m, struct base_team *team, const uint64_t *start)
{
    base_status st = BASE_OK;
    uint64_t at = strlen(m->form->titles);
    int most = 4 * base_team_threads(team);

    TRY(recsys_write_at(m->fd, m->path, 0, m->form->titles, at));
    for (m->begin = 0; m->begin < m->count; m->begin += most) {
        int left = m->count - m->begin;

        base_progress(false, "making %s: %d %%", m->path, 100 * m->begin / m->count);
        TRY(write_wave(m, team, start, left < most ? left : most, &at));
    }
out:
    base_progress_clear();
    return st;
}

/* ---- Netflix' form: by item ---- */

struct filling {
    struct making *m;
    uint32_t *column, *time;
    uint8_t *code;
};

static void fill_user(const void *context, int unit, int thread)
{
    const struct filling *f = context;
    const struct piece *p = &f->m->pieces[unit];
    struct recsys_made *made = &f->m->made[thread];

    for (uint32_t user = p->first; user < p->end; user++) {
        uint64_t at = f->m->maker.start[user];

        recsys_make_user(&f->m->maker, user, made);
        memcpy(f->column + at, made->items, made->count * sizeof *f->column);
        memcpy(f->code + at, made->halves, made->count);
        memcpy(f->time + at, made->times, made->count * sizeof *f->time);
    }
}

/* All ratings in memory, by user, and then by item. */
static base_status group_by_item(struct making *m, struct base_team *team)
{
    base_status st = BASE_OK;
    uint64_t count = m->maker.start[m->maker.users];
    struct filling f = {.m = m};

    TRY(base_tensor(count, sizeof *f.column, "ratings", &f.column));
    TRY(base_tensor(count, sizeof *f.code, "ratings", &f.code));
    TRY(base_tensor(count, sizeof *f.time, "times of ratings", &f.time));
    base_team_run(team, m->count, fill_user, &f);
    m->by_user = (struct recsys_rows){.rows = m->maker.users,
                                      .columns = m->maker.items,
                                      .count = count,
                                      .start = m->maker.start,
                                      .column = f.column,
                                      .code = f.code,
                                      .time = f.time};
    TRY(recsys_transpose(&m->by_user, true, base_team_threads(team), &m->by_item));
    base_free(m->pieces);
    m->count = 0;
    cut_into_pieces(m, m->by_item.start, m->by_item.rows);
out:
    base_free(f.column);
    base_free(f.code);
    base_free(f.time);
    return st;
}

/* ---- all ---- */

static base_status check(const struct recsys_make *make)
{
    if ((double)make->ratings > (double)make->users * (double)make->items)
        return base_fail(BASE_ERR_USAGE,
                         "%lld users and %lld items have no %lld pairs; ask for fewer ratings",
                         (long long)make->users, (long long)make->items, (long long)make->ratings);
    if (strcmp(make->format, "netflix") == 0 && make->half_stars)
        return base_fail(BASE_ERR_USAGE, "the netflix format has whole stars; leave --half-stars "
                                         "out, or choose another --format");
    return BASE_OK;
}

static base_status make_into(struct making *m, const struct recsys_make *make,
                             struct base_team *team)
{
    base_status st = BASE_OK;
    int threads = base_team_threads(team);

    TRY(recsys_maker_init(make, &m->maker));
    m->made = base_calloc((size_t)threads, sizeof *m->made);
    for (int i = 0; i < threads; i++)
        TRY(recsys_made_init(&m->maker, &m->made[i]));
    cut_into_pieces(m, m->maker.start, m->maker.users);
    if (m->form == &forms[NETFLIX])
        TRY(group_by_item(m, team));
    TRY(write_pieces(m, team, m->by_item.rows > 0 ? m->by_item.start : m->maker.start));
out:
    for (int i = 0; m->made != NULL && i < threads; i++)
        recsys_made_fini(&m->made[i]);
    base_free(m->made);
    base_free(m->pieces);
    recsys_rows_fini(&m->by_item);
    recsys_maker_fini(&m->maker);
    return st;
}

base_status recsys_make(const struct recsys_make *make, const char *path)
{
    base_status st = BASE_OK;
    struct making m = {.path = path};
    struct base_team *team = NULL;
    struct base_replacement r = {.fd = -1};

    TRY(check(make));
    for (size_t i = 0; i < FORMS; i++)
        if (strcmp(forms[i].name, make->format) == 0)
            m.form = &forms[i];
    m.decimals = make->half_stars || m.form->decimals;
    TRY(base_team_new(recsys_threads(make->threads, (uint64_t)make->ratings), &team));
    TRY(base_replace_begin(path, &r));
    m.fd = r.fd;
    TRY(make_into(&m, make, team));
    TRY(base_replace_commit(&r));
out:
    base_replace_end(&r);
    base_team_free(team);
    return st;
}
