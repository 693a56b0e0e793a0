/* SPDX-License-Identifier: MIT */
#include "cli/answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

struct cli_answers_form {
    void (*begin)(const struct cli_answers *a, const json_t *head); /* or NULL */
    void (*write)(const struct cli_answers *a, const struct model_answer *answer);
    void (*end)(const struct cli_answers *a, const json_t *tail); /* or NULL */
};

static const char *label_of(const struct cli_answers *a, int32_t class)
{
    return a->model->about.labels[class];
}

void cli_answers_begin(const struct cli_answers *a, const json_t *head)
{
    if (a->form->begin != NULL)
        a->form->begin(a, head);
}

void cli_answers_write(struct cli_answers *a, const struct model_answer *answer)
{
    a->form->write(a, answer);
    a->written++;
}

void cli_answers_end(const struct cli_answers *a, const json_t *tail)
{
    if (a->form->end != NULL)
        a->form->end(a, tail);
}

/* ---- for people ---- */

/* A name may contain any byte but zero, and control characters could take over a terminal. */
static void put_line_text(const char *text, FILE *out)
{
    for (; *text != '\0'; text++)
        fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, out);
}

static bool predicts_number(const struct cli_answers *a)
{
    return model_about_is_regression(&a->model->about);
}

/* "t.csv/test/3: price 231.5 (is 240.1, error -8.6)" */
static void text_number(const struct cli_answers *a, const struct model_answer *answer)
{
    put_line_text(answer->name, a->out);
    fputs(": ", a->out);
    put_line_text(label_of(a, 0), a->out);
    fprintf(a->out, " %.6g", answer->number);
    if (!isnan(answer->truth))
        fprintf(a->out, " (is %.6g, error %.6g)", answer->truth, answer->number - answer->truth);
    fputc('\n', a->out);
}

static void text_write(const struct cli_answers *a, const struct model_answer *answer)
{
    bool probabilities = model_gives_probabilities(a->model);

    if (answer->bad != NULL) /* a message on stderr tells of it */
        return;
    if (predicts_number(a)) {
        text_number(a, answer);
        return;
    }
    put_line_text(answer->name, a->out);
    for (int i = 0; i < answer->top; i++) {
        fputs(i == 0 ? ": " : ", ", a->out);
        put_line_text(label_of(a, answer->classes[i]), a->out);
        if (probabilities)
            fprintf(a->out, " %.2f %%", 100 * (double)answer->scores[i]);
        else
            fprintf(a->out, " %.4f", (double)answer->scores[i]);
    }
    if (answer->label != DATA_NO_LABEL) {
        fputs(" (label ", a->out);
        put_line_text(label_of(a, answer->label), a->out);
        fprintf(a->out, ", loss %.4f)", answer->loss);
    }
    fputc('\n', a->out);
}

const struct cli_answers_form cli_answers_text = {.write = text_write};

/* ---- CSV, RFC 4180 but for its line ends ---- */

static void csv_begin(const struct cli_answers *a, const json_t *head)
{
    const char *score = model_gives_probabilities(a->model) ? "probability" : "score";

    (void)head;
    if (predicts_number(a)) {
        fputs("file,label,loss,prediction\n", a->out);
        return;
    }
    fprintf(a->out, "file,label,loss,class,%s", score);
    for (int i = 2; i <= a->top; i++)
        fprintf(a->out, ",class_%d,%s_%d", i, score, i);
    fputc('\n', a->out);
}

static void csv_write(const struct cli_answers *a, const struct model_answer *answer)
{
    if (answer->bad != NULL) /* a message on stderr tells of it */
        return;
    cli_csv_field(answer->name, a->out);
    fputc(',', a->out);
    if (answer->label != DATA_NO_LABEL)
        cli_csv_field(label_of(a, answer->label), a->out);
    if (predicts_number(a) && !isnan(answer->truth))
        fprintf(a->out, "%.9g", answer->truth);
    fputc(',', a->out);
    if (!isnan(answer->loss))
        fprintf(a->out, "%.9g", answer->loss);
    if (predicts_number(a))
        fprintf(a->out, ",%.9g", answer->number);
    for (int i = 0; i < answer->top; i++) {
        fputc(',', a->out);
        cli_csv_field(label_of(a, answer->classes[i]), a->out);
        fprintf(a->out, ",%.9g", (double)answer->scores[i]);
    }
    fputc('\n', a->out);
}

const struct cli_answers_form cli_answers_csv = {.begin = csv_begin, .write = csv_write};

/* ---- JSON ---- */

enum { JSON_FORM = JSON_COMPACT | JSON_REAL_PRECISION(9) };

/* Prints the fields of an object without its braces. */
static void put_fields(const json_t *object, FILE *out)
{
    char *text = json_dumps(object, JSON_FORM);

    fwrite(text + 1, 1, strlen(text) - 2, out);
    free(text);
}

static void json_begin(const struct cli_answers *a, const json_t *head)
{
    fputc('{', a->out);
    put_fields(head, a->out);
    fputs(",\"predictions\":[", a->out);
}

static void json_write(const struct cli_answers *a, const struct model_answer *answer)
{
    const char *score = model_gives_probabilities(a->model) ? "probability" : "score";
    json_t *row = json_pack("{s:o}", "file", base_json_text(answer->name)), *classes = json_array();

    if (answer->label != DATA_NO_LABEL)
        json_object_set_new(row, "label", json_string(label_of(a, answer->label)));
    if (predicts_number(a) && !isnan(answer->truth))
        json_object_set_new(row, "label", json_real(answer->truth));
    if (answer->bad != NULL)
        json_object_set_new(row, "error", base_json_text(answer->bad));
    if (!isnan(answer->loss))
        json_object_set_new(row, "loss", json_real(answer->loss));
    for (int i = 0; i < answer->top && answer->bad == NULL; i++)
        json_array_append_new(classes,
                              json_pack("{s:s, s:o}", "class", label_of(a, answer->classes[i]),
                                        score, base_json_number((double)answer->scores[i])));
    if (predicts_number(a))
        json_object_set_new(row, "prediction", base_json_number(answer->number));
    else if (answer->bad == NULL)
        json_object_set(row, "classes", classes);
    if (a->written > 0)
        fputc(',', a->out);
    json_dumpf(row, a->out, JSON_FORM);
    json_decref(classes);
    json_decref(row);
}

static void json_end(const struct cli_answers *a, const json_t *tail)
{
    fputs("],", a->out);
    put_fields(tail, a->out);
    fputs("}\n", a->out);
}

const struct cli_answers_form cli_answers_json = {
    .begin = json_begin, .write = json_write, .end = json_end};
