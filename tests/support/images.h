/* SPDX-License-Identifier: MIT
 *
 * Small PNG and JPEG files, made by the libraries themselves. Their levels (after scaling to eight
 * bits) are support_level; alpha is 255 - x.
 */
#ifndef SUPPORT_IMAGES_H
#define SUPPORT_IMAGES_H

#include <stddef.h>
#include <stdint.h>

/* A smooth ramp, so that JPEG stays close to it: 16 * x + 8 * y + 40 * channel, up to 255. */
uint8_t support_level(int channel, int y, int x);

/* `type` is PNG_COLOR_TYPE_…; depth 1 to 4 only for gray (0 or all bits, as x + y is odd) and for
 * palettes (entry i is (i * 16, 255 - i * 16, i)). base_free the bytes. */
size_t support_png(int type, int depth, int interlaced, int height, int width, uint8_t **bytes_p);

/* `samples`: 1 gray, 3 colour, 4 CMYK as Adobe writes it. */
size_t support_jpeg(int samples, int progressive, int height, int width, uint8_t **bytes_p);

#endif
