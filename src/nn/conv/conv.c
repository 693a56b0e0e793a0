/* SPDX-License-Identifier: MIT
 *
 * Choosing a convolution candidate for a layer.
 */
#include "nn/conv/conv.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"

static const char reference[] = "onednn";

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
        name = reference;
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

const struct nn_conv *nn_conv_reference(void)
{
    return base_registry_get(reference, nn_conv_registry, nn_conv_count);
}

const struct nn_conv *nn_conv_cheapest(const struct nn_conv_shape *shape, enum nn_level level)
{
    const struct nn_conv *best = nn_conv_reference();
    double least = best->cost(shape, level);

    for (size_t i = 0; i < nn_conv_count; i++) {
        const struct nn_conv *conv = nn_conv_registry[i];
        double cost =
            conv->cost != NULL && conv->serves(shape) ? conv->cost(shape, level) : INFINITY;

        if (cost < least) {
            best = conv;
            least = cost;
        }
    }
    return best;
}

char *nn_conv_shape_text(const struct nn_conv_shape *s)
{
    return base_format("%dx%dx%d%s %dx%dx%d k%dx%d s%dx%d p%dx%d g%d%s n%d%s%s", s->in.c, s->in.h,
                       s->in.w, s->in.planar ? " planar" : "", s->out.c, s->out.h, s->out.w,
                       s->kernel[0], s->kernel[1], s->stride[0], s->stride[1], s->pad[0], s->pad[1],
                       s->groups, s->bias ? " bias" : "", s->n_max, s->training ? " train" : "",
                       s->want_dx ? " dx" : "");
}
