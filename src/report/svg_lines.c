/* SPDX-License-Identifier: MIT
 *
 * Lines, points and dots over two axes.
 */
#include <math.h>
#include <stdio.h>

#include "report/svg_private.h"

enum { MARKED_POINTS = 60, LABELS = 4, LABEL_LETTERS = 11, LABEL_STEP = 15, LABEL_GAP = 6 };

/* What lies between the lows and the highs: to the right along the highs, back along the lows. */
static void put_band(struct base_str *svg, const struct svg_frame *f, const struct report_series *s,
                     size_t index)
{
    bool begun = false;

    base_str_add(svg, "<path class=\"pl-f%zu pl-band\" d=\"", index % SVG_COLOURS);
    for (size_t i = 0; i < s->count; i++)
        if (svg_has_band(s, i) && isfinite(s->x[i])) {
            base_str_add(svg, "%s%.1f %.1f", begun ? "L" : "M", svg_x_of(f, s->x[i]),
                         svg_y_of(f, s->high[i]));
            begun = true;
        }
    for (size_t i = s->count; i-- > 0;)
        if (svg_has_band(s, i) && isfinite(s->x[i]))
            base_str_add(svg, "L%.1f %.1f", svg_x_of(f, s->x[i]), svg_y_of(f, s->low[i]));
    base_str_add(svg, "%s\"/>\n", begun ? "Z" : "");
}

static void put_series(struct base_str *svg, const struct svg_frame *f,
                       const struct report_chart *chart, size_t index)
{
    const struct report_series *s = &chart->series[index];
    char class[16];
    bool pen_down = false;

    if (s->low != NULL && !chart->log_y)
        put_band(svg, f, s, index);
    snprintf(class, sizeof class, "pl-c%zu", index % SVG_COLOURS);
    for (size_t i = 0; i < s->count; i++)
        if (svg_drawn(chart, s, i) && svg_error_at(s, i) > 0) {
            double x = svg_x_of(f, s->x[i]);

            svg_put_error(svg, class, x, fmin(f->bottom, svg_y_of(f, s->y[i] - svg_error_at(s, i))),
                          x, svg_y_of(f, s->y[i] + svg_error_at(s, i)));
        }
    /* After the first eight the colours come again, dashed. */
    base_str_add(svg, "<path class=\"pl-line %s\"%s d=\"", class,
                 index < SVG_COLOURS ? "" : " stroke-dasharray=\"6 3\"");
    for (size_t i = 0; i < s->count; i++) {
        if (svg_drawn(chart, s, i))
            base_str_add(svg, "%s%.1f %.1f", pen_down ? "L" : "M", svg_x_of(f, s->x[i]),
                         svg_y_of(f, s->y[i]));
        pen_down = svg_drawn(chart, s, i);
    }
    base_str_add(svg, "\"/>\n");
    for (size_t i = 0; i < s->count && s->count <= MARKED_POINTS; i++)
        if (svg_drawn(chart, s, i))
            base_str_add(svg, "<circle class=\"pl-f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n",
                         index % SVG_COLOURS, svg_x_of(f, s->x[i]), svg_y_of(f, s->y[i]));
}

static void put_points(struct base_str *svg, const struct svg_frame *f,
                       const struct report_chart *chart, size_t index)
{
    const struct report_series *s = &chart->series[index];
    const double low = fmax(f->x.low, f->y.low), high = fmin(f->x.high, f->y.high);

    if (index == 0 && low < high)
        svg_put_line(svg, "pl-axis", svg_x_of(f, low), svg_y_of(f, low), svg_x_of(f, high),
                     svg_y_of(f, high));
    for (size_t i = 0; i < s->count; i++)
        if (svg_drawn(chart, s, i))
            base_str_add(svg,
                         "<circle class=\"pl-f%zu pl-faint\" cx=\"%.1f\" cy=\"%.1f\" "
                         "r=\"2\"/>\n",
                         index % SVG_COLOURS, svg_x_of(f, s->x[i]), svg_y_of(f, s->y[i]));
}

/* Is there no dot that is at least as far left and as high, and further in one of them? */
static bool on_frontier(const struct report_chart *chart, double x, double y)
{
    for (size_t s = 0; s < chart->series_count; s++)
        for (size_t i = 0; i < chart->series[s].count; i++) {
            double other_x = chart->series[s].x[i], other_y = chart->series[s].y[i];

            if (svg_drawn(chart, &chart->series[s], i) && other_x <= x && other_y >= y &&
                (other_x < x || other_y > y))
                return false;
        }
    return true;
}

/* The dot of the frontier that is next to the right of x; NAN: there is none. */
static double next_on_frontier(const struct report_chart *chart, double x, double *y_p)
{
    double next = NAN;

    for (size_t s = 0; s < chart->series_count; s++)
        for (size_t i = 0; i < chart->series[s].count; i++) {
            const struct report_series *of = &chart->series[s];

            if (svg_drawn(chart, of, i) && of->x[i] > x && !(of->x[i] >= next) &&
                on_frontier(chart, of->x[i], of->y[i])) {
                next = of->x[i];
                *y_p = of->y[i];
            }
        }
    return next;
}

static void put_frontier(struct base_str *svg, const struct svg_frame *f,
                         const struct report_chart *chart)
{
    double y = 0, x = next_on_frontier(chart, -INFINITY, &y);
    bool begun = false;

    base_str_add(svg, "<path class=\"pl-line pl-axis\" stroke-dasharray=\"2 3\" d=\"");
    for (; isfinite(x); x = next_on_frontier(chart, x, &y), begun = true)
        base_str_add(svg, "%s%.1f %.1f", begun ? "L" : "M", svg_x_of(f, x), svg_y_of(f, y));
    base_str_add(svg, "\"/>\n");
}

static void put_dots(struct base_str *svg, const struct svg_frame *f,
                     const struct report_chart *chart, size_t index)
{
    const struct report_series *s = &chart->series[index];

    if (index == 0)
        put_frontier(svg, f, chart);
    for (size_t i = 0; i < s->count; i++) {
        double x, y, error = svg_error_at(s, i);
        bool right;

        if (!svg_drawn(chart, s, i))
            continue;
        x = svg_x_of(f, s->x[i]);
        y = svg_y_of(f, s->y[i]);
        right =
            x + 8 + SVG_LETTER * (double)svg_letters(s->name) < f->right; /* there is room for it */
        if (error > 0)
            svg_put_error(svg, "pl-error", x, fmin(f->bottom, svg_y_of(f, s->y[i] - error)), x,
                          svg_y_of(f, s->y[i] + error));
        base_str_add(svg, "<circle class=\"pl-f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
                     index % SVG_COLOURS, x, y);
        svg_put_text(svg, right ? x + 8 : x - 8, y + 4, "pl-text pl-ink", right ? "start" : "end",
                     s->name, SVG_NAME_LETTERS);
    }
}

typedef void put_one(struct base_str *svg, const struct svg_frame *f,
                     const struct report_chart *chart, size_t index);

/* ---- labels at the ends of lines ---- */

/* A page's chart of few lines with short names needs no legend. */
static bool labels_fit(const struct report_chart *chart)
{
    for (size_t i = 0; i < chart->series_count; i++)
        if (svg_letters(chart->series[i].name) > LABEL_LETTERS)
            return false;
    return chart->bare && chart->series_count > 1 && chart->series_count <= LABELS;
}

/* The last value that is drawn; NAN: none. */
static double last_of(const struct report_chart *chart, const struct report_series *s)
{
    for (size_t i = s->count; i-- > 0;)
        if (svg_drawn(chart, s, i))
            return s->y[i];
    return NAN;
}

/* Which lines have labels, by the height of their ends, the highest first; their number. */
static size_t order_ends(const double *ends, size_t count, size_t *order)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        size_t at = found;

        if (!isfinite(ends[i]))
            continue;
        for (; at > 0 && ends[order[at - 1]] > ends[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        found++;
    }
    return found;
}

/* Beside the ends of lines, each at least LABEL_STEP below the one before it and none below the
 * axis. */
static void put_labels(struct base_str *svg, const struct svg_frame *f,
                       const struct report_chart *chart)
{
    double ends[LABELS], above = -INFINITY, lowest = f->bottom;
    size_t order[LABELS], count;

    for (size_t i = 0; i < chart->series_count; i++)
        ends[i] = svg_y_of(f, last_of(chart, &chart->series[i]));
    count = order_ends(ends, chart->series_count, order);
    for (size_t n = 0; n < count; n++)
        above = ends[order[n]] = fmax(ends[order[n]], above + LABEL_STEP);
    for (size_t n = count; n-- > 0; lowest -= LABEL_STEP) {
        const size_t i = order[n];
        char class[32];

        lowest = fmin(lowest, ends[i]);
        snprintf(class, sizeof class, "pl-text pl-f%zu", i % SVG_COLOURS);
        svg_put_text(svg, f->right + LABEL_GAP, lowest + 4, class, "start", chart->series[i].name,
                     LABEL_LETTERS);
    }
}

static double labels_width(const struct report_chart *chart)
{
    size_t most = 0;

    for (size_t i = 0; i < chart->series_count; i++) {
        size_t count = svg_letters(chart->series[i].name);

        most = count > most ? count : most;
    }
    return LABEL_GAP + SVG_LETTER * (double)most + LABEL_GAP;
}

/* Upright lines at moments of x that are on the picture. */
static void put_marks(struct base_str *svg, const struct svg_frame *f,
                      const struct report_chart *chart)
{
    for (size_t i = 0; i < chart->mark_count; i++) {
        double x = svg_x_of(f, chart->marks[i].x);

        if (!(x >= f->left && x <= f->right))
            continue;
        base_str_add(svg, "<g class=\"pl-mark\"><title>");
        report_xml_text(svg, chart->marks[i].text);
        base_str_add(svg, "</title>\n");
        svg_put_line(svg, "pl-mark", x, f->top, x, f->bottom);
        base_str_add(svg, "</g>\n");
    }
}

static struct svg_frame frame_of(const struct report_chart *chart, double top, bool labels)
{
    double height = chart->height > 0 ? chart->height : SVG_HEIGHT;
    struct svg_frame f = {.left = chart->bare ? 50 : SVG_MARGIN + 60,
                          .right = svg_width(chart) - (chart->bare ? 14 : 2 * SVG_MARGIN),
                          .top = top,
                          .bottom = top + height};

    if (labels)
        f.right = svg_width(chart) - labels_width(chart);
    return f;
}

/* A picture with two axes, and every series drawn by `put`. `names`: a legend has them. */
static void over_axes(const struct report_chart *chart, put_one *put, bool names,
                      struct base_str *svg)
{
    struct svg_range x = {INFINITY, -INFINITY, false}, y = {INFINITY, -INFINITY, false};
    bool labels = put == put_series && labels_fit(chart);
    double top = svg_top(chart), head = names && !labels ? svg_legend(NULL, chart, top) : 0;
    struct svg_frame f = frame_of(chart, top + head + 8, labels);

    svg_ranges(chart, &x, &y);
    svg_fit(x, chart->log_x, &f.x);
    svg_fit(y, chart->log_y, &f.y);
    if (chart->bare && x.high > f.x.low)
        report_axis_end(&f.x, x.high);
    svg_begin(svg, chart, f.bottom + (chart->bare ? 38 : 48));
    if (head > 0)
        svg_legend(svg, chart, top);
    svg_put_x_axis(svg, &f, chart->x_title);
    svg_put_y_axis(svg, &f, chart->bare ? NULL : chart->y_title);
    put_marks(svg, &f, chart);
    for (size_t i = 0; i < chart->series_count; i++)
        put(svg, &f, chart, i);
    if (labels)
        put_labels(svg, &f, chart);
    base_str_add(svg, "</svg>\n");
}

void report_svg_lines(const struct report_chart *chart, struct base_str *svg)
{
    over_axes(chart, put_series, true, svg);
}

void report_svg_points(const struct report_chart *chart, struct base_str *svg)
{
    over_axes(chart, put_points, true, svg);
}

void report_svg_scatter(const struct report_chart *chart, struct base_str *svg)
{
    over_axes(chart, put_dots, false, svg);
}
