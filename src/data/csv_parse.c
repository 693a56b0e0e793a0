/* SPDX-License-Identifier: MIT
 *
 * Records of a CSV file (RFC 4180): fields between commas, semicolons or tabs, lines that end in LF
 * or CRLF, quotes around fields that hold separators, line ends or (doubled) quotes. A mark of
 * UTF-8 at the beginning and blank lines are left out. A record that cannot be read costs itself
 * alone: reading goes on after it, and no byte is looked at twice, whatever the file holds. What
 * fields mean is none of its business.
 */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "data/data_private.h"
#include "data/table.h"

static const char BYTE_ORDER_MARK[] = "\xef\xbb\xbf";

/* The separator that the first line has most of, outside quotes; a comma where it has none. */
static char find_separator(struct base_cursor c)
{
    static const char separators[] = ",;\t";
    size_t counts[3] = {0}, best = 0;
    bool quoted = false;

    for (; c.at < c.end && (*c.at != '\n' || quoted); c.at++) {
        const char *found = *c.at != '\0' ? strchr(separators, *c.at) : NULL;

        if (*c.at == '"')
            quoted = !quoted;
        else if (found != NULL && !quoted)
            counts[found - separators]++;
    }
    for (size_t i = 1; i < 3; i++)
        if (counts[i] > counts[best])
            best = i;
    return separators[best];
}

void data_csv_init(struct data_csv *csv, const void *bytes, size_t count)
{
    *csv = (struct data_csv){.at = base_cursor_of(bytes, count), .next_line = 1};
    if (count >= strlen(BYTE_ORDER_MARK) &&
        memcmp(bytes, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        csv->at.at += strlen(BYTE_ORDER_MARK);
    csv->separator = find_separator(csv->at);
}

void data_csv_fini(struct data_csv *csv)
{
    base_str_fini(&csv->text);
    base_free(csv->starts);
    *csv = (struct data_csv){0};
}

static void begin_field(struct data_csv *csv)
{
    if (csv->count == csv->capacity) {
        csv->capacity = csv->capacity > 0 ? 2 * csv->capacity : 64;
        csv->starts = base_realloc(csv->starts, csv->capacity, sizeof *csv->starts);
    }
    csv->starts[csv->count++] = csv->text.length;
}

/* Takes over `count` bytes of the field; lines end in them only between quotes. */
static void take(struct data_csv *csv, size_t count)
{
    const uint8_t *at = csv->at.at, *end = at + count;

    base_str_append(&csv->text, (const char *)at, count);
    csv->at.at = end;
    for (; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        csv->next_line++;
}

static base_status read_quoted(struct data_csv *csv)
{
    size_t begin = csv->text.length;

    csv->at.at++;
    for (;;) {
        size_t left = base_cursor_left(&csv->at);
        size_t most = DATA_CSV_MAX_FIELD + 1 - (csv->text.length - begin);
        const uint8_t *quote = memchr(csv->at.at, '"', left < most ? left : most);

        if (quote == NULL) {
            take(csv, left < most ? left : most);
            return base_fail(BASE_ERR_DATA,
                             "a quote is opened and not closed within %d bytes, by line %llu",
                             DATA_CSV_MAX_FIELD, (unsigned long long)csv->next_line);
        }
        take(csv, (size_t)(quote - csv->at.at));
        csv->at.at++;
        if (base_cursor_left(&csv->at) == 0 || *csv->at.at != '"')
            return BASE_OK;
        take(csv, 1); /* of two quotes, one */
    }
}

static bool at_end(const struct data_csv *csv)
{
    size_t left = base_cursor_left(&csv->at);

    return left == 0 || csv->at.at[0] == '\n' ||
           (csv->at.at[0] == '\r' && left > 1 && csv->at.at[1] == '\n');
}

static base_status read_field(struct data_csv *csv)
{
    base_status st = BASE_OK;
    const uint8_t *at;

    begin_field(csv);
    if (base_cursor_left(&csv->at) > 0 && *csv->at.at == '"') {
        TRY(read_quoted(csv));
        if (!at_end(csv) && *csv->at.at != (uint8_t)csv->separator)
            TRY(base_fail(BASE_ERR_DATA, "field %zu has text after its closing quote", csv->count));
    } else {
        for (at = csv->at.at; at < csv->at.end && *at != (uint8_t)csv->separator && *at != '\n';)
            at++;
        if (at < csv->at.end && *at == '\n' && at > csv->at.at && at[-1] == '\r')
            at--;
        if ((size_t)(at - csv->at.at) > DATA_CSV_MAX_FIELD)
            TRY(base_fail(BASE_ERR_DATA, "field %zu is longer than %d bytes", csv->count,
                          DATA_CSV_MAX_FIELD));
        take(csv, (size_t)(at - csv->at.at));
    }
    base_str_append(&csv->text, "", 1); /* the zero that ends the field */
out:
    return st;
}

static void skip_line(struct data_csv *csv)
{
    const uint8_t *end = memchr(csv->at.at, '\n', base_cursor_left(&csv->at));

    csv->at.at = end != NULL ? end + 1 : csv->at.end;
    csv->next_line++;
}

/* ASCII, and no zeros but those that end the fields: most records are, and it is quick to see. */
static bool is_ascii(const struct data_csv *csv)
{
    size_t zeros = 0;
    unsigned char all = 0;

    for (size_t i = 0; i < csv->text.length; i++) {
        all |= (unsigned char)csv->text.text[i];
        zeros += csv->text.text[i] == '\0';
    }
    return all < 0x80 && zeros == csv->count;
}

/* Every field must be text that messages, manifests and JSON can hold. */
static base_status check_text(const struct data_csv *csv)
{
    if (is_ascii(csv))
        return BASE_OK;
    for (size_t i = 0; i < csv->count; i++) {
        const char *field = data_csv_field(csv, i);
        size_t end = i + 1 < csv->count ? csv->starts[i + 1] : csv->text.length;

        if (strlen(field) + 1 != end - csv->starts[i])
            return base_fail(BASE_ERR_DATA, "field %zu holds a zero byte", i + 1);
        if (!base_is_utf8(field))
            return base_fail(BASE_ERR_DATA,
                             "field %zu is not UTF-8; convert the file, as in: iconv -f latin1 "
                             "-t utf8",
                             i + 1);
    }
    return BASE_OK;
}

static base_status read_record(struct data_csv *csv)
{
    base_status st = BASE_OK;

    csv->line = csv->next_line;
    csv->count = csv->text.length = 0;
    for (;;) {
        if (csv->count > DATA_MAX_COLUMNS)
            TRY(base_fail(BASE_ERR_DATA, "it has more than %d fields", DATA_MAX_COLUMNS));
        TRY(read_field(csv));
        if (at_end(csv))
            break;
        csv->at.at++; /* the separator */
    }
out:
    skip_line(csv);
    if (st == BASE_OK)
        st = check_text(csv);
    return base_prefix(st, "line %llu", (unsigned long long)csv->line);
}

base_status data_csv_next(struct data_csv *csv, bool *more_p)
{
    while (base_cursor_left(&csv->at) > 0 && at_end(csv))
        skip_line(csv);
    *more_p = base_cursor_left(&csv->at) > 0;
    return *more_p ? read_record(csv) : BASE_OK;
}
