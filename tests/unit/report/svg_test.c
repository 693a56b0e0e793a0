/* SPDX-License-Identifier: MIT
 *
 * Pictures: what expat (Python's) takes for XML, whatever the names and values; the same text for
 * the same values; gaps, errors and legends where they belong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/svg.h"

static void assert_xml(const struct base_str *svg)
{
    FILE *parser = popen("/usr/bin/python3 -c 'import sys, xml.etree.ElementTree as e\n"
                         "r = e.fromstring(sys.stdin.buffer.read())\n"
                         "assert r.tag == \"{http://www.w3.org/2000/svg}svg\"\n"
                         "bad = [i for i in r.iter() if i.tag.endswith(\"script\") or \"id\" in "
                         "i.attrib or any(\"nan\" in v or \"inf\" in v for v in "
                         "i.attrib.values())]\n"
                         "assert not bad, bad'",
                         "w");

    assert_non_null(parser);
    assert_int_equal(fwrite(svg->text, 1, svg->length, parser), svg->length);
    assert_int_equal(pclose(parser), 0);
}

static int occurrences(const char *text, const char *word)
{
    int count = 0;

    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
        count++;
    return count;
}

static const double x[] = {1, 2, 3, 4}, y[] = {0.5, NAN, 2, 1e3}, deviations[] = {0.1, 0, NAN, 5};

static struct report_chart lines_of(const struct report_series *series, size_t count)
{
    return (struct report_chart){.title = "loss",
                                 .x_title = "epoch",
                                 .y_title = "loss",
                                 .series = series,
                                 .series_count = count};
}

static void test_lines(void **state)
{
    struct report_series series[] = {{"one", x, y, deviations, 4}, {"two", x, x, NULL, 4}};
    struct report_chart chart = lines_of(series, 2);
    struct base_str svg = {0}, again = {0};

    (void)state;
    report_svg_lines(&chart, &svg);
    assert_xml(&svg);
    assert_int_equal(occurrences(svg.text, "<path"), 2);
    assert_int_equal(occurrences(svg.text, "<circle"), 3 + 4); /* NAN is none */
    assert_int_equal(occurrences(svg.text, ">one<"), 1);       /* in the legend */
    assert_non_null(strstr(svg.text, "prefers-color-scheme:dark"));
    report_svg_lines(&chart, &again);
    assert_string_equal(svg.text, again.text);
    base_str_fini(&svg);
    base_str_fini(&again);

    chart.log_y = true;
    chart.log_x = true;
    report_svg_lines(&chart, &svg);
    assert_xml(&svg);
    base_str_fini(&svg);
}

static void test_points(void **state)
{
    struct report_series series[] = {{"one", x, y, NULL, 4}};
    struct report_chart chart = lines_of(series, 1);
    struct base_str svg = {0};

    (void)state;
    report_svg_points(&chart, &svg);
    assert_xml(&svg);
    assert_int_equal(occurrences(svg.text, "<path"), 0);
    assert_int_equal(occurrences(svg.text, "<circle"), 3); /* NAN is none */
    base_str_fini(&svg);
    series[0].count = 0;
    report_svg_points(&chart, &svg);
    assert_xml(&svg);
    base_str_fini(&svg);
}

/* Every dot has its name, and those that no other one is better than are joined. */
static void test_scatter(void **state)
{
    static const double bytes[] = {1e3, 1e5, 1e6, 1e7, 0}, accuracy[] = {97, 98.5, 98, 99, 99.5};
    struct report_series series[5];
    struct report_chart chart = lines_of(series, 5);
    struct base_str svg = {0};
    const char *path;

    (void)state;
    for (int i = 0; i < 5; i++)
        series[i] =
            (struct report_series){i == 2 ? "worse <" : "good", &bytes[i], &accuracy[i], NULL, 1};
    chart.log_x = true;
    report_svg_scatter(&chart, &svg);
    assert_xml(&svg);
    assert_int_equal(occurrences(svg.text, "<circle"), 4); /* 0 is on no logarithmic axis */
    assert_int_equal(occurrences(svg.text, ">good</text>"), 3);
    assert_int_equal(occurrences(svg.text, ">worse &lt;</text>"), 1);
    path = strstr(svg.text, "<path");
    assert_non_null(path);
    assert_int_equal(occurrences(path, "L"), 2); /* three dots of four */
    base_str_fini(&svg);
    chart.series_count = 0;
    report_svg_scatter(&chart, &svg);
    assert_xml(&svg);
    base_str_fini(&svg);
}

static void test_nothing_to_draw(void **state)
{
    static const double none[] = {NAN, INFINITY};
    struct report_series series = {"none", x, none, none, 2};
    struct report_chart chart = lines_of(&series, 1);
    struct base_str svg = {0};

    (void)state;
    report_svg_lines(&chart, &svg);
    assert_xml(&svg);
    assert_int_equal(occurrences(svg.text, "<circle"), 0);
    assert_int_equal(occurrences(svg.text, ">none<"), 0); /* one series needs no legend */
    base_str_fini(&svg);
    chart.series_count = 0;
    report_svg_lines(&chart, &svg);
    assert_xml(&svg);
    base_str_fini(&svg);
}

static void test_bars(void **state)
{
    static const double theirs[] = {1.5, 2, NAN, -3};
    const char *rows[] = {"a", "b", "c", "a name that is much longer than the room for it, by far"};
    struct report_series series[] = {{"ours", NULL, y, deviations, 4},
                                     {"theirs", NULL, theirs, NULL, 4}};
    struct report_chart chart = {.title = "times",
                                 .y_title = "seconds",
                                 .series = series,
                                 .series_count = 2,
                                 .rows = rows,
                                 .row_count = 4};
    struct base_str svg = {0};

    (void)state;
    report_svg_bars(&chart, &svg);
    assert_xml(&svg);
    assert_int_equal(occurrences(svg.text, "height=\"14\""), 3 + 3);
    assert_non_null(strstr(svg.text, ">0.5 ± 0.1<"));
    assert_non_null(strstr(svg.text, " the roo…<"));
    base_str_fini(&svg);
}

static void test_hostile_texts(void **state)
{
    static const char *const names[] = {"</text><script>alert(1)</script>",
                                        "a & b \"c\" 'd' ]]>",
                                        "tab\tbell\a\x7f\x1b[31m",
                                        "\xff\xfe not UTF-8 \xc3",
                                        "\xef\xbf\xbe\xef\xbf\xbf",
                                        "größer, 猫, 🐈",
                                        ""};
    enum { COUNT = sizeof names / sizeof *names };
    struct report_series series[COUNT];
    struct base_str svg = {0};

    (void)state;
    for (int i = 0; i < COUNT; i++)
        series[i] = (struct report_series){names[i], x, x, NULL, 4};
    for (int i = 0; i < COUNT; i++) {
        struct report_chart chart = {.title = names[i],
                                     .x_title = names[i],
                                     .y_title = names[i],
                                     .series = series,
                                     .series_count = COUNT,
                                     .rows = names,
                                     .row_count = 4};

        report_svg_lines(&chart, &svg);
        assert_xml(&svg);
        base_str_fini(&svg);
        for (int s = 0; s < COUNT; s++)
            series[s].x = NULL;
        report_svg_bars(&chart, &svg);
        assert_xml(&svg);
        base_str_fini(&svg);
        for (int s = 0; s < COUNT; s++)
            series[s].x = x;
    }
}

/* More series than colours, and more points than marks. */
static void test_many(void **state)
{
    enum { SERIES = 20, POINTS = 500 };
    struct report_series series[SERIES];
    double *values = base_calloc(POINTS, sizeof *values);
    struct report_chart chart = lines_of(series, SERIES);
    struct base_str svg = {0};

    (void)state;
    for (int i = 0; i < POINTS; i++)
        values[i] = i;
    for (int i = 0; i < SERIES; i++)
        series[i] = (struct report_series){"series", values, values, NULL, POINTS};
    report_svg_lines(&chart, &svg);
    assert_xml(&svg);
    assert_int_equal(occurrences(svg.text, "stroke-dasharray"), SERIES - 8);
    assert_int_equal(occurrences(svg.text, "<circle"), 0);
    base_str_fini(&svg);
    base_free(values);
}

/* A number is drawn where its box has room. */
static void test_timeline(void **state)
{
    const char *rows[] = {"worker 1", "worker <2>"};
    struct report_series series[] = {{.name = "forward"}, {.name = "back & forth"}};
    struct report_box boxes[] = {
        {0, 0, 0, 5, "17"}, {0, 1, 5, 5.01, "42"}, {1, 1, 2, 9.5, "19"}, {1, 0, 9.5, 9.5, ""}};
    struct report_chart chart = {.title = "a step",
                                 .x_title = "ms",
                                 .series = series,
                                 .series_count = 2,
                                 .rows = rows,
                                 .row_count = 2};
    struct base_str svg = {0};

    (void)state;
    report_svg_timeline(&chart, boxes, 4, &svg);
    assert_xml(&svg);
    assert_int_equal(occurrences(svg.text, "<rect class=\"pl-f"), 4 + 2); /* and the legend */
    assert_int_equal(occurrences(svg.text, ">17<"), 1);
    assert_int_equal(occurrences(svg.text, ">42<"), 0);
    assert_int_equal(occurrences(svg.text, ">19<"), 1);
    base_str_fini(&svg);
    report_svg_timeline(&chart, NULL, 0, &svg);
    assert_xml(&svg);
    base_str_fini(&svg);
}

/* A page's charts: its own style, a band, marks on the picture alone, labels in place of a legend.
 */
static void test_bare(void **state)
{
    static const double low[] = {0, NAN, 1, 900}, high[] = {1, NAN, 3, 1100};
    struct report_series series[] = {
        {.name = "train", .x = x, .y = y, .count = 4, .low = low, .high = high},
        {.name = "test", .x = x, .y = x, .count = 4}};
    struct report_mark marks[] = {{2, "lost <2>"}, {99, "outside"}, {NAN, "nowhere"}};
    struct report_chart chart = lines_of(series, 2);
    struct base_str svg = {0};
    const char *label;

    (void)state;
    chart.bare = true;
    chart.width = 440;
    chart.marks = marks;
    chart.mark_count = 3;
    report_svg_lines(&chart, &svg);
    assert_xml(&svg);
    assert_null(strstr(svg.text, "<style"));
    assert_null(strstr(svg.text, "pl-paper"));
    assert_non_null(strstr(svg.text, "width=\"440\""));
    assert_int_equal(occurrences(svg.text, "pl-band"), 1);
    assert_int_equal(occurrences(svg.text, "<g class=\"pl-mark\">"), 1);
    assert_non_null(strstr(svg.text, "lost &lt;2&gt;"));
    assert_non_null(strstr(svg.text, "class=\"pl-text pl-f1\" text-anchor=\"start\">test<"));
    base_str_fini(&svg);
    series[0].name = series[1].name = "m"; /* a wide letter, 11 pixels, fits beside the lines */
    report_svg_lines(&chart, &svg);
    label = strstr(svg.text, "\" class=\"pl-text pl-f1\"");
    assert_non_null(label);
    while (strncmp(label, "<text x=\"", 9) != 0)
        label--;
    assert_true(strtod(label + 9, NULL) + 11 <= 440);
    base_str_fini(&svg);
}

static void test_stack(void **state)
{
    static const double first[] = {1, -1, NAN}, second[] = {2, 3, INFINITY};
    static const char *const rows[] = {"a&b", "b", "c"};
    const struct report_series series[] = {{.name = "one", .y = first, .count = 3},
                                           {.name = "two", .y = second, .count = 3}};
    struct report_chart chart = {.title = "time",
                                 .x_title = "seconds",
                                 .series = series,
                                 .series_count = 2,
                                 .rows = rows,
                                 .row_count = 3};
    struct base_str svg = {0};

    (void)state;
    report_svg_stack(&chart, &svg);
    assert_xml(&svg);
    assert_int_equal(occurrences(svg.text, "</title></rect>"), 3);
    assert_non_null(strstr(svg.text, "a&amp;b: two 2<"));
    base_str_fini(&svg);
}

static void test_heat(void **state)
{
    static const char *const names[] = {"a name that is quite long", "<b>"};
    static const double values[] = {90, 10, 0, 0};
    struct base_str svg = {0};

    (void)state;
    report_svg_heat(&(struct report_heat){.title = "confusion",
                                          .row_title = "truth",
                                          .column_title = "prediction",
                                          .names = names,
                                          .values = values,
                                          .side = 2,
                                          .width = 440},
                    &svg);
    assert_xml(&svg);
    assert_int_equal(occurrences(svg.text, "</title></rect>"), 4);
    assert_non_null(strstr(svg.text, "→ &lt;b&gt;: 10<"));
    assert_non_null(strstr(svg.text, "a name that…"));
    base_str_fini(&svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),   cmocka_unit_test(test_points),
        cmocka_unit_test(test_scatter), cmocka_unit_test(test_nothing_to_draw),
        cmocka_unit_test(test_bars),    cmocka_unit_test(test_hostile_texts),
        cmocka_unit_test(test_many),    cmocka_unit_test(test_timeline),
        cmocka_unit_test(test_bare),    cmocka_unit_test(test_stack),
        cmocka_unit_test(test_heat),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
