/* SPDX-License-Identifier: MIT
 *
 * A square of cells: who was taken for whom.
 */
#include <math.h>
#include <stdio.h>

#include "report/svg_private.h"

enum { NAMED_CELLS = 40, MOST_LETTERS = 12 };

static double row_sum(const struct report_heat *heat, size_t row)
{
    double sum = 0;

    for (size_t i = 0; i < heat->side; i++)
        sum += heat->values[row * heat->side + i];
    return sum;
}

static void put_cell(struct base_str *svg, const struct report_heat *heat, size_t row,
                     size_t column, double x, double y, double cell)
{
    double value = heat->values[row * heat->side + column], sum = row_sum(heat, row);
    double share = sum > 0 ? value / sum : 0;
    char text[24];

    base_str_add(svg,
                 "<rect class=\"%s\" fill-opacity=\"%.3f\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                 "height=\"%.1f\"><title>",
                 row == column ? "pl-f0" : "pl-f1", value > 0 ? 0.12 + 0.88 * sqrt(share) : 0.03, x,
                 y, cell - 1, cell - 1);
    report_xml_text(svg, heat->names[row]);
    base_str_add(svg, " → ");
    report_xml_text(svg, heat->names[column]);
    base_str_add(svg, ": %.0f</title></rect>\n", value);
    snprintf(text, sizeof text, "%.0f", value);
    if (value > 0 && cell >= 6 + 6.2 * (double)svg_letters(text))
        svg_put_text(svg, x + (cell - 1) / 2, y + cell / 2 + 3.5,
                     share > 0.3 ? "pl-cell pl-over" : "pl-cell pl-ink", "middle", text, SIZE_MAX);
}

static void put_names(struct base_str *svg, const struct report_heat *heat, double left, double top,
                      double cell)
{
    for (size_t i = 0; i < heat->side && heat->side <= NAMED_CELLS; i++) {
        double middle = ((double)i + 0.5) * cell;

        svg_put_text(svg, left - 6, top + middle + 3.5, "pl-cell pl-soft", "end", heat->names[i],
                     MOST_LETTERS);
        base_str_add(svg,
                     "<text transform=\"translate(%.1f %.1f) rotate(-45)\" class=\"pl-cell "
                     "pl-soft\" text-anchor=\"start\">",
                     left + middle + 3, top - 6);
        report_xml_short(svg, heat->names[i], MOST_LETTERS);
        base_str_add(svg, "</text>\n");
    }
}

void report_svg_heat(const struct report_heat *heat, struct base_str *svg)
{
    size_t longest = 2;
    double left, top, cell;

    for (size_t i = 0; i < heat->side; i++)
        longest = svg_letters(heat->names[i]) > longest ? svg_letters(heat->names[i]) : longest;
    longest = heat->side > NAMED_CELLS ? 2 : longest < MOST_LETTERS ? longest : MOST_LETTERS;
    left = 26 + 6.4 * (double)longest;
    top = 30 + 4.6 * (double)longest;
    cell = fmin(64, (heat->width - left - 4.6 * (double)longest) / (double)heat->side);
    svg_begin(svg, &(struct report_chart){.title = heat->title, .width = heat->width, .bare = true},
              top + cell * (double)heat->side + 8);
    svg_put_text(svg, left, 14, "pl-text pl-ink", "start", heat->column_title, SIZE_MAX);
    base_str_add(svg,
                 "<text transform=\"translate(13 %.1f) rotate(-90)\" class=\"pl-text pl-ink\" "
                 "text-anchor=\"end\">",
                 top);
    report_xml_text(svg, heat->row_title);
    base_str_add(svg, "</text>\n");
    put_names(svg, heat, left, top, cell);
    for (size_t row = 0; row < heat->side; row++)
        for (size_t column = 0; column < heat->side; column++)
            put_cell(svg, heat, row, column, left + (double)column * cell, top + (double)row * cell,
                     cell);
    base_str_add(svg, "</svg>\n");
}
