/* SPDX-License-Identifier: MIT
 *
 * A trained model opened by every name it has, computing what its weights say; and the folders,
 * manifests, weights and data sets that are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "model/model.h"
#include "support/datafiles.h"
#include "support/nets.h"
#include "support/trained.h"

struct place {
    char *runs, *run, *checkpoints, *step;
};

/* RUNS/one/checkpoints with steps 1 and 2, of which 1 is the best. */
static int make_run(void **state)
{
    struct place *p = base_calloc(1, sizeof *p);

    p->runs = support_scratch();
    p->run = base_format("%s/one", p->runs);
    p->checkpoints = base_format("%s/checkpoints", p->run);
    p->step = base_format("%s/step-1", p->checkpoints);
    support_trained_save(p->checkpoints, 1, NULL, NULL);
    support_trained_save(p->checkpoints, 2, NULL, NULL);
    assert_int_equal(store_mark_best(p->checkpoints, 1), BASE_OK);
    *state = p;
    return 0;
}

static int remove_run(void **state)
{
    struct place *p = *state;

    support_scratch_free(p->runs);
    base_free(p->run);
    base_free(p->checkpoints);
    base_free(p->step);
    base_free(p);
    return 0;
}

static void assert_opens(const char *name, const char *runs_dir, bool best, uint64_t step)
{
    struct nn_graph *graph = support_graph(support_trained_text);
    struct model_weights w;
    struct model model;

    if (model_open(name, runs_dir, best, &model) != BASE_OK)
        fail_msg("%s", base_message());
    assert_int_equal(model.checkpoint.step, step);
    assert_string_equal(model.about.labels[2], "c");
    assert_int_equal(model_weights_init(&w, graph), BASE_OK);
    nn_graph_start(graph, step, w.weights, w.statistics);
    assert_memory_equal(model.weights.weights, w.weights, w.floats * sizeof(float));
    model_close(&model);
    model_close(&model);
    model_weights_fini(&w);
    nn_graph_free(graph);
}

static void test_names(void **state)
{
    struct place *p = *state;
    char *slash = base_format("%s/", p->run);

    assert_opens("one", p->runs, false, 2);
    assert_opens("one", p->runs, true, 1);
    assert_opens(p->run, "elsewhere", false, 2);
    assert_opens(slash, "elsewhere", true, 1);
    assert_opens(p->checkpoints, "elsewhere", false, 2);
    assert_opens(p->step, "elsewhere", false, 1);
    assert_opens("one/checkpoints/step-1", p->runs, false, 1);
    base_free(slash);
}

static void assert_refused(base_status code, const char *name, const char *runs_dir, bool best,
                           const char *words)
{
    struct model model = {.checkpoint.step = 7};

    assert_int_equal(model_open(name, runs_dir, best, &model), code);
    if (strstr(base_message(), words) == NULL)
        fail_msg("no \"%s\" in: %s", words, base_message());
    assert_null(model.graph);
    assert_null(model.checkpoint.path);
    model_close(&model);
}

/* A checkpoint whose weights are there, but which its manifest does not list: it has "files": {}.
 */
static void save_unlisted(const char *dir, uint64_t step)
{
    char *folder = base_format("%s/step-%d", dir, (int)step);
    char *other = base_format("%s/other", dir), *weights = base_format("%s/step-1", other);
    char *from = base_format("%s/" MODEL_WEIGHTS_FILE, weights);
    char *to = base_format("%s/" MODEL_WEIGHTS_FILE, folder);
    struct model_about about;
    struct store_save *s = NULL;
    json_t *json;

    support_trained_save(other, 1, NULL, NULL);
    model_about_init(&about, support_trained_text, "", &support_trained_on, json_object());
    json = model_about_to_json(&about);
    assert_int_equal(store_save_begin(dir, step, &s), BASE_OK);
    assert_int_equal(store_save_commit(s, json, 0), BASE_OK);
    assert_int_equal(rename(from, to), 0);
    json_decref(json);
    model_about_fini(&about);
    base_free(to);
    base_free(from);
    base_free(weights);
    base_free(other);
    base_free(folder);
}

static void test_refused(void **state)
{
    struct place *p = *state;
    char *bad = base_format("%s/bad", p->runs), *path = "";

    assert_refused(BASE_ERR_USAGE, "two", p->runs, false, "two");
    assert_refused(BASE_ERR_USAGE, p->step, p->runs, true, "one checkpoint");
    support_trained_save(bad, 1, NULL, "mean");
    assert_refused(BASE_ERR_DATA, "bad", p->runs, false, "step-1/manifest.json: \"mean\" is");
    support_trained_save(bad, 2, "flatten\ndense 3 name=other\n", NULL);
    assert_refused(BASE_ERR_DATA, "bad", p->runs, false, "other.weight is missing");
    support_trained_save(bad, 3, "flatten\nnonsense\n", NULL);
    assert_refused(BASE_ERR_MODEL, "bad", p->runs, false, "nonsense");
    support_trained_save(bad, 4, "flatten\ndense 4 name=head\n", NULL);
    assert_refused(BASE_ERR_MODEL, "bad", p->runs, false, "step-4");
    save_unlisted(bad, 5);
    assert_refused(BASE_ERR_DATA, "bad", p->runs, false, "does not list model.safetensors");
    assert_int_equal(model_find_weights("bad", p->runs, &path), BASE_ERR_DATA);
    assert_null(path);
    base_free(bad);
}

static void test_computes(void **state)
{
    struct place *p = *state;
    struct model model;
    struct nn_net *net = NULL;
    struct support_batch batch;
    struct nn_outcome outcome;
    float values[3], expected;

    assert_int_equal(model_open("one", p->runs, false, &model), BASE_OK);
    assert_int_equal(model_net(&model, 5, &net), BASE_OK);
    support_batch_init(&batch, model.graph, 5, 1);
    assert_int_equal(nn_net_forward(net, &batch.batch, false, &outcome), BASE_OK);
    assert_int_equal(nn_net_output(net, nn_graph_layers(model.graph) - 2, 4, values), BASE_OK);
    {
        float weight[3 * 16], bias[3];

        nn_tensor_export(nn_graph_param(model.graph, 0),
                         model.weights.weights + nn_graph_param(model.graph, 0)->offset, weight);
        nn_tensor_export(nn_graph_param(model.graph, 1),
                         model.weights.weights + nn_graph_param(model.graph, 1)->offset, bias);
        for (int o = 0; o < 3; o++) {
            expected = bias[o];
            for (int i = 0; i < 16; i++)
                expected += weight[o * 16 + i] * batch.x[4 * 16 + i];
            support_near(values[o], expected, 1e-5);
        }
    }
    support_batch_fini(&batch);
    nn_net_free(net);
    model_close(&model);
}

static void test_data(void **state)
{
    struct place *p = *state;
    struct data_info info = support_trained_on;
    struct data_options options;
    struct model model;

    assert_int_equal(model_open("one", p->runs, false, &model), BASE_OK);
    options = model_data_options(&model);
    assert_int_equal(options.channels, 1);
    assert_true(options.mean[0] == 0.25f && options.deviation[0] == 0.5f);
    assert_int_equal(model_check_data(&model, &info), BASE_OK);
    info.name = "other";
    info.digest[0] = 'e';
    assert_int_equal(model_check_data(&model, &info), BASE_OK);
    info.classes = 4;
    assert_int_equal(model_check_data(&model, &info), BASE_ERR_MODEL);
    assert_non_null(strstr(base_message(), "other is 1x4x4 with 4 classes"));
    assert_non_null(strstr(base_message(), "1x4x4 with 3"));
    info.classes = 3;
    info.channels = 3;
    assert_int_equal(model_check_data(&model, &info), BASE_ERR_MODEL);
    info.channels = 1;
    info.height = 5;
    assert_int_equal(model_check_data(&model, &info), BASE_ERR_MODEL);
    info.height = 4;
    info.width = 3;
    assert_int_equal(model_check_data(&model, &info), BASE_ERR_MODEL);
    model_close(&model);
}

static void assert_weights_at(const char *name, const char *runs_dir, const char *end)
{
    char *path = NULL;

    if (model_find_weights(name, runs_dir, &path) != BASE_OK)
        fail_msg("%s", base_message());
    assert_string_equal(path + strlen(path) - strlen(end), end);
    assert_true(base_exists(path));
    base_free(path);
}

static void test_find_weights(void **state)
{
    struct place *p = *state;
    char *path = "", *file = base_format("%s/some.safetensors", p->runs);

    support_write(p->runs, "some.safetensors", "x", 1);
    assert_weights_at("one", p->runs, "one/checkpoints/step-2/model.safetensors");
    assert_weights_at(p->step, p->runs, "step-1/model.safetensors");
    assert_weights_at("some.safetensors", p->runs, "some.safetensors");
    assert_weights_at(file, "elsewhere", "some.safetensors");
    assert_int_equal(model_find_weights("two", p->runs, &path), BASE_ERR_USAGE);
    assert_null(path);
    base_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_computes),     cmocka_unit_test(test_data),
        cmocka_unit_test(test_find_weights),
    };

    return cmocka_run_group_tests(tests, make_run, remove_run);
}
