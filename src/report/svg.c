/* SPDX-License-Identifier: MIT */
#include "report/svg_private.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

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
    ".pl-band{fill-opacity:0.18}.pl-mark{stroke:#8b949e}\n"
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

size_t svg_letters(const char *text)
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

void report_xml_short(struct base_str *out, const char *text, size_t most)
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
    report_xml_short(out, text, SIZE_MAX);
}

void svg_put_text(struct base_str *svg, double x, double y, const char *class, const char *anchor,
                  const char *text, size_t most)
{
    base_str_add(svg, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, class,
                 anchor);
    report_xml_short(svg, text, most);
    base_str_add(svg, "</text>\n");
}

void svg_put_line(struct base_str *svg, const char *class, double x1, double y1, double x2,
                  double y2)
{
    base_str_add(svg, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                 class, x1, y1, x2, y2);
}

double svg_x_of(const struct svg_frame *f, double value)
{
    return f->left + (f->right - f->left) * report_axis_place(&f->x, value);
}

double svg_y_of(const struct svg_frame *f, double value)
{
    return f->bottom - (f->bottom - f->top) * report_axis_place(&f->y, value);
}

double svg_width(const struct report_chart *chart)
{
    return chart->width > 0 ? chart->width : SVG_WIDTH;
}

double svg_top(const struct report_chart *chart)
{
    return chart->bare ? 4 : SVG_MARGIN + SVG_LINE;
}

double svg_margin(const struct report_chart *chart)
{
    return chart->bare ? 2 : SVG_MARGIN;
}

void svg_begin(struct base_str *svg, const struct report_chart *chart, double height)
{
    double width = svg_width(chart);

    base_str_add(svg,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%.0f\" "
                 "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<title>",
                 width, height, width, height);
    report_xml_text(svg, chart->title);
    base_str_add(svg, "</title>\n");
    if (chart->bare)
        return;
    base_str_add(svg, "%s<rect class=\"pl-paper\" width=\"%.0f\" height=\"%.0f\"/>\n", style, width,
                 height);
    svg_put_text(svg, SVG_MARGIN, SVG_MARGIN + 10, "pl-title pl-ink", "start", chart->title,
                 (size_t)((width - 2 * SVG_MARGIN) / (SVG_LETTER + 1)));
}

/* ---- the legend: rows of swatches and names ---- */

static double legend_width(const struct report_series *series)
{
    size_t count = svg_letters(series->name);

    return 34 + SVG_LETTER * (double)(count < SVG_NAME_LETTERS ? count : SVG_NAME_LETTERS);
}

static void put_key(struct base_str *svg, const struct report_chart *chart, size_t i, double x,
                    double y)
{
    base_str_add(svg,
                 "<rect class=\"pl-f%zu\" x=\"%.1f\" y=\"%.1f\" width=\"14\" "
                 "height=\"%d\"/>\n",
                 i % SVG_COLOURS, x, y - (i < SVG_COLOURS ? 10 : 6), i < SVG_COLOURS ? 10 : 3);
    svg_put_text(svg, x + 20, y, "pl-text pl-ink", "start", chart->series[i].name,
                 SVG_NAME_LETTERS);
}

double svg_legend(struct base_str *svg, const struct report_chart *chart, double top)
{
    double left = svg_margin(chart), x = left, y = top + 14;
    size_t shown = chart->series_count < SVG_KEYS ? chart->series_count : SVG_KEYS;

    if (chart->series_count < 2)
        return 0;
    for (size_t i = 0; i < shown; i++) {
        double width = legend_width(&chart->series[i]) + (chart->bare ? 6 : 0);

        if (x > left && x + width > svg_width(chart) - left) {
            x = left;
            y += SVG_LINE;
        }
        if (svg != NULL)
            put_key(svg, chart, i, x, y);
        x += width;
    }
    if (shown < chart->series_count) {
        char text[48];

        snprintf(text, sizeof text, "… and %zu more", chart->series_count - shown);
        y += SVG_LINE;
        if (svg != NULL)
            svg_put_text(svg, left, y, "pl-text pl-soft", "start", text, SIZE_MAX);
    }
    return y + 8 - top;
}

/* ---- axes ---- */

void svg_put_x_axis(struct base_str *svg, const struct svg_frame *f, const char *title)
{
    char text[REPORT_TICK_TEXT];

    for (int i = 0; i < f->x.count; i++) {
        double x = svg_x_of(f, f->x.at[i]);

        svg_put_line(svg, "pl-grid", x, f->top, x, f->bottom);
        report_axis_text(&f->x, f->x.at[i], text);
        svg_put_text(svg, x, f->bottom + 16, "pl-text pl-soft", "middle", text, SIZE_MAX);
    }
    svg_put_line(svg, "pl-axis", f->left, f->bottom, f->right, f->bottom);
    svg_put_text(svg, (f->left + f->right) / 2, f->bottom + 36, "pl-text pl-ink", "middle", title,
                 SIZE_MAX);
}

void svg_put_y_axis(struct base_str *svg, const struct svg_frame *f, const char *title)
{
    char text[REPORT_TICK_TEXT];

    for (int i = 0; i < f->y.count; i++) {
        double y = svg_y_of(f, f->y.at[i]);

        svg_put_line(svg, "pl-grid", f->left, y, f->right, y);
        report_axis_text(&f->y, f->y.at[i], text);
        svg_put_text(svg, f->left - 6, y + 4, "pl-text pl-soft", "end", text, SIZE_MAX);
    }
    if (title == NULL)
        return;
    svg_put_line(svg, "pl-axis", f->left, f->top, f->left, f->bottom);
    base_str_add(svg,
                 "<text transform=\"translate(%d %.1f) rotate(-90)\" class=\"pl-text pl-ink\" "
                 "text-anchor=\"middle\">",
                 SVG_MARGIN, (f->top + f->bottom) / 2);
    report_xml_text(svg, title);
    base_str_add(svg, "</text>\n");
}

double svg_error_at(const struct report_series *s, size_t i)
{
    return s->error != NULL && isfinite(s->error[i]) && s->error[i] > 0 ? s->error[i] : 0;
}

bool svg_has_band(const struct report_series *s, size_t i)
{
    return s->low != NULL && isfinite(s->low[i]) && isfinite(s->high[i]);
}

bool svg_drawn(const struct report_chart *chart, const struct report_series *s, size_t i)
{
    return isfinite(s->y[i]) && (!chart->log_y || s->y[i] > 0) &&
           (s->x == NULL || (isfinite(s->x[i]) && (!chart->log_x || s->x[i] > 0)));
}

void svg_widen(struct svg_range *r, double value)
{
    r->low = fmin(r->low, value);
    r->high = fmax(r->high, value);
    r->broken |= value != floor(value);
}

void svg_ranges(const struct report_chart *chart, struct svg_range *x, struct svg_range *y)
{
    for (size_t s = 0; s < chart->series_count; s++) {
        const struct report_series *of = &chart->series[s];

        for (size_t i = 0; i < of->count; i++) {
            double error = svg_error_at(of, i);

            if (!svg_drawn(chart, of, i))
                continue;
            svg_widen(x, of->x != NULL ? of->x[i] : 0);
            svg_widen(y, of->y[i] + error);
            svg_widen(y, chart->log_y && of->y[i] <= error ? of->y[i] : of->y[i] - error);
            if (svg_has_band(of, i)) {
                svg_widen(y, of->low[i]);
                svg_widen(y, of->high[i]);
            }
        }
    }
}

void svg_fit(struct svg_range r, bool log, struct report_axis *axis)
{
    enum report_scale scale = log ? REPORT_LOG : r.broken ? REPORT_LINEAR : REPORT_WHOLE;

    if (r.low > r.high)
        r = (struct svg_range){0, 1, false};
    report_axis_fit(r.low, r.high, scale, SVG_TICKS, axis);
}

void svg_put_error(struct base_str *svg, const char *class, double x1, double y1, double x2,
                   double y2)
{
    double dx = y1 == y2 ? 0 : 3, dy = 3 - dx;

    svg_put_line(svg, class, x1, y1, x2, y2);
    svg_put_line(svg, class, x1 - dx, y1 - dy, x1 + dx, y1 + dy);
    svg_put_line(svg, class, x2 - dx, y2 - dy, x2 + dx, y2 + dy);
}
