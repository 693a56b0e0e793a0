/* SPDX-License-Identifier: MIT */
#include "support/trained.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/nets.h"

const char support_trained_text[] = "input 1x4x4\nclasses 3\nflatten\ndense 3 name=head\n";
static char *labels[] = {"a", "b", "c"};
const struct data_info support_trained_on = {.name = "some",
                                             .format = "idx",
                                             .channels = 1,
                                             .height = 4,
                                             .width = 4,
                                             .classes = 3,
                                             .class_names = labels,
                                             .mean = {0.25f},
                                             .deviation = {0.5f},
                                             .digest = "d"};

void support_trained_save(const char *dir, uint64_t step, const char *model, const char *without)
{
    struct nn_graph *graph = support_graph(support_trained_text);
    struct model_weights w;
    struct model_about about;
    struct store_save *s = NULL;
    json_t *json;

    assert_int_equal(model_weights_init(&w, graph), BASE_OK);
    nn_graph_start(graph, step, w.weights, w.statistics);
    model_about_init(&about, model != NULL ? model : support_trained_text, "", &support_trained_on,
                     json_object());
    json = model_about_to_json(&about);
    if (without != NULL)
        json_object_del(json, without);
    assert_int_equal(store_save_begin(dir, step, &s), BASE_OK);
    assert_int_equal(model_weights_write(&w, store_save_path(s, MODEL_WEIGHTS_FILE)), BASE_OK);
    assert_int_equal(store_save_commit(s, json, 0), BASE_OK);
    json_decref(json);
    model_about_fini(&about);
    model_weights_fini(&w);
    nn_graph_free(graph);
}

void support_trained_run(const char *place, const float *x, float *y)
{
    struct model model;
    struct nn_infer *infer;
    struct nn_lane *lane;

    assert_int_equal(model_open(place, "", false, &model), BASE_OK);
    assert_int_equal(model_infer(&model, 1, &infer), BASE_OK);
    assert_int_equal(nn_lane_new(infer, &lane), BASE_OK);
    assert_int_equal(nn_lane_run(lane, 1, x, y), BASE_OK);
    nn_lane_free(lane);
    nn_infer_free(infer);
    model_close(&model);
}
