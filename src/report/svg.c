/* SPDX-License-Identifier: MIT */
#include "report/svg.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "report/axis.h"

/* Pixels. A viewer's font is not known here: texts are taken to be LETTER wide a character. */
enum { WIDTH = 720, PLOT_HEIGHT = 300, LINE = 20, MARGIN = 16, LETTER = 7, NAME_LETTERS = 40 };
enum { COLOURS = 8, MARKED_POINTS = 60, TICKS = 6, BAR = 14, BOX = 24, ROW_GAP = 10 };

/* The part of the picture between the axes. */
struct frame {
    double left, top, right, bottom;
    struct report_axis x, y;
};

/* Colours that are told apart on white, on dark grey, and by most colour-blind readers. The classes
 * have a prefix of ours because a page may hold other things. */
static const char style[] =
    "<style>\n"
    ".pl-paper{fill:#ffffff}.pl-ink{fill:#1f2328}.pl-soft{fill:#59636e}\n"
    ".pl-grid{stroke:#d8dee4}.pl-axis,.pl-error{stroke:#59636e}.pl-line{fill:none;stroke-width:2}\n"
    ".pl-text{font:12px system-ui,sans-serif}.pl-title{font:600 14px system-ui,sans-serif}\n"
    ".pl-c0{stroke:#3b7dd8}.pl-c1{stroke:#d9722e}.pl-c2{stroke:#2f9e6e}.pl-c3{stroke:#c44e9d}\n"
    ".pl-c4{stroke:#8a63d2}.pl-c5{stroke:#b8901f}.pl-c6{stroke:#4aa5b5}.pl-c7{stroke:#d0504f}\n"
    ".pl-f0{fill:#3b7dd8}.pl-f1{fill:#d9722e}.pl-f2{fill:#2f9e6e}.pl-f3{fill:#c44e9d}\n"
    ".pl-faint{fill-opacity:0.35}.pl-on{fill:#ffffff;font:10px system-ui,sans-serif}\n"
    ".pl-f4{fill:#8a63d2}.pl-f5{fill:#b8901f}.pl-f6{fill:#4aa5b5}.pl-f7{fill:#d0504f}\n"
    "@media (prefers-color-scheme:dark){.pl-paper{fill:#16191d}.pl-ink{fill:#e6e9ec}\n"
    ".pl-soft{fill:#a9b1b9}.pl-grid{stroke:#343a41}.pl-axis,.pl-error{stroke:#a9b1b9}}\n"
    "</style>\n";

/* Bytes of the character at `text`, which is UTF-8. */
static size_t character(const char *text)
{
    size_t count = 1;

    while (((unsigned char)text[count] & 0xc0) == 0x80)
        count++;
    return count;
}

static size_t letters(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text += character(text))
        count++;
    return count;
}

static void add_character(struct base_str *out, const char *at, size_t count)
{
    switch (*at) {
    case '&':
        base_str_add(out, "&amp;");
        break;
    case '<':
        base_str_add(out, "&lt;");
        break;
    case '>':
        base_str_add(out, "&gt;");
        break;
    case '"':
        base_str_add(out, "&quot;");
        break;
    default:
        if ((unsigned char)*at < 0x20 || *at == 0x7f || strncmp(at, "\xef\xbf\xbe", 3) == 0 ||
            strncmp(at, "\xef\xbf\xbf", 3) == 0)
            base_str_add(out, "?");
        else
            base_str_append(out, at, count);
    }
}

/* At most `most` characters; an ellipsis tells that there were more. */
static void add_text(struct base_str *out, const char *text, size_t most)
{
    json_t *checked = base_json_text(text); /* UTF-8, whatever came */
    const char *at = json_string_value(checked);

    for (size_t i = 0; *at != '\0'; i++) {
        size_t count = character(at);

        if (i + 1 == most && at[count] != '\0') {
            base_str_add(out, "…");
            break;
        }
        add_character(out, at, count);
        at += count;
    }
    json_decref(checked);
}

void report_xml_text(struct base_str *out, const char *text)
{
    add_text(out, text, SIZE_MAX);
}

/* anchor: start, middle or end. */
static void put_text(struct base_str *svg, double x, double y, const char *class,
                     const char *anchor, const char *text, size_t most)
{
    base_str_add(svg, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, class,
                 anchor);
    add_text(svg, text, most);
    base_str_add(svg, "</text>\n");
}

static void put_line(struct base_str *svg, const char *class, double x1, double y1, double x2,
                     double y2)
{
    base_str_add(svg, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                 class, x1, y1, x2, y2);
}

static double x_of(const struct frame *f, double value)
{
    return f->left + (f->right - f->left) * report_axis_place(&f->x, value);
}

static double y_of(const struct frame *f, double value)
{
    return f->bottom - (f->bottom - f->top) * report_axis_place(&f->y, value);
}

static void begin(struct base_str *svg, const struct report_chart *chart, double height)
{
    base_str_add(svg,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" "
                 "height=\"%.0f\" viewBox=\"0 0 %d %.0f\">\n<title>",
                 WIDTH, height, WIDTH, height);
    report_xml_text(svg, chart->title);
    base_str_add(svg, "</title>\n%s<rect class=\"pl-paper\" width=\"%d\" height=\"%.0f\"/>\n",
                 style, WIDTH, height);
    put_text(svg, MARGIN, MARGIN + 10, "pl-title pl-ink", "start", chart->title,
             (WIDTH - 2 * MARGIN) / (LETTER + 1));
}

/* ---- the legend: rows of swatches and names ---- */

static double legend_width(const struct report_series *series)
{
    size_t count = letters(series->name);

    return 34 + LETTER * (double)(count < NAME_LETTERS ? count : NAME_LETTERS);
}

/* From `top`; draws it where there is an `svg`. The height it takes. */
static double legend(struct base_str *svg, const struct report_chart *chart, double top)
{
    double x = MARGIN, y = top + 14;

    if (chart->series_count < 2)
        return 0;
    for (size_t i = 0; i < chart->series_count; i++) {
        double width = legend_width(&chart->series[i]);

        if (x > MARGIN && x + width > WIDTH - MARGIN) {
            x = MARGIN;
            y += LINE;
        }
        if (svg != NULL) {
            base_str_add(svg,
                         "<rect class=\"pl-f%zu\" x=\"%.1f\" y=\"%.1f\" width=\"14\" "
                         "height=\"%d\"/>\n",
                         i % COLOURS, x, y - (i < COLOURS ? 10 : 6), i < COLOURS ? 10 : 3);
            put_text(svg, x + 20, y, "pl-text pl-ink", "start", chart->series[i].name,
                     NAME_LETTERS);
        }
        x += width;
    }
    return y + 8 - top;
}

/* ---- axes ---- */

static void put_x_axis(struct base_str *svg, const struct frame *f, const char *title)
{
    char text[REPORT_TICK_TEXT];

    for (int i = 0; i < f->x.count; i++) {
        double x = x_of(f, f->x.at[i]);

        put_line(svg, "pl-grid", x, f->top, x, f->bottom);
        report_axis_text(&f->x, f->x.at[i], text);
        put_text(svg, x, f->bottom + 16, "pl-text pl-soft", "middle", text, SIZE_MAX);
    }
    put_line(svg, "pl-axis", f->left, f->bottom, f->right, f->bottom);
    put_text(svg, (f->left + f->right) / 2, f->bottom + 36, "pl-text pl-ink", "middle", title,
             SIZE_MAX);
}

static void put_y_axis(struct base_str *svg, const struct frame *f, const char *title)
{
    char text[REPORT_TICK_TEXT];

    for (int i = 0; i < f->y.count; i++) {
        double y = y_of(f, f->y.at[i]);

        put_line(svg, "pl-grid", f->left, y, f->right, y);
        report_axis_text(&f->y, f->y.at[i], text);
        put_text(svg, f->left - 6, y + 4, "pl-text pl-soft", "end", text, SIZE_MAX);
    }
    put_line(svg, "pl-axis", f->left, f->top, f->left, f->bottom);
    base_str_add(svg,
                 "<text transform=\"translate(%d %.1f) rotate(-90)\" class=\"pl-text pl-ink\" "
                 "text-anchor=\"middle\">",
                 MARGIN, (f->top + f->bottom) / 2);
    report_xml_text(svg, title);
    base_str_add(svg, "</text>\n");
}

static double error_at(const struct report_series *s, size_t i)
{
    return s->error != NULL && isfinite(s->error[i]) && s->error[i] > 0 ? s->error[i] : 0;
}

/* Is there something to draw? On a logarithmic axis, what is not positive is not on the picture. */
static bool drawn(const struct report_chart *chart, const struct report_series *s, size_t i)
{
    return isfinite(s->y[i]) && (!chart->log_y || s->y[i] > 0) &&
           (s->x == NULL || (isfinite(s->x[i]) && (!chart->log_x || s->x[i] > 0)));
}

struct range {
    double low, high; /* nothing yet: low > high */
    bool broken;      /* some value is not a whole number */
};

static void widen(struct range *r, double value)
{
    r->low = fmin(r->low, value);
    r->high = fmax(r->high, value);
    r->broken |= value != floor(value);
}

static void ranges(const struct report_chart *chart, struct range *x, struct range *y)
{
    for (size_t s = 0; s < chart->series_count; s++) {
        const struct report_series *of = &chart->series[s];

        for (size_t i = 0; i < of->count; i++) {
            double error = error_at(of, i);

            if (!drawn(chart, of, i))
                continue;
            widen(x, of->x != NULL ? of->x[i] : 0);
            widen(y, of->y[i] + error);
            widen(y, chart->log_y && of->y[i] <= error ? of->y[i] : of->y[i] - error);
        }
    }
}

static void fit(struct range r, bool log, struct report_axis *axis)
{
    enum report_scale scale = log ? REPORT_LOG : r.broken ? REPORT_LINEAR : REPORT_WHOLE;

    if (r.low > r.high)
        r = (struct range){0, 1, false};
    report_axis_fit(r.low, r.high, scale, TICKS, axis);
}

/* ---- lines, points and dots ---- */

/* A whisker from one end to the other, across or upright. */
static void put_error(struct base_str *svg, const char *class, double x1, double y1, double x2,
                      double y2)
{
    double dx = y1 == y2 ? 0 : 3, dy = 3 - dx;

    put_line(svg, class, x1, y1, x2, y2);
    put_line(svg, class, x1 - dx, y1 - dy, x1 + dx, y1 + dy);
    put_line(svg, class, x2 - dx, y2 - dy, x2 + dx, y2 + dy);
}

static void put_series(struct base_str *svg, const struct frame *f,
                       const struct report_chart *chart, size_t index)
{
    const struct report_series *s = &chart->series[index];
    char class[16];
    bool pen_down = false;

    snprintf(class, sizeof class, "pl-c%zu", index % COLOURS);
    for (size_t i = 0; i < s->count; i++)
        if (drawn(chart, s, i) && error_at(s, i) > 0) {
            double x = x_of(f, s->x[i]);

            put_error(svg, class, x, fmin(f->bottom, y_of(f, s->y[i] - error_at(s, i))), x,
                      y_of(f, s->y[i] + error_at(s, i)));
        }
    /* After the first eight the colours come again, dashed. */
    base_str_add(svg, "<path class=\"pl-line %s\"%s d=\"", class,
                 index < COLOURS ? "" : " stroke-dasharray=\"6 3\"");
    for (size_t i = 0; i < s->count; i++) {
        if (drawn(chart, s, i))
            base_str_add(svg, "%s%.1f %.1f", pen_down ? "L" : "M", x_of(f, s->x[i]),
                         y_of(f, s->y[i]));
        pen_down = drawn(chart, s, i);
    }
    base_str_add(svg, "\"/>\n");
    for (size_t i = 0; i < s->count && s->count <= MARKED_POINTS; i++)
        if (drawn(chart, s, i))
            base_str_add(svg, "<circle class=\"pl-f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n",
                         index % COLOURS, x_of(f, s->x[i]), y_of(f, s->y[i]));
}

static void put_points(struct base_str *svg, const struct frame *f,
                       const struct report_chart *chart, size_t index)
{
    const struct report_series *s = &chart->series[index];
    const double low = fmax(f->x.low, f->y.low), high = fmin(f->x.high, f->y.high);

    if (index == 0 && low < high)
        put_line(svg, "pl-axis", x_of(f, low), y_of(f, low), x_of(f, high), y_of(f, high));
    for (size_t i = 0; i < s->count; i++)
        if (drawn(chart, s, i))
            base_str_add(svg,
                         "<circle class=\"pl-f%zu pl-faint\" cx=\"%.1f\" cy=\"%.1f\" "
                         "r=\"2\"/>\n",
                         index % COLOURS, x_of(f, s->x[i]), y_of(f, s->y[i]));
}

/* Is there no dot that is at least as far left and as high, and further in one of them? */
static bool on_frontier(const struct report_chart *chart, double x, double y)
{
    for (size_t s = 0; s < chart->series_count; s++)
        for (size_t i = 0; i < chart->series[s].count; i++) {
            double other_x = chart->series[s].x[i], other_y = chart->series[s].y[i];

            if (drawn(chart, &chart->series[s], i) && other_x <= x && other_y >= y &&
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

            if (drawn(chart, of, i) && of->x[i] > x && !(of->x[i] >= next) &&
                on_frontier(chart, of->x[i], of->y[i])) {
                next = of->x[i];
                *y_p = of->y[i];
            }
        }
    return next;
}

static void put_frontier(struct base_str *svg, const struct frame *f,
                         const struct report_chart *chart)
{
    double y = 0, x = next_on_frontier(chart, -INFINITY, &y);
    bool begun = false;

    base_str_add(svg, "<path class=\"pl-line pl-axis\" stroke-dasharray=\"2 3\" d=\"");
    for (; isfinite(x); x = next_on_frontier(chart, x, &y), begun = true)
        base_str_add(svg, "%s%.1f %.1f", begun ? "L" : "M", x_of(f, x), y_of(f, y));
    base_str_add(svg, "\"/>\n");
}

static void put_dots(struct base_str *svg, const struct frame *f, const struct report_chart *chart,
                     size_t index)
{
    const struct report_series *s = &chart->series[index];

    if (index == 0)
        put_frontier(svg, f, chart);
    for (size_t i = 0; i < s->count; i++) {
        double x, y, error = error_at(s, i);
        bool right;

        if (!drawn(chart, s, i))
            continue;
        x = x_of(f, s->x[i]);
        y = y_of(f, s->y[i]);
        right = x + 8 + LETTER * (double)letters(s->name) < f->right; /* there is room for it */
        if (error > 0)
            put_error(svg, "pl-error", x, fmin(f->bottom, y_of(f, s->y[i] - error)), x,
                      y_of(f, s->y[i] + error));
        base_str_add(svg, "<circle class=\"pl-f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
                     index % COLOURS, x, y);
        put_text(svg, right ? x + 8 : x - 8, y + 4, "pl-text pl-ink", right ? "start" : "end",
                 s->name, NAME_LETTERS);
    }
}

typedef void put_one(struct base_str *svg, const struct frame *f, const struct report_chart *chart,
                     size_t index);

/* A picture with two axes, and every series drawn by `put`. `names`: a legend has them. */
static void over_axes(const struct report_chart *chart, put_one *put, bool names,
                      struct base_str *svg)
{
    struct range x = {INFINITY, -INFINITY, false}, y = {INFINITY, -INFINITY, false};
    double top = MARGIN + LINE, head = names ? legend(NULL, chart, top) : 0;
    struct frame f = {.left = MARGIN + 60,
                      .right = WIDTH - 2 * MARGIN,
                      .top = top + head + 8,
                      .bottom = top + head + 8 + PLOT_HEIGHT};

    ranges(chart, &x, &y);
    fit(x, chart->log_x, &f.x);
    fit(y, chart->log_y, &f.y);
    begin(svg, chart, f.bottom + 48);
    if (names)
        legend(svg, chart, top);
    put_x_axis(svg, &f, chart->x_title);
    put_y_axis(svg, &f, chart->y_title);
    for (size_t i = 0; i < chart->series_count; i++)
        put(svg, &f, chart, i);
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

/* ---- bars ---- */

/* A bar and, at its end, its value in words: differences that the eye does not see can be read. */
static void put_bar(struct base_str *svg, const struct frame *f, const struct report_series *s,
                    size_t series, size_t row, double top)
{
    double value = s->y[row], error = error_at(s, row);
    double from = x_of(f, 0), to = x_of(f, value), middle = top + BAR / 2.0;
    double end = fmax(from, x_of(f, value + error));
    char text[2 * REPORT_TICK_TEXT];

    base_str_add(svg,
                 "<rect class=\"pl-f%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n",
                 series % COLOURS, fmin(from, to), top, fabs(to - from), BAR);
    if (error > 0)
        put_error(svg, "pl-error", x_of(f, value - error), middle, x_of(f, value + error), middle);
    snprintf(text, sizeof text, error > 0 ? "%.4g ± %.2g" : "%.4g", value, error);
    put_text(svg, end + 6, middle + 4, "pl-text pl-ink", "start", text, SIZE_MAX);
}

/* Where rows begin: to the right of their names. */
static double rows_left(const struct report_chart *chart)
{
    double names = 8;

    for (size_t i = 0; i < chart->row_count; i++)
        names = fmax(names, (double)letters(chart->rows[i]));
    return MARGIN + LETTER * fmin(names, NAME_LETTERS);
}

void report_svg_bars(const struct report_chart *chart, struct base_str *svg)
{
    struct range x = {0, 0, false}, y = {0, 0, false}; /* bars begin at zero */
    double top = MARGIN + LINE, head = legend(NULL, chart, top);
    double row_height = (double)chart->series_count * BAR + ROW_GAP;
    struct frame f = {
        .left = rows_left(chart), .right = WIDTH - MARGIN - 90, .top = top + head + 8};
    double at = f.top + ROW_GAP / 2.0;

    f.bottom = f.top + row_height * (double)chart->row_count;
    ranges(chart, &x, &y);
    fit(y, false, &f.x);
    begin(svg, chart, f.bottom + 48);
    legend(svg, chart, top);
    put_x_axis(svg, &f, chart->y_title);
    for (size_t row = 0; row < chart->row_count; row++) {
        put_text(svg, f.left - 6, at + row_height / 2.0 - 1, "pl-text pl-ink", "end",
                 chart->rows[row], NAME_LETTERS);
        for (size_t s = 0; s < chart->series_count; s++)
            if (row < chart->series[s].count && isfinite(chart->series[s].y[row]))
                put_bar(svg, &f, &chart->series[s], s, row, at + (double)s * BAR);
        at += row_height;
    }
    put_line(svg, "pl-axis", x_of(&f, 0), f.top, x_of(&f, 0), f.bottom);
    base_str_add(svg, "</svg>\n");
}

/* ---- timelines ---- */

static void put_box(struct base_str *svg, const struct frame *f, const struct report_box *box)
{
    double from = x_of(f, box->from), to = x_of(f, box->to);
    double top = f->top + ROW_GAP / 2.0 + (double)box->row * (BOX + ROW_GAP);

    base_str_add(svg,
                 "<rect class=\"pl-f%zu\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"/>\n",
                 box->series % COLOURS, from, top, fmax(0, to - from - 0.4), BOX);
    if (box->text[0] != '\0' && to - from >= LETTER * (double)letters(box->text))
        put_text(svg, (from + to) / 2, top + BOX / 2.0 + 4, "pl-on", "middle", box->text, SIZE_MAX);
}

void report_svg_timeline(const struct report_chart *chart, const struct report_box *boxes,
                         size_t count, struct base_str *svg)
{
    struct range x = {0, 0, true};
    double top = MARGIN + LINE, head = legend(NULL, chart, top);
    struct frame f = {.left = rows_left(chart), .right = WIDTH - MARGIN, .top = top + head + 8};

    for (size_t i = 0; i < count; i++)
        widen(&x, boxes[i].to);
    fit(x, false, &f.x);
    f.bottom = f.top + (BOX + ROW_GAP) * (double)chart->row_count;
    begin(svg, chart, f.bottom + 48);
    legend(svg, chart, top);
    put_x_axis(svg, &f, chart->x_title);
    for (size_t row = 0; row < chart->row_count; row++)
        put_text(svg, f.left - 6, f.top + (BOX + ROW_GAP) * ((double)row + 0.5) + 4,
                 "pl-text pl-ink", "end", chart->rows[row], NAME_LETTERS);
    for (size_t i = 0; i < count; i++)
        put_box(svg, &f, &boxes[i]);
    base_str_add(svg, "</svg>\n");
}
