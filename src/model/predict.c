/* SPDX-License-Identifier: MIT */
#include "model/predict.h"

#include <math.h>

#include "base/mem.h"
#include "base/stop.h"
#include "data/loader.h"

struct model_predictor {
    const struct model_about *about;
    const struct nn_layer *loss;
    struct nn_infer *infer;
    struct nn_lane *lane;
    int batch, outputs, top;
    float *y;      /* (batch,outputs) */
    int *classes;  /* (top) */
    float *scores; /* (top) */
};

static const struct nn_node *last_node(const struct model *model)
{
    return nn_graph_node(model->graph, nn_graph_layers(model->graph) - 1);
}

bool model_gives_probabilities(const struct model *model)
{
    return last_node(model)->layer->probabilities;
}

base_status model_predictor_new(const struct model *model, int batch, int top,
                                struct model_predictor **predictor_p)
{
    base_status st = BASE_OK;
    struct model_predictor *p = base_calloc(1, sizeof *p);
    size_t values = 0;

    *predictor_p = NULL;
    p->about = &model->about;
    p->loss = last_node(model)->layer;
    p->batch = batch;
    p->outputs = last_node(model)->out.c;
    p->top = top < p->outputs ? top : p->outputs;
    if (model_about_is_regression(p->about))
        p->top = 0;
    p->classes = base_calloc((size_t)p->top, sizeof *p->classes);
    p->scores = base_calloc((size_t)p->top, sizeof *p->scores);
    TRY(base_mul((size_t)batch, (size_t)p->outputs, &values));
    TRY(base_tensor(values, sizeof *p->y, "the model's answers", &p->y));
    TRY(model_infer(model, batch, &p->infer));
    TRY(nn_lane_new(p->infer, &p->lane));
    *predictor_p = p;
    p = NULL;
out:
    model_predictor_free(p);
    return st;
}

void model_predictor_free(struct model_predictor *p)
{
    if (p == NULL)
        return;
    nn_lane_free(p->lane);
    nn_infer_free(p->infer);
    base_free(p->y);
    base_free(p->classes);
    base_free(p->scores);
    base_free(p);
}

void model_choose_top(const float *y, int outputs, int top, int *classes, float *scores)
{
    int kept = 0;

    for (int i = 0; i < outputs; i++) { /* by insertion */
        int at;

        if (kept == top && !(y[i] > scores[kept - 1]))
            continue;
        for (at = kept < top ? kept++ : kept - 1; at > 0 && y[i] > scores[at - 1]; at--) {
            scores[at] = scores[at - 1];
            classes[at] = classes[at - 1];
        }
        scores[at] = y[i];
        classes[at] = i;
    }
}

static const char *const part_names[DATA_PARTS] = {"train", "test", "validation"};

/* Of y, a single output. */
static void tell_number(const struct model_predictor *p, const struct data_set *set,
                        enum data_part part, uint32_t id, float y, struct model_answer *answer)
{
    double error = (double)y - (double)data_number(set, part, id);

    answer->label = DATA_NO_LABEL;
    answer->number = model_about_number(p->about, y);
    answer->truth = data_target(set, part, id);
    answer->loss = error * error;
}

static base_status hand_over(struct model_predictor *p, const struct data_set *set,
                             enum data_part part, const struct data_batch *b, uint32_t i,
                             struct model_answers answers)
{
    const char *file = data_file(set, part, b->ids[i]);
    char *name = file != NULL ? NULL
                              : base_format("%s/%s/%u", data_describe(set)->name, part_names[part],
                                            b->ids[i]);
    const float *y = p->y + (size_t)i * (size_t)p->outputs;
    struct model_answer answer = {.name = file != NULL ? file : name,
                                  .bad = b->bad[i],
                                  .label = b->labels[i],
                                  .loss = NAN,
                                  .top = p->top,
                                  .classes = p->classes,
                                  .scores = p->scores};
    base_status st;

    if (model_about_is_regression(p->about)) {
        tell_number(p, set, part, b->ids[i], *y, &answer);
    } else if (answer.bad == NULL) {
        model_choose_top(y, p->outputs, p->top, p->classes, p->scores);
        if (answer.label != DATA_NO_LABEL && p->loss->sample_loss != NULL)
            answer.loss = p->loss->sample_loss(p->outputs, y, answer.label);
    }
    st = answers.take(answers.context, &answer);
    base_free(name);
    return st;
}

static base_status answer_batch(struct model_predictor *p, const struct data_set *set,
                                enum data_part part, const struct data_batch *b,
                                struct model_answers answers)
{
    base_status st = BASE_OK;

    TRY(nn_lane_run(p->lane, (int)b->count, b->x, p->y));
    for (uint32_t i = 0; i < b->count; i++)
        TRY(hand_over(p, set, part, b, i, answers));
out:
    return st;
}

base_status model_predict(struct model_predictor *p, const struct data_set *set,
                          enum data_part part, struct model_answers answers)
{
    base_status st = BASE_OK;
    uint32_t count = data_describe(set)->count[part], *ids = NULL;
    struct data_loader *loader = NULL;
    struct data_batch b;

    TRY(base_tensor(count, sizeof *ids, "the list of samples", &ids));
    for (uint32_t i = 0; i < count; i++)
        ids[i] = i;
    TRY(data_loader_new(set, part, (uint32_t)p->batch, (struct data_share){0}, 0,
                        (struct data_augment){0}, &loader));
    data_loader_tolerate(loader);
    TRY(data_loader_begin(loader, 0, ids, count));
    for (;;) {
        if (base_stop_signal() != 0)
            TRY(base_fail(BASE_ERR_INTERRUPTED, "stopped while predicting"));
        TRY(data_loader_next(loader, &b));
        if (b.count == 0)
            break;
        TRY(answer_batch(p, set, part, &b, answers));
    }
out:
    data_loader_free(loader);
    base_free(ids);
    return st;
}
