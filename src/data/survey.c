/* SPDX-License-Identifier: MIT
 *
 * What the columns of a file are. The rules, in full (docs/files.md repeats them):
 * - The first record is the header unless one of its fields is a number or two are the same.
 * - A column is of numbers if at least nine of ten of its fields that are not missing are numbers.
 *   The rest of them are then mistakes, whose lines cannot be used. Otherwise it is of categories.
 * - A column of texts is left out where it has too many different ones, or hardly any twice: names
 *   and identifiers are no categories. So is one without any value.
 * - The target is the last column, unless it is named. One of texts, or of up to 20 different whole
 *   numbers that each occur five times on average, has classes; one of other numbers is predicted
 *   as a number.
 * `--column NAME=number|category|ignore` decides otherwise.
 */
#include "data/survey_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MOST_CODES = 20, LEAST_OF_A_CODE = 5, FEW_ROWS = 20 };

/* What a person said of a column. */
enum wish { WISH_NOTHING, WISH_NUMBER, WISH_CATEGORY, WISH_IGNORE };

struct found {
    const char *name;
    enum wish wish;
    size_t numbers, texts, missing;
    bool whole;      /* all its numbers are */
    bool many;       /* more different fields than are kept … */
    char **distinct; /* … here, sorted */
    int distinct_count;
};

/* ---- the header ---- */

/* names: of its fields, as a header's. */
static bool is_header(const struct data_csv *csv, char *const *names)
{
    double number;

    for (size_t i = 0; i < csv->count; i++) {
        if (data_is_number(data_csv_field(csv, i), &number))
            return false;
        for (size_t j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return false;
    }
    return true;
}

/* A field of a header without its blanks, or what a column without a name is called; base_free. */
static char *name_of(const char *field, size_t index)
{
    size_t length;

    field = data_trim(field, &length);
    return length > 0 ? base_strndup(field, length) : base_format("column%zu", index + 1);
}

base_status data_survey_header(struct data_csv *csv, char ***names_p, size_t *count_p)
{
    base_status st = BASE_OK;
    struct base_cursor begin = csv->at;
    bool more = false;

    *names_p = NULL;
    *count_p = 0;
    TRY(data_csv_next(csv, &more));
    if (!more)
        TRY(base_fail(BASE_ERR_DATA, "holds no rows"));
    *names_p = base_calloc(csv->count, sizeof **names_p);
    *count_p = csv->count;
    for (size_t i = 0; i < csv->count; i++)
        (*names_p)[i] = name_of(data_csv_field(csv, i), i);
    if (is_header(csv, *names_p))
        goto out;
    for (size_t i = 0; i < csv->count; i++) {
        base_free((*names_p)[i]);
        (*names_p)[i] = name_of("", i);
    }
    csv->at = begin;
    csv->next_line = 1;
out:
    return st;
}

/* ---- fields ---- */

/* Keeps a field among the different ones of its column. */
static void keep_distinct(struct found *f, const char *text, size_t length)
{
    int low = 0, high = f->distinct_count;

    while (low < high && !f->many) {
        int middle = (low + high) / 2, order = strncmp(text, f->distinct[middle], length);

        if (order == 0 && f->distinct[middle][length] == '\0')
            return;
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    f->many |= f->distinct_count == DATA_MAX_CATEGORIES;
    if (f->many)
        return;
    if ((f->distinct_count & (f->distinct_count - 1)) == 0)
        f->distinct =
            base_realloc(f->distinct, f->distinct_count == 0 ? 1 : 2 * (size_t)f->distinct_count,
                         sizeof *f->distinct);
    memmove(f->distinct + low + 1, f->distinct + low,
            (size_t)(f->distinct_count - low) * sizeof *f->distinct);
    f->distinct[low] = base_strndup(text, length);
    f->distinct_count++;
}

static void look_at(struct found *f, const char *text)
{
    size_t length;
    double number;

    text = data_trim(text, &length);
    if (data_is_missing(text)) {
        f->missing++;
        return;
    }
    if (data_is_number(text, &number)) {
        f->numbers++;
        f->whole &= number == floor(number);
    } else {
        f->texts++;
    }
    keep_distinct(f, text, length);
}

/* ---- what a person said ---- */

static base_status find_column(const char *what, const char *name, char *const *names, size_t count,
                               size_t *index_p)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) {
            *index_p = i;
            return BASE_OK;
        }
    return base_unknown(BASE_ERR_USAGE, what, name, (const char *const *)names, count);
}

static base_status take_wish(const char *text, char *const *names, struct found *found,
                             size_t count)
{
    static const char *const kinds[] = {"number", "category", "ignore"};
    base_status st = BASE_OK;
    const char *sign = strrchr(text, '=');
    char *name = NULL;
    size_t index = 0, kind = 0;

    if (sign == NULL)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--column takes NAME=number, NAME=category or NAME=ignore, not '%s'", text));
    name = base_strndup(text, (size_t)(sign - text));
    TRY(base_prefix(find_column("column", name, names, count, &index), "--column"));
    while (kind < 3 && strcmp(kinds[kind], sign + 1) != 0)
        kind++;
    if (kind == 3)
        TRY(base_prefix(base_unknown(BASE_ERR_USAGE, "kind", sign + 1, kinds, 3), "--column %s",
                        name));
    found[index].wish = WISH_NUMBER + (enum wish)kind;
out:
    base_free(name);
    return st;
}

/* ---- kinds ---- */

static bool is_numbers(const struct found *f)
{
    if (f->wish != WISH_NOTHING)
        return f->wish == WISH_NUMBER;
    return f->numbers >= 9 * f->texts;
}

static int by_number(const void *a, const void *b)
{
    double x = 0, y = 0;

    data_is_number(*(char *const *)a, &x);
    data_is_number(*(char *const *)b, &y);
    return (x > y) - (x < y);
}

/* The different fields become the categories, codes in the order of their numbers; a missing value
 * is a category of its own, except in a target. */
static void take_categories(struct found *f, bool with_missing, struct data_column *column)
{
    if (f->texts == 0)
        qsort(f->distinct, (size_t)f->distinct_count, sizeof *f->distinct, by_number);
    column->categories =
        base_realloc(f->distinct, (size_t)f->distinct_count + 1, sizeof *f->distinct);
    column->category_count = f->distinct_count;
    f->distinct = NULL;
    f->distinct_count = 0;
    if (with_missing && f->missing > 0) {
        memmove(column->categories + 1, column->categories,
                (size_t)column->category_count * sizeof *column->categories);
        column->categories[0] = base_strdup("");
        column->category_count++;
    }
}

/* As an input: a missing value is a category, too. */
static bool has_too_many(const struct found *f)
{
    return f->many || f->distinct_count + (f->missing > 0) > DATA_MAX_CATEGORIES;
}

/* Why an input is left out; NULL: it is not. */
static const char *why_not(const struct found *f)
{
    size_t present = f->numbers + f->texts;

    if (present == 0)
        return "it has no values";
    if (is_numbers(f) || f->wish == WISH_CATEGORY)
        return NULL;
    if (has_too_many(f) || (present >= FEW_ROWS && 2 * (size_t)f->distinct_count > present))
        return "its texts are too many and too different to be categories";
    return NULL;
}

static base_status add_input(struct found *f, struct base_str *notes, struct data_table *table)
{
    const char *reason = why_not(f);
    struct data_column *column = &table->columns[table->column_count];

    if (f->wish == WISH_IGNORE)
        return BASE_OK;
    if (reason != NULL) {
        base_str_add(notes, "column '%s' is left out: %s\n", f->name, reason);
        return BASE_OK;
    }
    *column =
        (struct data_column){.kind = is_numbers(f) ? DATA_NUMBER : DATA_CATEGORY, .deviation = 1};
    if (column->kind == DATA_CATEGORY && has_too_many(f))
        return base_fail(BASE_ERR_DATA, "column '%s' has more than %d categories", f->name,
                         DATA_MAX_CATEGORIES);
    column->name = base_strdup(f->name);
    table->column_count++;
    if (column->kind == DATA_CATEGORY)
        take_categories(f, true, column);
    return BASE_OK;
}

/* Of a column of numbers: mistakes are no classes. */
static void drop_texts(struct found *f)
{
    int kept = 0;
    double number;

    for (int i = 0; i < f->distinct_count; i++)
        if (data_is_number(f->distinct[i], &number))
            f->distinct[kept++] = f->distinct[i];
        else
            base_free(f->distinct[i]);
    f->distinct_count = kept;
    f->texts = 0;
}

static base_status add_target(struct found *f, struct data_column *target)
{
    size_t present = f->numbers + f->texts;
    bool codes;

    if (is_numbers(f))
        drop_texts(f);
    codes = f->whole && !f->many && f->distinct_count <= MOST_CODES &&
            f->numbers >= LEAST_OF_A_CODE * (size_t)f->distinct_count;
    *target = (struct data_column){.name = base_strdup(f->name), .deviation = 1};
    if (f->wish == WISH_IGNORE)
        return base_fail(BASE_ERR_USAGE,
                         "--column %s=ignore: it is the target; name another with "
                         "--target",
                         f->name);
    if (present == 0)
        return base_fail(BASE_ERR_DATA, "the target '%s' has no values", f->name);
    if (is_numbers(f) && (!codes || f->wish == WISH_NUMBER))
        return BASE_OK;
    target->kind = DATA_CATEGORY;
    if (f->many)
        return base_fail(BASE_ERR_DATA,
                         "the target '%s' has more than %d classes; name another with --target",
                         f->name, DATA_MAX_CATEGORIES);
    if (f->distinct_count < 2)
        return base_fail(BASE_ERR_DATA, "the target '%s' is always '%s': there is nothing to learn",
                         f->name, f->distinct[0]);
    take_categories(f, false, target);
    return BASE_OK;
}

base_status data_survey(struct data_csv *csv, char *const *names, size_t count,
                        const struct data_options *options, struct base_str *notes,
                        struct data_table *table)
{
    base_status st = BASE_OK;
    struct found *found = base_calloc(count, sizeof *found);
    size_t target = count - 1;

    *table = (struct data_table){.columns = base_calloc(count, sizeof *table->columns)};
    for (size_t i = 0; i < count; i++)
        found[i] = (struct found){.name = names[i], .whole = true};
    if (options->target != NULL)
        TRY(find_column("target column", options->target, names, count, &target));
    for (int i = 0; i < options->wish_count; i++)
        TRY(take_wish(options->wishes[i], names, found, count));
    for (bool more = true; more;)
        if (data_csv_next(csv, &more) == BASE_OK && more && csv->count == count)
            for (size_t i = 0; i < count; i++)
                look_at(&found[i], data_csv_field(csv, i));
    TRY(add_target(&found[target], &table->target));
    for (size_t i = 0; i < count; i++)
        if (i != target)
            TRY(add_input(&found[i], notes, table));
    TRY(data_table_count(table));
out:
    for (size_t i = 0; i < count; i++)
        base_names_free(found[i].distinct, (size_t)found[i].distinct_count);
    base_free(found);
    return st;
}
