/* SPDX-License-Identifier: MIT
 *
 * Which part of an image is scaled to the size that a network takes: data_image_crop of
 * data/image.h. The random part follows "Going deeper with convolutions" (Szegedy et al. 2014), as
 * torchvision's RandomResizedCrop does, but for the proportions: a factor of 3/4 to 1, or its
 * inverse, needs no logarithm, so that every machine cuts alike.
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "data/image.h"

static const double LEAST_AREA = 0.08;   /* of the image */
static const double LEAST_FACTOR = 0.75; /* that proportions differ by, or its inverse */

const char *const data_crop_names[] = {"none", "centre", "random", NULL};

struct region {
    int top, left, height, width;
};

static int clamp(long value, int most)
{
    return value < 1 ? 1 : value > most ? most : (int)value;
}

/* The largest part of the proportions of height x width, in the middle. */
static struct region centre(const struct data_image *image, int height, int width)
{
    int64_t h = image->height, w = image->width, tall = (w * height + width / 2) / width,
            wide = (h * width + height / 2) / height;
    struct region r = {.height = clamp(tall, image->height), .width = clamp(wide, image->width)};

    r.top = (image->height - r.height) / 2;
    r.left = (image->width - r.width) / 2;
    return r;
}

/* The words decide its area, its proportions and its place. */
static struct region anywhere(const struct data_image *image, int height, int width,
                              const uint32_t random[4])
{
    const double h = image->height, w = image->width;
    double area = h * w * (LEAST_AREA + (1 - LEAST_AREA) * (double)base_rng_unit(random[0]));
    double factor = LEAST_FACTOR + (1 - LEAST_FACTOR) * (double)base_rng_unit(random[1]);
    double proportion, tall, wide, shrink;
    struct region r;

    factor = (random[1] & 1) != 0 ? 1 / factor : factor; /* a bit that the unit leaves out */
    proportion = factor * width / height;
    tall = sqrt(area / proportion);
    wide = tall * proportion;
    shrink = fmin(1, fmin(h / tall, w / wide));
    r.height = clamp(lround(tall * shrink), image->height);
    r.width = clamp(lround(wide * shrink), image->width);
    r.top = (int)(((uint64_t)random[2] * (uint64_t)(image->height - r.height + 1)) >> 32);
    r.left = (int)(((uint64_t)random[3] * (uint64_t)(image->width - r.width + 1)) >> 32);
    return r;
}

void data_image_crop(struct data_image *image, enum data_crop crop, int height, int width,
                     const uint32_t random[4])
{
    const struct region r = crop == DATA_CROP_NONE
                                ? (struct region){.height = image->height, .width = image->width}
                            : crop == DATA_CROP_CENTRE ? centre(image, height, width)
                                                       : anywhere(image, height, width, random);
    uint8_t *to = image->pixels;

    for (int c = 0; c < image->channels; c++)
        for (int y = 0; y < r.height; y++, to += r.width)
            memmove(to,
                    image->pixels +
                        ((size_t)c * (size_t)image->height + (size_t)(r.top + y)) *
                            (size_t)image->width +
                        r.left,
                    (size_t)r.width);
    image->height = r.height;
    image->width = r.width;
}
