/* SPDX-License-Identifier: MIT
 *
 * Weights, statistics and slots in files: the same after a round trip, under PyTorch's names and
 * shapes; a file that lacks a tensor or has it in another shape is refused, or read in part where
 * that is asked for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "model/weights.h"
#include "store/safetensors.h"
#include "support/datafiles.h"
#include "support/nets.h"

static const char text[] = "input 3x8x8\nclasses 5\nconv 6 3x3 pad=1 name=conv1\nbn "
                           "name=bn1\nrelu\nflatten\ndense 5 name=dense1\n";

struct place {
    char *folder, *path;
};

static int make_place(void **state)
{
    struct place *p = base_calloc(1, sizeof *p);

    p->folder = support_scratch();
    p->path = base_format("%s/file.safetensors", p->folder);
    *state = p;
    return 0;
}

static int remove_place(void **state)
{
    struct place *p = *state;

    support_scratch_free(p->folder);
    base_free(p->path);
    base_free(p);
    return 0;
}

/* Buffers of `graph` with starting values of `seed`. */
static struct model_weights started(const struct nn_graph *graph, uint64_t seed)
{
    struct model_weights w;

    assert_int_equal(model_weights_init(&w, graph), BASE_OK);
    nn_graph_start(graph, seed, w.weights, w.statistics);
    for (size_t i = 0; i < nn_graph_stats(graph); i++)
        w.tracked[i] = (int64_t)(seed * 10 + i);
    return w;
}

static bool same_weights(const struct model_weights *a, const struct model_weights *b)
{
    return a->floats == b->floats && memcmp(a->weights, b->weights, a->floats * sizeof(float)) == 0;
}

static void test_round_trip(void **state)
{
    struct place *p = *state;
    struct nn_graph *graph = support_graph(text);
    struct model_weights a = started(graph, 1), b = started(graph, 2);

    a.statistics[0] = 0.75f;
    assert_false(same_weights(&a, &b));
    assert_int_equal(model_weights_write(&a, p->path), BASE_OK);
    assert_int_equal(model_weights_read(&b, p->path, false), BASE_OK);
    assert_true(same_weights(&a, &b));
    assert_memory_equal(a.statistics, b.statistics, nn_graph_stat_floats(graph) * sizeof(float));
    assert_int_equal(b.tracked[0], a.tracked[0]);
    model_weights_fini(&a);
    model_weights_fini(&b);
    model_weights_fini(&b);
    nn_graph_free(graph);
}

static void assert_tensor(const struct store_file *file, size_t index, const char *name,
                          enum store_type type, int rank, const uint64_t *shape)
{
    const struct store_tensor *t = store_at(file, index);

    assert_string_equal(t->name, name);
    assert_int_equal(t->type, type);
    assert_int_equal(t->rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(t->shape[i], shape[i]);
}

static void test_names_and_shapes(void **state)
{
    struct place *p = *state;
    struct nn_graph *graph = support_graph(text);
    struct model_weights w = started(graph, 1);
    struct store_file *file = NULL;

    assert_int_equal(model_weights_write(&w, p->path), BASE_OK);
    assert_int_equal(store_open(p->path, &file), BASE_OK);
    assert_int_equal(store_count(file), 9);
    assert_tensor(file, 0, "conv1.weight", STORE_F32, 4, (uint64_t[]){6, 3, 3, 3});
    assert_tensor(file, 1, "conv1.bias", STORE_F32, 1, (uint64_t[]){6});
    assert_tensor(file, 2, "bn1.weight", STORE_F32, 1, (uint64_t[]){6});
    assert_tensor(file, 3, "bn1.bias", STORE_F32, 1, (uint64_t[]){6});
    assert_tensor(file, 4, "dense1.weight", STORE_F32, 2, (uint64_t[]){5, 6 * 8 * 8});
    assert_tensor(file, 5, "dense1.bias", STORE_F32, 1, (uint64_t[]){5});
    assert_tensor(file, 6, "bn1.running_mean", STORE_F32, 1, (uint64_t[]){6});
    assert_tensor(file, 7, "bn1.num_batches_tracked", STORE_I64, 0, NULL);
    assert_tensor(file, 8, "bn1.running_var", STORE_F32, 1, (uint64_t[]){6});
    store_close(file);
    model_weights_fini(&w);
    nn_graph_free(graph);
}

/* What the weights of `text` say when they are read from what `other` wrote. */
static base_status read_other(const char *path, const char *other, bool partial)
{
    struct nn_graph *theirs = support_graph(other), *ours = support_graph(text);
    struct model_weights a = started(theirs, 1), b = started(ours, 2);
    base_status st;

    assert_int_equal(model_weights_write(&a, path), BASE_OK);
    st = model_weights_read(&b, path, partial);
    model_weights_fini(&a);
    model_weights_fini(&b);
    nn_graph_free(theirs);
    nn_graph_free(ours);
    return st;
}

static void assert_says(const char *words)
{
    if (strstr(base_message(), words) == NULL)
        fail_msg("no \"%s\" in: %s", words, base_message());
}

static void test_misfits(void **state)
{
    struct place *p = *state;

    assert_int_equal(
        read_other(p->path, "input 3x8x8\nclasses 5\nflatten\ndense 5 name=dense1\n", false),
        BASE_ERR_DATA);
    assert_says("conv1.weight is missing");
    assert_says(p->path);
    assert_int_equal(
        read_other(
            p->path,
            "input 3x8x8\nclasses 5\nconv 7 3x3 pad=1 name=conv1\nbn name=bn1\nrelu\nflatten\n"
            "dense 5 name=dense1\n",
            false),
        BASE_ERR_DATA);
    assert_says("conv1.weight has another shape");
    assert_int_equal(
        read_other(p->path,
                   "input 3x8x8\nclasses 5\nconv 6 3x3 pad=1 name=conv1\nrelu\nflatten\ndense "
                   "5\n",
                   false),
        BASE_ERR_DATA);
    assert_says("bn1.weight is missing");
    assert_int_equal(read_other(p->path, "input 3x4x4\nclasses 9\nflatten\ndense 9 name=x\n", true),
                     BASE_ERR_DATA);
    assert_says("no tensor in common");
    assert_says("it has for example x.weight, the model conv1.weight");
    support_write(p->folder, "file.safetensors", "PK\003\004 and so on", 14);
    {
        struct nn_graph *graph = support_graph(text);
        struct model_weights w = started(graph, 1);

        assert_int_equal(model_weights_read(&w, p->path, true), BASE_ERR_DATA);
        assert_says("a file of PyTorch; convert it: python3 torch_weights.py to-paceline");
        model_weights_fini(&w);
        nn_graph_free(graph);
    }
    support_write(p->folder, "file.safetensors", "rubbish", 7);
    {
        struct nn_graph *graph = support_graph(text);
        struct model_weights w = started(graph, 1);

        assert_int_equal(model_weights_read(&w, p->path, true), BASE_ERR_DATA);
        assert_int_equal(model_weights_read(&w, "/nothing", true), BASE_ERR_IO);
        model_weights_fini(&w);
        nn_graph_free(graph);
    }
}

/* A model with another head takes the body and keeps its own head. */
static void test_partial(void **state)
{
    struct place *p = *state;
    struct nn_graph *ours = support_graph(text);
    struct nn_graph *theirs =
        support_graph("input 3x8x8\nclasses 9\nconv 6 3x3 pad=1 name=conv1\nbn "
                      "name=bn1\nrelu\nflatten\ndense 9 name=dense1\n");
    struct model_weights a = started(theirs, 1), b = started(ours, 2), before = started(ours, 2);
    const struct nn_tensor *body = nn_graph_param(ours, 0), *head = nn_graph_param(ours, 4);

    assert_int_equal(model_weights_write(&a, p->path), BASE_OK);
    assert_int_equal(model_weights_read(&b, p->path, false), BASE_ERR_DATA);
    assert_int_equal(model_weights_read(&b, p->path, true), BASE_OK);
    assert_memory_equal(b.weights + body->offset, a.weights + nn_graph_param(theirs, 0)->offset,
                        body->floats * sizeof(float));
    assert_memory_equal(b.weights + head->offset, before.weights + head->offset,
                        head->floats * sizeof(float));
    assert_int_equal(b.tracked[0], a.tracked[0]);
    model_weights_fini(&a);
    model_weights_fini(&b);
    model_weights_fini(&before);
    nn_graph_free(ours);
    nn_graph_free(theirs);
}

/* Files from elsewhere may lack num_batches_tracked. */
static void test_untracked(void **state)
{
    struct place *p = *state;
    struct nn_graph *graph =
        support_graph("input 1x4x4\nclasses 2\nbn name=bn1\nflatten\ndense 2 name=dense1\n");
    struct model_weights w = started(graph, 3);
    const struct store_tensor tensors[] = {
        {.name = "bn1.weight", .rank = 1, .shape = {1}},
        {.name = "bn1.bias", .rank = 1, .shape = {1}},
        {.name = "bn1.running_mean", .rank = 1, .shape = {1}},
        {.name = "bn1.running_var", .rank = 1, .shape = {1}},
        {.name = "dense1.weight", .rank = 2, .shape = {2, 16}},
        {.name = "dense1.bias", .rank = 1, .shape = {2}},
    };
    const float zeros[38] = {0};
    struct store_writer *writer = NULL;

    assert_int_equal(store_create(p->path, tensors, 6, &writer), BASE_OK);
    assert_int_equal(store_write(writer, zeros, sizeof zeros), BASE_OK);
    assert_int_equal(store_finish(writer), BASE_OK);
    assert_int_equal(model_weights_read(&w, p->path, false), BASE_OK);
    assert_int_equal(w.tracked[0], 30);
    assert_true(w.weights[0] == 0);
    model_weights_fini(&w);
    nn_graph_free(graph);
}

/* Half the bytes, and names as PyTorch's DataParallel gives them. */
static void test_halves(void **state)
{
    struct place *p = *state;
    struct nn_graph *graph =
        support_graph("input 1x1x4\nclasses 2\nflatten\ndense 2 name=dense1\n");
    struct model_weights w = started(graph, 3);
    const struct store_tensor tensors[] = {
        {.name = "module.dense1.weight", .type = STORE_F16, .rank = 2, .shape = {2, 4}},
        {.name = "module.dense1.bias", .type = STORE_BF16, .rank = 1, .shape = {2}},
    };
    /* 1, -2, 65504, the least subnormal, the greatest, -0, 1/3, the least normal; 1.5, -3e38 */
    const uint16_t halves[] = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x03ff,
                               0x8000, 0x3555, 0x0400, 0x3fc0, 0xff62};
    const float values[] = {1,     -2,          65504,    0x1p-24f, 1023 * 0x1p-24f,
                            -0.0f, 0x1.554p-2f, 0x1p-14f, 1.5f,     -0x1.c4p127f};
    float got[10];
    struct store_writer *writer = NULL;

    assert_int_equal(store_create(p->path, tensors, 2, &writer), BASE_OK);
    assert_int_equal(store_write(writer, halves, sizeof halves), BASE_OK);
    assert_int_equal(store_finish(writer), BASE_OK);
    assert_int_equal(model_weights_read(&w, p->path, false), BASE_OK);
    nn_tensor_export(nn_graph_param(graph, 0), w.weights + nn_graph_param(graph, 0)->offset, got);
    nn_tensor_export(nn_graph_param(graph, 1), w.weights + nn_graph_param(graph, 1)->offset,
                     got + 8);
    assert_memory_equal(got, values, sizeof got);
    model_weights_fini(&w);
    nn_graph_free(graph);
}

static void test_slots(void **state)
{
    struct place *p = *state;
    struct nn_graph *graph = support_graph(text);
    struct model_weights a = started(graph, 1), b = started(graph, 2);
    struct model_weights x = started(graph, 3), y = started(graph, 4);
    const char *const names[] = {"exp_avg", "exp_avg_sq"}, *const others[] = {"exp_avg", "other"};
    const struct model_slots out = {graph, 2, names, (float *[]){a.weights, b.weights}};
    struct model_slots in = {graph, 2, names, (float *[]){x.weights, y.weights}};
    struct store_file *file = NULL;

    assert_int_equal(model_slots_write(&out, p->path), BASE_OK);
    assert_int_equal(store_open(p->path, &file), BASE_OK);
    assert_int_equal(store_count(file), 12);
    assert_string_equal(store_at(file, 0)->name, "exp_avg.conv1.weight");
    assert_string_equal(store_at(file, 11)->name, "exp_avg_sq.dense1.bias");
    store_close(file);
    assert_int_equal(model_slots_read(&in, p->path), BASE_OK);
    assert_true(same_weights(&x, &a) && same_weights(&y, &b));
    in.names = others;
    assert_int_equal(model_slots_read(&in, p->path), BASE_ERR_DATA);
    assert_says("other.conv1.weight is missing");
    model_weights_fini(&a);
    model_weights_fini(&b);
    model_weights_fini(&x);
    model_weights_fini(&y);
    nn_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_names_and_shapes, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_misfits, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_partial, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_untracked, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_halves, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_slots, make_place, remove_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
