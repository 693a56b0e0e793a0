/* SPDX-License-Identifier: MIT
 *
 * How good the predictions are: loss, accuracy, per-class precision, recall, F1 and support, and
 * the confusion matrix, as text and as JSON. Metrics of several workers can be added up exactly.
 */
#ifndef TRAIN_METRICS_H
#define TRAIN_METRICS_H

#include <jansson.h>
#include <stdint.h>

#include "base/str.h"

/* Beyond this many classes there is no matrix, only per-class counts. */
enum { TRAIN_MAX_MATRIX = 1024 };

struct train_metrics {
    int classes;
    uint64_t count, correct;
    double loss_sum;
    uint64_t *support, *predicted, *hit; /* (classes) */
    uint64_t *confusion;                 /* (classes true, classes predicted), or NULL */
};

void train_metrics_init(struct train_metrics *m, int classes);
void train_metrics_fini(struct train_metrics *m);
void train_metrics_add(struct train_metrics *m, const int32_t *truth, const int32_t *predicted,
                       int n, double loss_sum);

/* As numbers that can be added over workers (train/task.h: count, loss, correct, then its own):
 * how many, out, and back. `unpack` initialises m. */
size_t train_metrics_numbers(int classes);
void train_metrics_pack(const struct train_metrics *m, double *numbers);
void train_metrics_unpack(struct train_metrics *m, int classes, const double *numbers);

double train_metrics_loss(const struct train_metrics *m); /* mean */
double train_metrics_accuracy(const struct train_metrics *m);

/* {"loss","accuracy","per_class":[…],"confusion":[[…]]} */
json_t *train_metrics_json(const struct train_metrics *m, char *const *class_names);
/* The classification report and, up to 20 classes, the confusion matrix. */
void train_metrics_text(const struct train_metrics *m, char *const *class_names,
                        struct base_str *text);

#endif
