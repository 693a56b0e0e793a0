/* SPDX-License-Identifier: MIT
 *
 * ONNX files: their length, names and numbers, the arithmetic of a folded batch norm, and what
 * cannot be written. That other programs can read them is tested by tests/dist/export.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "model/onnx.h"
#include "support/datafiles.h"
#include "support/nets.h"

static char *labels[] = {"a", "b"};
static char text[] = "input 1x1x1\nclasses 2\nconv 2 1x1 name=c\nbn eps=0.75 name=n\nrelu\n"
                     "dense 2 bias=off name=d\n";
static char nothing[] = "";

static void put(struct model *m, const char *name, const float *values)
{
    const struct nn_tensor *t = NULL;
    bool statistic = false;

    for (size_t i = 0; i < nn_graph_params(m->graph); i++)
        if (strcmp(nn_graph_param(m->graph, i)->name, name) == 0)
            t = nn_graph_param(m->graph, i);
    for (size_t i = 0; i < nn_graph_stats(m->graph); i++)
        if (strcmp(nn_graph_stat(m->graph, i)->name, name) == 0) {
            t = nn_graph_stat(m->graph, i);
            statistic = true;
        }
    assert_non_null(t);
    nn_tensor_import(t, values,
                     (statistic ? m->weights.statistics : m->weights.weights) + t->offset);
}

static void open_model(struct model *m)
{
    *m = (struct model){.about = {.labels = labels,
                                  .classes = 2,
                                  .model = text,
                                  .input = {1, 1, 1},
                                  .mean = {0.5f},
                                  .deviation = {0.25f},
                                  .kernels = nothing,
                                  .data = nothing,
                                  .format = nothing,
                                  .digest = nothing,
                                  .settings = json_object()}};
    m->graph = support_graph(text);
    assert_int_equal(model_weights_init(&m->weights, m->graph), BASE_OK);
    put(m, "c.weight", (const float[]){3, 5});
    put(m, "c.bias", (const float[]){1, 2});
    put(m, "n.weight", (const float[]){2, 1});
    put(m, "n.bias", (const float[]){7, 8});
    put(m, "n.running_mean", (const float[]){4, 6});
    put(m, "n.running_var", (const float[]){0.25f, 3.25f}); /* and eps: 1 and 4 */
    put(m, "d.weight", (const float[]){11, 12, 13, 14});
}

static void close_model(struct model *m)
{
    json_decref(m->about.settings);
    model_weights_fini(&m->weights);
    nn_graph_free(m->graph);
}

struct file {
    char *bytes;
    size_t count;
};

/* A tensor of the file: field 8, its name, and field 9, so many floats. */
static void assert_holds(const struct file *f, const char *name, const float *values, size_t count)
{
    size_t length = strlen(name), size = 2 + length + 2 + 4 * count;
    char *wanted = base_format("\x42%c%s\x4a%c", (int)length, name, (int)(4 * count));

    wanted = base_realloc(wanted, size, 1);
    memcpy(wanted + 4 + length, values, 4 * count);
    if (memmem(f->bytes, f->count, wanted, size) == NULL)
        fail_msg("%s is not there with these values", name);
    base_free(wanted);
}

static bool has(const struct file *f, const char *what)
{
    return memmem(f->bytes, f->count, what, strlen(what)) != NULL;
}

static struct model_onnx_summary write_one(const struct model *model, const char *path,
                                           struct model_onnx_options options, struct file *f)
{
    struct model_onnx_summary summary;

    if (model_onnx_write(model, &options, path, &summary) != BASE_OK)
        fail_msg("%s", base_message());
    assert_int_equal(base_file_read(path, 1 << 20, &f->bytes, &f->count), BASE_OK);
    assert_int_equal(f->count, summary.bytes);
    return summary;
}

static void test_files(void **state)
{
    struct model model;
    struct model_onnx_summary s;
    struct file f;
    char *folder = support_scratch(), *path = base_format("%s/m.onnx", folder);

    (void)state;
    open_model(&model);
    s = write_one(&model, path, (struct model_onnx_options){0}, &f);
    assert_int_equal(s.nodes, 6); /* Conv, BatchNormalization, Relu, Flatten, Gemm, Softmax */
    assert_int_equal(s.folded, 0);
    assert_holds(&f, "c.weight", (const float[]){3, 5}, 2);
    assert_holds(&f, "n.running_var", (const float[]){0.25f, 3.25f}, 2);
    assert_holds(&f, "d.weight", (const float[]){11, 12, 13, 14}, 4);
    assert_true(has(&f, "[\"a\",\"b\"]") && has(&f, "[0.5]") && has(&f, "[0.25]") && has(&f, text));
    assert_true(has(&f, "BatchNormalization") && !has(&f, "pixels.mean") && !has(&f, "d.bias"));
    base_free(f.bytes);
    s = write_one(&model, path, (struct model_onnx_options){.fold = true, .normalise = true}, &f);
    assert_int_equal(s.nodes, 7);
    assert_int_equal(s.folded, 1);
    assert_holds(&f, "c.weight", (const float[]){6, 2.5f}, 2); /* times 2/1 and 1/2 */
    assert_holds(&f, "c.bias", (const float[]){7 - 8 + 2, 8 - 3 + 1}, 2);
    assert_holds(&f, "pixels.mean", (const float[]){127.5f}, 1);
    assert_holds(&f, "pixels.deviation", (const float[]){63.75f}, 1);
    assert_false(has(&f, "BatchNormalization") || has(&f, "running_var"));
    base_free(f.bytes);
    close_model(&model);
    base_free(path);
    support_scratch_free(folder);
}

static void test_refused(void **state)
{
    struct model model;
    struct model_onnx_summary s;
    char *folder = support_scratch(), *path = base_format("%s/absent/m.onnx", folder);

    (void)state;
    open_model(&model);
    assert_int_equal(model_onnx_write(&model, &(struct model_onnx_options){0}, path, &s),
                     BASE_ERR_IO);
    close_model(&model);
    base_free(path);
    support_scratch_free(folder);
}

/* A model of rows says how they become features; it has no pixels to normalise. */
static void test_table(void **state)
{
    static char name[] = "size", target[] = "kind";
    static struct data_column column = {.name = name, .mean = 1.0 / 3, .deviation = 1};
    static struct data_table table = {
        .columns = &column, .column_count = 1, .features = 1, .target = {.name = target}};
    struct model model;
    struct model_onnx_summary s;
    struct file f;
    char *folder = support_scratch(), *path = base_format("%s/m.onnx", folder);

    (void)state;
    open_model(&model);
    model.about.table = &table;
    write_one(&model, path, (struct model_onnx_options){0}, &f);
    assert_true(has(&f, "features of a row, made as `table` says"));
    assert_true(has(&f, "\"name\":\"size\"") && has(&f, "\"mean\":0.33333333333333331"));
    assert_int_equal(
        model_onnx_write(&model, &(struct model_onnx_options){.normalise = true}, path, &s),
        BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "takes rows of a table"));
    close_model(&model);
    base_free(f.bytes);
    base_free(path);
    support_scratch_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
