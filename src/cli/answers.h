/* SPDX-License-Identifier: MIT
 *
 * What `paceline predict` prints: a model's answers as lines for people, as CSV or as one JSON
 * object. Each answer is written as it comes, so that a million take no memory. And the worst of
 * them, for --errors.
 */
#ifndef CLI_ANSWERS_H
#define CLI_ANSWERS_H

#include <stdio.h>

#include "base/json.h"
#include "model/predict.h"

struct cli_answers_form; /* text, CSV or JSON */
extern const struct cli_answers_form cli_answers_text, cli_answers_csv, cli_answers_json;

struct cli_answers {
    const struct cli_answers_form *form;
    const struct model *model;
    FILE *out;
    int top;
    uint64_t written;
};

/* `head` is borrowed and has the first fields of the JSON object. Failures to write show in ferror.
 */
void cli_answers_begin(const struct cli_answers *a, const json_t *head);
void cli_answers_write(struct cli_answers *a, const struct model_answer *answer);
/* `tail` is borrowed and has the last fields. */
void cli_answers_end(const struct cli_answers *a, const json_t *tail);

/* The `most` answers with the largest losses. */
struct cli_worst {
    size_t most, count;
    uint64_t seen;
    struct cli_worst_entry *at; /* has room for 2 * most */
};

void cli_worst_init(struct cli_worst *w, size_t most);
void cli_worst_fini(struct cli_worst *w); /* accepts zeros */
/* Copies the answer if it may be one of them; an answer without a loss is not. */
void cli_worst_add(struct cli_worst *w, const struct model_answer *answer);
/* Writes the worst first; equal losses in the order they came. */
void cli_worst_write(struct cli_worst *w, struct cli_answers *to);

#endif
