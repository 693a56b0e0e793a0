/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "nn/graph.h"
#include "nn/zoo.h"
#include "support/datafiles.h"
#include "support/nets.h"

static void parameter_counts(void **state)
{
    static const struct {
        const char *model;
        uint64_t parameters;
    } known[] = {
        {"vgg11", 9231114},  {"vgg16", 14728266}, {"mnist-cnn", 1199882}, {"resnet18", 11173962},
        {"mlp:64x2", 55050}, {"mlp:0x0", 7850},   {"mlp:100x1", 79510},
    };

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct nn_graph *graph = support_zoo(known[i].model);

        assert_int_equal(nn_graph_parameters(graph), known[i].parameters);
        nn_graph_free(graph);
    }
}

static void has_tensor(const struct nn_graph *graph, const char *name)
{
    for (size_t i = 0; i < nn_graph_params(graph); i++)
        if (strcmp(nn_graph_param(graph, i)->name, name) == 0)
            return;
    for (size_t i = 0; i < nn_graph_stats(graph); i++)
        if (strcmp(nn_graph_stat(graph, i)->name, name) == 0)
            return;
    fail_msg("no tensor %s", name);
}

static void tensor_names_are_pytorchs(void **state)
{
    static const char *const names[][2] = {
        {"vgg11", "features.0.weight"},
        {"vgg11", "features.25.bias"},
        {"vgg11", "features.26.running_var"},
        {"vgg11", "classifier.weight"},
        {"mnist-cnn", "conv1.weight"},
        {"mnist-cnn", "fc2.bias"},
        {"resnet18", "conv1.weight"},
        {"resnet18", "bn1.running_mean"},
        {"resnet18", "layer1.0.conv1.weight"},
        {"resnet18", "layer2.0.shortcut.0.weight"},
        {"resnet18", "layer4.0.shortcut.1.running_var"},
        {"resnet18", "layer4.1.bn2.bias"},
        {"resnet18", "linear.bias"},
        {"mlp:8x2", "0.weight"},
        {"mlp:8x2", "4.bias"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct nn_graph *graph = support_zoo(names[i][0]);

        has_tensor(graph, names[i][1]);
        nn_graph_free(graph);
    }
}

static void every_model_parses_and_explains_itself(void **state)
{
    (void)state;
    assert_true(nn_zoo_count >= 5);
    for (size_t i = 0; i < nn_zoo_count; i++) {
        const struct nn_zoo *zoo = nn_zoo_registry[i];

        assert_non_null(zoo->help);
        nn_graph_free(support_zoo(zoo->example != NULL ? zoo->example : zoo->name));
    }
}

static void refuses(const char *model, base_code code, const char *message)
{
    char *text;

    assert_int_equal(nn_model_text(model, &text), code);
    assert_null(text);
    if (strstr(base_message(), message) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), message);
}

static void wrong_names(void **state)
{
    (void)state;
    refuses("vgg12", BASE_ERR_USAGE, "did you mean 'vgg1");
    refuses("", BASE_ERR_USAGE, "known: ");
    refuses("vgg11:3", BASE_ERR_USAGE, "takes no arguments");
    refuses("mlp", BASE_ERR_USAGE, "mlp:WIDTHxDEPTH");
    refuses("mlp:", BASE_ERR_USAGE, "is not mlp:WIDTHxDEPTH");
    refuses("mlp:64", BASE_ERR_USAGE, "is not mlp:WIDTHxDEPTH");
    refuses("mlp:64x2x", BASE_ERR_USAGE, "is not mlp:WIDTHxDEPTH");
    refuses("mlp:0x2", BASE_ERR_USAGE, "is not mlp:WIDTHxDEPTH");
    refuses("mlp:64x-1", BASE_ERR_USAGE, "is not mlp:WIDTHxDEPTH");
    refuses("mlp:64x9999", BASE_ERR_USAGE, "is not mlp:WIDTHxDEPTH");
    refuses("no/such/file", BASE_ERR_IO, "no/such/file");
}

static void files(void **state)
{
    char *folder = support_scratch();
    char *path = base_format("%s/model", folder), *text, *large;

    (void)state;
    support_write(folder, "model", "dense 3\n", 8);
    assert_int_equal(nn_model_text(path, &text), BASE_OK);
    assert_string_equal(text, "dense 3\n");
    base_free(text);
    support_write(folder, "model",
                  "\xef\xbb\xbf"
                  "dense 3\n",
                  11); /* a byte order mark */
    assert_int_equal(nn_model_text(path, &text), BASE_OK);
    assert_string_equal(text, "dense 3\n");
    base_free(text);
    support_write(folder, "model", "\xef\xbb", 2); /* half of one is no mark */
    assert_int_equal(nn_model_text(path, &text), BASE_OK);
    assert_string_equal(text, "\xef\xbb");
    base_free(text);
    support_write(folder, "model", "dense\0 3\n", 9);
    refuses(path, BASE_ERR_MODEL, "zero bytes");
    large = base_calloc(NN_MAX_TEXT + 1, 1);
    support_write(folder, "model", large, NN_MAX_TEXT + 1);
    refuses(path, BASE_ERR_DATA, "too large");
    refuses(folder, BASE_ERR_IO, "is not a file");
    base_free(large);
    base_free(path);
    support_scratch_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameter_counts),
        cmocka_unit_test(tensor_names_are_pytorchs),
        cmocka_unit_test(every_model_parses_and_explains_itself),
        cmocka_unit_test(wrong_names),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
