/* SPDX-License-Identifier: MIT */
#include "nn/conv/kernelplan.h"

#include <string.h>

#include "base/cpu_level.h"
#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"
#include "nn/conv/layer.h"
#include "nn/conv/tune.h"

/* ---- making a plan ---- */

/* The first layer of a model wants no gradient of its input. */
static bool wants_dx(const struct nn_graph *graph, const struct nn_setup *setup, int index)
{
    if (!setup->training)
        return false;
    if (setup->first > 0 || setup->input_gradient)
        return true;
    for (int i = 0; i < index; i++)
        if (nn_graph_node(graph, i)->params > 0)
            return true;
    return false;
}

struct nn_planned *nn_kernelplan_layers(const struct nn_graph *graph, const struct nn_setup *setup,
                                        int *count_p)
{
    const int last = setup->last > 0 ? setup->last : nn_graph_layers(graph);
    struct nn_planned *layers = base_calloc((size_t)nn_graph_layers(graph), sizeof *layers);
    int count = 0;

    for (int i = setup->first; i < last; i++) {
        struct nn_planned *layer = &layers[count];

        layer->node = nn_graph_node(graph, i);
        if (layer->node->layer != &nn_layer_conv)
            continue;
        layer->shape = (struct nn_conv_shape){.n_max = setup->n_max,
                                              .training = setup->training,
                                              .want_dx = wants_dx(graph, setup, i)};
        nn_conv_layer_shape(layer->node, &layer->shape);
        layer->conv = nn_conv_cheapest(&layer->shape, base_cpu_level());
        count++;
    }
    *count_p = count;
    return layers;
}

static base_status find_kernel(const char *name, const struct nn_conv **conv_p)
{
    return base_registry_find("convolution kernel (or auto)", name, nn_conv_registry(),
                              nn_conv_count(), conv_p);
}

/* One form wherever it serves, the reference elsewhere. */
static base_status force(const char *name, struct nn_planned *layers, int count)
{
    base_status st = BASE_OK;
    const struct nn_conv *forced = NULL;
    int served = 0;

    TRY(find_kernel(name, &forced));
    for (int i = 0; i < count; i++) {
        bool serves = forced->serves(&layers[i].shape);

        layers[i].conv = serves ? forced : nn_conv_reference();
        served += serves;
    }
    if (count > 0 && served == 0)
        TRY(base_fail(BASE_ERR_USAGE, "kernel %s serves no convolution of this model", name));
out:
    return st;
}

static char *text_of(const struct nn_planned *layers, int count)
{
    struct base_str text = {0};

    for (int i = 0; i < count; i++)
        base_str_add(&text, "%s%s=%s", i > 0 ? " " : "", layers[i].node->name,
                     layers[i].conv->name);
    return base_str_take(&text);
}

/* Every layer that a given plan names must be there. */
static base_status check_plan(const struct nn_graph *graph, const char *plan)
{
    base_status st = BASE_OK;

    while (st == BASE_OK && *plan != '\0') {
        size_t word = strcspn(plan, " "), name = strcspn(plan, "= ");
        char *layer = base_strndup(plan, name);
        int index = -1;

        if (word > 0)
            st = base_prefix(nn_graph_find(graph, layer, &index), "kernel plan");
        base_free(layer);
        plan += word;
        plan += strspn(plan, " ");
    }
    return st;
}

base_status nn_kernelplan_make(const struct nn_graph *graph, const struct nn_setup *setup,
                               struct nn_kernelplan_wish wish, char **plan_p)
{
    base_status st = BASE_OK;
    struct nn_planned *layers = NULL;
    char *cache = NULL;
    int count = 0;

    *plan_p = NULL;
    /* A plan is given; that of a model without convolutions is empty. */
    if (wish.kernels != NULL && (*wish.kernels == '\0' || strchr(wish.kernels, '=') != NULL)) {
        TRY(nn_kernelplan_check(wish.kernels));
        TRY(check_plan(graph, wish.kernels));
        *plan_p = base_strdup(wish.kernels);
        goto out;
    }
    layers = nn_kernelplan_layers(graph, setup, &count);
    if (wish.kernels != NULL && strcmp(wish.kernels, "auto") != 0) {
        TRY(force(wish.kernels, layers, count));
    } else if (wish.tune) {
        cache = nn_tune_cache();
        TRY(nn_tune(layers, count, cache));
    }
    *plan_p = text_of(layers, count);
out:
    base_free(cache);
    base_free(layers);
    return st;
}

/* ---- reading a plan ---- */

base_status nn_kernelplan_check(const char *kernels)
{
    base_status st = BASE_OK;
    const struct nn_conv *conv = NULL;
    char *copy = NULL, *rest = NULL;

    if (kernels == NULL || kernels[0] == '\0' || strcmp(kernels, "auto") == 0)
        return BASE_OK;
    if (strchr(kernels, '=') == NULL)
        return find_kernel(kernels, &conv);
    copy = base_strdup(kernels);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (strchr(word, '=') != NULL)
            TRY(find_kernel(strchr(word, '=') + 1, &conv));
out:
    base_free(copy);
    return st;
}

char *nn_kernelplan_kernel(const char *plan, const struct nn_node *node)
{
    size_t length = strlen(node->name);

    if (plan == NULL || plan[0] == '\0')
        return NULL;
    if (strchr(plan, '=') == NULL)
        return base_strdup(plan);
    while (*plan != '\0') {
        size_t word = strcspn(plan, " ");

        if (word > length && strncmp(plan, node->name, length) == 0 && plan[length] == '=')
            return base_strndup(plan + length + 1, word - length - 1);
        plan += word;
        plan += strspn(plan, " ");
    }
    return NULL;
}

double nn_kernelplan_flops(const struct nn_graph *graph, const char *plan)
{
    double flops = 0;

    for (int i = 0; i < nn_graph_layers(graph); i++) {
        const struct nn_node *node = nn_graph_node(graph, i);
        char *kernel = node->layer == &nn_layer_conv ? nn_kernelplan_kernel(plan, node) : NULL;
        const struct nn_conv *conv =
            kernel != NULL ? base_registry_get(kernel, nn_conv_registry(), nn_conv_count()) : NULL;

        flops += node->flops * (conv != NULL ? conv->share : 1);
        base_free(kernel);
    }
    return flops;
}
