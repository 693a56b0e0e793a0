/* SPDX-License-Identifier: MIT
 *
 * Pictures of rows: bars, bars that are stacked, and stretches of time.
 */
#include <math.h>
#include <stdio.h>

#include "report/svg_private.h"

enum { BAR = 14, ROW_GAP = 10, MANY_ROWS = 16 };

/* A bar and, at its end, its value in words: differences that the eye does not see can be read. */
static void put_bar(struct base_str *svg, const struct svg_frame *f, const struct report_series *s,
                    size_t series, size_t row, double top)
{
    double value = s->y[row], error = svg_error_at(s, row);
    double from = svg_x_of(f, 0), to = svg_x_of(f, value), middle = top + BAR / 2.0;
    double end = fmax(from, svg_x_of(f, value + error));
    char text[2 * REPORT_TICK_TEXT];

    base_str_add(svg,
                 "<rect class=\"pl-f%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n",
                 series % SVG_COLOURS, fmin(from, to), top, fabs(to - from), BAR);
    if (error > 0)
        svg_put_error(svg, "pl-error", svg_x_of(f, value - error), middle,
                      svg_x_of(f, value + error), middle);
    snprintf(text, sizeof text, error > 0 ? "%.4g ± %.2g" : "%.4g", value, error);
    svg_put_text(svg, end + 6, middle + 4, "pl-text pl-ink", "start", text, SIZE_MAX);
}

/* Where rows begin: to the right of their names. */
static double rows_left(const struct report_chart *chart)
{
    double names = 8;

    for (size_t i = 0; i < chart->row_count; i++)
        names = fmax(names, (double)svg_letters(chart->rows[i]));
    return svg_margin(chart) + (chart->bare ? 10 : 0) + SVG_LETTER * fmin(names, SVG_NAME_LETTERS);
}

void report_svg_bars(const struct report_chart *chart, struct base_str *svg)
{
    struct svg_range x = {0, 0, false}, y = {0, 0, false}; /* bars begin at zero */
    double top = svg_top(chart), head = svg_legend(NULL, chart, top);
    double row_height = (double)chart->series_count * BAR + ROW_GAP;
    struct svg_frame f = {.left = rows_left(chart),
                          .right = svg_width(chart) - svg_margin(chart) - 90,
                          .top = top + head + 8};
    double at = f.top + ROW_GAP / 2.0;

    f.bottom = f.top + row_height * (double)chart->row_count;
    svg_ranges(chart, &x, &y);
    svg_fit(y, false, &f.x);
    svg_begin(svg, chart, f.bottom + 48);
    svg_legend(svg, chart, top);
    svg_put_x_axis(svg, &f, chart->y_title);
    for (size_t row = 0; row < chart->row_count; row++) {
        svg_put_text(svg, f.left - 6, at + row_height / 2.0 - 1, "pl-text pl-ink", "end",
                     chart->rows[row], SVG_NAME_LETTERS);
        for (size_t s = 0; s < chart->series_count; s++)
            if (row < chart->series[s].count && isfinite(chart->series[s].y[row]))
                put_bar(svg, &f, &chart->series[s], s, row, at + (double)s * BAR);
        at += row_height;
    }
    svg_put_line(svg, "pl-axis", svg_x_of(&f, 0), f.top, svg_x_of(&f, 0), f.bottom);
    base_str_add(svg, "</svg>\n");
}

/* ---- timelines ---- */

/* Of a row, with the gap: many rows are narrow. */
static double row_step(const struct report_chart *chart)
{
    return chart->row_count > MANY_ROWS ? 14 : 34;
}

static void put_box(struct base_str *svg, const struct svg_frame *f, const struct report_box *box,
                    double step)
{
    double from = svg_x_of(f, box->from), to = svg_x_of(f, box->to), height = 0.7 * step;
    double top = f->top + 0.15 * step + (double)box->row * step;

    base_str_add(svg,
                 "<rect class=\"pl-f%zu\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"/>\n",
                 box->series % SVG_COLOURS, from, top, fmax(0, to - from - 0.4), height);
    if (box->text[0] != '\0' && to - from >= SVG_LETTER * (double)svg_letters(box->text))
        svg_put_text(svg, (from + to) / 2, top + height / 2 + 4, "pl-on", "middle", box->text,
                     SIZE_MAX);
}

void report_svg_timeline(const struct report_chart *chart, const struct report_box *boxes,
                         size_t count, struct base_str *svg)
{
    struct svg_range x = {0, 0, true};
    double top = svg_top(chart), head = svg_legend(NULL, chart, top), step = row_step(chart);
    struct svg_frame f = {.left = rows_left(chart),
                          .right = svg_width(chart) - svg_margin(chart) - (chart->bare ? 14 : 0),
                          .top = top + head + 8};

    for (size_t i = 0; i < count; i++)
        svg_widen(&x, boxes[i].to);
    svg_fit(x, false, &f.x);
    f.bottom = f.top + step * (double)chart->row_count;
    svg_begin(svg, chart, f.bottom + 48);
    svg_legend(svg, chart, top);
    svg_put_x_axis(svg, &f, chart->x_title);
    for (size_t row = 0; row < chart->row_count; row++)
        if (step > 20 || row % 2 == 0)
            svg_put_text(svg, f.left - 6, f.top + step * ((double)row + 0.5) + 4, "pl-text pl-ink",
                         "end", chart->rows[row], SVG_NAME_LETTERS);
    for (size_t i = 0; i < count; i++)
        put_box(svg, &f, &boxes[i], step);
    base_str_add(svg, "</svg>\n");
}

/* ---- stacked bars ---- */

static double sum_of_row(const struct report_chart *chart, size_t row)
{
    double sum = 0;

    for (size_t s = 0; s < chart->series_count; s++)
        if (chart->series[s].y[row] > 0 && isfinite(chart->series[s].y[row]))
            sum += chart->series[s].y[row];
    return sum;
}

static void put_stack(struct base_str *svg, const struct svg_frame *f,
                      const struct report_chart *chart, size_t row, double top, double height)
{
    double from = 0;

    for (size_t s = 0; s < chart->series_count; s++) {
        double value = chart->series[s].y[row];

        if (!(value > 0) || !isfinite(value))
            continue;
        base_str_add(svg,
                     "<rect class=\"pl-f%zu\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" "
                     "height=\"%.1f\"><title>",
                     s % SVG_COLOURS, svg_x_of(f, from), top,
                     svg_x_of(f, from + value) - svg_x_of(f, from), height);
        report_xml_text(svg, chart->rows[row]);
        base_str_add(svg, ": ");
        report_xml_text(svg, chart->series[s].name);
        base_str_add(svg, " %.4g</title></rect>\n", value);
        from += value;
    }
}

void report_svg_stack(const struct report_chart *chart, struct base_str *svg)
{
    struct svg_range x = {0, 0, true};
    double height = chart->row_count > MANY_ROWS ? 8 : 18,
           gap = chart->row_count > MANY_ROWS ? 2 : 8;
    double top = svg_top(chart), head = svg_legend(NULL, chart, top);
    struct svg_frame f = {.left = rows_left(chart),
                          .right = svg_width(chart) - svg_margin(chart) - 24,
                          .top = top + head + 4};

    f.bottom = f.top + (height + gap) * (double)chart->row_count + gap;
    for (size_t row = 0; row < chart->row_count; row++)
        svg_widen(&x, sum_of_row(chart, row));
    svg_fit(x, false, &f.x);
    if (x.high > f.x.low)
        report_axis_end(&f.x, x.high);
    svg_begin(svg, chart, f.bottom + 38);
    svg_legend(svg, chart, top);
    svg_put_x_axis(svg, &f, chart->x_title);
    for (size_t row = 0; row < chart->row_count; row++) {
        double at = f.top + gap + (height + gap) * (double)row;

        if (gap > 2 || row % 4 == 0)
            svg_put_text(svg, f.left - 8, at + height / 2 + 4, "pl-text pl-ink", "end",
                         chart->rows[row], SVG_NAME_LETTERS);
        put_stack(svg, &f, chart, row, at, height);
    }
    base_str_add(svg, "</svg>\n");
}
