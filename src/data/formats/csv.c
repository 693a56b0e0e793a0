/* SPDX-License-Identifier: MIT
 *
 * A table: a .csv or .tsv file, or a folder with train.csv, test.csv and val.csv (or valid.csv).
 * Of the training rows a survey finds out what the columns are (data/survey.c); a table of a
 * trained model says it itself. Then every file is read once more, its columns matched by name, and
 * each row kept as cells: doubles, so that large numbers with small differences survive until they
 * are standardised. Which rows are for tests and the statistics are data_open's business.
 */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/data_private.h"
#include "data/survey_private.h"
#include "data/table.h"

enum { PLACE_NONE = -1 }; /* of a column of a file that the table does not have */
static const size_t file_limit = (size_t)1 << 40;

struct rows {
    char *path;
    char *bytes; /* of the file, while it is read */
    size_t size;
    uint32_t count;
    double *cells;   /* (count, inputs + 1), the target's last */
    int32_t *labels; /* (count), where the target is a category */
};

struct csv {
    struct data_table table;
    struct rows parts[DATA_PARTS];
    char **bad; /* messages about the lines that were left out */
    size_t bad_count;
    struct base_str notes;
    size_t *filled;     /* (inputs) numbers that were missing */
    size_t unknown;     /* categories that the training did not have … */
    char *unknown_such; /* … the first of them */
};

/* ---- files ---- */

static bool is_table(const char *name)
{
    size_t length = strlen(name);

    return length > 4 && (strcasecmp(name + length - 4, ".csv") == 0 ||
                          strcasecmp(name + length - 4, ".tsv") == 0);
}

/* The file of a part in a folder; NULL: there is none. base_free. */
static char *file_of(const char *folder, const char *stem)
{
    static const char *const endings[] = {"csv", "tsv"};

    for (int i = 0; i < 2; i++) {
        char *path = base_format("%s/%s.%s", folder, stem, endings[i]);

        if (base_exists(path))
            return path;
        base_free(path);
    }
    return NULL;
}

static bool csv_recognise(const char *path)
{
    char *train, *test;
    bool found;

    if (!base_is_dir(path))
        return is_table(path) && base_exists(path);
    train = file_of(path, "train");
    test = file_of(path, "test");
    found = train != NULL || test != NULL;
    base_free(train);
    base_free(test);
    return found;
}

static void find_files(const char *path, struct csv *s)
{
    if (!base_is_dir(path)) {
        s->parts[DATA_TRAIN].path = base_strdup(path);
        return;
    }
    s->parts[DATA_TRAIN].path = file_of(path, "train");
    s->parts[DATA_TEST].path = file_of(path, "test");
    s->parts[DATA_VALIDATION].path = file_of(path, "val");
    if (s->parts[DATA_VALIDATION].path == NULL)
        s->parts[DATA_VALIDATION].path = file_of(path, "valid");
}

/* ---- what the columns are ---- */

static base_status describe(const struct data_options *options, struct csv *s)
{
    base_status st = BASE_OK;
    const struct rows *train = &s->parts[DATA_TRAIN];
    struct data_csv reader = {0};
    char **names = NULL;
    size_t count = 0;

    if (options->table != NULL) {
        data_table_copy(options->table, &s->table);
        goto out;
    }
    if (train->path == NULL)
        TRY(base_fail(BASE_ERR_DATA, "%s: there is no train.csv beside it",
                      s->parts[DATA_TEST].path));
    data_csv_init(&reader, train->bytes, train->size);
    TRY(data_survey_header(&reader, &names, &count));
    TRY(data_survey(&reader, names, count, options, &s->notes, &s->table));
out:
    data_csv_fini(&reader);
    base_names_free(names, count);
    return train->path != NULL ? base_prefix(st, "%s", train->path) : st;
}

static base_status lacks_column(const char *name, char *const *names, size_t count)
{
    enum { SHOWN = 20 };
    int nearest = base_nearest(name, (const char *const *)names, count);
    struct base_str list = {0};
    base_status st;

    for (size_t i = 0; i < count && i < SHOWN; i++)
        base_str_add(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    st = base_fail(BASE_ERR_DATA,
                   "there is no column '%s' as in the training%s%s%s; its columns "
                   "are %s%s",
                   name, nearest >= 0 ? " ('" : "", nearest >= 0 ? names[nearest] : "",
                   nearest >= 0 ? "' is like it)" : "", list.text, count > SHOWN ? ", …" : "");
    base_str_fini(&list);
    return st;
}

/* places[i] of column i of the file: an input's index, column_count for the target, or none. */
static base_status place_columns(char *const *names, size_t count, bool any_class, struct csv *s,
                                 int *places)
{
    const struct data_table *table = &s->table;
    int target = table->column_count;

    for (size_t i = 0; i < count; i++) {
        places[i] = data_table_find(table, names[i]);
        if (strcmp(names[i], table->target.name) == 0)
            places[i] = target;
    }
    for (int column = 0; column <= target; column++) {
        const char *name = column < target ? table->columns[column].name : table->target.name;
        size_t i = 0;

        while (i < count && places[i] != column)
            i++;
        if (i == count && !(column == target && any_class))
            return lacks_column(name, names, count);
    }
    return BASE_OK;
}

/* ---- rows ---- */

/* The label of a row's target, or its number among the cells. */
static base_status take_target(const char *text, bool any_class, struct csv *s, int32_t *label_p,
                               double *cell_p)
{
    const struct data_column *target = &s->table.target;
    base_status st = BASE_OK;

    *label_p = DATA_NO_LABEL;
    *cell_p = NAN;
    if (data_is_missing(text) && !any_class)
        TRY(base_fail(BASE_ERR_DATA, "the target '%s' is missing", target->name));
    if (data_is_missing(text))
        goto out;
    TRY(data_column_cell(target, text, cell_p));
    if (target->kind == DATA_NUMBER)
        goto out;
    if (*cell_p < 0 && !any_class)
        TRY(base_fail(BASE_ERR_DATA, "'%s' is none of the %d classes of '%s': %s, %s%s", text,
                      target->category_count, target->name, target->categories[0],
                      target->categories[1], target->category_count > 2 ? ", …" : ""));
    *label_p = (int32_t)*cell_p;
out:
    return st;
}

static void count_unusual(struct csv *s, const struct data_csv *reader, int column,
                          const char *text, double cell)
{
    if (s->table.columns[column].kind == DATA_NUMBER) {
        s->filled[column] += isnan(cell) ? 1 : 0;
        return;
    }
    if (cell >= 0)
        return;
    s->unknown++;
    if (s->unknown_such == NULL)
        s->unknown_such =
            base_format("'%s' in column '%s', line %llu", text, s->table.columns[column].name,
                        (unsigned long long)reader->line);
}

/* The record that was read becomes row `rows->count`. */
static base_status take_row(struct csv *s, struct rows *rows, const struct data_csv *reader,
                            const int *places, size_t count, bool any_class)
{
    base_status st = BASE_OK;
    int inputs = s->table.column_count;
    double *cells = rows->cells + (size_t)rows->count * (size_t)(inputs + 1);
    int32_t label = DATA_NO_LABEL;

    if (reader->count != count)
        TRY(base_fail(BASE_ERR_DATA, "%zu fields, but the first line has %zu", reader->count,
                      count));
    cells[inputs] = NAN;
    for (size_t i = 0; i < count; i++) {
        const char *text = data_csv_field(reader, i);

        if (places[i] == inputs)
            TRY(take_target(text, any_class, s, &label, &cells[inputs]));
        else if (places[i] != PLACE_NONE)
            TRY(data_column_cell(&s->table.columns[places[i]], text, &cells[places[i]]));
    }
    for (size_t i = 0; i < count; i++) /* of rows that are kept alone */
        if (places[i] != PLACE_NONE && places[i] != inputs)
            count_unusual(s, reader, places[i], data_csv_field(reader, i), cells[places[i]]);
    if (rows->labels != NULL)
        rows->labels[rows->count] = label;
    rows->count++;
out:
    return st;
}

static base_status leave_out(struct csv *s, const struct rows *rows, uint32_t most)
{
    const char *message = base_message();

    if (s->bad_count < most) {
        s->bad = base_realloc(s->bad, s->bad_count + 1, sizeof *s->bad);
        s->bad[s->bad_count++] = base_format("%s %s", rows->path, message);
        return BASE_OK;
    }
    if (most == 0)
        return base_prefix(BASE_ERR_DATA, "%s", rows->path);
    return base_fail(BASE_ERR_DATA, "more than --skip-bad %u lines cannot be used, such as %s",
                     most, s->bad[0]);
}

/* At least as many as the file has rows of `fields` fields: lines, of which the last may lack its
 * end, but no more than bytes suffice for. Blank lines of a wide table take no memory. */
static base_status make_room(struct csv *s, struct rows *rows, size_t fields)
{
    base_status st = BASE_OK;
    const char *at = rows->bytes, *end = at + rows->size;
    size_t lines = 1, most = rows->size / fields + 1, cells;

    for (; at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        lines++;
    lines = lines < most ? lines : most;
    if (lines > UINT32_MAX)
        TRY(base_fail(BASE_ERR_DATA, "%s holds too many rows", rows->path));
    TRY(base_mul(lines, (size_t)s->table.column_count + 1, &cells));
    TRY(base_tensor(cells, sizeof *rows->cells, "the rows of a table", &rows->cells));
    if (s->table.target.kind == DATA_CATEGORY)
        TRY(base_tensor(lines, sizeof *rows->labels, "labels", &rows->labels));
out:
    return st;
}

static base_status read_rows(struct csv *s, struct rows *rows, const struct data_options *options)
{
    base_status st = BASE_OK;
    struct data_csv reader = {0};
    char **names = NULL;
    size_t count = 0;
    int *places = NULL;

    data_csv_init(&reader, rows->bytes, rows->size);
    TRY(base_prefix(data_survey_header(&reader, &names, &count), "%s", rows->path));
    places = base_calloc(count, sizeof *places);
    TRY(base_prefix(place_columns(names, count, options->any_class, s, places), "%s", rows->path));
    TRY(make_room(s, rows, count));
    for (bool more = true; more;) {
        st = data_csv_next(&reader, &more);
        if (st == BASE_OK && more)
            st = base_prefix(take_row(s, rows, &reader, places, count, options->any_class),
                             "line %llu", (unsigned long long)reader.line);
        if (st != BASE_OK)
            TRY(leave_out(s, rows, options->skip_bad));
    }
out:
    data_csv_fini(&reader);
    base_names_free(names, count);
    base_free(places);
    return st;
}

/* ---- what a person should know ---- */

static void tell(struct csv *s)
{
    struct base_str filled = {0};

    for (int i = 0; i < s->table.column_count; i++)
        if (s->filled[i] > 0)
            base_str_add(&filled, "%s%s %zu", filled.length > 0 ? ", " : "",
                         s->table.columns[i].name, s->filled[i]);
    if (filled.length > 0)
        base_str_add(&s->notes, "missing numbers take the mean of the training part: %s\n",
                     filled.text);
    base_str_fini(&filled);
    if (s->unknown > 0)
        base_str_add(&s->notes,
                     "%zu field%s of categories that the training did not have count as none of "
                     "them, such as %s\n",
                     s->unknown, base_plural((int64_t)s->unknown), s->unknown_such);
    for (size_t i = 0; i < s->bad_count; i++)
        base_str_add(&s->notes, "left out: %s\n", s->bad[i]);
    if (s->bad_count > 0)
        base_str_add(&s->notes, "%zu line%s left out (--skip-bad)\n", s->bad_count,
                     base_plural((int64_t)s->bad_count));
}

/* ---- the format ---- */

static void csv_close(void *state)
{
    struct csv *s = state;

    if (s == NULL)
        return;
    for (int part = 0; part < DATA_PARTS; part++) {
        base_free(s->parts[part].path);
        base_free(s->parts[part].bytes);
        base_free(s->parts[part].cells);
        base_free(s->parts[part].labels);
    }
    base_names_free(s->bad, s->bad_count);
    base_str_fini(&s->notes);
    base_free(s->filled);
    base_free(s->unknown_such);
    data_table_fini(&s->table);
    base_free(s);
}

/* The files' bytes, and what they are read as. */
static void digest(const struct csv *s, char hex[BASE_SHA256_HEX])
{
    struct base_str text = {0};

    for (int part = 0; part < DATA_PARTS; part++) {
        char bytes[BASE_SHA256_HEX];

        base_sha256(s->parts[part].bytes, s->parts[part].size, bytes);
        base_str_add(&text, "%s\n", bytes);
    }
    base_str_add(&text, "%s %d\n", s->table.target.name, s->table.target.kind);
    for (int i = 0; i < s->table.column_count; i++)
        base_str_add(&text, "%s %d\n", s->table.columns[i].name, s->table.columns[i].kind);
    base_sha256(text.text, text.length, hex);
    base_str_fini(&text);
}

static base_status csv_open(const char *path, const struct data_options *options,
                            struct data_source *source_p)
{
    base_status st = BASE_OK;
    struct csv *s = base_calloc(1, sizeof *s);
    struct data_column *target = &s->table.target;

    find_files(path, s);
    for (int part = 0; part < DATA_PARTS; part++)
        if (s->parts[part].path != NULL)
            TRY(base_file_read(s->parts[part].path, file_limit, &s->parts[part].bytes,
                               &s->parts[part].size));
    TRY(describe(options, s));
    s->filled = base_calloc((size_t)s->table.column_count, sizeof *s->filled);
    for (int part = 0; part < DATA_PARTS; part++)
        if (s->parts[part].path != NULL)
            TRY(read_rows(s, &s->parts[part], options));
    tell(s);
    *source_p = (struct data_source){
        .channels = s->table.features,
        .height = 1,
        .width = 1,
        .classes = target->kind == DATA_CATEGORY ? target->category_count : 1,
        .class_names = target->kind == DATA_CATEGORY ? target->categories : &target->name,
        .table = &s->table,
        .undivided = !base_is_dir(path),
        .notes = s->notes.text,
        .bad = s->bad,
        .bad_count = s->bad_count};
    for (int part = 0; part < DATA_PARTS; part++) {
        source_p->count[part] = s->parts[part].count;
        source_p->labels[part] = s->parts[part].labels;
    }
    digest(s, source_p->digest);
    for (int part = 0; part < DATA_PARTS; part++) {
        base_free(s->parts[part].bytes);
        s->parts[part].bytes = NULL;
    }
    source_p->state = s;
    s = NULL;
out:
    csv_close(s);
    return st;
}

static const double *csv_cells(const void *state, enum data_part part, uint32_t index,
                               double room[DATA_ROOM])
{
    const struct csv *s = state;

    (void)room;
    return s->parts[part].cells + (size_t)index * (size_t)(s->table.column_count + 1);
}

const struct data_format data_format_csv = {
    .name = "csv",
    .help = "a table in a .csv or .tsv file, or in train.csv and test.csv of a folder",
    .recognise = csv_recognise,
    .open = csv_open,
    .cells = csv_cells,
    .close = csv_close,
};
