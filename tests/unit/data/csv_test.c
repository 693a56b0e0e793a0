/* SPDX-License-Identifier: MIT
 *
 * Records of CSV files; tables made of them: kinds of columns, the target, missing values,
 * categories, standardisation, parts, lines that cannot be used, a trained model's table.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "data/data_private.h"
#include "data/loader.h"
#include "data/table.h"
#include "support/datafiles.h"

/* ---- records ---- */

/* All records as text: fields between |, a line each; a bad record is "bad". */
static char *parse(const char *text, size_t count)
{
    struct data_csv csv;
    struct base_str s = {0};

    data_csv_init(&csv, text, count);
    base_str_add(&s, "%s", "");
    for (bool more = true; more;) {
        base_status st = data_csv_next(&csv, &more);

        for (size_t i = 0; st == BASE_OK && more && i < csv.count; i++)
            base_str_add(&s, "%s%s", i > 0 ? "|" : "", data_csv_field(&csv, i));
        if (more)
            base_str_add(&s, "%s\n", st == BASE_OK ? "" : "bad");
    }
    data_csv_fini(&csv);
    return base_str_take(&s);
}

static void parses_to(const char *text, const char *records)
{
    char *found = parse(text, strlen(text));

    assert_string_equal(found, records);
    base_free(found);
}

static void test_records(void **state)
{
    (void)state;
    parses_to("", "");
    parses_to("a,b\n1,2\n", "a|b\n1|2\n");
    parses_to("a,b\r\n1,2\r\n", "a|b\n1|2\n");
    parses_to("\xef\xbb\xbf"
              "a,b\n1,2",
              "a|b\n1|2\n"); /* a mark of UTF-8, no end of the last line */
    parses_to("a;b\n1,5;2\n", "a|b\n1,5|2\n");
    parses_to("a\tb\n1\t\n", "a|b\n1|\n");
    parses_to("a,b\n\n\r\n1,2\n\n", "a|b\n1|2\n"); /* blank lines */
    parses_to("a,b,\n,,\n", "a|b|\n||\n");
    parses_to("a,\"b;;;\"\n\"1,\"\"x\"\"\",\"two\nlines\"\n", "a|b;;;\n1,\"x\"|two\nlines\n");
    parses_to("a,5\" disk\n", "a|5\" disk\n"); /* a quote inside a plain field is a character */
    parses_to("a\rb,c\n", "a\rb|c\n");
}

static void test_bad_records(void **state)
{
    static const char zero[] = "a,b\n1,\0\n2,3\n";
    char *found, *longer;

    (void)state;
    parses_to("a,b\n\"1\"x,2\n3,4\n", "a|b\nbad\n3|4\n");
    parses_to("a,b\n1,\"2\n3,4\n", "a|b\nbad\n"); /* a quote that stays open takes the rest */
    parses_to("a,b\n1,\xff\n3,4\n", "a|b\nbad\n3|4\n");
    found = parse(zero, sizeof zero - 1);
    assert_string_equal(found, "a|b\nbad\n2|3\n");
    base_free(found);
    longer = base_format("a,b\n%0*d,2\n3,4\n", DATA_CSV_MAX_FIELD + 1, 1);
    parses_to(longer, "a|b\nbad\n3|4\n");
    base_free(longer);
    longer = base_format("a,b\n\"%0*d\",2\n3,4\n", DATA_CSV_MAX_FIELD + 1, 1);
    parses_to(longer, "a|b\nbad\n3|4\n");
    base_free(longer);
}

static void test_line_numbers(void **state)
{
    static const char text[] = "a,b\n\"x\ny\",1\n\nbad,\"q\"q\n";
    struct data_csv csv;
    bool more;

    (void)state;
    data_csv_init(&csv, text, strlen(text));
    assert_int_equal(data_csv_next(&csv, &more), BASE_OK);
    assert_int_equal(data_csv_next(&csv, &more), BASE_OK);
    assert_int_equal(csv.line, 2);
    assert_int_equal(data_csv_next(&csv, &more), BASE_ERR_DATA);
    assert_string_equal(base_message(), "line 5: field 2 has text after its closing quote");
    data_csv_fini(&csv);
}

static void near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance))
        fail_msg("%.17g is not %.17g", a, b);
}

/* ---- fields ---- */

static void test_fields(void **state)
{
    static const char *const missing[] = {"",  " ",    "NA",   "nan",  "NaN",
                                          "?", "null", "NULL", "\tNA "};
    static const char *const texts[] = {"inf", "0x10", "1,5", "1 2", "e", "-", "1e999", "n/a", "."};
    struct {
        const char *text;
        double number;
    } numbers[] = {{"1", 1}, {" -2.5 ", -2.5}, {"+1e3", 1000}, {".5", .5}, {"7.", 7}};
    double number;

    (void)state;
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        assert_true(data_is_missing(missing[i]));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(data_is_missing(texts[i]));
        assert_false(data_is_number(texts[i], &number));
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_true(data_is_number(numbers[i].text, &number));
        near(number, numbers[i].number, 0);
    }
}

/* ---- tables ---- */

static char *folder;

static struct data_set *open_text(const char *text, const struct data_options *options)
{
    struct data_set *set = NULL;
    char *path = base_format("%s/t.csv", folder);

    support_write(folder, "t.csv", text, strlen(text));
    if (data_open(path, options, &set) != BASE_OK)
        fail_msg("%s", base_message());
    base_free(path);
    return set;
}

static void fails_with(const char *text, const struct data_options *options, const char *part)
{
    struct data_set *set = NULL;
    char *path = base_format("%s/t.csv", folder);

    support_write(folder, "t.csv", text, strlen(text));
    assert_int_not_equal(data_open(path, options, &set), BASE_OK);
    if (strstr(base_message(), part) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), part);
    base_free(path);
}

static void test_kinds(void **state)
{
    const struct data_options options = {0};
    struct data_set *set =
        open_text("height,colour,what\n1,red,b\n3,blue,a\n,red,a\n5,,a\n", &options);
    const struct data_info *info = data_describe(set);
    const struct data_table *t = info->table;
    float x[4];

    (void)state;
    assert_int_equal(t->column_count, 2);
    assert_string_equal(t->columns[0].name, "height");
    assert_int_equal(t->columns[0].kind, DATA_NUMBER);
    near(t->columns[0].mean, 3, 0);
    near(t->columns[0].deviation, sqrt(8.0 / 3), 1e-15);
    assert_int_equal(t->columns[1].category_count, 3); /* missing, blue, red */
    assert_string_equal(t->columns[1].categories[0], "");
    assert_string_equal(t->columns[1].categories[1], "blue");
    assert_string_equal(t->target.name, "what");
    assert_int_equal(info->channels, 4);
    assert_int_equal(info->height, 1);
    assert_int_equal(info->classes, 2);
    assert_string_equal(info->class_names[0], "a");
    assert_false(data_is_regression(info));
    assert_int_equal(info->count[DATA_TRAIN], 4);
    assert_int_equal(data_label(set, DATA_TRAIN, 0), 1);
    data_features(set, DATA_TRAIN, 0, x);
    near((double)x[0], -2 / sqrt(8.0 / 3), 1e-6);
    assert_true(x[1] == 0 && x[2] == 0 && x[3] == 1);
    data_features(set, DATA_TRAIN, 2, x);
    assert_true(x[0] == 0); /* the mean */
    data_features(set, DATA_TRAIN, 3, x);
    assert_true(x[1] == 1 && x[2] == 0 && x[3] == 0);
    data_close(set);
}

/* `count` rows: in `row` # is the number of the row, @ that number modulo 3. */
static char *rows_of(const char *header, int count, const char *row)
{
    struct base_str s = {0};

    base_str_add(&s, "%s\n", header);
    for (int i = 0; i < count; i++) {
        for (const char *at = row; *at != '\0'; at++)
            if (*at == '#' || *at == '@')
                base_str_add(&s, "%d", *at == '#' ? i : i % 3);
            else
                base_str_append(&s, at, 1);
        base_str_add(&s, "\n");
    }
    return base_str_take(&s);
}

/* Codes are classes in the order of their numbers; many numbers are a regression; a person may say
 * otherwise. */
static void test_targets(void **state)
{
    const char *const wishes[] = {"y=number"}, *const category[] = {"x=category"};
    char *codes = rows_of("x,y", 30, "#,@"), *numbers = rows_of("k,x", 30, "@,#");
    struct data_set *set = open_text(codes, &(struct data_options){0});

    (void)state;
    assert_int_equal(data_describe(set)->classes, 3);
    assert_string_equal(data_describe(set)->class_names[2], "2");
    data_close(set);
    set = open_text(codes, &(struct data_options){.wishes = wishes, .wish_count = 1});
    assert_true(data_is_regression(data_describe(set)));
    assert_int_equal(data_describe(set)->classes, 1);
    near((double)data_number(set, DATA_TRAIN, 0), -1 / sqrt(2.0 / 3), 1e-6);
    data_close(set);
    set = open_text(numbers, &(struct data_options){0});
    assert_true(data_is_regression(data_describe(set)));
    data_close(set);
    set = open_text(numbers, &(struct data_options){.target = "k"});
    assert_int_equal(data_describe(set)->classes, 3);
    data_close(set);
    set = open_text(numbers, &(struct data_options){.wishes = category, .wish_count = 1});
    assert_int_equal(data_describe(set)->classes, 30);
    assert_string_equal(data_describe(set)->class_names[10], "10"); /* not behind "1" */
    data_close(set);
    base_free(codes);
    base_free(numbers);
}

static void test_wrong_wishes(void **state)
{
    const char *const nameless[] = {"number"}, *const unknown[] = {"hight=number"},
                      *const kind[] = {"height=nmber"}, *const ignored[] = {"what=ignore"};
    const char *text = "height,what\n1,a\n2,b\n";

    (void)state;
    fails_with(text, &(struct data_options){.target = "wat"},
               "unknown target column 'wat'; did you mean 'what'?");
    fails_with(text, &(struct data_options){.wishes = nameless, .wish_count = 1},
               "--column takes NAME=number");
    fails_with(text, &(struct data_options){.wishes = unknown, .wish_count = 1},
               "did you mean 'height'?");
    fails_with(text, &(struct data_options){.wishes = kind, .wish_count = 1},
               "did you mean 'number'?");
    fails_with(text, &(struct data_options){.wishes = ignored, .wish_count = 1},
               "it is the target");
}

/* A text among codes is a mistake, not a class of its own. */
static void test_mistaken_code(void **state)
{
    char *codes = rows_of("x,y", 30, "#,@"), *text = base_format("%s7,err\n", codes);
    struct data_set *set = open_text(text, &(struct data_options){.skip_bad = 1});

    (void)state;
    assert_int_equal(data_describe(set)->classes, 3);
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 30);
    data_close(set);
    fails_with(text, &(struct data_options){0}, "line 32: 'err' is none of the 3 classes of 'y'");
    base_free(codes);
    base_free(text);
}

/* Texts that hardly occur twice are names; a column without values says nothing. */
static void test_left_out(void **state)
{
    char *text = rows_of("name,empty,x,y", 30, "person #,NA,#,@");
    struct data_set *set = open_text(text, &(struct data_options){0});

    (void)state;
    assert_int_equal(data_describe(set)->table->column_count, 1);
    assert_string_equal(data_describe(set)->table->columns[0].name, "x");
    data_close(set);
    fails_with("a\nx\ny\n", &(struct data_options){0}, "there is no column to predict 'a' from");
    fails_with("a,b\n1,x\n2,x\n", &(struct data_options){0}, "is always 'x'");
    fails_with("a,b\n", &(struct data_options){0}, "'b' has no values");
    fails_with("", &(struct data_options){0}, "holds no rows");
    base_free(text);
}

static void test_no_header(void **state)
{
    struct data_set *set = open_text("5.1,3.5,setosa\n4.9,3.0,other\n", &(struct data_options){0});

    (void)state;
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 2);
    assert_string_equal(data_describe(set)->table->target.name, "column3");
    data_close(set);
}

/* Names are the same whatever blanks are around them, and a column without one has the name of its
 * place: such a line is no header. */
static void test_names_twice(void **state)
{
    (void)state;
    fails_with("a, a,y\n1,2,p\n3,4,q\n5,6,p\n7,8,q\n9,1,p\n2,3,q\n4,5,p\n6,7,q\n8,9,p\n",
               &(struct data_options){0}, "line 1: 'a' in column 'column1' is not a number");
    fails_with("column2,,y\n1,2,p\n3,4,q\n5,6,p\n7,8,q\n9,1,p\n2,3,q\n4,5,p\n6,7,q\n8,9,p\n",
               &(struct data_options){0}, "line 1: 'column2' in column 'column1'");
}

/* Blank lines take no memory: eight million of them times 4,000 columns would be 256 GB. */
static void test_blank_lines(void **state)
{
    enum { COLUMNS = 4000, BLANKS = 8000000 };
    struct base_str s = {0};
    char *blanks = base_calloc(BLANKS + 1, 1);
    struct data_set *set;

    (void)state;
    for (int row = 0; row < 3; row++)
        for (int i = 0; i < COLUMNS; i++)
            base_str_add(&s, row == 0 ? "c%d%s" : "%d%s", row == 0 ? i : row + i,
                         i + 1 < COLUMNS ? "," : "\n");
    memset(blanks, '\n', BLANKS);
    base_str_append(&s, blanks, BLANKS);
    set = open_text(s.text, &(struct data_options){0});
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 2);
    data_close(set);
    base_str_fini(&s);
    base_free(blanks);
}

/* As many categories as there may be, and a missing value as one more, which no manifest takes. */
static void test_most_categories(void **state)
{
    struct base_str s = {0};
    struct data_set *set;
    const char *const wish = "k=category";

    (void)state;
    base_str_add(&s, "k,x,y\n");
    for (int i = 0; i < DATA_MAX_CATEGORIES; i++)
        base_str_add(&s, "n%d,%d,%c\n", i, i, "pq"[i % 2]);
    set = open_text(s.text, &(struct data_options){.wishes = &wish, .wish_count = 1});
    assert_int_equal(data_describe(set)->table->columns[0].category_count, DATA_MAX_CATEGORIES);
    data_close(set);
    base_str_add(&s, ",1,p\n");
    fails_with(s.text, &(struct data_options){.wishes = &wish, .wish_count = 1},
               "column 'k' has more than 1000 categories");
    base_str_fini(&s);
}

static void test_bad_lines(void **state)
{
    char *good = rows_of("x,y", 40, "#,c@");
    char *text = base_format("%s1\n2,c1,3\nabc,c1\n3,\n4,\"c1\n", good);
    struct data_set *set = open_text(text, &(struct data_options){.skip_bad = 5});
    const struct data_info *info = data_describe(set);

    (void)state;
    assert_int_equal(info->count[DATA_TRAIN], 40);
    assert_int_equal(info->bad_count, 5);
    assert_non_null(strstr(info->bad[0], "line 42: 1 fields, but the first line has 2"));
    assert_non_null(strstr(info->bad[2], "line 44: 'abc' in column 'x' is not a number"));
    assert_non_null(strstr(info->bad[3], "line 45: the target 'y' is missing"));
    assert_non_null(strstr(info->bad[4], "line 46: a quote is opened and not closed"));
    data_close(set);
    fails_with(text, &(struct data_options){0}, "t.csv: line 42: 1 fields");
    fails_with(text, &(struct data_options){.skip_bad = 4}, "more than --skip-bad 4 lines");
    base_free(good);
    base_free(text);
}

/* ---- parts ---- */

static void test_split(void **state)
{
    char *text = rows_of("x,y", 100, "#,c@");
    struct data_options options = {.test_share = 0.2, .seed = 7};
    struct data_set *set = open_text(text, &options), *with_validation;
    float a, b;
    double sum = 0;

    (void)state;
    options.validation = 0.25;
    with_validation = open_text(text, &options);
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 80);
    assert_int_equal(data_describe(set)->count[DATA_TEST], 20);
    assert_int_equal(data_describe(with_validation)->count[DATA_TRAIN], 60);
    assert_int_equal(data_describe(with_validation)->count[DATA_VALIDATION], 20);
    for (uint32_t i = 0; i < 20;
         i++) { /* the test rows are the same, and their statistics not in */
        assert_int_equal(data_label(set, DATA_TEST, i), data_label(with_validation, DATA_TEST, i));
        data_features(set, DATA_TEST, i, &a);
        data_features(with_validation, DATA_TEST, i, &b);
        assert_true(a != b);
    }
    for (uint32_t i = 0; i < 80; i++) {
        data_features(set, DATA_TRAIN, i, &a);
        sum += (double)a;
    }
    near(sum, 0, 1e-4);
    assert_string_equal(data_describe(set)->digest, data_describe(with_validation)->digest);
    data_close(set);
    data_close(with_validation);
    base_free(text);
}

static void test_files_of_parts(void **state)
{
    struct data_set *set = NULL;
    char *path = base_format("%s/parts", folder);

    (void)state;
    support_write(folder, "parts/train.csv", "x,y\n1,a\n2,b\n3,a\n", 16);
    support_write(folder, "parts/test.csv", "y,extra,x\nb,0,9\n", 16);
    assert_int_equal(data_open(path, &(struct data_options){.test_share = 0.2}, &set), BASE_OK);
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 3);
    assert_int_equal(data_describe(set)->count[DATA_TEST], 1);
    assert_int_equal(data_label(set, DATA_TEST, 0), 1);
    data_close(set);
    support_write(folder, "parts/test.csv", "y,x\nc,9\n", 8);
    assert_int_equal(data_open(path, &(struct data_options){0}, &set), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "line 2: 'c' is none of the 2 classes of 'y': a, b"));
    support_write(folder, "parts/test.csv", "y,X\na,9\n", 8);
    assert_int_equal(data_open(path, &(struct data_options){0}, &set), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "there is no column 'x' as in the training"));
    base_free(path);
}

/* ---- a trained model's table ---- */

static void test_trained_table(void **state)
{
    struct data_set *trained = open_text("x,c,y\n1,red,a\n3,blue,b\n", &(struct data_options){0});
    const struct data_info *info = data_describe(trained);
    struct data_options options = {.table = info->table,
                                   .trained_on = info->digest,
                                   .classes = info->classes,
                                   .class_names = info->class_names,
                                   .test_share = 0.5};
    struct data_set *set = open_text("y,c,x\nb,green,5\n", &options);
    float x[3];

    (void)state;
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 0); /* all of another file is tested */
    assert_int_equal(data_describe(set)->count[DATA_TEST], 1);
    assert_int_equal(data_label(set, DATA_TEST, 0), 1);
    data_features(set, DATA_TEST, 0, x);
    assert_true(x[0] == 3 && x[1] == 0 && x[2] == 0); /* its scale; green was never seen */
    data_close(set);
    fails_with("c,x\nred,1\n", &options, "there is no column 'y'");
    options.any_class = true;
    set = open_text("c,x\nred,1\n", &options);
    assert_int_equal(data_label(set, DATA_TEST, 0), DATA_NO_LABEL);
    data_close(set);
    set = open_text("y,c,x\nother,red,1\nb,red,1\n", &options);
    assert_int_equal(data_label(set, DATA_TEST, 0), DATA_NO_LABEL);
    assert_int_equal(data_label(set, DATA_TEST, 1), 1);
    data_close(set);
    set = open_text("x,c,y\n1,red,a\n3,blue,b\n", &options); /* its own: as it was divided */
    assert_int_equal(data_describe(set)->count[DATA_TEST], 1);
    data_close(set);
    data_close(trained);
}

/* ---- batches ---- */

static void test_batches(void **state)
{
    char *text = rows_of("c,x", 50, "@,#");
    struct data_set *set = open_text(text, &(struct data_options){0});
    struct data_loader *loader = NULL;
    struct data_batch b;
    uint32_t ids[] = {3, 1, 4};

    (void)state;
    assert_int_equal(data_loader_new(set, DATA_TRAIN, 2, (struct data_share){0}, 1,
                                     (struct data_augment){.flip = true}, &loader),
                     BASE_ERR_USAGE);
    assert_int_equal(data_loader_new(set, DATA_TRAIN, 2, (struct data_share){0}, 1,
                                     (struct data_augment){0}, &loader),
                     BASE_OK);
    assert_int_equal(data_loader_begin(loader, 0, ids, 3), BASE_OK);
    assert_int_equal(data_loader_next(loader, &b), BASE_OK);
    assert_int_equal(b.count, 2);
    assert_non_null(b.numbers);
    for (uint32_t i = 0; i < 2; i++) {
        float x;

        data_features(set, DATA_TRAIN, ids[i], &x);
        assert_true(b.x[i] == x);
        assert_true(b.numbers[i] == data_number(set, DATA_TRAIN, ids[i]));
    }
    data_loader_free(loader);
    data_close(set);
    base_free(text);
}

static int set_up(void **state)
{
    (void)state;
    folder = support_scratch();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_scratch_free(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),         cmocka_unit_test(test_bad_records),
        cmocka_unit_test(test_line_numbers),    cmocka_unit_test(test_fields),
        cmocka_unit_test(test_kinds),           cmocka_unit_test(test_targets),
        cmocka_unit_test(test_wrong_wishes),    cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_no_header),       cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_names_twice),     cmocka_unit_test(test_blank_lines),
        cmocka_unit_test(test_most_categories), cmocka_unit_test(test_mistaken_code),
        cmocka_unit_test(test_split),           cmocka_unit_test(test_files_of_parts),
        cmocka_unit_test(test_trained_table),   cmocka_unit_test(test_batches),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
