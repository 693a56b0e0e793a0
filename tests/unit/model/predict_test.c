/* SPDX-License-Identifier: MIT
 *
 * Answers of a model whose outputs are some of its inputs: the likeliest first, names, losses, and
 * a caller that wants no more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "model/predict.h"
#include "support/nets.h"

enum { CLASSES = 4, SAMPLES = 11, PLANE = 16 };
#define SET "synthetic:classes=4,shape=4x4x4,train=8,test=11,noise=100"

static char *labels[] = {"a", "b", "c", "d"};

struct seen {
    const struct data_set *set;
    int count, fail_at;
    bool softmax;
};

/* Output c is the first pixel of channel c of the image, (4,4,4). */
static void open_model(struct model *m, const char *loss)
{
    char *text = base_format("input 4x4x4\nclasses 4\ndense 4 bias=off name=d\n%s\n", loss);
    const struct nn_tensor *t;
    float first[CLASSES * CLASSES * PLANE] = {0};

    *m = (struct model){.about = {.labels = labels,
                                  .classes = 4,
                                  .model = text,
                                  .input = {4, 4, 4},
                                  .deviation = {1, 1, 1, 1},
                                  .kernels = ""}};
    m->graph = support_graph(text);
    assert_int_equal(model_weights_init(&m->weights, m->graph), BASE_OK);
    for (int i = 0; i < CLASSES; i++)
        first[(CLASSES + 1) * PLANE * i] = 1;
    t = nn_graph_param(m->graph, 0);
    nn_tensor_import(t, first, m->weights.weights + t->offset);
}

static void close_model(struct model *m)
{
    base_free(m->about.model);
    model_weights_fini(&m->weights);
    nn_graph_free(m->graph);
}

static base_status take(void *context, const struct model_answer *answer)
{
    struct seen *seen = context;
    uint32_t id = (uint32_t)seen->count;
    uint8_t image[CLASSES * PLANE], pixels[CLASSES];
    double y[CLASSES], sum = 0;
    char *name = base_format(SET "/test/%u", id);

    assert_string_equal(answer->name, name);
    base_free(name);
    assert_null(answer->bad);
    assert_int_equal(answer->label, data_label(seen->set, DATA_TEST, id));
    assert_int_equal(data_pixels(seen->set, DATA_TEST, id, image), BASE_OK);
    for (int c = 0; c < CLASSES; c++)
        pixels[c] = image[c * PLANE];
    for (int c = 0; c < CLASSES; c++)
        sum += y[c] = seen->softmax ? exp(pixels[c] / 255.0) : pixels[c] / 255.0;
    assert_int_equal(answer->top, 3);
    for (int i = 0; i < answer->top; i++) {
        int c = answer->classes[i], above = 0;

        support_near((double)answer->scores[i], seen->softmax ? y[c] / sum : y[c], 1e-6);
        for (int k = 0; k < CLASSES; k++) /* of equals the first class comes first */
            above += pixels[k] > pixels[c] || (pixels[k] == pixels[c] && k < c);
        assert_int_equal(above, i);
    }
    if (seen->softmax)
        support_near(answer->loss, -log(y[answer->label] / sum), 1e-5);
    else
        assert_true(answer->loss >= 0);
    seen->count++;
    return seen->count == seen->fail_at ? base_fail(BASE_ERR_IO, "enough") : BASE_OK;
}

static void test_answers(void **state)
{
    (void)state;
    for (int softmax = 0; softmax < 2; softmax++) {
        struct model model;
        struct data_options options;
        struct model_predictor *predictor = NULL;
        struct data_set *set = NULL;
        struct seen seen = {.softmax = softmax};

        open_model(&model, softmax ? "softmax" : "mse");
        options = model_data_options(&model);
        assert_int_equal(model_gives_probabilities(&model), softmax);
        assert_int_equal(data_open(SET, &options, &set), BASE_OK);
        seen.set = set;
        assert_int_equal(model_predictor_new(&model, 4, 3, &predictor), BASE_OK);
        for (int again = 0; again < 2; again++) { /* a predictor answers set after set */
            seen.count = 0;
            assert_int_equal(
                model_predict(predictor, set, DATA_TEST, (struct model_answers){take, &seen}),
                BASE_OK);
            assert_int_equal(seen.count, SAMPLES);
        }
        seen.count = 0;
        seen.fail_at = 6;
        assert_int_equal(
            model_predict(predictor, set, DATA_TEST, (struct model_answers){take, &seen}),
            BASE_ERR_IO);
        assert_int_equal(seen.count, 6);
        model_predictor_free(predictor);
        data_close(set);
        close_model(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
