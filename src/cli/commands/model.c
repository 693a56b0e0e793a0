/* SPDX-License-Identifier: MIT
 *
 * paceline model show|list: what a model is, without allocating it.
 */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/shape.h"
#include "cli/train_check.h"
#include "nn/closed.h"
#include "nn/net.h"
#include "nn/optimiser.h"
#include "nn/zoo.h"
#include "recsys/model.h"

struct args {
    const char *input;
    int64_t classes, batch;
    bool text, json;
};

static char *cmd_model_shape_text(struct nn_shape s)
{
    if (s.flat || (s.h == 1 && s.w == 1))
        return base_format("%zu", nn_shape_values(s));
    return base_format("%dx%dx%d", s.c, s.h, s.w);
}

static uint64_t cmd_model_node_parameters(const struct nn_node *node)
{
    uint64_t sum = 0;

    for (int i = 0; i < node->params; i++)
        sum += node->param[i].values;
    return sum;
}

/* The memory of training with sgd and momentum, or of solving a model with a closed form. */
static base_status cmd_model_training_memory(const struct nn_graph *graph,
                                             const struct nn_closed *closed, int batch,
                                             uint64_t *bytes_p)
{
    const struct nn_setup setup = {.n_max = batch, .training = true};
    struct nn_memory memory;
    base_status st = nn_net_memory(graph, &setup, &memory);

    *bytes_p = nn_memory_total(&memory, 1) + nn_closed_memory(closed, graph, batch);
    return st;
}

static void cmd_model_print_table(const struct nn_graph *graph, bool closed, int batch,
                                  uint64_t bytes)
{
    printf("%4s  %-24s %-10s %-12s %12s %14s\n", "", "name", "layer", "output", "parameters",
           "MFLOP/sample");
    for (int i = 0; i < nn_graph_layers(graph); i++) {
        const struct nn_node *node = nn_graph_node(graph, i);
        char *shape = cmd_model_shape_text(node->out);

        printf("%4d  %-24s %-10s %-12s %12llu %14.3f\n", i, node->name, node->layer->name, shape,
               (unsigned long long)cmd_model_node_parameters(node), node->flops / 1e6);
        base_free(shape);
    }
    printf("\nparameters %llu, forward %sFLOP a sample, training at batch %d about %sB "
           "(%s)\n",
           (unsigned long long)nn_graph_parameters(graph), base_scaled(nn_graph_flops(graph)).text,
           batch, base_scaled((double)bytes).text,
           closed ? "with its sums over the samples" : "sgd with momentum");
}

static json_t *cmd_model_graph_json(const struct nn_graph *graph, int batch, uint64_t bytes)
{
    json_t *layers = json_array();

    for (int i = 0; i < nn_graph_layers(graph); i++) {
        const struct nn_node *node = nn_graph_node(graph, i);

        json_array_append_new(layers, json_pack("{s:s, s:s, s:[i,i,i], s:I, s:f}", "name",
                                                node->name, "layer", node->layer->name, "output",
                                                node->out.c, node->out.h, node->out.w, "parameters",
                                                (json_int_t)cmd_model_node_parameters(node),
                                                "flops", node->flops));
    }
    return json_pack("{s:i, s:o, s:I, s:f, s:i, s:I}", "schema", 1, "layers", layers, "parameters",
                     (json_int_t)nn_graph_parameters(graph), "flops", nn_graph_flops(graph),
                     "batch", batch, "training_bytes", (json_int_t)bytes);
}

/* A rating model has no layers before its data is known: its options are what can be shown. */
static base_status cmd_model_show_rated(const struct args *a, const struct recsys_model *model)
{
    base_status st = BASE_OK;
    json_t *options = json_array(), *json;
    struct base_option row;

    if (a->text || a->input != NULL)
        TRY(base_fail(BASE_ERR_USAGE, "%s is a rating model: it has no layers", model->name));
    if (!a->json)
        printf("%s: %s\n\nOptions [default], as in %s:%s:\n", model->name, model->help, model->name,
               model->examples[0]);
    for (size_t i = 0; base_option_at(model->options, i, &row); i++) {
        const char *argument = row.argument != NULL ? row.argument : "on|off";
        char *name = base_format("%s=%s", row.name, argument), *help = cli_help_option(&row);
        char *value = base_option_text(&row, model->defaults);

        if (!a->json)
            printf("  %-24s %s [%s]\n", name, help, value != NULL ? value : "");
        json_array_append_new(options,
                              json_pack("{s:s, s:s, s:s, s:s?}", "name", row.name, "argument",
                                        argument, "help", help, "default", value));
        base_free(name);
        base_free(help);
        base_free(value);
    }
    json = json_pack("{s:i, s:s, s:s, s:O}", "schema", 1, "name", model->name, "help", model->help,
                     "options", options);
    if (a->json)
        st = base_json_print(json);
    json_decref(json);
out:
    json_decref(options);
    return st;
}

static base_status cmd_model_show(const struct args *a, const char *model)
{
    base_status st = BASE_OK;
    struct nn_graph *graph = NULL;
    const char *arguments;
    const struct nn_zoo *zoo = nn_zoo_find(model, &arguments);
    const struct nn_closed *closed = zoo != NULL ? zoo->closed : NULL;
    uint64_t bytes;
    struct nn_shape input;
    json_t *json = NULL;
    char *text = NULL;

    TRY(cli_shape(a->input, &input));
    TRY(nn_model_text(model, &text));
    if (a->text) {
        fputs(text, stdout);
        goto out;
    }
    TRY(nn_graph_new(text, model, input, (int)a->classes, &graph));
    TRY(cmd_model_training_memory(graph, closed, (int)a->batch, &bytes));
    if (a->json) {
        json = cmd_model_graph_json(graph, (int)a->batch, bytes);
        TRY(base_json_print(json));
    } else {
        cmd_model_print_table(graph, closed != NULL, (int)a->batch, bytes);
    }
out:
    json_decref(json);
    nn_graph_free(graph);
    base_free(text);
    return st;
}

static json_t *cmd_model_list_json(void)
{
    json_t *models = json_array(), *rating_models = json_array(), *layers = json_array();

    for (size_t i = 0; i < nn_zoo_count; i++)
        json_array_append_new(
            models, json_pack("{s:s, s:s?, s:s}", "name", nn_zoo_registry[i]->name, "arguments",
                              nn_zoo_registry[i]->arguments, "help", nn_zoo_registry[i]->help));
    for (size_t i = 0; i < recsys_model_count; i++)
        json_array_append_new(rating_models,
                              json_pack("{s:s, s:s}", "name", recsys_model_registry[i]->name,
                                        "help", recsys_model_registry[i]->help));
    for (size_t i = 0; i < nn_layer_count; i++)
        json_array_append_new(
            layers, json_pack("{s:s, s:s?, s:s, s:s}", "name", nn_layer_registry[i]->name, "alias",
                              nn_layer_registry[i]->alias, "usage", nn_layer_registry[i]->usage,
                              "help", nn_layer_registry[i]->help));
    return json_pack("{s:i, s:o, s:o, s:o}", "schema", 1, "models", models, "rating_models",
                     rating_models, "layers", layers);
}

static void cmd_model_list(void)
{
    for (size_t i = 0; i < nn_zoo_count; i++) {
        const struct nn_zoo *zoo = nn_zoo_registry[i];
        char *name = zoo->arguments == NULL ? base_strdup(zoo->name)
                     : zoo->optional        ? base_format("%s[:%s]", zoo->name, zoo->arguments)
                                            : base_format("%s:%s", zoo->name, zoo->arguments);

        printf("%-20s %s\n", name, zoo->help);
        base_free(name);
    }
    puts("\nRating models (their options: paceline model show NAME):");
    for (size_t i = 0; i < recsys_model_count; i++)
        printf("%-20s %s\n", recsys_model_registry[i]->name, recsys_model_registry[i]->help);
    puts("\nLayers of model files:");
    for (size_t i = 0; i < nn_layer_count; i++) {
        const struct nn_layer *layer = nn_layer_registry[i];

        printf("  %-64s %s", layer->usage, layer->help);
        if (layer->alias != NULL)
            printf(" (also %s)", layer->alias);
        putchar('\n');
    }
}

static const char *const verbs[] = {"show", "list", NULL};

static base_status cmd_model(void *args, const struct cli_positional *positional)
{
    const char *verb = positional->at[0];
    const struct recsys_model *rated;
    base_status st;

    if (strcmp(verb, "list") == 0 && ((const struct args *)args)->json) {
        json_t *json = cmd_model_list_json();

        st = base_json_print(json);
        json_decref(json);
        return st;
    }
    if (strcmp(verb, "list") == 0) {
        cmd_model_list();
        return BASE_OK;
    }
    if (strcmp(verb, "show") != 0)
        return base_unknown(BASE_ERR_USAGE, "verb", verb, verbs, 2);
    if (positional->count < 2)
        return base_fail(BASE_ERR_USAGE,
                         "which model? paceline model show FILE|NAME ('paceline model list')");
    if ((rated = base_registry_get(positional->at[1], recsys_model_registry, recsys_model_count)) !=
        NULL)
        return cmd_model_show_rated(args, rated);
    if ((st = cli_train_model(positional->at[1])) != BASE_OK)
        return st;
    return cmd_model_show(args, positional->at[1]);
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "input", .argument = "CxHxW", .kind = BASE_TEXT, .offset = AT(input),
     .help = "input shape [the model's own]", .local = true},
    {.name = "classes", .argument = "N", .kind = BASE_INT, .offset = AT(classes), .max = 65536,
     .help = "classes; 0: the model's own", .local = true},
    {.name = "batch", .alias = "batch-size", .argument = "N", .kind = BASE_INT, .offset = AT(batch), .min = 1, .max = 1e6,
     .help = "batch the training memory is told for", .local = true},
    {.name = "text", .kind = BASE_FLAG, .offset = AT(text),
     .help = "print the model file itself", .local = true},
    {.name = "json", .kind = BASE_FLAG, .offset = AT(json),
     .help = "one JSON object on standard output", .local = true},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_model = {
    .name = "model",
    .help = "show a model, or list the known ones",
    .usage = "paceline model show FILE|NAME | paceline model list",
    .examples = "  paceline model show vgg11\n"
                "  paceline model show mlp:64x2 --input 1x28x28\n"
                "  paceline model show resnet18 --text > my.model\n"
                "  paceline model show bmf                  # options of a rating model\n",
    .verbs = verbs,
    .completes = "M",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.batch = 64},
    .min_positional = 1,
    .max_positional = 2,
    .run = cmd_model,
};
