/* SPDX-License-Identifier: MIT
 *
 * The forms of convolution: which there are, choosing one for a layer, putting it to work.
 */
#include "nn/conv/conv.h"

#include <math.h>

#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"
#include "nn/threads.h"

extern const size_t nn_portable_conv_count;

const struct nn_conv *const *nn_conv_registry(void)
{
    return nn_simd()->convs;
}

size_t nn_conv_count(void)
{
    return nn_portable_conv_count;
}

base_status nn_conv_work_init(struct nn_conv_work *work, const struct nn_conv *conv,
                              const struct nn_conv_shape *shape)
{
    *work = (struct nn_conv_work){.conv = conv, .shape = *shape, .threads = nn_threads()};
    if (conv->scratch != NULL)
        work->scratch_bytes = conv->scratch(shape, work->threads);
    return conv->open != NULL ? conv->open(work) : BASE_OK;
}

void nn_conv_work_fini(struct nn_conv_work *work)
{
    if (work->conv != NULL && work->conv->close != NULL)
        work->conv->close(work->state);
    *work = (struct nn_conv_work){0};
}

base_status nn_conv_choose(const char *name, const struct nn_conv_shape *shape,
                           const struct nn_conv **conv_p)
{
    base_status st = BASE_OK;
    const struct nn_conv *conv = nn_conv_reference();

    *conv_p = NULL;
    if (name != NULL)
        TRY(base_registry_find("convolution kernel", name, nn_conv_registry(), nn_conv_count(),
                               &conv));
    if (!conv->serves(shape))
        TRY(base_fail(BASE_ERR_USAGE,
                      "convolution kernel '%s' does not serve %dx%d kernels with stride %dx%d and "
                      "%d groups; leave the kernel plan to the default",
                      name, shape->kernel[0], shape->kernel[1], shape->stride[0], shape->stride[1],
                      shape->groups));
    *conv_p = conv;
out:
    return st;
}

const struct nn_conv *nn_conv_reference(void)
{
    return base_registry_get("onednn", nn_conv_registry(), nn_conv_count());
}

const struct nn_conv *nn_conv_cheapest(const struct nn_conv_shape *shape, enum base_cpu_level level)
{
    const struct nn_conv *best = nn_conv_reference();
    double least = best->cost(shape, level);

    for (const struct nn_conv *const *conv = nn_conv_registry(); *conv != NULL; conv++) {
        double cost = (*conv)->cost != NULL && (*conv)->serves(shape) ? (*conv)->cost(shape, level)
                                                                      : INFINITY;

        if (cost < least) {
            best = *conv;
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
