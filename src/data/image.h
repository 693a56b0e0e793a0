/* SPDX-License-Identifier: MIT
 *
 * PNG and JPEG, from memory to pixels. Gray images have one channel, all others three: palettes are
 * looked up, 16-bit samples become 8-bit ones, an alpha channel is dropped, CMYK becomes RGB.
 * Images of more than DATA_MAX_SIDE a side are refused before anything is allocated for them.
 */
#ifndef DATA_IMAGE_H
#define DATA_IMAGE_H

#include "data/dataset.h"

struct data_image {
    int channels, height, width; /* channels: 1 or 3 */
    uint8_t *pixels;             /* (channels,height,width) */
};

/* Release with data_image_fini, which accepts what a failure left, too. */
base_status data_image_decode(const void *bytes, size_t count, struct data_image *image_p);
/* Its shape alone, from the header: cheap, and `pixels` stays NULL. */
base_status data_image_probe(const void *bytes, size_t count, struct data_image *image_p);
void data_image_fini(struct data_image *image);

/* Cuts it down, in place, to a part of the proportions of height x width: the largest in the middle
 * (CENTRE), or 8 to 100 % of the area anywhere, its proportions up to 4:3 off, as the random words
 * decide (RANDOM). NONE leaves it as it is; only RANDOM looks at the words. */
void data_image_crop(struct data_image *image, enum data_crop crop, int height, int width,
                     const uint32_t random[4]);

/* Turns it into gray (1) or colour (3) and scales it bilinearly to the whole of the target,
 * whatever its proportions; `pixels` is (channels,height,width). May change `image`, which the
 * caller still owns. */
void data_image_fit(struct data_image *image, int channels, int height, int width, uint8_t *pixels);

/* The normalised value of each of the 256 levels of a channel: every input of a network comes from
 * such a table. */
void data_level_table(float mean, float deviation, float table[static 256]);

#endif
