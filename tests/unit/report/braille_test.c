/* SPDX-License-Identifier: MIT
 *
 * Charts for terminals: no line is wider than the terminal or higher, dots are where the values
 * are, and there are no colours where none were asked for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/braille.h"

static size_t widest(const char *text, size_t *lines_p)
{
    size_t most = 0, here = 0;

    *lines_p = 0;
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            most = here > most ? here : most;
            here = 0;
            ++*lines_p;
        } else {
            here += ((unsigned char)*text & 0xc0) != 0x80;
        }
    }
    return most;
}

static const double up_x[] = {0, 1, 2, 3}, up_y[] = {0, 10, 20, 30};

static struct report_chart chart_of(const struct report_series *series, size_t count)
{
    return (struct report_chart){.title = "one: loss",
                                 .x_title = "step",
                                 .y_title = "loss",
                                 .series = series,
                                 .series_count = count};
}

static void test_size(void **state)
{
    struct report_series series[40];

    (void)state;
    for (size_t i = 0; i < 40; i++)
        series[i] =
            (struct report_series){.name = "a name that is longer than forty characters wide",
                                   .x = up_x,
                                   .y = up_y,
                                   .count = 4};
    for (int columns = 30; columns < 200; columns += 7)
        for (size_t count = 1; count <= 40; count += 13) {
            struct report_chart chart = chart_of(series, count);
            struct base_str text = {0};
            size_t lines;

            report_braille_lines(&chart, columns, 50, false, &text);
            assert_true(widest(text.text, &lines) <= (size_t)columns);
            assert_true(lines <= 50);
            assert_true(base_is_utf8(text.text));
            assert_null(strchr(text.text, '\x1b'));
            base_str_fini(&text);
        }
}

/* A line that rises: the first row has its dots on the right, the last on the left. */
static void test_place(void **state)
{
    const struct report_series series = {.name = "up", .x = up_x, .y = up_y, .count = 4};
    struct report_chart chart = chart_of(&series, 1);
    struct base_str text = {0};
    const char *first, *second, *dot;

    (void)state;
    report_braille_lines(&chart, 50, 12, false, &text);
    first = strchr(text.text, '\n') + 1;
    second = strchr(first, '\n');
    dot = strstr(first, "\xe2\xa0"); /* U+2800 … 283F */
    dot = dot != NULL && dot < second ? dot : strstr(first, "\xe2\xa1");
    dot = dot != NULL && dot < second ? dot : strstr(first, "\xe2\xa2");
    assert_true(dot != NULL && dot < second && dot - first > 40);
    assert_non_null(strstr(first, "30 ┤"));
    assert_non_null(strstr(text.text, "one: loss, over step"));
    assert_non_null(strstr(text.text, "⠒⠒ up\n"));
    base_str_fini(&text);
}

static void test_colours_and_nothing(void **state)
{
    static const double gap_y[] = {1, NAN, INFINITY, 2};
    const struct report_series series[] = {{.name = "gap", .x = up_x, .y = gap_y, .count = 4},
                                           {.name = "none", .x = up_x, .y = up_y, .count = 0}};
    struct report_chart chart = chart_of(series, 2);
    struct base_str text = {0};

    (void)state;
    report_braille_lines(&chart, 40, 20, true, &text);
    assert_non_null(strstr(text.text, "\x1b[34m"));
    base_str_fini(&text);
    chart.series_count = 0;
    report_braille_lines(&chart, 0, 0, true, &text);
    assert_true(text.length > 0);
    base_str_fini(&text);
}

/* Without colours each line has its letter, also where lines end in one place. */
static void test_letters(void **state)
{
    static const double down_y[] = {30, 20, 10, 0};
    const struct report_series series[] = {{.name = "up", .x = up_x, .y = up_y, .count = 4},
                                           {.name = "down", .x = up_x, .y = down_y, .count = 4},
                                           {.name = "also", .x = up_x, .y = up_y, .count = 4}};
    struct report_chart chart = chart_of(series, 3);
    struct base_str text = {0};
    const char *first;

    (void)state;
    report_braille_lines(&chart, 50, 20, false, &text);
    first = strchr(text.text, '\n');
    assert_true(strncmp(strchr(first + 1, '\n') - 2, "ca", 2) == 0);
    assert_non_null(strstr(text.text, "b\n"));
    assert_non_null(strstr(text.text, "⠒a up\n"));
    assert_non_null(strstr(text.text, "⠒c also\n"));
    base_str_fini(&text);
    report_braille_lines(&chart, 50, 20, true, &text);
    assert_null(strstr(text.text, "⠒a up"));
    base_str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_letters),
        cmocka_unit_test(test_colours_and_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
