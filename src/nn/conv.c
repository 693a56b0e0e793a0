/* SPDX-License-Identifier: MIT
 *
 * Choosing a convolution candidate for a layer.
 */
#include "nn/conv.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static base_status unknown(const char *name)
{
    const char **names = base_calloc(nn_conv_count + 1, sizeof *names);
    base_status st;

    for (size_t i = 0; i < nn_conv_count; i++)
        names[i] = nn_conv_registry[i]->name;
    st = base_unknown(BASE_ERR_USAGE, "convolution kernel", name, names, nn_conv_count);
    base_free(names);
    return st;
}

base_status nn_conv_choose(const char *name, const struct nn_conv_shape *shape,
                           const struct nn_conv **conv_p)
{
    *conv_p = NULL;
    if (!name)
        name = "onednn"; /* serves everything */
    for (size_t i = 0; i < nn_conv_count; i++) {
        const struct nn_conv *conv = nn_conv_registry[i];

        if (strcmp(name, conv->name) != 0)
            continue;
        if (conv->serves(shape)) {
            *conv_p = conv;
            return BASE_OK;
        }
        return base_fail(BASE_ERR_USAGE,
                         "convolution kernel '%s' does not serve %dx%d kernels with stride "
                         "%dx%d and %d groups; leave the kernel plan to the default",
                         name, shape->kernel[0], shape->kernel[1], shape->stride[0],
                         shape->stride[1], shape->groups);
    }
    return unknown(name);
}
