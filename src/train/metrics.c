/* SPDX-License-Identifier: MIT */
#include "train/metrics.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "train/task.h"

/* Of the confusion matrix. */
static size_t cells(int classes)
{
    return classes <= TRAIN_MAX_MATRIX ? (size_t)classes * (size_t)classes : 0;
}

void train_metrics_init(struct train_metrics *m, int classes)
{
    size_t n = (size_t)classes;

    *m = (struct train_metrics){.classes = classes};
    m->support = base_calloc(n, sizeof *m->support);
    m->predicted = base_calloc(n, sizeof *m->predicted);
    m->hit = base_calloc(n, sizeof *m->hit);
    if (cells(classes) > 0)
        m->confusion = base_calloc(cells(classes), sizeof *m->confusion);
}

void train_metrics_fini(struct train_metrics *m)
{
    base_free(m->support);
    base_free(m->predicted);
    base_free(m->hit);
    base_free(m->confusion);
    *m = (struct train_metrics){0};
}

void train_metrics_add(struct train_metrics *m, const int32_t *truth, const int32_t *predicted,
                       int n, double loss_sum)
{
    for (int i = 0; i < n; i++) {
        bool right = truth[i] == predicted[i];

        m->support[truth[i]]++;
        m->predicted[predicted[i]]++;
        m->hit[truth[i]] += right;
        m->correct += right;
        if (m->confusion != NULL)
            m->confusion[(size_t)truth[i] * (size_t)m->classes + (size_t)predicted[i]]++;
    }
    m->count += (uint64_t)n;
    m->loss_sum += loss_sum;
}

size_t train_metrics_numbers(int classes)
{
    return TRAIN_SCORE_OWN + 3 * (size_t)classes + cells(classes);
}

void train_metrics_pack(const struct train_metrics *m, double *numbers)
{
    size_t n = (size_t)m->classes;

    numbers[TRAIN_SCORE_COUNT] = (double)m->count;
    numbers[TRAIN_SCORE_LOSS] = m->loss_sum;
    numbers[TRAIN_SCORE_CORRECT] = (double)m->correct;
    numbers += TRAIN_SCORE_OWN;
    for (size_t i = 0; i < n; i++) {
        numbers[i] = (double)m->support[i];
        numbers[n + i] = (double)m->predicted[i];
        numbers[2 * n + i] = (double)m->hit[i];
    }
    for (size_t i = 0; i < cells(m->classes); i++)
        numbers[3 * n + i] = (double)m->confusion[i];
}

void train_metrics_unpack(struct train_metrics *m, int classes, const double *numbers)
{
    size_t n = (size_t)classes;

    train_metrics_init(m, classes);
    m->count = (uint64_t)numbers[TRAIN_SCORE_COUNT];
    m->loss_sum = numbers[TRAIN_SCORE_LOSS];
    m->correct = (uint64_t)numbers[TRAIN_SCORE_CORRECT];
    numbers += TRAIN_SCORE_OWN;
    for (size_t i = 0; i < n; i++) {
        m->support[i] = (uint64_t)numbers[i];
        m->predicted[i] = (uint64_t)numbers[n + i];
        m->hit[i] = (uint64_t)numbers[2 * n + i];
    }
    for (size_t i = 0; i < cells(classes); i++)
        m->confusion[i] = (uint64_t)numbers[3 * n + i];
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

double train_metrics_loss(const struct train_metrics *m)
{
    return ratio(m->loss_sum, (double)m->count);
}

double train_metrics_accuracy(const struct train_metrics *m)
{
    return ratio((double)m->correct, (double)m->count);
}

struct scores {
    double precision, recall, f1;
};

static struct scores scores_of(const struct train_metrics *m, int class)
{
    struct scores s = {
        .precision = ratio((double)m->hit[class], (double)m->predicted[class]),
        .recall = ratio((double)m->hit[class], (double)m->support[class]),
    };

    s.f1 = ratio(2 * s.precision * s.recall, s.precision + s.recall);
    return s;
}

static json_t *confusion_json(const struct train_metrics *m)
{
    json_t *rows = json_array();

    for (int i = 0; i < m->classes && m->confusion != NULL; i++) {
        json_t *row = json_array();

        for (int j = 0; j < m->classes; j++)
            json_array_append_new(
                row,
                json_integer((json_int_t)m->confusion[(size_t)i * (size_t)m->classes + (size_t)j]));
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *train_metrics_json(const struct train_metrics *m, char *const *class_names)
{
    json_t *per_class = json_array();

    for (int i = 0; i < m->classes; i++) {
        struct scores s = scores_of(m, i);

        json_array_append_new(per_class, json_pack("{s:o, s:f, s:f, s:f, s:I}", "name",
                                                   base_json_text(class_names[i]), "precision",
                                                   s.precision, "recall", s.recall, "f1", s.f1,
                                                   "support", (json_int_t)m->support[i]));
    }
    return json_pack("{s:o, s:f, s:o, s:o}", "loss", base_json_number(train_metrics_loss(m)),
                     "accuracy", train_metrics_accuracy(m), "per_class", per_class, "confusion",
                     confusion_json(m));
}

static void confusion_text(const struct train_metrics *m, char *const *class_names,
                           struct base_str *text)
{
    base_str_add(text, "\nConfusion (rows: truth, columns: prediction)\n%-16s", "");
    for (int j = 0; j < m->classes; j++) {
        base_str_add(text, " ");
        base_str_column(text, class_names[j], 6);
    }
    base_str_add(text, "\n");
    for (int i = 0; i < m->classes; i++) {
        base_str_column(text, class_names[i], -16);
        for (int j = 0; j < m->classes; j++)
            base_str_add(
                text, " %6llu",
                (unsigned long long)m->confusion[(size_t)i * (size_t)m->classes + (size_t)j]);
        base_str_add(text, "\n");
    }
}

void train_metrics_text(const struct train_metrics *m, char *const *class_names,
                        struct base_str *text)
{
    struct scores mean = {0};
    int tested = 0; /* classes that have samples: the others have no scores to speak of */

    for (int i = 0; i < m->classes; i++)
        tested += m->support[i] > 0;
    base_str_add(text, "%-16s %9s %9s %9s %9s\n", "class", "precision", "recall", "f1", "support");
    for (int i = 0; i < m->classes; i++) {
        struct scores s = scores_of(m, i);

        if (m->support[i] > 0) {
            mean.precision += s.precision / tested;
            mean.recall += s.recall / tested;
            mean.f1 += s.f1 / tested;
        }
        base_str_column(text, class_names[i], -16);
        base_str_add(text, " %9.4f %9.4f %9.4f %9llu\n", s.precision, s.recall, s.f1,
                     (unsigned long long)m->support[i]);
    }
    base_str_add(text, "%-16s %9.4f %9.4f %9.4f %9llu\n", "mean", mean.precision, mean.recall,
                 mean.f1, (unsigned long long)m->count);
    if (m->confusion != NULL && m->classes <= 20)
        confusion_text(m, class_names, text);
}
