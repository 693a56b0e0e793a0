/* SPDX-License-Identifier: MIT */
#include "report/braille.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/axis.h"
#include "report/svg_private.h"

enum { LEAST_COLUMNS = 30, LEAST_ROWS = 8, ACROSS = 2, DOWN = 4, LABEL = 10 };

struct canvas {
    int columns, rows; /* in places */
    uint8_t *dots;     /* (rows, columns): the dots of each place */
    uint8_t *colour;   /* likewise: 1 + the series that was drawn there last */
    char *letters;     /* likewise: of the series that ends there; 0: none */
    struct report_axis x, y;
};

/* ANSI colours that are readable on black and on white. */
static const char *const colours_of[] = {"34", "33", "32", "35", "36", "31", "94", "90"};

static void set_dot(struct canvas *c, int x, int y, size_t series)
{
    /* Bits of a braille character by column and row of the dot. */
    static const uint8_t bits[DOWN][ACROSS] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    int at;

    if (x < 0 || y < 0 || x >= ACROSS * c->columns || y >= DOWN * c->rows)
        return;
    at = y / DOWN * c->columns + x / ACROSS;
    c->dots[at] |= bits[y % DOWN][x % ACROSS];
    c->colour[at] = (uint8_t)(1 + series % (sizeof colours_of / sizeof *colours_of));
}

static void draw_line(struct canvas *c, int x0, int y0, int x1, int y1, size_t series)
{
    int steps = abs(x1 - x0) > abs(y1 - y0) ? abs(x1 - x0) : abs(y1 - y0);

    for (int i = 0; i <= steps; i++) {
        double share = steps > 0 ? (double)i / steps : 0;

        set_dot(c, (int)lround(x0 + share * (x1 - x0)), (int)lround(y0 + share * (y1 - y0)),
                series);
    }
}

static void draw_series(struct canvas *c, const struct report_chart *chart, size_t series)
{
    const struct report_series *s = &chart->series[series];
    const int width = ACROSS * c->columns - 1, height = DOWN * c->rows - 1;
    int last_x = 0, last_y = 0;
    bool pen_down = false;

    for (size_t i = 0; i < s->count; i++) {
        int x, y;

        if (!svg_drawn(chart, s, i)) {
            pen_down = false;
            continue;
        }
        x = (int)lround(width * report_axis_place(&c->x, s->x[i]));
        y = (int)lround(height * (1 - report_axis_place(&c->y, s->y[i])));
        draw_line(c, pen_down ? last_x : x, pen_down ? last_y : y, x, y, series);
        last_x = x;
        last_y = y;
        pen_down = true;
    }
}

/* Without colours a letter tells lines apart, where each of them ends; of lines that end in one
 * place, the later ones have it further left. */
static char letter_of(size_t series)
{
    return (char)('a' + series);
}

static void put_letter(struct canvas *c, const struct report_chart *chart, size_t series)
{
    const struct report_series *s = &chart->series[series];
    size_t last = s->count;
    int row, column;

    while (last > 0 && !svg_drawn(chart, s, last - 1))
        last--;
    if (last == 0)
        return;
    column =
        (int)lround((ACROSS * c->columns - 1) * report_axis_place(&c->x, s->x[last - 1])) / ACROSS;
    row = (int)lround((DOWN * c->rows - 1) * (1 - report_axis_place(&c->y, s->y[last - 1]))) / DOWN;
    if (row < 0 || row >= c->rows || column >= c->columns)
        return;
    while (column >= 0 && c->letters[row * c->columns + column] != 0)
        column--;
    if (column >= 0)
        c->letters[row * c->columns + column] = letter_of(series);
}

/* The text of a tick in this row, or blanks. */
static void put_label(const struct canvas *c, int row, struct base_str *text)
{
    char label[REPORT_TICK_TEXT] = "";
    bool tick = false;

    for (int i = 0; i < c->y.count; i++)
        if ((int)lround((c->rows - 1) * (1 - report_axis_place(&c->y, c->y.at[i]))) == row) {
            report_axis_text(&c->y, c->y.at[i], label);
            tick = true;
        }
    base_str_add(text, "%*s %s", LABEL - 2, label, tick ? "┤" : "│");
}

static void put_row(const struct canvas *c, int row, bool colours, struct base_str *text)
{
    int now = 0;

    put_label(c, row, text);
    for (int column = 0; column < c->columns; column++) {
        int at = row * c->columns + column, colour = colours ? c->colour[at] : 0;
        const int code = 0x2800 + c->dots[at];

        if (colour != now)
            base_str_add(text, "\x1b[%sm", colour > 0 ? colours_of[colour - 1] : "0");
        now = colour;
        if (c->letters[at] != 0)
            base_str_add(text, "%c", c->letters[at]);
        else if (c->dots[at] == 0)
            base_str_add(text, " ");
        else
            base_str_add(text, "%c%c%c", 0xe0 | code >> 12, 0x80 | (code >> 6 & 0x3f),
                         0x80 | (code & 0x3f));
    }
    base_str_add(text, now > 0 ? "\x1b[0m\n" : "\n");
}

/* The axis with its ticks, and a line of their texts, centred where they do not touch. */
static void put_x_axis(const struct canvas *c, struct base_str *text)
{
    int width = LABEL + c->columns, end = 0;
    char *labels = base_calloc((size_t)width + REPORT_TICK_TEXT, 1);

    memset(labels, ' ', (size_t)width);
    base_str_add(text, "%*s└", LABEL - 1, "");
    for (int column = 0; column < c->columns; column++) {
        bool tick = false;

        for (int i = 0; i < c->x.count; i++) {
            char label[REPORT_TICK_TEXT];
            int from, length;

            if ((int)lround((c->columns - 1) * report_axis_place(&c->x, c->x.at[i])) != column)
                continue;
            tick = true;
            report_axis_text(&c->x, c->x.at[i], label);
            length = (int)strlen(label);
            from = LABEL + column - length / 2;
            from = from + length > width ? width - length : from;
            if (from > end) {
                memcpy(labels + from, label, (size_t)length);
                end = from + length;
            }
        }
        base_str_add(text, tick ? "┬" : "─");
    }
    while (width > 0 && labels[width - 1] == ' ')
        labels[--width] = '\0';
    base_str_add(text, "\n%s\n", labels);
    base_free(labels);
}

/* Text after the labels' column, cut where the terminal ends. */
static void put_cut(struct base_str *text, const char *what, int most)
{
    base_str_column(text, what, -most);
    while (text->length > 0 && text->text[text->length - 1] == ' ')
        text->text[--text->length] = '\0';
    base_str_add(text, "\n");
}

static void put_legend(const struct report_chart *chart, int columns, bool colours,
                       struct base_str *text)
{
    const size_t known = sizeof colours_of / sizeof *colours_of;
    const int room = columns - 3 < SVG_NAME_LETTERS ? columns - 3 : SVG_NAME_LETTERS;

    for (size_t i = 0; i < chart->series_count && i < SVG_KEYS; i++) {
        base_str_add(text, "%*s", LABEL, "");
        if (colours)
            base_str_add(text, "\x1b[%sm⠒⠒\x1b[0m ", colours_of[i % known]);
        else if (chart->series_count > 1)
            base_str_add(text, "⠒%c ", letter_of(i));
        else
            base_str_add(text, "⠒⠒ ");
        put_cut(text, chart->series[i].name, room);
    }
    if (chart->series_count > SVG_KEYS)
        base_str_add(text, "%*s… and %zu more\n", LABEL, "", chart->series_count - SVG_KEYS);
}

void report_braille_lines(const struct report_chart *chart, int columns, int rows, bool colours,
                          struct base_str *text)
{
    struct svg_range x = {INFINITY, -INFINITY, false}, y = {INFINITY, -INFINITY, false};
    int keys = (int)(chart->series_count < SVG_KEYS ? chart->series_count : SVG_KEYS + 1);
    struct canvas c;
    char *title;

    columns = columns > LEAST_COLUMNS ? columns : LEAST_COLUMNS;
    rows = rows - 3 - keys > LEAST_ROWS ? rows - 3 - keys : LEAST_ROWS;
    c = (struct canvas){.columns = columns - LABEL,
                        .rows = rows,
                        .dots = base_calloc((size_t)columns * (size_t)rows, 1),
                        .colour = base_calloc((size_t)columns * (size_t)rows, 1),
                        .letters = base_calloc((size_t)columns * (size_t)rows, 1)};
    title = base_format("%s, over %s", chart->title, chart->x_title);
    svg_ranges(chart, &x, &y);
    svg_fit(x, chart->log_x, &c.x);
    svg_fit(y, chart->log_y, &c.y);
    if (x.high > c.x.low && x.low <= x.high)
        report_axis_end(&c.x, x.high);
    for (size_t i = 0; i < chart->series_count; i++)
        draw_series(&c, chart, i);
    for (size_t i = 0; i < chart->series_count && i < SVG_KEYS; i++)
        if (!colours && chart->series_count > 1)
            put_letter(&c, chart, i);
    base_str_add(text, "%*s", LABEL, "");
    put_cut(text, title, c.columns);
    for (int row = 0; row < c.rows; row++)
        put_row(&c, row, colours, text);
    put_x_axis(&c, text);
    put_legend(chart, c.columns, colours, text);
    base_free(title);
    base_free(c.letters);
    base_free(c.dots);
    base_free(c.colour);
}
