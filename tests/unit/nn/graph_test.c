/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "nn/graph.h"
#include "support/nets.h"

static void check(base_status st)
{
    if (st != BASE_OK)
        fail_msg("%s", base_message());
}

/* Texts that must be refused, and what the message must name. */
static const struct {
    const char *text, *message;
} wrong[] = {
    {"", "no layers"},
    {"# nothing\n\n", "no layers"},
    {"dense 10", "input CxHxW"},
    {"input 3x8x8\ncnv 8 3x3", "m line 2: unknown layer 'cnv'; did you mean 'conv'?"},
    {"input 3x8x8\nconv", "m line 2: conv: OUT is missing (usage: conv OUT KHxKW"},
    {"input 3x8x8\nconv 8", "kernel is missing"},
    {"input 3x8x8\nconv eight 3x3", "'eight' is not a whole number from 1"},
    {"input 3x8x8\nconv 0 3x3", "'0' is not a whole number"},
    {"input 3x8x8\nconv 99999999999999999999 3x3", "is not a whole number"},
    {"input 3x8x8\nconv 8 3x", "'3x' is neither"},
    {"input 3x8x8\nconv 8 3x3 pda=1", "what is 'pda=1'? (usage: conv"},
    {"input 3x8x8\nconv 8 3x3 pad=1 pad=2", "what is 'pad=2'?"},
    {"input 3x8x8\nconv 8 3x3 bias=maybe", "'maybe' is not on or off"},
    {"input 3x8x8\nconv 8 9x9", "kernel of 9x9 does not fit an image of 8x8"},
    {"input 3x8x8\nconv 8 3x3 groups=2", "groups=2 must divide 3 inputs"},
    {"input 3x8x8\nflatten\nconv 8 3x3", "conv needs an image"},
    {"input 3x8x8\nflatten\nbn", "bn needs an image"},
    {"input 3x8x8\ndense 5\nmaxpool 2", "maxpool needs an image"},
    {"input 3x8x8\nflatten\ngavgpool", "gavgpool needs an image"},
    {"input 3x8x8\nmaxpool 9", "window of 9x9 does not fit"},
    {"input 3x8x8\nmaxpool 3 pad=2", "at most half"},
    {"input 3x8x8\nmaxpool 16", "from 1 to 15"},
    {"input 3x8x8\ndropout", "RATE is missing"},
    {"input 3x8x8\ndropout 1.5", "'1.5' is not from 0 to 0.99"},
    {"input 3x8x8\ndropout nan", "'nan' is not a number"},
    {"input 3x8x8\ndropout 1e", "'1e' is not a number"},
    {"input 3x8x8\ndense classes", "classes N"},
    {"input 3x8x8\nclasses 7\ndense 9", "9 scores for 7 classes"},
    {"input 3x8x8\nconv 8 3x3", "compares a vector"},
    {"input 3x8x8\nsoftmax 5", "what is '5'?"},
    {"input 3x8x8\ndense 3\nmse\nrelu", "m line 4: relu comes after the loss"},
    {"input 3x8x8\ndense 3 name=a\ndense 3 name=a", "line 3: the name 'a' is already"},
    {"input 3x8x8\ndense 3 name=1\ndense 3", "the name '1' is already"},
    {"input 3x8x8\ndense 3 name=a/b", "'a/b' is no name"},
    {"input 3x8x8\ndense 3 name=", "is no name"},
    {"input 3x8x8\nadd a", "add a: nothing is saved"},
    {"input 3x8x8\nload a", "load a: nothing is saved"},
    {"input 3x8x8\nsave", "NAME is missing"},
    {"input 3x8x8\nsave a\nsave a\nadd a\ndense 2", "'a' is already saved on line 2"},
    {"input 3x8x8\nsave a\nrelu\ndense 2", "line 2: 'a' is saved but never used"},
    {"input 3x8x8\nsave a\nmaxpool 2\nadd a\ndense 2", "shapes differ, 3x4x4 here and 3x8x8"},
    {"input 3x8x8\nsave a\nrelu\nload a\ndense 2", "load a would drop"},
    {"input 3x8\nrelu", "'3x8' is not C or CxHxW"},
    {"input 3x8x8x8\nrelu", "'3x8x8x8' is not a shape"},
    {"input 0x8x8\nrelu", "is not a shape"},
    {"input\nrelu", "CxHxW is missing"},
    {"input 3x8x8 please\nrelu", "what is 'please'?"},
    {"relu\ninput 3x8x8", "input belongs before the first layer"},
    {"input 1048576x1048576x1\ndense 2", "more than 2^30 values"},
    {"input 3x8x8\nconv 1048576 1x1\nconv 1048576 1x1\ngavgpool\ndense 2", "more than 2^40"},
    {"input 3x1024x1024\nconv 1048576 1x1\ngavgpool\ndense 2", "more than 2^30 values a sample"},
    {"input 3x8x8\nrelu 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "more than 16 words"},
    {"input 3x8x8\nre\001lu", "control character"},
};

static void refuses_with_a_reason(void **state)
{
    struct nn_graph *graph;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        base_status st = nn_graph_new(wrong[i].text, "m", (struct nn_shape){0}, 0, &graph);

        if (st != BASE_ERR_MODEL || graph != NULL ||
            strstr(base_message(), wrong[i].message) == NULL)
            fail_msg("%s\ngave '%s', not '%s'", wrong[i].text, base_message(), wrong[i].message);
    }
}

static void bounds(void **state)
{
    struct base_str s = {0};
    struct nn_graph *graph;

    (void)state;
    base_str_add(&s, "input 1x1x1\n");
    for (int i = 0; i < NN_MAX_LAYERS; i++)
        base_str_add(&s, "relu\n");
    assert_int_equal(nn_graph_new(s.text, "m", (struct nn_shape){0}, 0, &graph), BASE_ERR_MODEL);
    assert_non_null(strstr(base_message(), "more than 4096 layers"));
    s.text[s.length - strlen("relu\n")] = '\0'; /* with the loss it is exactly the limit */
    assert_int_equal(nn_graph_new(s.text, "m", (struct nn_shape){0}, 0, &graph), BASE_OK);
    assert_int_equal(nn_graph_layers(graph), NN_MAX_LAYERS);
    nn_graph_free(graph);
    base_str_fini(&s);
    for (int i = 0; i <= NN_MAX_TEXT; i++)
        base_str_append(&s, "\n", 1);
    assert_int_equal(nn_graph_new(s.text, "m", (struct nn_shape){0}, 0, &graph), BASE_ERR_MODEL);
    assert_non_null(strstr(base_message(), "longer than"));
    base_str_fini(&s);
}

static void describes(void **state)
{
    struct nn_graph *graph = support_graph("# a model\n"
                                           "input 3x9x8\r\n"
                                           "classes 5\n"
                                           "\tconv 10 3x3 stride=2 pad=1x0 name=first # why\n"
                                           "bn\nrelu\nmaxpool 2 name=pool\ndense classes\n");
    const struct nn_node *node = nn_graph_node(graph, 0);
    int index;

    (void)state;
    assert_int_equal(nn_graph_layers(graph), 6);
    assert_int_equal(nn_graph_classes(graph), 5);
    assert_true(nn_graph_input(graph).planar);
    assert_int_equal(node->out.c, 10);
    assert_int_equal(node->out.h, 5);
    assert_int_equal(node->out.w, 3);
    assert_string_equal(nn_graph_node(graph, 5)->layer->name, "softmax");
    assert_int_equal(nn_graph_params(graph), 6);
    assert_string_equal(nn_graph_param(graph, 0)->name, "first.weight");
    assert_string_equal(nn_graph_param(graph, 3)->name, "1.bias");
    assert_string_equal(nn_graph_param(graph, 5)->name, "4.bias");
    assert_int_equal(nn_graph_stats(graph), 2);
    assert_string_equal(nn_graph_stat(graph, 1)->name, "1.running_var");
    assert_int_equal(nn_graph_parameters(graph), 10 * 27 + 10 + 20 + 5 * 20 + 5);
    assert_int_equal(nn_graph_find(graph, "pool", &index), BASE_OK);
    assert_int_equal(index, 3);
    assert_int_equal(nn_graph_find(graph, "0", &index), BASE_OK); /* by number */
    assert_int_equal(index, 0);
    assert_int_equal(nn_graph_find(graph, "pol", &index), BASE_ERR_USAGE);
    assert_int_equal(index, -1);
    assert_non_null(strstr(base_message(), "did you mean 'pool'"));
    assert_int_equal(nn_graph_find(graph, "99", &index), BASE_ERR_USAGE);
    nn_graph_free(graph);
}

/* The names that PyTorch users type. */
static void aliases(void **state)
{
    struct nn_graph *graph = NULL;

    (void)state;
    assert_int_equal(nn_graph_new("input 3x8x8\nbatchnorm eps=1e-3\nlinear 5 bias=off", "m",
                                  (struct nn_shape){0}, 0, &graph),
                     BASE_OK);
    assert_string_equal(nn_graph_node(graph, 0)->layer->name, "bn");
    assert_string_equal(nn_graph_node(graph, 1)->layer->name, "dense");
    nn_graph_free(graph);
}

static void the_data_decides_over_the_text(void **state)
{
    struct nn_graph *graph;
    struct nn_shape input = {.c = 1, .h = 4, .w = 4};

    (void)state;
    assert_int_equal(nn_graph_new("input 3x8x8\nclasses 10\ndense classes", "m", input, 7, &graph),
                     BASE_OK);
    assert_int_equal(nn_graph_parameters(graph), 16 * 7 + 7);
    assert_int_equal(nn_graph_classes(graph), 7);
    nn_graph_free(graph);
}

static bool planar(const char *text)
{
    struct nn_graph *graph = support_graph(text);
    bool is = nn_graph_input(graph).planar;

    nn_graph_free(graph);
    return is;
}

static void the_first_layer_chooses_the_input(void **state)
{
    (void)state;
    assert_true(planar("input 3x4x4\nconv 8 3x3\ndense 2"));
    assert_true(planar("input 30x4x4\ndense 2"));
    assert_true(planar("input 3x4x4\nflatten\ndense 2"));
    assert_false(planar("input 8x4x4\nconv 8 3x3\ndense 2"));
    assert_false(planar("input 4x4x4\nconv 8 3x3 groups=2\ndense 2"));
    assert_false(planar("input 3x4x4\nrelu\ndense 2"));
    assert_false(planar("input 3x4x4\nflatten\nrelu\ndense 2"));
    assert_false(planar("input 3x4x4\nsave a\nadd a\ndense 2"));
}

static void tensors_lie_apart_and_aligned(void **state)
{
    struct nn_graph *graph = support_zoo("resnet18");
    size_t end = 0;

    (void)state;
    for (size_t i = 0; i < nn_graph_params(graph); i++) {
        const struct nn_tensor *t = nn_graph_param(graph, i);

        assert_int_equal(t->offset % 16, 0);
        assert_true(t->offset >= end && t->offset < end + 16);
        end = t->offset + t->floats;
    }
    assert_true(end <= nn_graph_weight_floats(graph));
    nn_graph_free(graph);
}

/* Layers have neighbouring floats: a model cut anywhere has all of them, once. */
static void ranges_cover_the_buffers(void **state)
{
    static const char *const models[] = {"resnet18", "mnist-cnn", "mlp:3x40"};

    (void)state;
    for (size_t m = 0; m < 3; m++) {
        struct nn_graph *graph = support_zoo(models[m]);
        int layers = nn_graph_layers(graph);
        size_t weights = 0, stats = 0;

        for (int i = 0; i < layers; i++) {
            const struct nn_node *node = nn_graph_node(graph, i);
            struct nn_range w = nn_graph_weights_of(graph, i, i + 1);
            struct nn_range s = nn_graph_stats_of(graph, i, i + 1);

            assert_int_equal(w.from, weights);
            assert_int_equal(s.from, stats);
            weights += w.count;
            stats += s.count;
            for (int t = 0; t < node->params; t++)
                assert_true(node->param[t].offset >= w.from &&
                            node->param[t].offset + node->param[t].floats <= weights);
            assert_int_equal(w.count > 0, node->params > 0);
            assert_int_equal(nn_graph_weights_of(graph, 0, i + 1).count, weights);
            assert_int_equal(nn_graph_stats_of(graph, 0, i + 1).count, stats);
        }
        assert_int_equal(weights, nn_graph_weight_floats(graph));
        assert_int_equal(stats, nn_graph_stat_floats(graph));
        assert_int_equal(nn_graph_weights_of(graph, 2, 2).count, 0);
        nn_graph_free(graph);
    }
}

static void groups_cover_the_weights(void **state)
{
    struct nn_graph *graph = support_zoo("vgg11");
    int layers = nn_graph_layers(graph), count, one, conv;
    struct nn_group *groups = nn_graph_groups(graph, 0, layers, &count);
    size_t end = 0;

    (void)state;
    for (int i = 0; i < count; i++) {
        assert_int_equal(groups[i].weights.from, end);
        end += groups[i].weights.count;
        assert_true(i + 1 == count || groups[i].weights.count >= 1 << 14);
        assert_true(nn_graph_node(graph, groups[i].first)->params > 0);
        assert_true(nn_graph_node(graph, groups[i].last - 1)->params > 0);
        assert_true(i == 0 || groups[i].first >= groups[i - 1].last);
    }
    assert_int_equal(end, nn_graph_weight_floats(graph));
    assert_true(count >= 8); /* its large convolutions, each with its batch-norm */
    check(nn_graph_find(graph, "features.25", &conv));
    assert_int_equal(groups[count - 2].first, conv);
    assert_int_equal(groups[count - 2].last, conv + 2);
    base_free(groups);
    groups = nn_graph_groups(graph, conv, conv + 1, &one);
    assert_int_equal(one, 1);
    assert_int_equal(groups[0].weights.count, nn_graph_weights_of(graph, conv, conv + 1).count);
    base_free(groups);
    groups = nn_graph_groups(graph, layers - 1, layers, &count); /* the loss */
    assert_int_equal(count, 0);
    base_free(groups);
    nn_graph_free(graph);
}

/* Starting values do not depend on which layers are made. */
static void a_range_starts_as_in_the_whole(void **state)
{
    struct nn_graph *graph = support_zoo("resnet18");
    int cuts[] = {0, 7, 20, nn_graph_layers(graph)};
    float *weights = base_calloc(nn_graph_weight_floats(graph), sizeof *weights);
    float *stats = base_calloc(nn_graph_stat_floats(graph), sizeof *stats);

    (void)state;
    nn_graph_start(graph, 3, weights, stats);
    for (int i = 0; i < 3; i++) {
        struct nn_range w = nn_graph_weights_of(graph, cuts[i], cuts[i + 1]);
        struct nn_range s = nn_graph_stats_of(graph, cuts[i], cuts[i + 1]);
        float *own_weights = base_calloc(w.count, sizeof *own_weights);
        float *own_stats = base_calloc(s.count, sizeof *own_stats);

        nn_graph_start_layers(graph, cuts[i], cuts[i + 1], 3, own_weights, own_stats);
        assert_memory_equal(own_weights, weights + w.from, w.count * sizeof *weights);
        assert_memory_equal(own_stats, stats + s.from, s.count * sizeof *stats);
        base_free(own_weights);
        base_free(own_stats);
    }
    base_free(weights);
    base_free(stats);
    nn_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_with_a_reason),
        cmocka_unit_test(bounds),
        cmocka_unit_test(describes),
        cmocka_unit_test(aliases),
        cmocka_unit_test(the_data_decides_over_the_text),
        cmocka_unit_test(the_first_layer_chooses_the_input),
        cmocka_unit_test(tensors_lie_apart_and_aligned),
        cmocka_unit_test(ranges_cover_the_buffers),
        cmocka_unit_test(groups_cover_the_weights),
        cmocka_unit_test(a_range_starts_as_in_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
