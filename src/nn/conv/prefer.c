/* SPDX-License-Identifier: MIT
 *
 * A prepared weight is fetched once a batch, from a cache that all cores share or from memory, and
 * is multiplied `uses` times an image. Winograd forms multiply less and have more weights: with few
 * images the fetching decides, with many the multiplying. Both grow with the number of threads
 * alike, so it does not count. The constants were measured on a server core (Xeon, 28 GB/s and 6 G
 * vector multiply-adds a second); only the batch at which kernels change places depends on them.
 */
#include "nn/conv/prefer.h"

#include "nn/simd/simd.h"

/* In vectors of multiplications: fetching a float, and making a float of what is multiplied. */
static const double FETCH = 0.9, PASS = 0.6;

double nn_prefer_cost(const struct nn_conv *conv, const struct nn_conv_shape *shape, int n)
{
    const double width = nn_simd()->width, weights = (double)conv->prepared_floats(shape);
    const double images = (double)n * conv->uses(shape);
    const double multiply = weights * images, fetch = weights * FETCH * width;
    const double inputs = weights * images / nn_pad8(shape->out.c);

    /* The two overlap, but not perfectly: half of the shorter is seen. */
    return (multiply > fetch ? multiply + fetch / 2 : fetch + multiply / 2) + inputs * PASS * width;
}

const struct nn_conv *nn_prefer(const struct nn_conv_shape *shape, int n)
{
    const struct nn_conv *best = NULL;

    for (const struct nn_conv *const *conv = nn_conv_registry(); *conv != NULL; conv++) {
        if ((*conv)->answer == NULL || !(*conv)->serves(shape))
            continue;
        if (best == NULL || nn_prefer_cost(*conv, shape, n) < nn_prefer_cost(best, shape, n))
            best = *conv;
    }
    return best != NULL ? best : nn_conv_reference();
}
