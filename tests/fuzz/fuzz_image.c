/* covers: src/data/image.c src/data/crop.c */
/* SPDX-License-Identifier: MIT
 *
 * PNG and JPEG. What is accepted is cut in all ways and fitted to a small image, in gray and in
 * colour.
 */
#include <stdint.h>
#include <stdlib.h>

#include "data/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const uint32_t random[4] = {0x80000000, 0x12345679, 0xc0000000, 0xffffffff};
    uint8_t pixels[3 * 7 * 5];
    struct data_image image, header;
    base_status probed = data_image_probe(bytes, count, &header);

    if (data_image_decode(bytes, count, &image) == BASE_OK) {
        if (probed != BASE_OK || header.channels != image.channels ||
            header.height != image.height || header.width != image.width)
            abort();
        if (image.channels != 1 && image.channels != 3)
            abort();
        data_image_fit(&image, 3, 7, 5, pixels);
        data_image_crop(&image, DATA_CROP_CENTRE, 7, 5, NULL);
        data_image_fit(&image, 3, 7, 5, pixels);
        data_image_crop(&image, DATA_CROP_RANDOM, 7, 5, random);
        data_image_fit(&image, 1, 7, 5, pixels);
    }
    data_image_fini(&image);
    return 0;
}
