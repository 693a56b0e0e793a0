/* SPDX-License-Identifier: MIT
 *
 * Multi-layer perceptron: DEPTH hidden layers of WIDTH with relu; DEPTH 0 is a linear model.
 * Layers have the names that torch.nn.Sequential would give: 0, 2, 4 …
 */
#include <stdio.h>

#include "base/str.h"
#include "nn/graph.h"
#include "nn/zoo.h"

enum { MAX_WIDTH = 1 << 20, MAX_DEPTH = NN_MAX_LAYERS / 2 - 1 };

static base_status mlp_text(const char *arguments, char **text_p)
{
    struct base_str s = {0};
    int width = 0, depth = 0, used = 0;

    *text_p = NULL;
    if (sscanf(arguments, "%7dx%4d%n", &width, &depth, &used) != 2 || arguments[used] != '\0' ||
        depth < 0 || depth > MAX_DEPTH || width > MAX_WIDTH || width < (depth > 0))
        return base_fail(BASE_ERR_USAGE,
                         "'mlp:%s' is not mlp:WIDTHxDEPTH, such as mlp:64x2 (mlp:0x0 is linear)",
                         arguments);
    base_str_add(&s, "input 1x28x28\nclasses 10\n");
    for (int i = 0; i < depth; i++)
        base_str_add(&s, "dense %d\nrelu\n", width);
    base_str_add(&s, "dense classes\n");
    *text_p = base_str_take(&s);
    return BASE_OK;
}

const struct nn_zoo nn_zoo_mlp = {
    .name = "mlp",
    .help = "DEPTH hidden layers of WIDTH with relu; mlp:0x0 is a linear model",
    .arguments = "WIDTHxDEPTH",
    .example = "mlp:64x2",
    .text = mlp_text,
};
