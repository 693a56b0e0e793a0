/* SPDX-License-Identifier: MIT
 *
 * Lines of text as ratings. Most lines of large files are four short numbers, which read_quickly
 * takes eight digits at a time; what it does not understand goes to read_line, which knows quotes,
 * texts as ids, dates, and what to say of a bad line.
 */
#include <endian.h>
#include <stdatomic.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "recsys/lines_private.h"

static const uint32_t NO_ITEM = UINT32_MAX;

void recsys_parser_take(struct recsys_parser *p, const struct recsys_layout *layout)
{
    static const unsigned char usual[] = {RECSYS_USER, RECSYS_ITEM, RECSYS_RATING, RECSYS_TIME};
    static const unsigned char below[] = {RECSYS_USER, RECSYS_RATING, RECSYS_TIME};

    p->layout = layout;
    memset(p->has, 0, sizeof p->has);
    for (int i = 0; i < layout->columns; i++)
        p->has[layout->role[i]] = true;
    p->separator = strlen(layout->separator);
    p->quick = layout->separator[0] != ' ' && p->has[RECSYS_RATING] &&
               layout->columns <= (layout->headings ? 3 : 4) &&
               memcmp(layout->role, layout->headings ? below : usual, (size_t)layout->columns) == 0;
}

/* ---- levels ---- */

void recsys_levels_init(struct recsys_levels *levels)
{
    levels->count = levels->decimals = 0;
    memset(levels->slot, -1, sizeof levels->slot);
    memset(levels->tenths, -1, sizeof levels->tenths);
}

int recsys_level(struct recsys_levels *levels, float value)
{
    enum { SLOTS = sizeof levels->slot / sizeof levels->slot[0] };
    uint32_t bits, at;

    memcpy(&bits, &value, sizeof bits);
    at = (bits * 0x9e3779b1u) >> 22;
    for (; levels->slot[at] >= 0; at = (at + 1) % SLOTS)
        if (levels->level[levels->slot[at]] == value)
            return levels->slot[at];
    if (levels->count == RECSYS_MAX_LEVELS)
        return -1;
    levels->level[levels->count] = value;
    levels->slot[at] = (int16_t)levels->count;
    return (int)levels->count++;
}

/* ---- bad lines ---- */

static void add_bad(struct recsys_parser *p, enum recsys_fault fault, int found,
                    struct recsys_field what)
{
    struct recsys_block *b = p->block;
    struct recsys_bad *bad;
    size_t length = what.length < RECSYS_EXCERPT - 1 ? what.length : RECSYS_EXCERPT - 1;

    if (b->bad_lines++ >= RECSYS_EXAMPLES)
        return;
    b->bad = base_realloc(b->bad, b->bad_lines, sizeof *b->bad);
    bad = &b->bad[b->bad_lines - 1];
    *bad = (struct recsys_bad){.line = b->lines - 1, .fault = fault, .found = found};
    for (size_t i = 0; i < length; i++)
        bad->excerpt[i] = (char)(what.at[i] < 0x20 || what.at[i] > 0x7e ? '?' : what.at[i]);
}

void recsys_fault_text(const struct recsys_layout *layout, const struct recsys_bad *bad,
                       struct base_str *text)
{
    switch (bad->fault) {
    case RECSYS_BAD_FIELDS:
        base_str_add(text, "it has %d field%s between '%s', not %d", bad->found,
                     base_plural(bad->found),
                     layout->separator[0] == '\t' ? "\\t" : layout->separator, layout->columns);
        break;
    case RECSYS_BAD_QUOTE:
        base_str_add(text, "a quote is not closed, or text follows it");
        break;
    case RECSYS_BAD_USER:
    case RECSYS_BAD_ITEM:
        base_str_add(
            text,
            "the %s's id '%s' is empty, longer than %d bytes, not UTF-8 or no number where "
            "one is needed",
            bad->fault == RECSYS_BAD_USER ? "user" : "item", bad->excerpt, RECSYS_MAX_ID);
        break;
    case RECSYS_BAD_RATING:
        base_str_add(text, "the rating '%s' is not a number", bad->excerpt);
        break;
    case RECSYS_BAD_TIME:
        base_str_add(text, "the time '%s' is neither seconds since 1970 nor a date", bad->excerpt);
        break;
    case RECSYS_BAD_LENGTH:
        base_str_add(text, "it is longer than %d bytes", RECSYS_MAX_LINE);
        break;
    case RECSYS_BAD_HEADING:
        base_str_add(text, "a rating without a line 'ITEM:' above it");
        break;
    case RECSYS_GOOD:
        break;
    }
}

/* ---- any line ---- */

/* Is the item in force that of a heading in a block before this one? */
static bool is_headless(const struct recsys_parser *p)
{
    return p->continues && !p->block->has_heading && !p->block->orphaned;
}

/* An id as text: no marks of control, and UTF-8. */
static bool is_text(struct recsys_field id)
{
    char copy[RECSYS_MAX_ID + 1];
    bool ascii = true;

    if (id.length == 0 || id.length > RECSYS_MAX_ID)
        return false;
    for (size_t i = 0; i < id.length; i++) {
        unsigned char c = (unsigned char)id.at[i];

        if (c < 0x20 || c == 0x7f)
            return false;
        ascii = ascii && c < 0x80;
    }
    if (ascii)
        return true;
    memcpy(copy, id.at, id.length);
    copy[id.length] = '\0';
    return base_is_utf8(copy);
}

/* Of an id that is_text. An attempt that counts on numbers ends with the first text. */
static uint32_t take_id(struct recsys_parser *p, struct recsys_census *census, bool texts,
                        unsigned broken, struct recsys_field id)
{
    uint32_t number = 0;

    if (texts)
        return recsys_census_text(census, p->thread, id);
    if (recsys_number(id, RECSYS_MOST_NUMBER, &number))
        recsys_census_number(census, number);
    else
        atomic_fetch_or(p->broken, broken);
    return number;
}

static void count_decimals(struct recsys_levels *levels, struct recsys_field rating)
{
    const char *point = memchr(rating.at, '.', rating.length);
    size_t decimals = point != NULL ? (size_t)(rating.at + rating.length - point - 1) : 0;

    if (memchr(rating.at, 'e', rating.length) != NULL ||
        memchr(rating.at, 'E', rating.length) != NULL)
        decimals = UINT8_MAX;
    if (decimals > levels->decimals)
        levels->decimals = (uint8_t)(decimals < UINT8_MAX ? decimals : UINT8_MAX);
}

static void put_rating(struct recsys_parser *p, uint32_t user, uint32_t item, uint32_t time)
{
    p->user[p->count] = user;
    p->item[p->count] = item;
    p->time[p->count] = time;
    p->count++;
}

/* The code or the value of the next rating. */
static bool take_value(struct recsys_parser *p, float value)
{
    int code;

    if (p->floats) {
        p->value[p->count] = value;
        p->levels->lowest = value < p->levels->lowest ? value : p->levels->lowest;
        p->levels->highest = value > p->levels->highest ? value : p->levels->highest;
        return true;
    }
    code = recsys_level(p->levels, value);
    if (code < 0)
        atomic_fetch_or(p->broken, (unsigned)RECSYS_NEEDS_FLOATS);
    p->code[p->count] = (uint8_t)code;
    return code >= 0;
}

/* What is wrong with the fields, if anything, and which one. Ids come last: a line that is bad for
 * another reason says nothing of them. */
static enum recsys_fault check(const struct recsys_parser *p,
                               const struct recsys_field f[RECSYS_ROLES], float *value_p,
                               uint32_t *time_p, enum recsys_role *role_p)
{
    *role_p = RECSYS_RATING;
    if (p->has[RECSYS_RATING] && !recsys_real(f[RECSYS_RATING], value_p))
        return RECSYS_BAD_RATING;
    *role_p = RECSYS_TIME;
    if (p->has[RECSYS_TIME] && !recsys_time(f[RECSYS_TIME], time_p))
        return RECSYS_BAD_TIME;
    *role_p = RECSYS_USER;
    if (!is_text(f[RECSYS_USER]))
        return RECSYS_BAD_USER;
    *role_p = RECSYS_ITEM;
    if (p->layout->headings)
        return p->in_force == NO_ITEM && !is_headless(p) ? RECSYS_BAD_HEADING : RECSYS_GOOD;
    return is_text(f[RECSYS_ITEM]) ? RECSYS_GOOD : RECSYS_BAD_ITEM;
}

static uint32_t take_item(struct recsys_parser *p, struct recsys_field id)
{
    if (!p->layout->headings)
        return take_id(p, p->items, p->item_texts, RECSYS_NEEDS_ITEM_TEXTS, id);
    if (is_headless(p)) {
        p->block->headless++;
        return NO_ITEM; /* until the blocks before this one are known: no heading is equal to it */
    }
    recsys_census_number(p->items, p->in_force);
    return p->in_force;
}

static void read_rating(struct recsys_parser *p, struct recsys_field line)
{
    struct recsys_field f[RECSYS_ROLES] = {0};
    int found = recsys_cut(p->layout, line.at, line.length, f);
    uint32_t user, item, time = 0;
    float value = 1;
    enum recsys_fault fault;
    enum recsys_role role;

    if (found != p->layout->columns) {
        add_bad(p, found > 0 ? RECSYS_BAD_FIELDS : RECSYS_BAD_QUOTE, found, line);
        return;
    }
    fault = check(p, f, &value, &time, &role);
    if (fault != RECSYS_GOOD) {
        add_bad(p, fault, found, f[role]);
        return;
    }
    user = take_id(p, p->users, p->user_texts, RECSYS_NEEDS_USER_TEXTS, f[RECSYS_USER]);
    item = take_item(p, f[RECSYS_ITEM]);
    if (p->floats)
        count_decimals(p->levels, f[RECSYS_RATING]);
    if (take_value(p, value))
        put_rating(p, user, item, time);
}

static void read_heading(struct recsys_parser *p, struct recsys_field line)
{
    uint32_t item = NO_ITEM;

    line.length--;
    if (!recsys_number(line, RECSYS_MOST_NUMBER, &item)) {
        add_bad(p, RECSYS_BAD_ITEM, 1, line);
        item = NO_ITEM;
    }
    p->in_force = p->block->last_heading = item;
    p->block->has_heading = true;
}

static void read_line(struct recsys_parser *p, struct recsys_field line)
{
    p->block->lines++;
    if (line.length > 0 && line.at[line.length - 1] == '\r')
        line.length--;
    if (line.length == 0)
        return;
    if (line.length > RECSYS_MAX_LINE)
        add_bad(p, RECSYS_BAD_LENGTH, 0, (struct recsys_field){line.at, RECSYS_EXCERPT});
    else if (p->layout->headings && line.at[line.length - 1] == ':')
        read_heading(p, line);
    else
        read_rating(p, line);
}

/* ---- the usual line ---- */

/* A number of one to eight digits, eight bytes at once; what follows it, or NULL. The bytes may lie
 * past the end of the text: RECSYS_SLACK zeros follow it. */
static inline const char *quick_number(const char *at, uint32_t *number_p)
{
    uint64_t x, stop;
    int length;

    memcpy(&x, at, sizeof x);
    x = le64toh(x) ^ 0x3030303030303030;
    stop = ((x + 0x7676767676767676) | x) & 0x8080808080808080;
    length = stop != 0 ? __builtin_ctzll(stop) >> 3 : 8;
    if (length == 0 || (length > 1 && *at == '0'))
        return NULL;
    x <<= 64 - 8 * length;
    x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ff;
    x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffff;
    *number_p = (uint32_t)(x * 10000 + (x >> 32));
    return at + length;
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline const char *quick_separator(const struct recsys_parser *p, const char *at)
{
    const char *s = p->layout->separator;

    if (at == NULL || at[0] != s[0])
        return NULL;
    if (p->separator == 1)
        return at + 1;
    return p->separator == 2 && at[1] == s[1] ? at + 2 : NULL;
}

/* "4" or "4.5"; its code, which must be known already. */
static inline const char *quick_rating(const struct recsys_parser *p, const char *at, int *code_p)
{
    int tenths;

    if (at == NULL || !is_digit(*at))
        return NULL;
    tenths = 10 * (*at++ - '0');
    if (*at == '.') {
        if (!is_digit(at[1]))
            return NULL;
        tenths += at[1] - '0';
        at += 2;
    }
    *code_p = p->levels->tenths[tenths];
    return *code_p >= 0 ? at : NULL;
}

/* Up to ten digits, or a date. */
static inline const char *quick_time(const char *at, uint32_t *time_p)
{
    const char *end = quick_number(at, time_p);
    uint64_t number = *time_p;

    if (end != NULL && end - at == 4 && *end == '-')
        return recsys_time((struct recsys_field){at, 10}, time_p) ? at + 10 : NULL;
    if (end == NULL)
        return NULL;
    for (; end - at < 10 && is_digit(*end); end++)
        number = 10 * number + (uint64_t)(*end - '0');
    *time_p = (uint32_t)number;
    return number <= UINT32_MAX ? end : NULL;
}

/* Returns where the next line begins, or NULL: nothing was done. */
static inline const char *read_quickly(struct recsys_parser *p, const char *at)
{
    bool headings = p->layout->headings;
    uint32_t user, item = p->in_force, time = 0;
    int code;

    at = quick_separator(p, quick_number(at, &user));
    if (at != NULL && !headings)
        at = quick_separator(p, quick_number(at, &item));
    at = quick_rating(p, at, &code);
    if (at != NULL && p->has[RECSYS_TIME]) {
        at = quick_separator(p, at);
        at = at != NULL ? quick_time(at, &time) : NULL;
    }
    if (at == NULL)
        return NULL;
    at += *at == '\r';
    if (*at != '\n')
        return NULL;
    if (p->count == 0 || user != p->user[p->count - 1])
        recsys_census_number(p->users, user);
    if (p->count == 0 || item != p->item[p->count - 1])
        recsys_census_number(p->items, item);
    p->code[p->count] = (uint8_t)code;
    put_rating(p, user, item, time);
    p->block->lines++;
    return at + 1;
}

/* Codes of tenths are known once read_line has seen the value. */
static void learn_tenths(struct recsys_parser *p)
{
    for (uint32_t i = 0; i < p->levels->count; i++) {
        float tenths = p->levels->level[i] * 10;

        if (tenths >= 0 && tenths < 100 && tenths == (float)(int)tenths &&
            p->levels->level[i] == (float)((int)tenths / 10.0))
            p->levels->tenths[(int)tenths] = (int16_t)i;
    }
}

/* ---- a block ---- */

static const char *skip_titles(struct recsys_parser *p, const char *at, const char *end)
{
    const char *stop;

    if (end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    if (!p->layout->titled || at == end)
        return at;
    stop = memchr(at, '\n', (size_t)(end - at));
    p->block->lines++;
    return stop != NULL ? stop + 1 : end;
}

static bool may_be_quick(const struct recsys_parser *p)
{
    return p->quick && !p->user_texts && !p->item_texts && !p->floats &&
           (!p->layout->headings || (p->block->has_heading && p->in_force != NO_ITEM));
}

void recsys_parse(struct recsys_parser *p, const char *text, size_t length)
{
    const char *at = text, *end = text + length;

    p->count = 0;
    p->in_force = NO_ITEM;
    p->continues = p->block->begin > 0;
    if (!p->continues)
        at = skip_titles(p, at, end);
    while (at < end && p->count < p->limit &&
           atomic_load_explicit(p->broken, memory_order_relaxed) == 0) {
        const char *next = may_be_quick(p) ? read_quickly(p, at) : NULL;

        if (next == NULL) {
            const char *stop = memchr(at, '\n', (size_t)(end - at));
            uint32_t levels = p->levels->count;

            next = stop != NULL ? stop + 1 : end;
            read_line(p, (struct recsys_field){at, (size_t)((stop != NULL ? stop : end) - at)});
            if (p->levels->count > levels)
                learn_tenths(p);
        }
        at = next;
    }
}
