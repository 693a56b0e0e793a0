/* SPDX-License-Identifier: MIT
 *
 * What the test found, class by class, and the tables that few readers open.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/html.h"

enum { HEAT_CLASSES = 40, CLASS_ROWS = 40, CONFUSIONS = 20, EPOCH_ROWS = 200 };

/* ---- who was taken for whom ---- */

static const char *class_name(const json_t *test, size_t index)
{
    const char *name = json_string_value(
        html_at(json_array_get(json_object_get(test, "per_class"), index), "name", NULL));

    return name != NULL ? name : "?";
}

static double cell(const json_t *confusion, size_t row, size_t column)
{
    return json_number_value(json_array_get(json_array_get(confusion, row), column));
}

static void put_heat(const json_t *test, struct base_str *html)
{
    const json_t *confusion = json_object_get(test, "confusion");
    size_t side = json_array_size(confusion);
    double *values = base_calloc(side * side, sizeof *values);
    const char **names = base_calloc(side, sizeof *names);

    for (size_t i = 0; i < side * side; i++)
        values[i] = fmax(0, cell(confusion, i / side, i % side));
    for (size_t i = 0; i < side; i++)
        names[i] = class_name(test, i);
    html_card(html, "confusion", "Confusion", "test samples; shade: share of the row");
    report_svg_heat(&(struct report_heat){.title = "Confusion matrix",
                                          .row_title = "truth",
                                          .column_title = "prediction",
                                          .names = names,
                                          .values = values,
                                          .side = side,
                                          .width = HTML_CHART},
                    html);
    html_card_end(html);
    base_free(names);
    base_free(values);
}

/* Of many classes, the pairs that were confused most often: the largest below the last one found,
 * or as large and further on. Rows may be of any length, and only cells that exist are visited: a
 * list of many numbers in place of rows is no square. */
static bool next_confusion(const json_t *confusion, size_t side, double *value, size_t *at)
{
    double best = 0, last = *value;
    size_t found = 0, last_at = *at;

    for (size_t r = 0; r < side; r++) {
        const json_t *row = json_array_get(confusion, r);
        size_t columns = json_array_size(row);

        for (size_t c = 0; c < columns && c < side; c++) {
            double here = r == c ? 0 : json_number_value(json_array_get(row, c));
            size_t i = r * side + c;

            if (here > best && (here < last || (here == last && i > last_at))) {
                best = here;
                found = i;
            }
        }
    }
    *value = best;
    *at = found;
    return best > 0;
}

static void put_confusions(const json_t *test, struct base_str *html)
{
    const json_t *confusion = json_object_get(test, "confusion");
    size_t side = json_array_size(confusion), at = 0;
    double value = INFINITY;

    html_card(html, "confusion", "Confused most often", "test samples");
    base_str_add(html, "<div class=\"table\"><table><thead><tr><th>truth</th><th>prediction</th>"
                       "<th>samples</th></tr></thead><tbody>\n");
    for (int n = 0; n < CONFUSIONS && next_confusion(confusion, side, &value, &at); n++) {
        base_str_add(html, "<tr><td>");
        report_xml_short(html, class_name(test, at / side), 40);
        base_str_add(html, "</td><td>");
        report_xml_short(html, class_name(test, at % side), 40);
        base_str_add(html, "</td><td>%.0f</td></tr>\n", value);
    }
    base_str_add(html, "</tbody></table></div>\n");
    html_card_end(html);
}

static void put_classes(const json_t *test, struct base_str *html)
{
    const json_t *classes = json_object_get(test, "per_class"), *of;
    static const char *const keys[] = {"precision", "recall", "f1"};
    size_t count = json_array_size(classes);
    char text[HTML_NUMBER];

    html_card(html, "classes", "By class", "test samples");
    base_str_add(html, "<div class=\"table\"><table><thead><tr><th>class</th><th>precision</th>"
                       "<th>recall</th><th>F1</th><th>support</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < count && i < CLASS_ROWS; i++) {
        of = json_array_get(classes, i);
        base_str_add(html, "<tr><td>");
        report_xml_short(html, class_name(test, i), 30);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            base_str_add(html, "</td><td>%.3f", json_number_value(json_object_get(of, keys[k])));
        html_number(json_number_value(json_object_get(of, "support")), 0, text);
        base_str_add(html, "</td><td>%s</td></tr>\n", text);
    }
    if (count > CLASS_ROWS)
        base_str_add(html, "<tr><td colspan=\"5\">… and %zu more</td></tr>\n", count - CLASS_ROWS);
    base_str_add(html, "</tbody></table></div>\n");
    html_card_end(html);
}

/* ---- plan and figures ---- */

static void put_object(const json_t *object, const char *key, const char *title, const char *hint,
                       struct base_str *html)
{
    const char *name;
    json_t *value;

    html_card(html, key, title, hint);
    base_str_add(html, "<div class=\"table\"><table class=\"facts\"><tbody>\n");
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        char *text = html_value(value);

        html_fact(html, name, text);
        base_free(text);
    }
    base_str_add(html, "</tbody></table></div>\n");
    html_card_end(html);
}

void page_results(const struct report_story *s, struct base_str *html)
{
    const json_t *test = html_at(s->json, "result", "test");
    const json_t *figures = html_at(s->json, "result", "figures");
    size_t side = json_array_size(json_object_get(test, "confusion"));

    if (side > 0 && side <= HEAT_CLASSES)
        put_heat(test, html);
    else if (side > 0)
        put_confusions(test, html);
    if (json_array_size(json_object_get(test, "per_class")) > 0)
        put_classes(test, html);
    if (json_object_size(figures) > 0)
        put_object(figures, "figures", "What the strategy counted", "all workers", html);
}

void page_kernels(const struct report_story *s, struct base_str *html)
{
    const char *plan = json_string_value(html_at(s->json, "about", "kernels"));
    char *words, *rest, *word;

    plan = plan != NULL && plan[0] != '\0' ? plan : s->kernels;
    if (plan == NULL || plan[0] == '\0')
        return;
    words = rest = base_strdup(plan);
    html_card(html, "kernels", "Kernel plan", "chosen for each convolution");
    base_str_add(html, "<div class=\"table\"><table class=\"facts\"><tbody>\n");
    while ((word = strsep(&rest, " ")) != NULL) {
        char *kernel = strchr(word, '=');

        if (kernel == NULL)
            continue;
        *kernel = '\0';
        html_fact(html, word, kernel + 1);
    }
    base_str_add(html, "</tbody></table></div>\n");
    html_card_end(html);
    base_free(words);
}

/* ---- tables to open ---- */

static void put_epochs(const json_t *epochs, struct base_str *html)
{
    size_t count = json_array_size(epochs);
    const char *key;
    json_t *value;

    base_str_add(html, "<details><summary>Epochs</summary><div class=\"card\"><div "
                       "class=\"table\"><table data-card=\"epochs\"><thead><tr>");
    json_object_foreach(json_array_get(epochs, 0), key, value)
    {
        base_str_add(html, "<th>");
        report_xml_text(html, key);
        base_str_add(html, "</th>");
    }
    base_str_add(html, "</tr></thead><tbody>\n");
    for (size_t i = count > EPOCH_ROWS ? count - EPOCH_ROWS : 0; i < count; i++) {
        base_str_add(html, "<tr>");
        json_object_foreach(json_array_get(epochs, 0), key, value)
        {
            char *text = html_value(json_object_get(json_array_get(epochs, i), key));

            base_str_add(html, "<td>");
            report_xml_text(html, text);
            base_str_add(html, "</td>");
            base_free(text);
        }
        base_str_add(html, "</tr>\n");
    }
    base_str_add(html, "</tbody></table></div></div></details>\n");
}

void page_details(const struct report_story *s, struct base_str *html)
{
    const json_t *epochs = html_at(s->json, "epochs", NULL);
    const json_t *settings = html_at(html_at(s->json, "about", NULL), "settings", NULL);

    if (json_array_size(epochs) > 0 && json_is_object(json_array_get(epochs, 0)))
        put_epochs(epochs, html);
    if (json_object_size(settings) > 0) {
        base_str_add(html, "<details><summary>All settings</summary>");
        put_object(settings, "settings", "Settings", "options of train", html);
        base_str_add(html, "</details>\n");
    }
}
