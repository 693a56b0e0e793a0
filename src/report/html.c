/* SPDX-License-Identifier: MIT */
#include "report/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

const json_t *html_at(const json_t *object, const char *a, const char *b)
{
    const json_t *value = json_object_get(object, a);

    return b != NULL ? json_object_get(value, b) : value;
}

/* Commas between the thousands of what is before the point. */
static void part_thousands(char text[HTML_NUMBER])
{
    size_t first = text[0] == '-', digits = strspn(text + first, "0123456789");

    for (size_t place = digits; place > 3; place -= 3) {
        char *at = text + first + place - 3;
        size_t rest = strlen(at);

        if ((size_t)(at - text) + rest + 2 > HTML_NUMBER)
            return;
        memmove(at + 1, at, rest + 1);
        *at = ',';
    }
}

void html_number(double value, int digits, char text[HTML_NUMBER])
{
    double size = fabs(value);

    if (!isfinite(value)) {
        snprintf(text, HTML_NUMBER, "–");
    } else if (size >= 1e15 || (size > 0 && size < 0.5 * pow(10, -digits) && digits > 0)) {
        snprintf(text, HTML_NUMBER, "%.3g", value);
    } else {
        snprintf(text, HTML_NUMBER, "%.*f", digits, value);
        part_thousands(text);
    }
}

void html_duration(double seconds, char text[HTML_NUMBER])
{
    if (!isfinite(seconds))
        snprintf(text, HTML_NUMBER, "–");
    else if (seconds < 1)
        snprintf(text, HTML_NUMBER, "%.3g ms", 1e3 * seconds);
    else if (seconds < 120)
        snprintf(text, HTML_NUMBER, "%.1f s", seconds);
    else if (seconds < 7200)
        snprintf(text, HTML_NUMBER, "%.1f min", seconds / 60);
    else
        snprintf(text, HTML_NUMBER, "%.1f h", seconds / 3600);
}

void html_bytes(double bytes, char text[HTML_NUMBER])
{
    snprintf(text, HTML_NUMBER, "%sB", base_scaled(bytes).text);
}

char *html_value(const json_t *value)
{
    char text[HTML_NUMBER];
    double number = json_number_value(value);

    if (json_is_string(value))
        return base_strdup(json_string_value(value));
    if (json_is_boolean(value))
        return base_strdup(json_is_true(value) ? "on" : "off");
    if (json_is_number(value) && number == floor(number)) {
        html_number(number, 0, text);
        return base_strdup(text);
    }
    if (json_is_number(value))
        return base_format("%.6g", number);
    if (json_is_array(value) && json_array_size(value) > 0)
        return json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(6));
    if (json_is_object(value))
        return json_dumps(value, JSON_REAL_PRECISION(6));
    return base_strdup("–");
}

void html_tile(struct base_str *html, const char *key, const char *title, const char *value,
               const char *below)
{
    base_str_add(html, "<div><dt>");
    report_xml_text(html, title);
    base_str_add(html, "</dt><dd><span data-key=\"%s\">", key);
    report_xml_text(html, value);
    base_str_add(html, "</span><small>");
    report_xml_text(html, below != NULL ? below : "\u00a0");
    base_str_add(html, "</small></dd></div>\n");
}

void html_fact(struct base_str *html, const char *title, const char *text)
{
    base_str_add(html, "<tr><th>");
    report_xml_text(html, title);
    base_str_add(html, "</th><td>");
    report_xml_text(html, text);
    base_str_add(html, "</td></tr>\n");
}

void html_card(struct base_str *html, const char *key, const char *title, const char *hint)
{
    base_str_add(html, "<figure data-card=\"%s\"><figcaption><h3>", key);
    report_xml_text(html, title);
    base_str_add(html, "</h3><span>");
    report_xml_text(html, hint);
    base_str_add(html, "</span></figcaption>\n");
}

void html_card_end(struct base_str *html)
{
    base_str_add(html, "</figure>\n");
}

void html_note(struct base_str *html, const char *text)
{
    base_str_add(html, "<p class=\"note\">");
    report_xml_text(html, text);
    base_str_add(html, "</p>\n");
}

void html_link(struct base_str *html, const char *path, const char *text)
{
    struct base_str link = {0};

    for (; *path != '\0'; path++)
        base_str_add(&link, strchr("#?%", *path) != NULL ? "%%%02X" : "%c", (unsigned char)*path);
    base_str_add(html, "<a href=\"");
    report_xml_text(html, link.text);
    base_str_add(html, "\">");
    report_xml_text(html, text);
    base_str_add(html, "</a>");
    base_str_fini(&link);
}
