/* SPDX-License-Identifier: MIT */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void reserve(struct base_str *s, size_t extra)
{
    size_t need = s->length + extra + 1;

    if (need <= s->capacity)
        return;
    s->capacity = need < 64 ? 64 : need * 2;
    s->text = base_realloc(s->text, s->capacity, 1);
}

void base_str_append(struct base_str *s, const char *bytes, size_t count)
{
    reserve(s, count);
    memcpy(s->text + s->length, bytes, count);
    s->length += count;
    s->text[s->length] = '\0';
}

void base_str_add(struct base_str *s, const char *format, ...)
{
    va_list args;
    int need;

    va_start(args, format);
    need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (need < 0)
        return;
    reserve(s, (size_t)need);
    va_start(args, format);
    vsnprintf(s->text + s->length, (size_t)need + 1, format, args);
    va_end(args);
    s->length += (size_t)need;
}

/* Places that a character takes on a terminal: marks that are put over the letter before them take
 * none, East Asian characters and pictures two. The blocks of Unicode in which most of them are. */
static int places_of(uint32_t character)
{
    static const struct {
        uint32_t first, last;
        int places;
    } blocks[] = {
        {0x0300, 0x036f, 0}, {0x200b, 0x200f, 0}, {0x20d0, 0x20ff, 0},   {0xfe00, 0xfe0f, 0},
        {0x1100, 0x115f, 2}, {0x2e80, 0xa4cf, 2}, {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},
        {0xfe30, 0xfe6f, 2}, {0xff00, 0xff60, 2}, {0x1f300, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
    };

    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        if (character >= blocks[i].first && character <= blocks[i].last)
            return blocks[i].places;
    return 1;
}

/* The character at `text` and its bytes; a byte that begins none counts as one by itself. */
static uint32_t character_at(const char *text, size_t *bytes_p)
{
    unsigned char lead = (unsigned char)text[0];
    size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    uint32_t character = bytes == 1 ? lead : lead & (0x7fu >> bytes);

    *bytes_p = 1;
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return lead;
        character = character << 6 | (text[i] & 0x3fu);
    }
    *bytes_p = bytes;
    return character;
}

void base_str_column(struct base_str *s, const char *text, int width)
{
    int most = width < 0 ? -width : width, places = 0;
    size_t end = 0, bytes;

    while (text[end] != '\0') {
        int more = places_of(character_at(text + end, &bytes));

        if (places + more > most)
            break;
        places += more;
        end += bytes;
    }
    base_str_add(s, "%*s", width < 0 ? 0 : most - places, "");
    base_str_append(s, text, end);
    base_str_add(s, "%*s", width < 0 ? most - places : 0, "");
}

void base_str_fini(struct base_str *s)
{
    base_free(s->text);
    *s = (struct base_str){0};
}

struct base_scaled base_scaled(double value)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t i = 0;
    struct base_scaled scaled;

    for (; value >= 999.5 && i + 1 < sizeof prefixes / sizeof *prefixes; i++)
        value /= 1000;
    snprintf(scaled.text, sizeof scaled.text, "%.*f %s",
             i == 0 || value >= 99.95 ? 0
             : value >= 9.995         ? 1
                                      : 2,
             value, prefixes[i]);
    return scaled;
}

const char *base_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

char *base_str_take(struct base_str *s)
{
    char *text = s->text != NULL ? s->text : base_strdup("");

    *s = (struct base_str){0};
    return text;
}

/* Levenshtein distance of two short names; longer ones count as far apart. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 48 };
    size_t row[LONGEST + 1];
    size_t na = strlen(a), nb = strlen(b);

    if (na > LONGEST || nb > LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[nb];
}

int base_nearest(const char *name, const char *const *names, size_t count)
{
    int best = -1;
    size_t best_distance = strlen(name) / 3 + 2;

    for (size_t i = 0; i < count; i++) {
        size_t d = distance(name, names[i]);

        if (d < best_distance) {
            best_distance = d;
            best = (int)i;
        }
    }
    return best;
}

void base_keep_unknown(const char *what, const char *name, const char *const *names, size_t count)
{
    struct base_str s = {0};
    int near = base_nearest(name, names, count);

    base_str_add(&s, "unknown %s '%s'", what, name);
    if (near >= 0)
        base_str_add(&s, "; did you mean '%s'?", names[near]);
    base_str_add(&s, "%s", near >= 0 ? " (known: " : "; known: ");
    for (size_t i = 0; i < count; i++)
        base_str_add(&s, "%s%s", i ? ", " : "", names[i]);
    if (near >= 0)
        base_str_add(&s, ")");
    base_keep_message("%s", s.text);
    base_str_fini(&s);
}
