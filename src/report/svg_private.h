/* SPDX-License-Identifier: MIT
 *
 * What the kinds of pictures share: text, lines, legends and axes. svg.c has them.
 */
#ifndef REPORT_SVG_PRIVATE_H
#define REPORT_SVG_PRIVATE_H

#include "report/axis.h"
#include "report/svg.h"

/* Pixels. A viewer's font is not known here: texts are taken to be SVG_LETTER wide a character. */
enum { SVG_WIDTH = 720, SVG_HEIGHT = 300, SVG_LINE = 20, SVG_MARGIN = 16, SVG_LETTER = 7 };
enum { SVG_NAME_LETTERS = 40, SVG_COLOURS = 8, SVG_TICKS = 6, SVG_KEYS = 24 };

/* The part of the picture between the axes. */
struct svg_frame {
    double left, top, right, bottom;
    struct report_axis x, y;
};

struct svg_range {
    double low, high; /* nothing yet: low > high */
    bool broken;      /* some value is not a whole number */
};

double svg_width(const struct report_chart *chart);
double svg_top(const struct report_chart *chart);    /* where a legend begins */
double svg_margin(const struct report_chart *chart); /* on the left and on the right */
size_t svg_letters(const char *text);

/* anchor: start, middle or end. At most `most` characters; an ellipsis tells that there were more.
 */
void svg_put_text(struct base_str *svg, double x, double y, const char *class, const char *anchor,
                  const char *text, size_t most);
void svg_put_line(struct base_str *svg, const char *class, double x1, double y1, double x2,
                  double y2);
/* A whisker from one end to the other, across or upright. */
void svg_put_error(struct base_str *svg, const char *class, double x1, double y1, double x2,
                   double y2);

double svg_x_of(const struct svg_frame *f, double value);
double svg_y_of(const struct svg_frame *f, double value);
void svg_begin(struct base_str *svg, const struct report_chart *chart, double height);
/* From `top`; draws it where there is an `svg`. The height it takes. */
double svg_legend(struct base_str *svg, const struct report_chart *chart, double top);
void svg_put_x_axis(struct base_str *svg, const struct svg_frame *f, const char *title);
void svg_put_y_axis(struct base_str *svg, const struct svg_frame *f, const char *title);

double svg_error_at(const struct report_series *s, size_t i);
bool svg_has_band(const struct report_series *s, size_t i);
/* Is there something to draw? On a logarithmic axis, what is not positive is not on the picture. */
bool svg_drawn(const struct report_chart *chart, const struct report_series *s, size_t i);
void svg_widen(struct svg_range *r, double value);
void svg_ranges(const struct report_chart *chart, struct svg_range *x, struct svg_range *y);
void svg_fit(struct svg_range r, bool log, struct report_axis *axis);

#endif
