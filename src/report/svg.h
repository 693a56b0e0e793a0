/* SPDX-License-Identifier: MIT
 *
 * Pictures as SVG text: lines or points over an axis, bars in rows, cells. A picture stands alone
 * or inside an HTML page, follows the reader's light or dark scheme, has no script, no link and no
 * id, and is the same text for the same values.
 */
#ifndef REPORT_SVG_H
#define REPORT_SVG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Values that are not finite are left out: a line has a gap there, a row no bar. */
struct report_series {
    const char *name;    /* in the legend, which is drawn where there are several series */
    const double *x, *y; /* bars have no x: y[i] is of row i */
    const double *error; /* y ± error is marked where it is above 0; NULL: none */
    size_t count;
    const double *low, *high; /* of lines: a faint band around them; NULL: none */
};

/* A moment of x at which something happened: an upright line, with its text as a tooltip. */
struct report_mark {
    double x;
    const char *text;
};

struct report_chart {
    const char *title;
    const char *x_title, *y_title; /* of bars the y_title alone: what their length is */
    bool log_x, log_y;             /* of lines and points */
    const struct report_series *series;
    size_t series_count;
    const char *const *rows; /* of bars: their names, from above */
    size_t row_count;
    const struct report_mark *marks; /* of lines */
    size_t mark_count;
    double width, height; /* of the picture, and of what is between the axes; 0: 720, 300 */
    bool bare; /* for a page that has the style and the title: neither is drawn, nor a background */
};

void report_svg_lines(const struct report_chart *chart, struct base_str *svg);
/* Points, and behind them the line y = x, for guesses beside the truth. */
void report_svg_points(const struct report_chart *chart, struct base_str *svg);
/* Dots, larger than points, each with its series' name beside it in place of a legend; those that
 * no other one is better than (further left and higher) are joined by a line: the frontier. */
void report_svg_scatter(const struct report_chart *chart, struct base_str *svg);
void report_svg_bars(const struct report_chart *chart, struct base_str *svg);

/* One bar a row, in which those of the series follow each other; values below 0 are none. */
void report_svg_stack(const struct report_chart *chart, struct base_str *svg);

/* rows x columns numbers as cells, the darker the larger their share of their row's sum, with the
 * numbers in them where there is room. Both names are those of `names`. */
struct report_heat {
    const char *title, *row_title, *column_title;
    const char *const *names;
    const double *values; /* (side, side) */
    size_t side;
    double width;
};
void report_svg_heat(const struct report_heat *heat, struct base_str *svg);

/* A stretch of a timeline: on a row, in the colour of a series. */
struct report_box {
    size_t row, series;
    double from, to;
    char text[12]; /* inside it, where there is room */
};
/* Rows over time, from 0 on; of the series only the names count. */
void report_svg_timeline(const struct report_chart *chart, const struct report_box *boxes,
                         size_t count, struct base_str *svg);

/* Text for XML: its special characters escaped, what XML does not allow replaced by '?'. */
void report_xml_text(struct base_str *out, const char *text);
/* At most `most` characters of it; an ellipsis tells that there were more. */
void report_xml_short(struct base_str *out, const char *text, size_t most);

#endif
