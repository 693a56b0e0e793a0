/* SPDX-License-Identifier: MIT
 *
 * A trained model's answers to the samples of a set, one after the other: the loader's threads
 * decode while the network computes, and no more than a few batches are in memory.
 */
#ifndef MODEL_PREDICT_H
#define MODEL_PREDICT_H

#include "model/model.h"

/* Valid during the call that hands it over. */
struct model_answer {
    const char *name; /* of the sample: its file, or SET/PART/INDEX */
    const char *bad;  /* why it cannot be read; NULL: it can, and the rest is there */
    int32_t label;    /* DATA_NO_LABEL: not known */
    double loss;      /* NAN: not known */
    /* Where a number is predicted, in its own units: it, and what it should be (NAN: not known).
     * There are no classes then, and no label. */
    double number, truth;
    int top;
    const int *classes;  /* (top) the likeliest first */
    const float *scores; /* (top) their probabilities, or the outputs of a model that has none */
};

struct model_answers {
    base_status (*take)(void *context, const struct model_answer *answer);
    void *context;
};

struct model_predictor;

/* For batches of up to `batch` and the `top` likeliest classes (or all there are). The model must
 * outlive it. */
base_status model_predictor_new(const struct model *model, int batch, int top,
                                struct model_predictor **predictor_p);
void model_predictor_free(struct model_predictor *predictor); /* accepts NULL */

/* The `top` (outputs at most) largest of y (outputs), the largest first; of equals the first class
 * comes first. */
void model_choose_top(const float *y, int outputs, int top, int *classes, float *scores);

bool model_gives_probabilities(const struct model *model);

/* All samples of the part, in order. A sample that cannot be read is an answer with `bad`. Stops
 * between batches when the person asked to stop (BASE_ERR_INTERRUPTED), and when `take` fails. */
base_status model_predict(struct model_predictor *predictor, const struct data_set *set,
                          enum data_part part, struct model_answers answers);

#endif
