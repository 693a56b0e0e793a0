/* SPDX-License-Identifier: MIT
 *
 * The quality of a rating model as JSON and as lines for people.
 */
#include "base/str.h"
#include "recsys/quality.h"

json_t *recsys_quality_json(const struct recsys_fit *fit, const struct recsys_quality *q)
{
    json_t *values = json_array(), *confusion = json_array(), *lists;

    for (int t = 0; t < (fit->model->implicit ? 0 : q->bins); t++) {
        json_t *row = json_array();

        json_array_append_new(values, json_real((double)q->bin[t]));
        for (int g = 0; g < q->bins; g++)
            json_array_append_new(row, json_integer((json_int_t)q->confusion[t][g]));
        json_array_append_new(confusion, row);
    }
    lists = json_pack("{s:i, s:i, s:o, s:I, s:o, s:o, s:o, s:o}", "n", (int)q->n, "least",
                      (int)q->least, "relevant",
                      fit->model->implicit ? json_null() : json_real((double)q->relevant), "users",
                      (json_int_t)q->users, "precision", base_json_number(q->precision), "recall",
                      base_json_number(q->recall), "ndcg", base_json_number(q->ndcg), "coverage",
                      base_json_number(q->coverage));
    return json_pack("{s:o, s:o, s:I, s:o, s:o, s:o}", "mae", base_json_number(q->mae), "rmse",
                     base_json_number(q->rmse), "ratings", (json_int_t)q->count, "values", values,
                     "confusion", confusion, "lists", lists);
}

static void add_confusion(const struct recsys_quality *q, struct base_str *text)
{
    base_str_add(text, "  given \\ guessed");
    for (int g = 0; g < q->bins; g++)
        base_str_add(text, "%8.3g", (double)q->bin[g]);
    base_str_add(text, "\n");
    for (int t = 0; t < q->bins; t++) {
        base_str_add(text, "%17.3g", (double)q->bin[t]);
        for (int g = 0; g < q->bins; g++)
            base_str_add(text, "%8llu", (unsigned long long)q->confusion[t][g]);
        base_str_add(text, "\n");
    }
}

void recsys_quality_text(const struct recsys_fit *fit, const struct recsys_quality *q,
                         struct base_str *text)
{
    base_str_add(text, "test: RMSE %.4f, MAE %.4f of %llu ratings\n", q->rmse, q->mae,
                 (unsigned long long)q->count);
    if (q->users == 0)
        base_str_add(text, "no user liked a test item: there is nothing to judge lists by\n");
    else
        base_str_add(
            text,
            "lists of %u of all items with %u ratings or more, for %llu users who liked a test "
            "item: precision %.4f, "
            "recall %.4f, NDCG %.4f; %.1f %% of the items are in a list\n",
            q->n, q->least, (unsigned long long)q->users, q->precision, q->recall, q->ndcg,
            100 * q->coverage);
    if (!fit->model->implicit)
        add_confusion(q, text);
}
